// SPDX-License-Identifier: Apache-2.0
#include "tunewright/stats/robust.hpp"

#include <doctest/doctest.h>

#include <stdexcept>
#include <vector>

using namespace tunewright;

TEST_CASE("medians of odd and even counts") {
  CHECK(stats::median(std::vector<double>{5}) == 5);
  CHECK(stats::median(std::vector<double>{9, 1, 5}) == 5);
  CHECK(stats::median(std::vector<double>{4, 1, 3, 2}) == 2.5);
  CHECK_THROWS_AS(static_cast<void>(stats::median(std::vector<double>{})), std::invalid_argument);
}

TEST_CASE("a burst moves neither the median nor the deviation") {
  // Distances from 3: 2 1 0 1 2 997.
  const std::vector<double> values{1, 2, 3, 4, 5, 1000};
  CHECK(stats::median(std::vector<double>{1, 2, 3, 4, 1000}) == 3);
  CHECK(stats::median(values) == 3.5);
  CHECK(stats::median_absolute_deviation(std::vector<double>{1, 2, 3, 4, 1000}) == 1);
  CHECK(stats::median_absolute_deviation(values) == 1.5);
}
