// SPDX-License-Identifier: Apache-2.0
#include "tunewright/schedulers/fixed.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "support/task_states.hpp"

using namespace tunewright;
using support::finished;
using support::task_state;
using Positions = std::vector<std::size_t>;

TEST_CASE("trials are divided as the shares are") {
  // trials / share: 0, 0 -> first; 5, 0 -> second; 5, 10 -> first; 10, 10 -> first of equals; 15, 10 -> second
  CHECK(support::choices(schedulers::Fixed{.shares = {2, 1}}, {task_state({}), task_state({})}, 6) ==
        Positions{0, 1, 0, 0, 1, 0});
  const Positions many = support::choices(schedulers::Fixed{.shares = {0.5, 0.3, 0.2}},
                                          {task_state({}), task_state({}), task_state({})}, 100);
  CHECK(std::count(many.begin(), many.end(), 0U) == 50);
  CHECK(std::count(many.begin(), many.end(), 1U) == 30);
  CHECK(std::count(many.begin(), many.end(), 2U) == 20);
}

TEST_CASE("what a finished task leaves goes to the others as their shares are") {
  const Positions chosen = support::choices(schedulers::Fixed{.shares = {9, 3, 1}},
                                            {finished(task_state({})), task_state({}), task_state({})}, 40);
  CHECK(std::count(chosen.begin(), chosen.end(), 1U) == 30);
  CHECK(std::count(chosen.begin(), chosen.end(), 2U) == 10);
}

TEST_CASE("shares that are none are refused with their number") {
  const std::vector tasks{task_state({}), task_state({})};
  const auto next = [&](std::vector<double> shares) {
    Rng rng;
    return schedulers::Fixed{.shares = std::move(shares)}.next(tasks, rng);
  };
  CHECK_THROWS_WITH_AS((void)next({}), doctest::Contains("0 shares for 2 tasks"), std::invalid_argument);
  CHECK_THROWS_WITH_AS((void)next({1, 2, 3}), doctest::Contains("3 shares for 2 tasks"), std::invalid_argument);
  for (const double share : {0.0, -1.0, static_cast<double>(NAN), static_cast<double>(INFINITY)})
    CHECK_THROWS_WITH_AS((void)next({1, share}), doctest::Contains("give positive ones"), std::invalid_argument);
}
