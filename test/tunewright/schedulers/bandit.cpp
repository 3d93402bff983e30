// SPDX-License-Identifier: Apache-2.0
#include "tunewright/schedulers/bandit.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <stdexcept>

#include "support/task_states.hpp"

using namespace tunewright;
using schedulers::Bandit;
using schedulers::TaskState;
using support::finished;
using support::task_state;
using Positions = std::vector<std::size_t>;

namespace {

// Throughput 4 / (1 + 30 / trials), in rounds of 10 trials.
TaskState by_curve(std::size_t rounds, double weight = 1) {
  std::vector<double> best_s;
  for (std::size_t i = 1; i <= rounds; ++i) best_s.push_back((1 + 3.0 / static_cast<double>(i)) / 4);
  return task_state(best_s, weight);
}

}  // namespace

TEST_CASE("a round gains what the curve of the task says, times latency and weight") {
  // 30 trials, throughput 2; at 40 trials 4 / 1.75: 0.5 s (1 - 1.75 / 2) = 0.0625 s
  CHECK(Bandit::gain(by_curve(3)) == doctest::Approx(0.0625).epsilon(1e-4));
  CHECK(Bandit::gain(by_curve(3, 4)) == doctest::Approx(0.25).epsilon(1e-4));
  CHECK(Bandit::gain(task_state({2, 2, 2, 2})) == doctest::Approx(0));
}

TEST_CASE("with fewer than three valid rounds throughput is expected to grow as trials do") {
  CHECK(Bandit::gain(task_state({4})) == doctest::Approx(2));        // 10 trials, then 20
  CHECK(Bandit::gain(task_state({4, 3}, 2)) == doctest::Approx(2));  // 2 * 3 (1 - 20 / 30)
  CHECK(Bandit::gain(task_state({support::never_valid, support::never_valid, 4})) == doctest::Approx(1));  // 30 / 40
  CHECK(Bandit::gain(task_state({support::never_valid})) == 0);
}

TEST_CASE("the upper confidence bound weighs gains against rounds") {
  // 8 rounds in all: 1 + sqrt(2 ln 8 / 3) = 2.18 against 0 + sqrt(2 ln 8 / 5) = 0.91
  CHECK(support::choices(Bandit{}, {task_state({2, 2, 2, 2, 2}), by_curve(3)}, 1) == Positions{1});
  // 31 rounds: 1 + sqrt(2 ln 31 / 27) = 1.50 against 0 + sqrt(2 ln 31 / 4) = 1.31; a bonus half again as large turns
  // it: exploration 4.5 gives 1.76 against 1.97
  const std::vector<TaskState> tasks{task_state({2, 2, 2, 2}), by_curve(27)};
  CHECK(support::choices(Bandit{}, tasks, 1) == Positions{1});
  CHECK(support::choices(Bandit{.exploration = 4.5}, tasks, 1) == Positions{0});
  // What a finished task would gain is no measure: 34 rounds, 1 + 0.51 against 0 + 1.33.
  CHECK(support::choices(Bandit{}, {task_state({2, 2, 2, 2}), by_curve(27), finished(by_curve(3, 1000))}, 1) ==
        Positions{1});
}

TEST_CASE("the bonus is of the logarithm of all rounds, those of finished tasks among them") {
  // 331 rounds: 1 + sqrt(2 ln 331 / 27) = 1.66 against 0 + sqrt(2 ln 331 / 4) = 1.70; of 31 it would be 1.50 to 1.31.
  CHECK(support::choices(Bandit{}, {task_state({2, 2, 2, 2}), by_curve(27), finished(by_curve(300))}, 1) ==
        Positions{0});
  // 3 rounds: 0 + sqrt(9.5 ln 3) = 3.23 against 1 + sqrt(9.5 ln 3 / 2) = 3.28; of ln 4 it would be 3.63 to 3.57.
  CHECK(support::choices(Bandit{.exploration = 9.5}, {task_state({1e-6}), task_state({4, 3})}, 1) == Positions{1});
}

TEST_CASE("without a bonus the largest gain is taken, and a task without a valid program counts as that") {
  const std::vector<TaskState> tasks{by_curve(4), by_curve(3), finished(task_state({}))};
  CHECK(support::choices(Bandit{.exploration = 0}, tasks, 1) == Positions{1});
  const std::vector<TaskState> failing{task_state({support::never_valid}), by_curve(3)};
  CHECK(support::choices(Bandit{.exploration = 0}, failing, 1) == Positions{0});  // the first of equals
}

TEST_CASE("each task has a round first") {
  CHECK(support::choices(Bandit{}, {by_curve(3), task_state({}), task_state({})}, 2) == Positions{1, 2});
}

TEST_CASE("an exploration that is negative or not finite is refused") {
  const std::vector<TaskState> tasks{task_state({1})};
  const auto refuses = [&](double exploration, const char* why) {
    Rng rng;
    const Bandit scheduler{.exploration = exploration};
    CHECK_THROWS_WITH_AS((void)scheduler.next(tasks, rng), doctest::Contains(why), std::invalid_argument);
    CHECK_THROWS_WITH_AS(scheduler.check_options(), doctest::Contains(why), std::invalid_argument);
  };
  refuses(-1, "Bandit: exploration is -1; give a finite one of at least 0");
  refuses(support::never_valid, "exploration is inf");
  refuses(std::numeric_limits<double>::quiet_NaN(), "exploration is nan");
  CHECK_NOTHROW(Bandit{.exploration = 0}.check_options());
}
