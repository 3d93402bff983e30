// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "tunewright/schedulers/concept.hpp"

namespace tunewright::schedulers {

/// Searches the tasks in turn: the one with the fewest rounds, the first among equals.
///
/// The baseline of every scheduler: it ignores weights, latencies and expected gains.
///
/// Models:      TaskScheduler.
/// Cost:        O(T).
/// Determinism: no randomness.
/// Errors:      `std::invalid_argument` if every task is finished.
struct RoundRobin {
  [[nodiscard]] std::size_t next(std::span<const TaskState> tasks, Rng&) const {
    return least_open(tasks, [&](std::size_t t) { return tasks[t].rounds.size(); });
  }
};

}  // namespace tunewright::schedulers
