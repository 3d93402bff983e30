// SPDX-License-Identifier: Apache-2.0
#include "tunewright/stats/robust.hpp"

#include <doctest/doctest.h>

#include <stdexcept>
#include <vector>

using namespace tunewright::stats;

TEST_CASE("median") {
  CHECK(median(std::vector<double>{3, 1, 2}) == 2);
  CHECK(median(std::vector<double>{4, 1, 3, 2}) == 2.5);
  CHECK(median(std::vector<double>{7}) == 7);
  CHECK_THROWS_AS((void)median(std::vector<double>{}), std::invalid_argument);
}

TEST_CASE("half of the values may be wild") {
  const std::vector<double> values{1.0, 1.1, 0.9, 1.0, 500, 900, 1e9};
  CHECK(median(values) == doctest::Approx(1.1));
  // distances from 1.1: 0.1 0 0.2 0.1 and three huge ones
  CHECK(median_absolute_deviation(values) == doctest::Approx(0.2));
}

TEST_CASE("median absolute deviation by hand") {
  // The textbook example: median 2, distances 1 1 0 0 2 4 7, sorted 0 0 1 1 2 4 7.
  CHECK(median_absolute_deviation(std::vector<double>{1, 1, 2, 2, 4, 6, 9}) == 1);
}

TEST_CASE("quantiles lie on the line between neighbours") {
  const std::vector<double> values{40, 10, 30, 20};
  CHECK(quantile(values, 0) == 10);
  CHECK(quantile(values, 1) == 40);
  CHECK(quantile(values, 0.5) == 25);
  CHECK(quantile(values, 0.25) == 17.5);  // position 0.75
  CHECK_THROWS_AS((void)quantile({}, 0.5), std::invalid_argument);
  CHECK_THROWS_AS((void)quantile(values, 1.5), std::invalid_argument);
  CHECK_THROWS_AS((void)quantile(values, -0.1), std::invalid_argument);
}

TEST_CASE("interval of the median from order statistics") {
  // Tables for n = 10: the 2nd and 9th value cover with 1 - 2 * 11 / 1024 = 0.9785; 3rd and 8th with 0.8906.
  std::vector<double> values{10, 9, 8, 7, 6, 5, 4, 3, 2, 1};
  auto interval = median_interval(values, 0.95);
  CHECK(interval.low == 2);
  CHECK(interval.high == 9);
  CHECK(interval.coverage == doctest::Approx(1 - 22.0 / 1024));
  interval = median_interval(values, 0.85);
  CHECK(interval.low == 3);
  CHECK(interval.high == 8);
  CHECK(interval.coverage == doctest::Approx(1 - 2 * 56.0 / 1024));
}

TEST_CASE("too few values give all they have") {
  auto interval = median_interval({3, 1, 2}, 0.95);
  CHECK(interval.low == 1);
  CHECK(interval.high == 3);
  CHECK(interval.coverage == doctest::Approx(0.75));  // 1 - 2^-2
  interval = median_interval({5}, 0.95);
  CHECK(interval.low == 5);
  CHECK(interval.high == 5);
  CHECK(interval.coverage == 0);
  CHECK_THROWS_AS((void)median_interval({}, 0.95), std::invalid_argument);
  CHECK_THROWS_AS((void)median_interval({1}, 1), std::invalid_argument);
}
