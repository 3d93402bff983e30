// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tunewright/core/hash.hpp"
#include "tunewright/core/history.hpp"
#include "tunewright/core/outcome.hpp"
#include "tunewright/json/scanner.hpp"
#include "tunewright/json/writer.hpp"
#include "tunewright/measurers/concept.hpp"
#include "tunewright/study/problem.hpp"
#include "tunewright/study/shared_lines.hpp"

namespace tunewright::study {

/// The final programs of the recipes on one problem with one seed, measured again, alternately, so that changes in the
/// speed of the machine affect all of them alike.
///
/// One of them is measured as two entrants: their difference is the noise of these measurements.
struct Finalists {
  std::string problem;
  std::uint64_t seed = 0;
  std::uint64_t conditions = 0;                     ///< as of the searches
  std::map<std::string, std::uint64_t> entrants{};  ///< by recipe: hash of its final configuration
  std::map<std::string, double> latencies_s{};      ///< by recipe; without those that now fail
  std::string twice{};                              ///< the recipe that entered twice; empty if there is none
  double again_s = 0;                               ///< its latency as the second entrant

  bool operator==(const Finalists&) const = default;
};

/// One line of JSON.
inline std::string to_line(const Finalists& finalists, const std::string& study) {
  LineWriter writer(study);
  writer.add("problem", finalists.problem);
  writer.add("seed", finalists.seed);
  writer.add("conditions", finalists.conditions);
  json::write_object(writer.begin("entrants"), finalists.entrants);
  json::write_object(writer.begin("latencies_s"), finalists.latencies_s);
  if (!finalists.twice.empty()) {
    writer.add("twice", finalists.twice);
    writer.add("again_s", finalists.again_s);
  }
  return std::move(writer).finish();
}

/// Reads finalists and the name of their study from a line. Throws `FormatError` for an invalid line.
inline void from_line(const std::string& line, Finalists& finalists, std::string& study) {
  unsigned known = 0;
  json::Scanner in(line);
  in.object([&](std::string_view key) {
    ++known;
    if (read_circumstances(in, key, finalists, study)) return;
    if (key == "latencies_s")
      in.object([&](std::string_view recipe) { finalists.latencies_s[std::string(recipe)] = in.number(); });
    else if (key == "entrants")
      in.object(
          [&](std::string_view recipe) { finalists.entrants[std::string(recipe)] = in.integer<std::uint64_t>(); });
    else {
      --known;
      if (key == "twice")
        finalists.twice = in.string();
      else if (key == "again_s")
        finalists.again_s = in.number();
      else
        in.skip_value();
    }
  });
  in.expect_end();
  if (known != 6) in.fail("expected finalists with their six members");
  const auto is_latency = [](double seconds) { return seconds > 0 && std::isfinite(seconds); };
  for (const auto& [recipe, latency_s] : finalists.latencies_s)
    if (!is_latency(latency_s) || !finalists.entrants.contains(recipe)) in.fail("expected latencies of entrants");
  if (!finalists.twice.empty() && (!finalists.latencies_s.contains(finalists.twice) || !is_latency(finalists.again_s)))
    in.fail("expected two latencies of whoever entered twice");
}

/// A measurer that measures programs of the space alternately and has no clock of its own.
template <class M, class Space>
concept MeasuresInTurns = ConfirmingMeasurerFor<M, program_t<Space>> && !HasOwnClock<M>;

/// An entrant: the recipe and the configuration encoded by `space.encode`.
struct Entrant {
  std::string recipe, config;
};
inline std::uint64_t hash_of(const Entrant& entrant) { return StableHash{}.add(entrant.config).value(); }

/// Measures the final programs of the recipes on `problem`. The first entrant enters again, after all others.
///
/// Throws `std::runtime_error` with the recipe if the space cannot decode its configuration, because the results belong
/// to another version of the space. Cost: compiling each program and the rounds of `Measurer::confirm`.
template <class Space, class Measurer>
  requires MeasuresInTurns<Measurer, Space>
Finalists measure_finalists(const Problem<Space, Measurer>& problem, std::uint64_t seed, std::uint64_t conditions,
                            std::vector<Entrant> entrants) {
  Finalists finalists{.problem = problem.name, .seed = seed, .conditions = conditions};
  if (entrants.empty()) return finalists;
  entrants.push_back(entrants.front());
  std::vector<program_t<Space>> programs;
  for (const Entrant& entrant : entrants) {
    const auto config = problem.space.decode(problem.task, entrant.config);
    if (!config) {
      throw std::runtime_error("what " + entrant.recipe + " ended with on " + problem.name +
                               " belongs to another version of the space; name another folder by --out=DIR");
    }
    programs.push_back(problem.space.lower(problem.task, *config));
  }
  Measurer measurer = problem.measurer ? problem.measurer() : Measurer{};
  const std::vector<Outcome> outcomes = measurer.confirm(problem.task, std::span<const program_t<Space>>(programs));
  for (std::size_t i = 0; i < entrants.size(); ++i) {
    const double latency_s = cost_s(outcomes.at(i));
    const bool second = i + 1 == entrants.size();
    if (!second) {
      finalists.entrants[entrants[i].recipe] = hash_of(entrants[i]);
      if (std::isfinite(latency_s)) finalists.latencies_s[entrants[i].recipe] = latency_s;
    } else if (std::isfinite(latency_s) && finalists.latencies_s.contains(entrants[i].recipe)) {
      finalists.twice = entrants[i].recipe;
      finalists.again_s = latency_s;
    }
  }
  return finalists;
}

}  // namespace tunewright::study
