// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tunewright/core/hash.hpp"
#include "tunewright/json/scanner.hpp"
#include "tunewright/json/writer.hpp"
#include "tunewright/study/shared_lines.hpp"
#include "tunewright/study/study.hpp"

/// Results that are known task by task, so that intervals can speak of other tasks as well as of other seeds.
namespace tunewright::study {

/// Values of one counter, by task.
using OfTasks = std::map<std::string, double>;

/// What one run found: counters by name.
using TaskCounters = std::map<std::string, OfTasks>;

inline double mean(const OfTasks& values) {
  double sum = 0;
  for (const auto& [task, value] : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

/// One run of a study that is no search, as a line of `OUT/tasks.1-of-1.jsonl`, from which `report` draws its
/// intervals. Of several lines about one run the last counts.
struct FinishedRun {
  std::string subject, data;
  std::uint64_t seed = 0;
  std::string conditions{};                 ///< options that what was found depends on
  std::map<std::string, double> figures{};  ///< counters that are not known task by task
  TaskCounters counters{};
};

/// One line of JSON.
inline std::string to_line(const FinishedRun& run, const std::string& study) {
  LineWriter writer(study);
  writer.add("subject", run.subject);
  writer.add("data", run.data);
  writer.add("seed", run.seed);
  writer.add("conditions", run.conditions);
  json::write_object(writer.begin("figures"), run.figures);
  std::string& line = writer.begin("counters");
  json::write_object(line, run.counters, [&](const auto& tasks) { json::write_object(line, tasks); });
  return std::move(writer).finish();
}

/// Reads a run from its line, and the name of the study that it belongs to. Throws `FormatError` for a line that is
/// none.
inline void from_line(const std::string& line, FinishedRun& run, std::string& study) {
  json::Scanner in(line);
  const auto read_object = [&](std::map<std::string, double>& values) {
    in.object([&](std::string_view name) {
      std::string key(name);  // the scanner's own, until the next one
      values[std::move(key)] = in.number();
    });
  };
  const auto read = [&](std::string_view key) {
    if (key == "study")
      study = in.string();
    else if (key == "subject")
      run.subject = in.string();
    else if (key == "data")
      run.data = in.string();
    else if (key == "seed")
      run.seed = in.integer<std::uint64_t>();
    else if (key == "conditions")
      run.conditions = in.string();
    else if (key == "figures")
      read_object(run.figures);
    else if (key == "counters")
      in.object([&](std::string_view name) {
        const std::string counter(name);
        read_object(run.counters[counter]);
      });
    else
      return false;
    return true;
  };
  read_members(in, "a run", {"study", "subject", "data", "seed", "conditions", "figures", "counters"}, read);
}

/// The options that a run depends on; seeds are told apart, and what was chosen to run is not part of it.
inline std::string conditions_of(const Options& options) {
  return "tasks=" + std::to_string(options.tasks) + " threads=" + std::to_string(options.threads) +
         options.conditions();
}

/// The same options, for a study whose results depend on what no option tells, such as the machine that measures, or
/// data that may grow: `hash` tells what it is, and a run with another one is another run.
[[nodiscard]] inline Options depending_on(Options options, const std::string& name, std::uint64_t hash) {
  options.others[name] = to_hex(hash);
  return options;
}

/// The study's runs of `OUT`. Lines that are none are told. Throws `std::runtime_error` for a folder that cannot be
/// used, and for one with results of another study: subjects and data of two may have the same names.
inline SharedLines<FinishedRun>& finished_runs(const Options& options) {
  static std::map<std::pair<std::filesystem::path, std::string>, SharedLines<FinishedRun>> all;
  const std::pair key(options.out, options.study);
  const auto known = all.find(key);
  if (known != all.end()) return known->second;
  auto& lines = all.emplace(key, SharedLines<FinishedRun>(options.out, "tasks", options.study, 1, 1)).first->second;
  for (const auto& [file, bad] : lines.bad())
    std::fprintf(stderr, "%s:%zu is left out: %s\n", file.c_str(), bad.number, bad.reason.c_str());
  return lines;
}

/// The finished run by these conditions; nothing where there is none. It becomes the last line about the run, which is
/// what `report` shows: a run by other conditions may have come behind it.
inline std::optional<FinishedRun> find_run(SharedLines<FinishedRun>& runs, const std::string& subject,
                                           const std::string& data, std::uint64_t seed, const std::string& conditions) {
  const auto is_this = [&](const FinishedRun& run) {
    return run.subject == subject && run.data == data && run.seed == seed;
  };
  const auto& all = runs.all();
  const auto last = std::find_if(all.rbegin(), all.rend(), is_this);
  const auto known = std::find_if(last, all.rend(),
                                  [&](const FinishedRun& run) { return is_this(run) && run.conditions == conditions; });
  if (known == all.rend()) return std::nullopt;
  FinishedRun found = *known;
  if (known != last) runs.add(found);
  return found;
}

/// Refuses a choice by a part of names that none of `names` has. Throws `std::invalid_argument` with all of them.
inline void check_part(const std::string& option, const std::string& part, const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) {
    if (name.find(part) != std::string::npos) return;
    all += (all.empty() ? "" : ", ") + name;
  }
  throw std::invalid_argument("--" + option + "=" + part + ": no name has that part; there are " + all);
}

/// Registers (subject, data, seed) as `add` does. `measure(state)` returns what is known of each task; means over tasks
/// become counters. A run that `OUT` has, by the same options, is not made again; `--minutes=N` lets none begin later.
/// Throws as `finished_runs`, before any run is made.
template <class F>
void add_of_tasks(const Options& options, const std::string& subject, const std::string& data, std::uint64_t seed,
                  F measure) {
  static_cast<void>(finished_runs(options));
  add(subject, data, seed,
      [options, subject, data, seed, conditions = conditions_of(options),
       measure = std::move(measure)](benchmark::State& state) {
        SharedLines<FinishedRun>& runs = finished_runs(options);
        if (const auto known = find_run(runs, subject, data, seed, conditions)) {
          for (const auto& [name, value] : known->figures) state.counters[name] = value;
          for (const auto& [counter, tasks] : known->counters) state.counters[counter] = mean(tasks);
          return;
        }
        if (options.is_out_of_time()) {
          state.SkipWithError(out_of_time);
          return;
        }
        FinishedRun run{.subject = subject, .data = data, .seed = seed, .conditions = conditions};
        run.counters = measure(state);
        std::size_t most = 0;
        for (const auto& [counter, tasks] : run.counters) most = std::max(most, tasks.size());
        state.counters["tasks"] = static_cast<double>(most);
        for (const auto& [name, counter] : state.counters) run.figures[name] = counter.value;
        for (const auto& [counter, tasks] : run.counters) state.counters[counter] = mean(tasks);
        runs.add(std::move(run));
      });
}

/// `metric(score, y)` of every group, [N] each; a task is the mean of its groups, such as the same operator on two
/// devices. `name[group]` is the task. Groups of which `metric` says nothing (NaN) are left out.
template <class Metric>
OfTasks of_tasks(std::span<const float> score, std::span<const float> y, std::span<const std::uint32_t> group,
                 const std::map<std::uint32_t, std::string>& name, const Metric& metric) {
  std::map<std::uint32_t, std::pair<std::vector<float>, std::vector<float>>> groups;
  for (std::size_t i = 0; i < group.size(); ++i) {
    groups[group[i]].first.push_back(score[i]);
    groups[group[i]].second.push_back(y[i]);
  }
  std::map<std::string, std::pair<double, double>> sums;
  for (const auto& [number, one] : groups) {
    const double value = metric(std::span<const float>(one.first), std::span<const float>(one.second));
    if (value != value) continue;
    auto& [sum, count] = sums[name.at(number)];
    sum += value;
    count += 1;
  }
  OfTasks values;
  for (const auto& [task, one] : sums) values[task] = one.first / one.second;
  return values;
}

/// first - second of the tasks that both know, times `unit`.
inline OfTasks difference(const OfTasks& first, const OfTasks& second, double unit = 1) {
  OfTasks values;
  for (const auto& [task, value] : first)
    if (const auto other = second.find(task); other != second.end()) values[task] = unit * (value - other->second);
  return values;
}

}  // namespace tunewright::study
