// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <stdexcept>
#include <utility>

#include "tunewright/schedulers/concept.hpp"

namespace tunewright::schedulers {

/// Tunes the tasks with the most operations in the network first:
///
///   order by   weight * operations of one run, descending
///
/// Every task first gets one round. Then each gets `rounds_in_a_row`, then the next; after the last one the order
/// starts again. If trials are short, the most important tasks have had theirs.
///
/// Models:      TaskScheduler.
/// Paper:       Verma et al., arXiv 2304.05430: kernels in the order of occurrences times operations.
/// Cost:        O(T).
/// Determinism: no randomness.
/// Deviates:    the paper tunes the first few of the order and does not say how many; here all get a turn.
/// Errors:      `std::invalid_argument` if every task is finished, and for zero `rounds_in_a_row`.
struct FlopsFirst {
  std::size_t rounds_in_a_row = 1;

  [[nodiscard]] std::size_t next(std::span<const TaskState> tasks, Rng&) const {
    if (rounds_in_a_row == 0) throw std::invalid_argument("FlopsFirst: 0 rounds_in_a_row; give at least 1");
    return least_open(tasks, [&](std::size_t t) {
      const std::size_t rounds = tasks[t].rounds.size();
      const std::size_t turns = rounds == 0 ? 0 : 1 + (rounds - 1) / rounds_in_a_row;
      return std::pair(turns, -tasks[t].weight * tasks[t].task.flops);
    });
  }
};

}  // namespace tunewright::schedulers
