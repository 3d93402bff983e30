// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
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
#include "tunewright/core/weighted_task.hpp"
#include "tunewright/json/scanner.hpp"
#include "tunewright/json/writer.hpp"
#include "tunewright/measurers/concept.hpp"
#include "tunewright/measurers/measure_batch.hpp"
#include "tunewright/study/problem.hpp"
#include "tunewright/study/shared_lines.hpp"

namespace tunewright::study {

/// The final programs of the recipes on one problem with one seed, measured again, alternately, so that changes in the
/// speed of the machine affect all of them alike. Those of a network are measured task by task; its latency is the sum
/// of weight times latency.
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
  json::Scanner in(line);
  const auto read = [&](std::string_view key) {
    if (read_circumstances(in, key, finalists, study)) return true;
    if (key == "latencies_s")
      in.object([&](std::string_view recipe) { finalists.latencies_s[std::string(recipe)] = in.number(); });
    else if (key == "entrants")
      in.object(
          [&](std::string_view recipe) { finalists.entrants[std::string(recipe)] = in.integer<std::uint64_t>(); });
    else if (key == "twice")
      finalists.twice = in.string();
    else if (key == "again_s")
      finalists.again_s = in.number();
    else
      return false;
    return true;
  };
  read_members(in, "finalists", {"study", "problem", "seed", "conditions", "entrants", "latencies_s"}, read);
  const auto is_latency = [](double seconds) { return seconds > 0 && std::isfinite(seconds); };
  for (const auto& [recipe, latency_s] : finalists.latencies_s)
    if (!is_latency(latency_s) || !finalists.entrants.contains(recipe)) in.fail("expected latencies of entrants");
  if (!finalists.twice.empty() && (!finalists.latencies_s.contains(finalists.twice) || !is_latency(finalists.again_s)))
    in.fail("expected two latencies of whoever entered twice");
}

/// A problem whose measurer measures programs alternately and has no clock of its own.
template <class P>
concept MeasuredInTurns = ConfirmingMeasurerFor<measurer_of<P>, program_t<space_of<P>>> && !HasOwnClock<measurer_of<P>>;

/// An entrant: the recipe and the configurations that it ended with, as `Searched::best_config` has them.
struct Entrant {
  std::string recipe, config;
};
inline std::uint64_t hash_of(const Entrant& entrant) { return StableHash{}.add(entrant.config).value(); }

namespace finalists_detail {

/// The programs of the entrants by task, all of them before any is measured. Throws as `measure_finalists` does.
template <MeasuredInTurns P>
std::vector<std::vector<program_t<space_of<P>>>> programs_by_task(const P& problem,
                                                                  const std::vector<Entrant>& entrants) {
  const std::vector<WeightedTask>& tasks = problem.weighted_tasks();
  std::vector<std::vector<program_t<space_of<P>>>> programs(tasks.size());
  for (const Entrant& entrant : entrants) {
    std::string_view unread = entrant.config;
    for (std::size_t t = 0; t < tasks.size(); ++t) {
      const bool last = t + 1 == tasks.size();
      const std::size_t length = last ? unread.size() : std::min(unread.find('\n'), unread.size());
      const auto config = problem.space.decode(tasks[t].task, std::string(unread.substr(0, length)));
      if (!config) {
        throw std::runtime_error("what " + entrant.recipe + " ended with on " + problem.name +
                                 " belongs to another version of the space; name another folder by --out=DIR");
      }
      programs[t].push_back(problem.space.lower(tasks[t].task, *config));
      unread.remove_prefix(std::min(length + 1, unread.size()));
    }
  }
  return programs;
}

}  // namespace finalists_detail

/// Measures the final programs of the recipes on `problem`. The first entrant enters again, after all others.
///
/// Throws `std::runtime_error` with the recipe if the space cannot decode its configuration, because the results belong
/// to another version of the space, and as `measurers::confirm_batch`. Cost: for each task compiling each program and
/// the rounds of `Measurer::confirm`.
template <MeasuredInTurns P>
Finalists measure_finalists(const P& problem, std::uint64_t seed, std::uint64_t conditions,
                            std::vector<Entrant> entrants) {
  Finalists finalists{.problem = problem.name, .seed = seed, .conditions = conditions};
  if (entrants.empty()) return finalists;
  entrants.push_back(entrants.front());
  const auto programs = finalists_detail::programs_by_task(problem, entrants);
  std::vector<double> latencies_s(entrants.size(), 0);
  measurer_of<P> measurer = problem.measurer ? problem.measurer() : measurer_of<P>{};
  const std::vector<WeightedTask>& tasks = problem.weighted_tasks();
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    const std::vector<Outcome> outcomes = measurers::confirm_batch(tasks[t].task, measurer, std::span(programs[t]));
    for (std::size_t i = 0; i < entrants.size(); ++i) latencies_s[i] += tasks[t].weight * cost_s(outcomes[i]);
  }
  for (std::size_t i = 0; i < entrants.size(); ++i) {
    const bool second = i + 1 == entrants.size();
    if (!second) {
      finalists.entrants[entrants[i].recipe] = hash_of(entrants[i]);
      if (std::isfinite(latencies_s[i])) finalists.latencies_s[entrants[i].recipe] = latencies_s[i];
    } else if (std::isfinite(latencies_s[i]) && finalists.latencies_s.contains(entrants[i].recipe)) {
      finalists.twice = entrants[i].recipe;
      finalists.again_s = latencies_s[i];
    }
  }
  return finalists;
}

}  // namespace tunewright::study
