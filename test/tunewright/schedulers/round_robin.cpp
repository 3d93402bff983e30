// SPDX-License-Identifier: Apache-2.0
#include "tunewright/schedulers/round_robin.hpp"

#include <doctest/doctest.h>

#include "support/task_states.hpp"

using namespace tunewright;
using support::finished;
using support::task_state;
using Positions = std::vector<std::size_t>;

TEST_CASE("every task in turn, whatever it weighs") {
  CHECK(support::choices(schedulers::RoundRobin{}, {task_state({}, 9), task_state({}), task_state({})}, 7) ==
        Positions{0, 1, 2, 0, 1, 2, 0});
}

TEST_CASE("finished tasks are passed over, and one with fewer rounds catches up") {
  CHECK(support::choices(schedulers::RoundRobin{}, {task_state({3, 2}), finished(task_state({})), task_state({1})},
                         4) == Positions{2, 0, 2, 0});
}
