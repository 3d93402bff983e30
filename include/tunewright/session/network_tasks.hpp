// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "tunewright/core/observer.hpp"
#include "tunewright/core/reason_counts.hpp"
#include "tunewright/core/record.hpp"
#include "tunewright/core/weighted_task.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/schedulers/concept.hpp"

namespace tunewright {

/// The tasks of a network before any search. Throws `std::invalid_argument` for no task, a repeated one, and a weight
/// that is not positive and finite.
[[nodiscard]] std::vector<schedulers::TaskState> network_tasks(std::span<const WeightedTask> tasks);

/// `records` grouped by task [T], in their order; `unusable` counts those of other tasks.
[[nodiscard]] std::vector<std::vector<Record>> records_of(std::span<const schedulers::TaskState> tasks,
                                                          std::span<const Record> records, ReasonCounts& unusable);

/// The status of the network from the states of its tasks.
[[nodiscard]] NetworkStatus status_of(std::span<const schedulers::TaskState> tasks);

}  // namespace tunewright

#if TUNEWRIGHT_DEFINES(core)

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>

#include "tunewright/core/number_text.hpp"

namespace tunewright {

TUNEWRIGHT_INLINE std::vector<schedulers::TaskState> network_tasks(std::span<const WeightedTask> tasks) {
  if (tasks.empty()) throw std::invalid_argument("a network of 0 tasks was given; give at least 1");
  std::vector<schedulers::TaskState> states;
  std::map<std::uint64_t, std::size_t> known;
  for (const auto& [task, weight] : tasks) {
    if (!(weight > 0) || !std::isfinite(weight)) {
      throw std::invalid_argument("task '" + task.name + "' has weight " + number_text(weight) +
                                  "; give the number of its occurrences, which is positive");
    }
    if (const auto [first, is_new] = known.emplace(stable_hash(task), states.size()); !is_new) {
      throw std::invalid_argument("tasks " + std::to_string(first->second) + ", '" + states[first->second].task.name +
                                  "', and " + std::to_string(states.size()) + ", '" + task.name +
                                  "', are the same; give it once, with the sum of the weights");
    }
    states.push_back({.task = task, .weight = weight});
    states.back().task.weight = weight;  // for parts that see only the task: journals, features
  }
  return states;
}

TUNEWRIGHT_INLINE std::vector<std::vector<Record>> records_of(std::span<const schedulers::TaskState> tasks,
                                                              std::span<const Record> records, ReasonCounts& unusable) {
  std::map<std::uint64_t, std::size_t> position;
  for (std::size_t t = 0; t < tasks.size(); ++t) position.emplace(stable_hash(tasks[t].task), t);
  std::vector<std::vector<Record>> sorted(tasks.size());
  for (const Record& record : records) {
    const auto found = position.find(record.task);
    if (found == position.end())
      ++unusable["another task"];
    else
      sorted[found->second].push_back(record);
  }
  return sorted;
}

TUNEWRIGHT_INLINE NetworkStatus status_of(std::span<const schedulers::TaskState> tasks) {
  NetworkStatus status{.tasks = tasks.size()};
  for (const schedulers::TaskState& one : tasks) {
    status.finished += one.finished ? 1U : 0U;
    status.flops += one.weight * one.task.flops;
    if (one.has_valid())
      status.latency += Seconds(one.weight * one.best_s());
    else
      status.names_without_valid.push_back(one.task.name);
  }
  status.without_valid = status.names_without_valid.size();
  return status;
}

}  // namespace tunewright

#endif
