// SPDX-License-Identifier: Apache-2.0
#include "tunewright/core/precision.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

namespace {

using namespace tunewright;

Timing timing(double median_s, double deviation_s, std::size_t repeats, StopReason stopped = StopReason::Precise) {
  return {.repeats = std::vector<Seconds>(repeats, Seconds(median_s)),
          .median = Seconds(median_s),
          .median_absolute_deviation = Seconds(deviation_s),
          .stopped = stopped};
}
struct Measured {
  Outcome outcome;
};

TEST_CASE("the standard error shrinks with the root of the repeats, and one repeat tells nothing") {
  // By hand: 1.2533 * 1.4826 * 0.02 / 2.
  CHECK(standard_error_s(timing(1, 0.02, 4)) == doctest::Approx(0.018581).epsilon(1e-4));
  CHECK(standard_error_s(timing(1, 0.02, 16)) == doctest::Approx(0.018581 / 2).epsilon(1e-4));
  CHECK(standard_error_s(timing(1, 0.02, 1)) == 0);
}

TEST_CASE("latencies are alike within two standard errors of their difference") {
  const Timing one = timing(1, 0.02, 4);
  CHECK(alike(one, timing(1.05, 0.02, 4)));  // 2 * sqrt(2) * 0.01858 = 0.0526
  CHECK_FALSE(alike(one, timing(1.06, 0.02, 4)));
  CHECK_FALSE(alike(timing(1, 0, 1), timing(1.0001, 0, 1)));
  CHECK(alike(timing(1, 0, 1), timing(1, 0, 1)));
}

TEST_CASE("what used up its repeats is imprecise, unless it had one only") {
  CHECK(is_imprecise(timing(1, 0.1, 8, StopReason::Budget)));
  CHECK_FALSE(is_imprecise(timing(1, 0.1, 8, StopReason::Precise)));
  CHECK_FALSE(is_imprecise(timing(1, 0.1, 8, StopReason::FarSlower)));
  CHECK_FALSE(is_imprecise(timing(1, 0, 1, StopReason::Budget)));
}

TEST_CASE("trials that are as fast as the best are counted without it") {
  const std::vector<Measured> trials{{{.result = timing(1.05, 0.02, 4)}},
                                     {{.result = Failure{}}},
                                     {{.result = timing(1, 0.02, 4)}},
                                     {{.result = timing(2, 0.02, 4)}},
                                     {{.result = timing(1.01, 0.02, 4)}}};
  CHECK(as_fast_as_best(trials) == 2);
  CHECK(as_fast_as_best(std::vector<Measured>{{{.result = Failure{}}}}) == 0);
  CHECK(as_fast_as_best(std::vector<Measured>{}) == 0);
  // The first of two equal ones counts as the fastest: 1.05 s is alike to it, and not to the exact second one.
  const std::vector<Measured> equal{
      {{.result = timing(1, 0.02, 4)}}, {{.result = timing(1, 0, 4)}}, {{.result = timing(1.05, 0.02, 4)}}};
  CHECK(as_fast_as_best(equal) == 2);
}

}  // namespace
