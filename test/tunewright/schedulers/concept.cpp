// SPDX-License-Identifier: Apache-2.0
#include "tunewright/schedulers/concept.hpp"

#include <doctest/doctest.h>

#include <stdexcept>

#include "support/task_states.hpp"

using namespace tunewright;
using schedulers::TaskState;
using support::finished;
using support::task_state;

TEST_CASE("a task before its first round has no trials and no valid program") {
  const TaskState fresh;
  CHECK(fresh.trials() == 0);
  CHECK_FALSE(fresh.has_valid());
  CHECK_FALSE(task_state({support::never_valid}).has_valid());
  const TaskState searched = task_state({support::never_valid, 2e-3});
  CHECK(searched.trials() == 20);
  CHECK(searched.best_s() == 2e-3);
  CHECK(searched.has_valid());
}

TEST_CASE("the first unvisited task is not a finished one") {
  const std::vector<TaskState> tasks{task_state({1}), finished(task_state({})), task_state({}), task_state({})};
  CHECK(schedulers::first_unvisited(tasks) == 2);
  CHECK(schedulers::first_unvisited(std::span(tasks).first(2)) == 2);  // none
}

TEST_CASE("of equals the first unfinished one is least") {
  const std::vector<TaskState> tasks{finished(task_state({1})), task_state({3}), task_state({2}), task_state({2})};
  CHECK(schedulers::least_open(tasks, [&](std::size_t t) { return tasks[t].best_s(); }) == 2);
}

TEST_CASE("choices that are none are told from those that are") {
  const std::vector<TaskState> tasks{finished(task_state({1}, 1, 1, "conv")), task_state({2})};
  CHECK_NOTHROW(schedulers::check_next(1, tasks));
  CHECK_THROWS_WITH_AS(schedulers::check_next(2, tasks), doctest::Contains("task 2 of 2"), std::logic_error);
  CHECK_THROWS_WITH_AS(schedulers::check_next(0, tasks), doctest::Contains("'conv', which is finished"),
                       std::logic_error);
  CHECK_NOTHROW(schedulers::check_open(tasks));
  CHECK_THROWS_WITH_AS(schedulers::check_open(std::span(tasks).first(1)), doctest::Contains("all of them are finished"),
                       std::invalid_argument);
  CHECK_THROWS_AS(schedulers::check_open({}), std::invalid_argument);
}
