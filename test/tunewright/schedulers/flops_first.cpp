// SPDX-License-Identifier: Apache-2.0
#include "tunewright/schedulers/flops_first.hpp"

#include <doctest/doctest.h>

#include <stdexcept>

#include "support/task_states.hpp"

using namespace tunewright;
using support::finished;
using support::task_state;
using Positions = std::vector<std::size_t>;

TEST_CASE("tasks come in the order of occurrences times operations, which begins anew") {
  // 1 * 5e6, 4 * 2e6, 2 * 3e6: the second, the third, the first
  const std::vector tasks{task_state({}, 1, 5e6), task_state({}, 4, 2e6), task_state({}, 2, 3e6)};
  CHECK(support::choices(schedulers::FlopsFirst{}, tasks, 5) == Positions{1, 2, 0, 1, 2});
  // One round of each first, so that the latency of the network is known.
  CHECK(support::choices(schedulers::FlopsFirst{.rounds_in_a_row = 2}, tasks, 10) ==
        Positions{1, 2, 0, 1, 1, 2, 2, 0, 0, 1});
}

TEST_CASE("a finished task loses its turn, and tasks without operations come last") {
  CHECK(support::choices(schedulers::FlopsFirst{},
                         {task_state({}, 8, 0), task_state({}, 1, 2e6), finished(task_state({}, 1, 9e6))},
                         3) == Positions{1, 0, 1});
}

TEST_CASE("no rounds in a row are refused") {
  Rng rng;
  const std::vector tasks{task_state({})};
  CHECK_THROWS_WITH_AS((void)schedulers::FlopsFirst{.rounds_in_a_row = 0}.next(tasks, rng),
                       doctest::Contains("give at least 1"), std::invalid_argument);
}
