// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "tunewright/detail/config.hpp"
#include "tunewright/schedulers/concept.hpp"

namespace tunewright::schedulers {

/// Treats tasks as arms of a bandit: the next round is for the task with the largest upper confidence bound of its
/// gain,
///
///   gain(i) / (largest gain) + sqrt(exploration * ln(all rounds) / (rounds of i))
///   gain(i) = weight(i) * g * (1 - f(x) / f(x + n))            [s] reduction of the network's latency
///
/// where g is the best latency of the task, x its trials, n its trials per round, and f the curve of its throughput 1 /
/// g against trials (`LearningCurve`). With fewer than three rounds with a valid program, f(x) = x, which is
/// optimistic. A task without a valid program has the largest gain of the others. Every task first gets one round.
///
/// Models:      TaskScheduler.
/// Paper:       Zhang et al., DynaTune, ICLR 2021; `exploration` and the family of curves of its released code.
/// Units:       latencies in seconds.
/// Cost:        O(rounds of all tasks), some 60 passes over them.
/// Determinism: no randomness.
/// Deviates:    in the code, the value of an arm is the predicted throughput in GFLOP/s, which dwarfs the bonus and
///              prefers tasks that are already fast; here it is the gain of the network, scaled to [0, 1] as the bound
///              requires. The code refines the curve by a Markov chain Monte Carlo ensemble with one point per trial;
///              here it is the least-squares curve with one point per round. A round is a slice of time there and a
///              batch here.
/// Errors:      `std::invalid_argument` if every task is finished, and for an exploration that is negative or not
///              finite.
struct Bandit {
  double exploration = 2;

  [[nodiscard]] std::size_t next(std::span<const TaskState> tasks, Rng& rng) const;

  /// Expected reduction of the network's latency by the next round of `task`, in seconds; 0 without a valid program.
  [[nodiscard]] static double gain(const TaskState& task);

  /// Throws `std::invalid_argument` for an exploration that is negative or not finite.
  void check_options() const;
};

}  // namespace tunewright::schedulers

#if TUNEWRIGHT_DEFINES(core)

#include <algorithm>
#include <cmath>
#include <vector>

#include "tunewright/core/require.hpp"
#include "tunewright/schedulers/learning_curve.hpp"

namespace tunewright::schedulers {

TUNEWRIGHT_INLINE std::size_t Bandit::next(std::span<const TaskState> tasks, Rng&) const {
  check_options();
  check_open(tasks);
  if (const std::size_t first = first_unvisited(tasks); first < tasks.size()) return first;
  double all_rounds = 0, largest = 0;
  std::vector<double> gains(tasks.size());
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    all_rounds += static_cast<double>(tasks[i].rounds.size());
    if (tasks[i].finished) continue;
    gains[i] = gain(tasks[i]);
    largest = std::max(largest, gains[i]);
  }
  return least_open(tasks, [&](std::size_t i) {
    double value = tasks[i].has_valid() ? 0 : 1;
    if (largest > 0 && tasks[i].has_valid()) value = gains[i] / largest;
    return -value - std::sqrt(exploration * std::log(all_rounds) / static_cast<double>(tasks[i].rounds.size()));
  });
}

TUNEWRIGHT_INLINE double Bandit::gain(const TaskState& task) {
  if (!task.has_valid()) return 0;
  std::vector<double> trials, throughput;
  for (const Round& round : task.rounds) {
    if (!std::isfinite(round.best_s)) continue;
    trials.push_back(static_cast<double>(round.trials));
    throughput.push_back(1 / round.best_s);
  }
  const auto x = static_cast<double>(task.trials());
  const double next_x = x + x / static_cast<double>(task.rounds.size());
  double grown = x / next_x;  // f(x) / f(x + n)
  if (trials.size() >= 3) {
    const LearningCurve f = LearningCurve::fitted(trials, throughput);
    grown = f(x) / f(next_x);
  }
  return task.weight * task.best_s() * (1 - grown);
}

TUNEWRIGHT_INLINE void Bandit::check_options() const {
  require(exploration >= 0 && std::isfinite(exploration), "Bandit", "exploration", exploration,
          "a finite one of at least 0 (2 is usual)");
}

}  // namespace tunewright::schedulers

#endif
