// SPDX-License-Identifier: Apache-2.0
#include "tunewright/core/budget.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace tunewright;

TEST_CASE("a budget that allows nothing is refused with its value and the remedy") {
  CHECK_THROWS_WITH_AS(check(Budget{.trials = 0}), doctest::Contains("0 trials"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(check(Budget{.batch = 0}), doctest::Contains("batch of 0"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(check(Budget{.time = Seconds(-3)}), doctest::Contains("-3"), std::invalid_argument);
  CHECK_THROWS_AS(check(Budget{.time = Seconds(NAN)}), std::invalid_argument);
  CHECK_NOTHROW(check(Budget{}));
}

TEST_CASE("a run ends by trials, then time, then patience") {
  const Budget budget{.trials = 10, .batch = 4, .time = Seconds(60), .patience_trials = 5};
  CHECK(exhausted(budget, 9, 4, Seconds(59)) == std::nullopt);
  CHECK(exhausted(budget, 10, 5, Seconds(60)) == Stop::Trials);
  CHECK(exhausted(budget, 9, 5, Seconds(60)) == Stop::Time);
  CHECK(exhausted(budget, 9, 5, Seconds(59)) == Stop::Patience);
}

TEST_CASE("without patience a run never ends for want of progress") {
  CHECK(exhausted(Budget{.trials = 1000}, 999, 999, Seconds(1e9)) == std::nullopt);
}

TEST_CASE("every reason to stop has a name") {
  for (const Stop stop : {Stop::Trials, Stop::Time, Stop::Patience, Stop::Exhausted, Stop::Requested}) {
    CHECK(name(stop) != "unknown");
  }
}

TEST_CASE("the clock is read often only where time is limited, and the more often the less is left") {
  CHECK(trials_before_next_look({}, 0, Seconds(0), 64) == 64);
  CHECK(trials_before_next_look({}, 10, Seconds(1e6), 64) == 64);
  const Budget budget{.time = Seconds(100)};
  CHECK(trials_before_next_look(budget, 0, Seconds(0), 64) == 8);  // nothing is known yet
  CHECK(trials_before_next_look(budget, 0, Seconds(1), 64) == 8);
  CHECK(trials_before_next_look(budget, 0, Seconds(1), 3) == 3);
  CHECK(trials_before_next_look(budget, 8, Seconds(20), 64) == 8);    // a quarter of 80 s is enough for 8
  CHECK(trials_before_next_look(budget, 12, Seconds(20), 64) == 12);  // or 12
  CHECK(trials_before_next_look(budget, 12, Seconds(20), 10) == 10);
  CHECK(trials_before_next_look(budget, 1000, Seconds(20), 64) == 64);
  CHECK(trials_before_next_look(budget, 1000, Seconds(99), 64) == 8);
  CHECK(trials_before_next_look(budget, 1000, Seconds(120), 64) == 8);
  CHECK(trials_before_next_look(budget, 5, Seconds(0), 64) == 64);  // they took no time
}
