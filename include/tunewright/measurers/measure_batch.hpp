// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "tunewright/core/history.hpp"
#include "tunewright/measurers/batch_outcomes.hpp"
#include "tunewright/measurers/concept.hpp"
#include "tunewright/spaces/concept.hpp"

namespace tunewright::measurers {

/// Receives the position of a candidate in the batch and its program, or null if the candidate cannot be lowered.
template <class Program>
using ProgramSink = std::function<void(std::size_t, const Program*)>;

/// Lowers each candidate once and measures the programs; returns one outcome per candidate, in order. A candidate that
/// cannot be lowered is an `InvalidSchedule` and never reaches the measurer; a latency that is not positive and finite,
/// or is beside a time that is negative or not finite, becomes `Unknown`. `sink` (may be empty) gets every outcome as
/// early as the measurer allows; `lowered` (may be empty) gets every program before any is measured. Throws
/// `std::logic_error` if the measurer does not return, or does not report to the sink, exactly one outcome for each
/// program.
template <SearchSpace S, MeasurerFor<program_t<S>> M>
[[nodiscard]] std::vector<Outcome> measure_batch(const S& space, const Task& task, M& measurer,
                                                 std::span<const Candidate<config_t<S>>> batch, const OutcomeSink& sink,
                                                 const ProgramSink<program_t<S>>& lowered = {}) {
  BatchOutcomes outcomes(batch.size(), sink);
  std::vector<program_t<S>> programs;  // [L <= B]
  for (std::size_t slot = 0; slot < batch.size(); ++slot) {
    try {
      programs.push_back(space.lower(task, batch[slot].config));
    } catch (const std::bad_alloc&) {
      throw;  // not a property of the candidate
    } catch (const std::exception& error) {
      if (lowered) lowered(slot, nullptr);
      outcomes.fail(slot, {Fault::InvalidSchedule, error.what()});
      continue;
    }
    outcomes.add_program(slot);
    if (lowered) lowered(slot, &programs.back());
  }
  if (programs.empty()) return std::move(outcomes).release();

  const std::span<const program_t<S>> all(programs);
  if constexpr (StreamingMeasurerFor<M, program_t<S>>) {
    const auto take = [&](std::size_t i, const Outcome& run) { outcomes.take(i, run); };
    const std::vector<Outcome> runs = measurer.measure(task, all, OutcomeSink(take));  // [L], as reported
    outcomes.require_all(runs.size(), "returned");
    outcomes.require_all(outcomes.known(), "reported");
  } else {
    std::vector<Outcome> runs = measurer.measure(task, all);  // [L]
    outcomes.require_all(runs.size(), "returned");
    for (std::size_t i = 0; i < runs.size(); ++i) outcomes.take(i, std::move(runs[i]));
  }
  return std::move(outcomes).release();
}

/// Measures programs again by the measurer's `confirm`. Impossible latencies become `Unknown`, as in `measure_batch`.
/// Throws `std::logic_error` if the measurer does not return one outcome for each program.
template <class Program, ConfirmingMeasurerFor<Program> M>
[[nodiscard]] std::vector<Outcome> confirm_batch(const Task& task, M& measurer, std::span<const Program> programs) {
  const OutcomeSink nobody;
  BatchOutcomes outcomes(programs.size(), nobody);
  for (std::size_t i = 0; i < programs.size(); ++i) outcomes.add_program(i);
  std::vector<Outcome> runs = measurer.confirm(task, programs);  // [L]
  outcomes.require_all(runs.size(), "returned");
  for (std::size_t i = 0; i < runs.size(); ++i) outcomes.take(i, std::move(runs[i]));
  return std::move(outcomes).release();
}

}  // namespace tunewright::measurers
