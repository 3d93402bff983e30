// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/core/history.hpp"
#include "tunewright/core/latency.hpp"
#include "tunewright/measurers/concept.hpp"
#include "tunewright/spaces/concept.hpp"

namespace tunewright::measurers {

/// Lowers candidates and measures them: one outcome a candidate, in order. A candidate that does not lower is
/// an `InvalidSchedule` and never reaches the measurer; one whose latency is not above 0 and finite is `Unknown`.
/// `sink` (may be empty) sees every outcome, as early as the measurer allows. Throws `std::logic_error` when the
/// measurer does not give one outcome for each program, to a streaming one's sink included.
template <SearchSpace S, MeasurerFor<program_t<S>> M>
[[nodiscard]] std::vector<Outcome> measure_batch(const S& space, const Task& task, M& measurer,
                                                 std::span<const Candidate<config_t<S>>> batch,
                                                 const OutcomeSink& sink) {
  std::vector<Outcome> outcomes(batch.size());
  std::vector<program_t<S>> programs;  // [L <= B]
  std::vector<std::size_t> origin;     // [L], positions in the batch
  const auto report = [&](std::size_t slot, const Outcome& outcome) {
    if (sink) sink(slot, outcome);
  };
  for (std::size_t slot = 0; slot < batch.size(); ++slot) {
    try {
      programs.push_back(space.lower(task, batch[slot].config));
      origin.push_back(slot);
    } catch (const std::bad_alloc&) {
      throw;  // says nothing about the candidate
    } catch (const std::exception& error) {
      outcomes[slot].result = Failure{Fault::InvalidSchedule, error.what()};
      report(slot, outcomes[slot]);
    }
  }
  if (programs.empty()) return outcomes;

  std::size_t known = 0;
  std::vector<char> is_known(programs.size());  // [L]
  const auto take = [&](std::size_t i, Outcome run) {
    if (i >= programs.size() || is_known[i]) {
      throw std::logic_error("the measurer reported outcome " + std::to_string(i) +
                             (i < programs.size() ? " twice" : "") + " for " + std::to_string(programs.size()) +
                             " programs; it owes one each, counted from 0");
    }
    is_known[i] = true;
    if (const auto latency = impossible_latency(run))
      run.result = Failure{Fault::Unknown, "a latency of " + std::to_string(latency->count()) + " s"};
    Outcome& outcome = outcomes[origin[i]];
    outcome = std::move(run);
    ++known;
    report(origin[i], outcome);
  };
  const auto require_all = [&](std::size_t given, const char* verb) {
    if (given == programs.size()) return;
    throw std::logic_error("the measurer " + std::string(verb) + " " + std::to_string(given) + " outcomes for " +
                           std::to_string(programs.size()) + " programs; it owes one each, in order");
  };
  const std::span<const program_t<S>> all(programs);
  if constexpr (StreamingMeasurerFor<M, program_t<S>>) {
    const std::vector<Outcome> runs = measurer.measure(task, all, OutcomeSink(take));  // [L], as reported
    require_all(runs.size(), "returned");
    require_all(known, "reported");
  } else {
    std::vector<Outcome> runs = measurer.measure(task, all);  // [L]
    require_all(runs.size(), "returned");
    for (std::size_t i = 0; i < runs.size(); ++i) take(i, std::move(runs[i]));
  }
  return outcomes;
}

}  // namespace tunewright::measurers
