// SPDX-License-Identifier: Apache-2.0
#include "tunewright/schedulers/learning_curve.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <vector>

using tunewright::schedulers::LearningCurve;

TEST_CASE("half of the limit is reached at the centre") {
  const LearningCurve curve{.limit = 4, .centre = std::log(30.0), .power = -1};  // 4 / (1 + 30 / x)
  CHECK(curve(10) == doctest::Approx(1));
  CHECK(curve(30) == doctest::Approx(2));
  CHECK(curve(90) == doctest::Approx(3));
}

TEST_CASE("the curve through points of a curve is that curve") {
  // 4 / (1 + 30 / x) at 10, 20, 30 and 60
  const LearningCurve curve =
      LearningCurve::fitted(std::vector<double>{10, 20, 30, 60}, std::vector<double>{1, 1.6, 2, 4 / 1.5});
  CHECK(curve.limit == doctest::Approx(4).epsilon(1e-4));
  CHECK(curve.centre == doctest::Approx(std::log(30.0)).epsilon(1e-4));
  CHECK(curve.power == doctest::Approx(-1).epsilon(1e-4));
}

TEST_CASE("a search that stands still goes on doing so, one that grows a little grows a little") {
  const std::vector<double> x{10, 20, 30};
  const LearningCurve still = LearningCurve::fitted(x, std::vector<double>{5, 5, 5});
  CHECK(still(30) == doctest::Approx(5));
  CHECK(still(1000) == doctest::Approx(5));
  const LearningCurve slow = LearningCurve::fitted(x, std::vector<double>{4, 5, 5});
  CHECK(slow(40) > slow(30));
  CHECK(slow(40) < 6);
}

TEST_CASE("a search that grows by no more than numbers are rounded by stands still") {
  std::vector<double> x;
  for (int i = 1; i <= 40; ++i) x.push_back(16 * i);
  for (int scale = 0; scale < 200; ++scale) {
    CAPTURE(scale);
    std::vector<double> y{700 + 3.7 * scale};
    while (y.size() < x.size()) y.push_back(y.size() % (2 + scale % 5) == 0 ? std::nextafter(y.back(), 1e9) : y.back());
    for (std::size_t n = 3; n <= x.size(); ++n) {
      const LearningCurve curve =
          LearningCurve::fitted(std::span<const double>(x).first(n), std::span<const double>(y).first(n));
      CHECK(curve(x[n - 1]) == doctest::Approx(y[n - 1]));
      CHECK(curve(2 * x[n - 1]) >= curve(x[n - 1]));
      CHECK(curve(2 * x[n - 1]) == doctest::Approx(y[n - 1]));
    }
  }
}

TEST_CASE("points that no search makes are refused") {
  const auto refuses = [](const std::vector<double>& x, const std::vector<double>& y, const char* why) {
    CHECK_THROWS_WITH_AS((void)LearningCurve::fitted(x, y), doctest::Contains(why), std::invalid_argument);
  };
  refuses({1, 2}, {1, 2}, "at least 3 points");
  refuses({1, 2, 3}, {1, 2}, "3 x and 2 y");
  refuses({1, 3, 2}, {1, 2, 3}, "point 2");
  refuses({1, 2, 3}, {1, 3, 2}, "point 2");
  refuses({0, 1, 2}, {1, 2, 3}, "point 0");
  refuses({1, 2, 3}, {0, 2, 3}, "point 0");
  refuses({1, 2, 3}, {1, 2, static_cast<double>(INFINITY)}, "point 2");
}
