// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "tunewright/schedulers/concept.hpp"

namespace tunewright::schedulers {

/// Every task in turn: the one with the fewest rounds, the first of equals.
///
/// The baseline of every scheduler: it knows of weights and latencies as little as of what a round may bring.
///
/// Models:      TaskScheduler.
/// Cost:        O(T). Determinism: no randomness.
/// Errors:      `std::invalid_argument` where every task is finished.
struct RoundRobin {
  [[nodiscard]] std::size_t next(std::span<const TaskState> tasks, Rng&) const {
    return least_open(tasks, [&](std::size_t t) { return tasks[t].rounds.size(); });
  }
};

}  // namespace tunewright::schedulers
