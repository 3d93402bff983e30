// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/schedulers/concept.hpp"

namespace tunewright::schedulers {

/// Gives every task its share of the trials: the next round is for the task with the least
///
///   trials(t) / share(t)
///
/// the first among equals. The unused trials of a finished task are divided in proportion to the other shares.
///
///   schedulers::Fixed scheduler{.shares = {0.5, 0.3, 0.2}};
///
/// Models:      TaskScheduler.
/// Shapes:      shares [T], in any unit.
/// Cost:        O(T).
/// Determinism: no randomness.
/// Errors:      `std::invalid_argument` if every task is finished, for different numbers of shares and tasks, and for
///              shares that are not positive and finite.
struct Fixed {
  std::vector<double> shares{};

  [[nodiscard]] std::size_t next(std::span<const TaskState> tasks, Rng&) const;
};

}  // namespace tunewright::schedulers

#if TUNEWRIGHT_DEFINES(core)

#include <cmath>
#include <stdexcept>
#include <string>

#include "tunewright/core/number_text.hpp"

namespace tunewright::schedulers {

TUNEWRIGHT_INLINE std::size_t Fixed::next(std::span<const TaskState> tasks, Rng&) const {
  if (shares.size() != tasks.size()) {
    throw std::invalid_argument("Fixed: " + std::to_string(shares.size()) + " shares for " +
                                std::to_string(tasks.size()) + " tasks; give one a task");
  }
  for (const double share : shares) {
    if (!(share > 0) || !std::isfinite(share)) {
      throw std::invalid_argument("Fixed: a share of " + number_text(share) +
                                  "; give positive ones, and leave out tasks that are not to be searched");
    }
  }
  return least_open(tasks, [&](std::size_t t) { return static_cast<double>(tasks[t].trials()) / shares[t]; });
}

}  // namespace tunewright::schedulers

#endif
