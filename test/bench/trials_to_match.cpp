// SPDX-License-Identifier: Apache-2.0
#include "../../bench/study/trials_to_match.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <stdexcept>

using namespace tunewright;

TEST_CASE("a search that does not match another one takes twice its trials, however soon it ended") {
  const study::Ended reference{.trials = 40, .latency_s = 2};
  CHECK(study::share_of_trials({.trials = 10, .latency_s = 2}, reference, 40) == 0.25);
  CHECK(study::share_of_trials({.trials = 60, .latency_s = 1}, reference, 40) == 1.5);
  CHECK(study::share_of_trials({.trials = 30, .latency_s = 3}, reference, 40) == 2);
  constexpr double never = std::numeric_limits<double>::infinity();
  CHECK(study::share_of_trials({.trials = 80, .latency_s = never}, reference, 40) == 2);
  CHECK_THROWS_AS(study::share_of_trials({.trials = 1, .latency_s = 1}, {.trials = 40, .latency_s = never}, 40),
                  std::runtime_error);
}
