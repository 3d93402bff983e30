// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <stdexcept>
#include <utility>

#include "tunewright/schedulers/concept.hpp"

namespace tunewright::schedulers {

/// The tasks that the network computes most in come first:
///
///   order by   weight * operations of one run, descending
///
/// Each gets `rounds_in_a_row`, then comes the next; after the last one the order begins anew. Where trials do not
/// suffice for all rounds, the tasks that matter most have had theirs.
///
/// Models:      TaskScheduler.
/// Paper:       Verma et al., arXiv 2304.05430: kernels in the order of occurrences times operations.
/// Cost:        O(T). Determinism: no randomness.
/// Deviates:    the paper tunes the first few of the order and does not say how many; here all have a turn.
/// Errors:      `std::invalid_argument` where every task is finished, and for no rounds in a row.
struct FlopsFirst {
  std::size_t rounds_in_a_row = 1;

  [[nodiscard]] std::size_t next(std::span<const TaskState> tasks, Rng&) const {
    if (rounds_in_a_row == 0) throw std::invalid_argument("FlopsFirst: 0 rounds_in_a_row; give at least 1");
    return least_open(tasks, [&](std::size_t t) {
      return std::pair(tasks[t].rounds.size() / rounds_in_a_row, -tasks[t].weight * tasks[t].task.flops);
    });
  }
};

}  // namespace tunewright::schedulers
