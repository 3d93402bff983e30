// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "tunewright/json/scanner.hpp"
#include "tunewright/json/writer.hpp"
#include "tunewright/study/course.hpp"
#include "tunewright/study/shared_lines.hpp"

namespace tunewright::study {

/// A finished search.
struct FinishedSearch {
  std::string recipe, problem;
  std::uint64_t seed = 0;
  std::uint64_t conditions = 0;  ///< hash of tasks, budget and options: what makes searches comparable; 0: unknown
  Course course{};
  std::string best_config{};  ///< as of `Searched`; empty if unknown
  bool operator==(const FinishedSearch&) const = default;
};

/// One line of JSON.
inline std::string to_line(const FinishedSearch& search, const std::string& study) {
  LineWriter writer(study);
  writer.add("recipe", search.recipe);
  writer.add("problem", search.problem);
  writer.add("seed", search.seed);
  writer.add("conditions", search.conditions);
  writer.add("trials", search.course.trials);
  writer.add("failed", search.course.failed);
  writer.add("imprecise", search.course.imprecise);
  writer.add("elapsed_s", search.course.elapsed_s);
  std::string& line = writer.begin("improvements");
  json::write_array(line, search.course.improvements, [&](const Improvement& one) {
    line += '[';
    json::write(line, one.trial);
    line += ", ";
    json::write(line, one.elapsed_s);
    line += ", ";
    json::write(line, one.best_s);
    line += ']';
  });
  if (!search.best_config.empty()) writer.add("best_config", search.best_config);
  return std::move(writer).finish();
}

/// Whether a search can have gone like that: counts of its trials, and improvements in order of trials, time and speed.
[[nodiscard]] inline bool is_possible(const Course& course) {
  constexpr std::size_t most_trials = std::size_t{1} << 53;  // reports count in double precision
  if (course.trials > most_trials || course.failed > course.trials || course.imprecise > course.trials) return false;
  Improvement last{.trial = 0, .elapsed_s = 0, .best_s = Course::infinity};
  for (const Improvement& one : course.improvements) {
    if (one.trial <= last.trial || !(one.elapsed_s >= last.elapsed_s) || !(one.best_s < last.best_s)) return false;
    last = one;
  }
  return last.trial <= course.trials && last.best_s > 0 && course.elapsed_s >= last.elapsed_s &&
         std::isfinite(course.elapsed_s);
}

/// Reads a search and the name of its study from a line. Throws `FormatError` for an invalid line.
inline void from_line(const std::string& line, FinishedSearch& search, std::string& study) {
  json::Scanner in(line);
  const auto read = [&](std::string_view key) {
    if (read_circumstances(in, key, search, study)) return true;
    if (key == "recipe")
      search.recipe = in.string();
    else if (key == "trials")
      search.course.trials = in.integer<std::size_t>();
    else if (key == "failed")
      search.course.failed = in.integer<std::size_t>();
    else if (key == "imprecise")
      search.course.imprecise = in.integer<std::size_t>();
    else if (key == "best_config")
      search.best_config = in.string();
    else if (key == "elapsed_s")
      search.course.elapsed_s = in.number();
    else if (key == "improvements")
      in.array([&] {
        Improvement one;
        in.expect('[');
        one.trial = in.integer<std::size_t>();
        in.expect(',');
        one.elapsed_s = in.number();
        in.expect(',');
        one.best_s = in.number();
        in.expect(']');
        search.course.improvements.push_back(one);
      });
    else
      return false;
    return true;
  };
  // Other programs may not know "imprecise" and "best_config".
  read_members(in, "a finished search",
               {"study", "recipe", "problem", "seed", "conditions", "trials", "failed", "elapsed_s", "improvements"},
               read);
  if (!is_possible(search.course)) {
    in.fail("expected failures and improvements among the " + std::to_string(search.course.trials) + " trials and " +
            std::to_string(search.course.elapsed_s) + " seconds, in order of trials, time and speed");
  }
}

/// Throws `std::invalid_argument` where searches of one problem were made under different conditions, among each other
/// or from those of searches to come, `planned` by problem: what they found says nothing of recipes. Unknown
/// conditions, of searches by other programs, fit all.
inline void check_conditions(std::span<const FinishedSearch> searches,
                             const std::map<std::string, std::uint64_t>& planned = {}) {
  std::map<std::string, const FinishedSearch*> first;
  for (const FinishedSearch& search : searches) {
    if (search.conditions == 0) continue;
    const FinishedSearch& other = *first.emplace(search.problem, &search).first->second;
    const auto to_come = planned.find(search.problem);
    const bool fits_plan = to_come == planned.end() || to_come->second == search.conditions;
    if (fits_plan && other.conditions == search.conditions) continue;
    const auto seeded = [](const FinishedSearch& one) { return one.recipe + " with seed " + std::to_string(one.seed); };
    throw std::invalid_argument("the search of " + search.problem + " by " + seeded(search) +
                                " was made with another task, budget or option than " +
                                (fits_plan ? "that by " + seeded(other) : "those to come") +
                                "; name another folder by --out=DIR, or by --recipes=A,B some that fit each other");
  }
}

/// The finished searches of a folder, in files `finished.*.jsonl`.
class FinishedSearches : public SharedLines<FinishedSearch> {
 public:
  explicit FinishedSearches(std::filesystem::path folder, std::string study, unsigned shard = 1, unsigned shards = 1)
      : SharedLines(std::move(folder), "finished", std::move(study), shard, shards) {
    for (std::size_t i = 0; i < all().size(); ++i) note(i);
  }

  /// Stores a search. Throws `std::runtime_error` if it cannot be written.
  const FinishedSearch& add(FinishedSearch search) {
    const FinishedSearch& added = SharedLines::add(std::move(search));
    note(all().size() - 1);
    return added;
  }

  /// Null if that search is not finished, whatever its conditions; the first of several. Valid until the next `add`.
  [[nodiscard]] const FinishedSearch* find(const std::string& recipe, const std::string& problem,
                                           std::uint64_t seed) const {
    const auto found = places_.find({recipe, problem, seed});
    return found == places_.end() ? nullptr : &all()[found->second];
  }

  /// The same. Throws `std::runtime_error` if the search was made under other conditions.
  [[nodiscard]] const FinishedSearch* find(const std::string& recipe, const std::string& problem, std::uint64_t seed,
                                           std::uint64_t conditions) const {
    const FinishedSearch* found = find(recipe, problem, seed);
    if (found == nullptr || found->conditions == conditions) return found;
    throw std::runtime_error("folder '" + folder().string() + "' has a search by " + recipe + " for " + problem +
                             " with another task, budget or option; name another folder by --out=DIR");
  }

 private:
  void note(std::size_t place) {
    const FinishedSearch& search = all()[place];
    places_.emplace(std::tuple(search.recipe, search.problem, search.seed), place);
  }

  std::map<std::tuple<std::string, std::string, std::uint64_t>, std::size_t> places_;  // in all(), of the first
};

}  // namespace tunewright::study
