// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/schedulers/concept.hpp"

namespace tunewright::schedulers {

/// Searches the task whose next round is expected to reduce the latency of the network, f, the sum of weight times
/// best, the most. After one round of each task, the next is the one with the least
///
///   gradient(i) = weight(i) * (alpha * backward(i) + (1 - alpha) * forward(i))    [s per round], at most 0
///   backward(i) = (g(t) - g(t - window)) / window            change in the last rounds; 0 for window rounds or less
///   forward(i)  = min(g(t) - g(t) / t, similar(i)) - g(t)    expected change of the next round
///   similar(i)  = beta * C(i) / max over j in the group of i of C(j) / g(j)
///
/// where g(t) is the best latency of the task after t rounds and C its operation count. The first term of `forward` is
/// optimistic: as if all further rounds together reached 0. The second expects a task to reach at least 1 / beta of the
/// throughput of the fastest in its group: tasks for which `similarity` gives the same text and whose operation counts
/// are similar (equal floor(log(C + 1) / log(golden ratio))). A task leaves its group temporarily if it is slower than
/// expected and has at least 6 rounds more than any other of the group. Without `similarity` there are no groups.
///
/// A task without a valid program is treated as one that has stood still at the largest weight(j) * g(j) of the others:
///
///   gradient(i) = -(1 - alpha) * max over j of (weight(j) * g(j)) / t
///
/// With probability `epsilon`, and if all gradients are equal, the choice is random among the unfinished tasks.
///
/// Models:      TaskScheduler.
/// Paper:       Zheng et al., Ansor, OSDI 2020, section 6; constants of its released code.
/// Units:       latencies in seconds.
/// Cost:        O(T), with groups O(T^2).
/// Determinism: a pure function of tasks and generator.
/// Deviates:    the derivative of f is its weight, while the code takes a difference quotient. The random choice with
///              probability epsilon is in the paper but not in its code. The code drops a task without a valid program
///              after its first round; here it is searched like the largest of the others. `backward` ignores rounds
///              before the first valid program. Membership of a group depends only on the current state, so a task may
///              return to it.
/// Errors:      `std::invalid_argument` if every task is finished, and for options out of range.
struct Gradient {
  double alpha = 0.2;                                    ///< weight of the backward term, in [0, 1]
  double beta = 2;                                       ///< slowdown against the fastest of its group, at least 1
  std::size_t backward_window = 3;                       ///< rounds, at least 1
  double epsilon = 0.05;                                 ///< share of random choices, in [0, 1]
  std::function<std::string(const Task&)> similarity{};  ///< text that similar tasks share; empty: no similar task

  [[nodiscard]] std::size_t next(std::span<const TaskState> tasks, Rng& rng) const;

  /// The gradient of the task at `i`, in seconds per round; 0 without a valid program, where `next` goes by the others.
  [[nodiscard]] double gradient(std::span<const TaskState> tasks, std::size_t i) const;

  /// Throws `std::invalid_argument` for options out of range.
  void check_options() const;

 private:
  [[nodiscard]] std::vector<double> gradients(std::span<const TaskState> tasks) const;
  [[nodiscard]] double latency_by_similar(std::span<const TaskState> tasks, std::size_t i) const;
};

}  // namespace tunewright::schedulers

#if TUNEWRIGHT_DEFINES(core)

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "tunewright/core/require.hpp"

namespace tunewright::schedulers {

TUNEWRIGHT_INLINE std::size_t Gradient::next(std::span<const TaskState> tasks, Rng& rng) const {
  check_options();
  check_open(tasks);
  if (const std::size_t first = first_unvisited(tasks); first < tasks.size()) return first;
  const double coin = rng.uniform();
  // Finished tasks also draw a number, so that the choice does not depend on when they were finished.
  std::vector<double> lot;
  for (std::size_t i = 0; i < tasks.size(); ++i) lot.push_back(rng.uniform());
  const auto by_lot = [&](std::size_t i) { return lot[i]; };
  if (coin < epsilon) return least_open(tasks, by_lot);
  const std::vector<double> slope = gradients(tasks);
  const std::size_t least = least_open(tasks, [&](std::size_t i) { return slope[i]; });
  for (std::size_t i = 0; i < tasks.size(); ++i)
    if (!tasks[i].finished && slope[i] != slope[least]) return least;
  return least_open(tasks, by_lot);
}

TUNEWRIGHT_INLINE std::vector<double> Gradient::gradients(std::span<const TaskState> tasks) const {
  double largest_s = 0;
  for (const TaskState& one : tasks)
    if (one.has_valid()) largest_s = std::max(largest_s, one.weight * one.best_s());
  std::vector<double> slope(tasks.size());  // of finished tasks 0
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].finished) continue;
    // Not a share of the present gradients: as these shrink with every round, it would never be the least.
    slope[i] = tasks[i].has_valid() ? gradient(tasks, i)
                                    : -(1 - alpha) * largest_s / static_cast<double>(tasks[i].rounds.size());
  }
  return slope;
}

TUNEWRIGHT_INLINE double Gradient::gradient(std::span<const TaskState> tasks, std::size_t i) const {
  const TaskState& task = tasks[i];
  if (!task.has_valid()) return 0;
  const double now_s = task.best_s();
  const std::size_t rounds = task.rounds.size();
  double backward = 0;
  if (rounds > backward_window) {
    const double then_s = task.rounds[rounds - 1 - backward_window].best_s;
    if (std::isfinite(then_s)) backward = (now_s - then_s) / static_cast<double>(backward_window);
  }
  const double optimistic_s = now_s - now_s / static_cast<double>(rounds);
  const double forward = std::min(optimistic_s, latency_by_similar(tasks, i)) - now_s;
  return task.weight * (alpha * backward + (1 - alpha) * forward);
}

TUNEWRIGHT_INLINE double Gradient::latency_by_similar(std::span<const TaskState> tasks, std::size_t i) const {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (!similarity || !(tasks[i].task.flops > 0)) return infinity;
  const std::string text = similarity(tasks[i].task);
  if (text.empty()) return infinity;
  const auto size_class = [](const TaskState& one) {
    return std::floor(std::log(one.task.flops + 1) / std::log(std::numbers::phi));
  };
  std::vector<std::size_t> group;  // valid ones, with i
  for (std::size_t j = 0; j < tasks.size(); ++j) {
    if (tasks[j].has_valid() && size_class(tasks[j]) == size_class(tasks[i]) && similarity(tasks[j].task) == text)
      group.push_back(j);
  }
  double best_rate = 0;
  std::size_t most_rounds = 0;
  for (const std::size_t j : group) {
    best_rate = std::max(best_rate, tasks[j].task.flops / tasks[j].best_s());
    if (j != i) most_rounds = std::max(most_rounds, tasks[j].rounds.size());
  }
  // The fastest never leaves. Nor need it be asked whether the task is slower than expected: of one that is not, no
  // latency below the present one is expected.
  if (group.size() < 2 || tasks[i].rounds.size() > 5 + most_rounds) return infinity;
  return beta * tasks[i].task.flops / best_rate;
}

TUNEWRIGHT_INLINE void Gradient::check_options() const {
  require(alpha >= 0 && alpha <= 1, "Gradient", "alpha", alpha, "one in [0, 1]");
  require(beta >= 1, "Gradient", "beta", beta, "one of at least 1");
  require(backward_window >= 1, "Gradient", "backward_window", static_cast<double>(backward_window),
          "one of at least 1");
  require(epsilon >= 0 && epsilon <= 1, "Gradient", "epsilon", epsilon, "one in [0, 1]");
}

}  // namespace tunewright::schedulers

#endif
