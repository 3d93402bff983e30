// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/schedulers/concept.hpp"

namespace support {

/// A task that had a round of 10 trials for each of `best_s`, after which that was its best latency.
inline tunewright::schedulers::TaskState task_state(std::vector<double> best_s, double weight = 1, double flops = 1e6,
                                                    std::string name = "task") {
  tunewright::schedulers::TaskState state;
  state.task.name = std::move(name);
  state.task.flops = flops;
  state.weight = weight;
  for (const double best : best_s) state.rounds.push_back({.trials = 10 * (state.rounds.size() + 1), .best_s = best});
  return state;
}

inline tunewright::schedulers::TaskState finished(tunewright::schedulers::TaskState state) {
  state.finished = true;
  return state;
}

inline constexpr double never_valid = std::numeric_limits<double>::infinity();

/// The tasks that `scheduler` chooses for the next `count` rounds, if no round brings anything.
template <class Scheduler>
std::vector<std::size_t> choices(Scheduler scheduler, std::vector<tunewright::schedulers::TaskState> tasks,
                                 std::size_t count, std::uint64_t seed = 1) {
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < count; ++i) {
    tunewright::Rng rng = tunewright::Rng(seed).split(i);
    chosen.push_back(scheduler.next(tasks, rng));
    tunewright::schedulers::TaskState& task = tasks.at(chosen.back());
    const double best_s = task.has_valid() || !task.rounds.empty() ? task.best_s() : 1e-3;
    task.rounds.push_back({.trials = task.trials() + 10, .best_s = best_s});
  }
  return chosen;
}

}  // namespace support
