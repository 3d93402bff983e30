// SPDX-License-Identifier: Apache-2.0
#include "tunewright/stats/robust.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
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

TEST_CASE("quantiles lie between the sorted values") {
  const std::vector<double> values{4, 1, 3, 2};
  CHECK(stats::quantile(values, 0) == 1);
  CHECK(stats::quantile(values, 0.25) == 1.75);  // value number 0.75: 1 + 0.75 (2 - 1)
  CHECK(stats::quantile(values, 0.5) == 2.5);
  CHECK(stats::quantile(values, 1) == 4);
  CHECK(stats::quantile({7}, 0.3) == 7);
}

TEST_CASE("an interval of order statistics covers the median with the binomial's probability") {
  // P(Binomial(9, 1/2) <= 1) = 10 / 512 and <= 2 = 46 / 512: the second and the eighth of nine values cover 0.961, the
  // third and the seventh 0.820.
  const std::vector<double> nine{9, 8, 7, 6, 5, 4, 3, 2, 1};
  const stats::MedianInterval wide = stats::median_interval(nine, 0.95);
  CHECK(wide.low == 2);
  CHECK(wide.high == 8);
  CHECK(wide.coverage == doctest::Approx(1 - 20.0 / 512));
  const stats::MedianInterval narrow = stats::median_interval(nine, 0.82);
  CHECK(narrow.low == 3);
  CHECK(narrow.high == 7);
  CHECK(narrow.coverage == doctest::Approx(1 - 92.0 / 512));
  const stats::MedianInterval few = stats::median_interval({5, 1, 2, 4, 3}, 0.95);  // too few: 1 - 2^-4
  CHECK(few.low == 1);
  CHECK(few.high == 5);
  CHECK(few.coverage == doctest::Approx(0.9375));
}

TEST_CASE("quantiles and intervals of nothing, or at no share, are refused") {
  const std::vector<double> values{1, 2, 3};
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double level : {-0.01, 1.01, nan}) {
    CHECK_THROWS_WITH_AS(static_cast<void>(stats::quantile(values, level)), doctest::Contains("give a value in [0, 1]"),
                         std::invalid_argument);
  }
  for (const double confidence : {0.0, 1.0, nan}) {
    CHECK_THROWS_WITH_AS(static_cast<void>(stats::median_interval(values, confidence)),
                         doctest::Contains("give a value in (0, 1)"), std::invalid_argument);
  }
  CHECK_THROWS_AS(static_cast<void>(stats::quantile({}, 0.5)), std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(stats::median_interval({})), std::invalid_argument);
}

TEST_CASE("what is not a number has no place in an order: it is refused, few values or many") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> few{2, nan, 1}, many(100, 1.0);
  many[70] = nan;
  const std::vector<double> values = few;
  CHECK_THROWS_WITH_AS(static_cast<void>(stats::median_and_deviation(few)),
                       "the median was asked for, but value 1 of 3 is not a number (NaN); leave it out",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(stats::median_and_deviation(many)), doctest::Contains("value 70 of 100"),
                       std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(stats::median(values)), std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(stats::median_absolute_deviation(values)), std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(stats::quantile(values, 0.5)), std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(stats::median_interval(values)), std::invalid_argument);
}

TEST_CASE("infinities are values, at no distance from themselves") {
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<double> values{1, infinity, infinity};
  CHECK(stats::median(std::vector<double>{1, infinity, 2}) == 2);
  CHECK(stats::median_absolute_deviation(values) == 0);  // of infinity, 0 and 0
  const stats::MedianAndDeviation of = stats::median_and_deviation(values);
  CHECK(of.median == infinity);
  CHECK(of.deviation == 0);
  CHECK(stats::quantile({1, infinity, infinity}, 0.75) == infinity);  // between two of them
  CHECK(stats::quantile({1, infinity}, 0.25) == infinity);
  CHECK(stats::quantile({1, -infinity}, 0.25) == -infinity);
  CHECK(stats::quantile({1, 2, infinity}, 0.25) == 1.5);
}
