// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "tunewright/core/rng.hpp"
#include "tunewright/core/task.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright {

namespace schedulers {

/// The progress of a task at the end of one of its rounds.
struct Round {
  std::size_t trials = 0;  ///< trials of the task, including failed ones
  double best_s =
      std::numeric_limits<double>::infinity();  ///< latency of its fastest program; infinite without a valid one
};

/// The state of one task of a network.
struct TaskState {
  Task task{};
  double weight = 1;            ///< occurrences in the network, positive
  std::vector<Round> rounds{};  ///< finished rounds, oldest first: trials rise, latencies never do
  bool finished = false;        ///< its space has nothing new, or it has not improved for a long time

  [[nodiscard]] std::size_t trials() const noexcept { return rounds.empty() ? 0 : rounds.back().trials; }
  [[nodiscard]] double best_s() const noexcept { return rounds.empty() ? Round{}.best_s : rounds.back().best_s; }
  [[nodiscard]] bool has_valid() const noexcept { return best_s() < Round{}.best_s; }
};

/// Throws `std::invalid_argument` if every task is finished, or there is none.
void check_open(std::span<const TaskState> tasks);

/// Throws `std::logic_error` if `chosen` is not a task, or is finished.
void check_next(std::size_t chosen, std::span<const TaskState> tasks);

/// The position of the first task that is neither finished nor visited, or `tasks.size()`.
[[nodiscard]] std::size_t first_unvisited(std::span<const TaskState> tasks);

/// The position of the unfinished task with the least `value(t)`, the first among equals. There must be one.
template <class F>
[[nodiscard]] std::size_t least_open(std::span<const TaskState> tasks, F value) {
  check_open(tasks);
  std::size_t least = tasks.size();
  for (std::size_t t = 0; t < tasks.size(); ++t)
    if (!tasks[t].finished && (least == tasks.size() || value(t) < value(least))) least = t;
  return least;
}

}  // namespace schedulers

/// Decides which task of a network is searched next.
///
/// `next(tasks, rng)` returns the position of an unfinished task [T] for the next round. It is called only while there
/// is one.
///
/// Semantics the compiler cannot see: the choice depends only on the arguments, so that a stopped search resumes as if
/// it had not been stopped; every unfinished task is eventually chosen; a task of larger weight is worth more.
template <class S>
concept TaskScheduler = requires(S& scheduler, std::span<const schedulers::TaskState> tasks, Rng& rng) {
  { scheduler.next(tasks, rng) } -> std::same_as<std::size_t>;
};

}  // namespace tunewright

#if TUNEWRIGHT_DEFINES(core)

#include <algorithm>
#include <stdexcept>
#include <string>

namespace tunewright::schedulers {

TUNEWRIGHT_INLINE void check_open(std::span<const TaskState> tasks) {
  if (std::any_of(tasks.begin(), tasks.end(), [](const TaskState& one) { return !one.finished; })) return;
  throw std::invalid_argument("a scheduler was asked for one of " + std::to_string(tasks.size()) +
                              " tasks, and all of them are finished; ask while one is not");
}

TUNEWRIGHT_INLINE void check_next(std::size_t chosen, std::span<const TaskState> tasks) {
  if (chosen >= tasks.size()) {
    throw std::logic_error("the scheduler chose task " + std::to_string(chosen) + " of " +
                           std::to_string(tasks.size()) + "; return a position in the list of tasks");
  }
  if (tasks[chosen].finished) {
    throw std::logic_error("the scheduler chose task " + std::to_string(chosen) + ", '" + tasks[chosen].task.name +
                           "', which is finished; choose among those that are not");
  }
}

TUNEWRIGHT_INLINE std::size_t first_unvisited(std::span<const TaskState> tasks) {
  const auto found = std::find_if(tasks.begin(), tasks.end(),
                                  [](const TaskState& one) { return !one.finished && one.rounds.empty(); });
  return static_cast<std::size_t>(found - tasks.begin());
}

}  // namespace tunewright::schedulers

#endif
