// SPDX-License-Identifier: Apache-2.0
#include "tunewright/stats/robust.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <stdexcept>
#include <utility>
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

TEST_CASE("median and deviation at once are what each is alone, with the values sorted") {
  const auto both = [](std::vector<double> values) {
    const stats::MedianAndDeviation of = stats::median_and_deviation(values);
    CHECK(std::is_sorted(values.begin(), values.end()));
    return std::pair(of.median, of.deviation);
  };
  CHECK(both({7}) == std::pair(7.0, 0.0));
  CHECK(both({3, 1000, 1, 4, 2}) == std::pair(3.0, 1.0));     // distances 2 1 0 1 997
  CHECK(both({5, 1000, 1, 4, 3, 2}) == std::pair(3.5, 1.5));  // 2.5 1.5 0.5 0.5 1.5 996.5
  CHECK(both({2, 7, 2, 2}) == std::pair(2.0, 0.0));           // 0 0 0 5
  CHECK(both({9, 9, 9, 1, 1, 1}) == std::pair(5.0, 4.0));     // all 4
  std::vector<double> many;
  for (int i = 0; i < 101; ++i) many.push_back((i * 37) % 101);  // 0 to 100 in disorder
  CHECK(both(many) == std::pair(50.0, 25.0));
  std::vector<double> none;
  CHECK_THROWS_AS(static_cast<void>(stats::median_and_deviation(none)), std::invalid_argument);
}
