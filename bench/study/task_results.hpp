// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/json/writer.hpp"
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

/// Appends a line to `OUT/tasks.jsonl`, from which `report` draws its intervals. Of several lines about one run the
/// last counts.
inline void write_tasks(const std::filesystem::path& out, const std::string& subject, const std::string& data,
                        std::uint64_t seed, const TaskCounters& counters) {
  std::string line = "{\"subject\":";
  json::write(line, subject);
  line += ",\"data\":";
  json::write(line, data);
  line += ",\"seed\":";
  json::write(line, seed);
  line += ",\"counters\":{";
  bool first = true;
  for (const auto& [counter, tasks] : counters) {
    if (!std::exchange(first, false)) line += ',';
    json::write(line, counter);
    line += ":{";
    bool first_task = true;
    for (const auto& [task, value] : tasks) {
      if (!std::exchange(first_task, false)) line += ',';
      json::write(line, task);
      line += ':';
      json::write(line, value);
    }
    line += '}';
  }
  line += "}}\n";
  std::filesystem::create_directories(out);
  std::ofstream file(out / "tasks.jsonl", std::ios::app);
  file << line;
  if (!file.flush()) throw std::runtime_error((out / "tasks.jsonl").string() + " cannot be written");
}

/// Registers (subject, data, seed) as `add` does. `measure(state)` returns what is known of each task; means over tasks
/// become counters, and `report` finds the tasks in `OUT/tasks.jsonl`.
template <class F>
void add_of_tasks(const Options& options, const std::string& subject, const std::string& data, std::uint64_t seed,
                  F measure) {
  add(subject, data, seed,
      [out = options.out, subject, data, seed, measure = std::move(measure)](benchmark::State& state) {
        const TaskCounters counters = measure(state);
        std::size_t most = 0;
        for (const auto& [counter, tasks] : counters) {
          state.counters[counter] = mean(tasks);
          most = std::max(most, tasks.size());
        }
        state.counters["tasks"] = static_cast<double>(most);
        write_tasks(out, subject, data, seed, counters);
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
