// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../parse_number.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/study/intervals.hpp"

/// What studies that are no searches found, read from their JSON and, task by task, from the lines beside it.
namespace tunewright::study {

/// Values by seed.
using OfSeeds = OfTrainings;

/// Whether there is enough to draw from: two tasks, or one with `fewest_trainings` seeds.
inline bool has_interval(const std::vector<OfSeeds>& tasks) {
  return tasks.size() > 1 || (tasks.size() == 1 && tasks[0].size() >= fewest_trainings);
}

/// Values of one counter: one a seed, and, where they are known, those of each task and seed that it is the mean of.
struct Samples {
  OfSeeds values;  ///< none in a pool of data sets
  std::map<std::string, OfSeeds> tasks;

  /// A seed is one training, which judges all tasks.
  [[nodiscard]] Interval interval() const {
    if (known_) return *known_;
    std::vector<OfSeeds> all;
    for (const auto& [task, of_seeds] : tasks) all.push_back(of_seeds);
    if (all.empty()) all.push_back(values);
    const bool finite = std::all_of(all.begin(), all.end(), [](const OfSeeds& one) {
      return std::all_of(one.begin(), one.end(), [](const auto& of_seed) { return std::isfinite(of_seed.second); });
    });
    known_ = finite && has_interval(all) ? mean_over_tasks_and_trainings(all, Rng(1)) : without_interval(all);
    return *known_;
  }

 private:
  static Interval without_interval(const std::vector<OfSeeds>& all) {
    double sum = 0;
    for (const OfSeeds& of_seeds : all) {
      double of_task = 0;
      for (const auto& [seed, value] : of_seeds) of_task += value / static_cast<double>(of_seeds.size());
      sum += of_task / static_cast<double>(all.size());
    }
    return {sum, sum, sum};
  }
  mutable std::optional<Interval> known_;  // draws take a while, and tables and figures share them
};

using Counters = std::map<std::string, Samples>;

struct StudyResults {
  std::vector<std::pair<std::string, std::vector<std::string>>> recipes;         // by data set, as they ran
  std::map<std::pair<std::string, std::string>, Counters> results;               // by data set and recipe
  std::map<std::pair<std::string, std::string>, std::set<std::uint64_t>> seeds;  // of those
  std::set<std::string> counters;
  std::set<std::string> pools;  // data sets that are made of others
  std::vector<std::string> errors;
  std::string options, date;
};

/// Reads what `tasks.*.jsonl` of the folder tell task by task. The last of several lines about one run counts; runs
/// that the JSON does not tell of are left out.
inline void read_tasks(const std::filesystem::path& folder, StudyResults& study) {
  if (!std::filesystem::is_directory(folder)) return;
  std::map<std::pair<std::pair<std::string, std::string>, std::uint64_t>, nlohmann::json> runs;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("tasks.") || !name.ends_with(".jsonl")) continue;
    std::ifstream lines(entry.path());
    std::size_t number = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      if (line.empty()) continue;
      const nlohmann::json run = nlohmann::json::parse(line, nullptr, false);
      if (run.is_discarded()) {  // half a line of a study that was killed, or a number that JSON has not
        std::fprintf(stderr, "%s:%zu is left out: no JSON\n", entry.path().c_str(), number);
        continue;
      }
      runs[{{run.at("data"), run.at("subject")}, run.at("seed")}] = run.at("counters");
    }
  }
  for (const auto& [run, counters] : runs) {
    const auto& [recipe_on_data, seed] = run;
    if (const auto told = study.seeds.find(recipe_on_data); told == study.seeds.end() || !told->second.contains(seed))
      continue;
    Counters& result = study.results.at(recipe_on_data);
    for (const auto& [counter, tasks] : counters.items())
      for (const auto& [task, value] : tasks.items()) result[counter].tasks[task][seed] = value.get<double>();
  }
}

/// The number of a recipe that is called "name@number"; nothing for one without "@". Throws `std::invalid_argument` for
/// one with anything else after it.
inline std::optional<double> number_of(const std::string& recipe) {
  const std::size_t at = recipe.rfind('@');
  if (at == std::string::npos) return std::nullopt;
  if (const std::optional<double> number = bench::finite_number(std::string_view(recipe).substr(at + 1))) return number;
  throw std::invalid_argument("recipe '" + recipe + "' has '" + recipe.substr(at + 1) +
                              "' after its @, where figures have a number; call it name@number, or leave out the @");
}

/// Reads the JSON of a study. Throws `std::exception` for a file that is none.
inline StudyResults read_study(const std::string& path) {
  const auto json = nlohmann::json::parse(std::ifstream(path));
  StudyResults study;
  study.options = json.at("context").value("options", "");
  study.date = json.at("context").value("date", "").substr(0, 10);
  for (const auto& run : json.at("benchmarks")) {
    const std::string name = run.at("name");
    const std::size_t first = name.find('/');
    const std::size_t second = first == std::string::npos ? first : name.find("/seed:", first + 1);
    if (second == std::string::npos) throw std::runtime_error(path + ": no recipe, data and seed in " + name);
    if (run.value("error_occurred", false)) {
      study.errors.push_back(name + ": " + run.value("error_message", ""));
      continue;
    }
    const std::string recipe = name.substr(0, first), data = name.substr(first + 1, second - first - 1);
    const std::size_t of_seed = second + std::string_view("/seed:").size();
    const std::uint64_t seed =
        bench::parse_number(name.substr(of_seed, name.find('/', of_seed) - of_seed), "the seed of " + name, 0);
    static const std::set<std::string> not_counters{"family_index", "per_family_instance_index",
                                                    "repetitions",  "repetition_index",
                                                    "threads",      "iterations",
                                                    "real_time",    "cpu_time"};
    if (study.results.find({data, recipe}) == study.results.end()) {
      static_cast<void>(number_of(recipe));  // before any table is made
      if (study.recipes.empty() || study.recipes.back().first != data) {
        std::size_t known = 0;
        while (known < study.recipes.size() && study.recipes[known].first != data) ++known;
        if (known == study.recipes.size()) study.recipes.emplace_back(data, std::vector<std::string>{});
      }
      for (auto& [of, names] : study.recipes)
        if (of == data) names.push_back(recipe);
    }
    Counters& counters = study.results[{data, recipe}];
    study.seeds[{data, recipe}].insert(seed);
    for (const auto& [key, value] : run.items()) {
      if (!value.is_number() || not_counters.contains(key)) continue;
      counters[key].values[seed] = value.get<double>();
      study.counters.insert(key);
    }
  }
  return study;
}

/// Data sets of which the name matches `pattern`, as one called `name`; nothing where there is no such data set. Tasks
/// of different data sets are different tasks; seeds are all that any of the data sets has.
inline void add_pool(StudyResults& study, const std::string& name, const std::regex& pattern) {
  std::vector<std::string> sets, recipes;
  for (const auto& [data, of_set] : study.recipes) {
    if (study.pools.contains(data) || !std::regex_match(data, pattern)) continue;
    if (sets.empty()) recipes = of_set;
    sets.push_back(data);
    std::erase_if(recipes, [&, known = &of_set](const std::string& recipe) {
      return std::find(known->begin(), known->end(), recipe) == known->end();
    });
  }
  if (sets.empty()) return;
  for (const std::string& recipe : recipes) {
    Counters& pooled = study.results[{name, recipe}];
    std::set<std::uint64_t>& seeds = study.seeds[{name, recipe}];
    for (const std::string& data : sets) {
      const std::set<std::uint64_t>& own = study.seeds.at({data, recipe});
      seeds.insert(own.begin(), own.end());
      for (const auto& [counter, samples] : study.results.at({data, recipe}))
        for (const auto& [task, values] : samples.tasks) pooled[counter].tasks[data + "/" + task] = values;
    }
  }
  study.recipes.emplace_back(name, std::move(recipes));
  study.pools.insert(name);
}

/// A comparison of two recipes that a study's pools ask for.
struct Difference {
  std::string name, of, less, counter;
};

/// What is paired with a recipe: itself with another name before the "@"; nothing where it is not the one of `of`.
inline std::optional<std::string> partner(const std::string& recipe, const Difference& difference) {
  const std::size_t at = std::min(recipe.find('@'), recipe.size());
  if (recipe.substr(0, at) != difference.of) return std::nullopt;
  return difference.less + recipe.substr(at);
}

/// first - second of two recipes, task by task and seed by seed, on the tasks that both know by the same seeds.
inline std::vector<OfSeeds> differences(const Samples& first, const Samples& second) {
  std::vector<OfSeeds> all;
  for (const auto& [task, of_seeds] : first.tasks) {
    const auto same = second.tasks.find(task);
    if (same == second.tasks.end()) continue;
    const auto has_seed = [&](const auto& one) { return same->second.contains(one.first); };
    if (same->second.size() != of_seeds.size() || !std::all_of(of_seeds.begin(), of_seeds.end(), has_seed)) continue;
    OfSeeds& of_task = all.emplace_back();
    for (const auto& [seed, value] : of_seeds) of_task[seed] = value - same->second.at(seed);
  }
  return all;
}

/// How many seeds the tasks have, all together.
inline std::size_t count_of_seeds(const std::vector<OfSeeds>& tasks) {
  std::set<std::uint64_t> seeds;
  for (const OfSeeds& of_task : tasks)
    for (const auto& [seed, value] : of_task) seeds.insert(seed);
  return seeds.size();
}

}  // namespace tunewright::study
