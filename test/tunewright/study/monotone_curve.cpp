// SPDX-License-Identifier: Apache-2.0
#include "tunewright/study/monotone_curve.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/refusal.hpp"

using namespace tunewright;
using study::MonotoneCurve;

TEST_CASE("a curve of three points, by hand") {
  // Distances 1 and 2, slopes 1 and 0.5. Derivative in the middle: 9 / (5 / 1 + 4 / 0.5) = 9 / 13; at the ends
  // (4 * 1 - 1 * 0.5) / 3 = 7 / 6 and (5 * 0.5 - 2 * 1) / 3 = 1 / 6. Half-way of the second part:
  // (1 + 2) / 2 + 2 / 8 * (9 / 13 - 1 / 6), of the first: 1 / 2 + 1 / 8 * (7 / 6 - 9 / 13).
  const MonotoneCurve curve({0, 1, 3}, {0, 1, 2});
  CHECK(curve(0) == 0);
  CHECK(curve(1) == 1);
  CHECK(curve(3) == 2);
  CHECK(curve(0.5) == doctest::Approx(0.5 + (7.0 / 6 - 9.0 / 13) / 8).epsilon(1e-14));
  CHECK(curve(2) == doctest::Approx(1.5 + (9.0 / 13 - 1.0 / 6) / 4).epsilon(1e-14));
}

TEST_CASE("two points are a line, a turn is flat, and an end does not overshoot") {
  const MonotoneCurve line({2, 4}, {10, 4});
  CHECK(line(3) == doctest::Approx(7));
  // At a turn the derivative is 0; slopes 1 and -4, so that the end's (3 * 1 + 4) / 2 = 3.5 is cut to 3 * 1.
  const MonotoneCurve turn({0, 1, 2}, {0, 1, -3});
  CHECK(turn(0.5) == doctest::Approx(0.5 + 3.0 / 8));
  // With slopes 1 and -2 it is (3 * 1 + 2) / 2 = 2.5, which stays.
  const MonotoneCurve gentle({0, 1, 2}, {0, 1, -1});
  CHECK(gentle(0.5) == doctest::Approx(0.5 + 2.5 / 8));
  // Slopes 1 and 5: the end's (3 * 1 - 5) / 2 is negative, so it is 0; the middle is 6 / (3 / 1 + 3 / 5).
  const MonotoneCurve steep({0, 1, 2}, {0, 1, 6});
  CHECK(steep(0.5) == doctest::Approx(0.5 - 6 / 3.6 / 8));
}

TEST_CASE("a curve falls wherever its points do") {
  const MonotoneCurve curve({1, 2, 3, 5, 9, 10}, {25, 10.89, 10.89, 3.61, 1, 0.99});
  double before = curve(1);
  for (double x = 1.01; x <= 10; x += 0.01) {
    CHECK(curve(x) <= before + 1e-12);
    before = curve(x);
  }
}

TEST_CASE("a curve has exactly the values of its points, and none beyond them") {
  for (int unit = 1; unit <= 50; ++unit) {
    const double y = 0.1 * unit;
    const MonotoneCurve curve({1, 2, 3, 7}, {13 * y, 7 * y, 3 * y, y});
    CHECK(curve(1) == 13 * y);
    CHECK(curve(2) == 7 * y);
    CHECK(curve(3) == 3 * y);
    CHECK(curve(7) == y);
    CHECK(curve(std::nextafter(7.0, 0.0)) >= y);
  }
}

TEST_CASE("points that make no curve are refused") {
  CHECK(test::refusal([] { return MonotoneCurve({1}, {1})(1); }).find("at least 2") != std::string::npos);
  CHECK(test::refusal([] { return MonotoneCurve({1, 2}, {1})(1); }).find("2 x and 1 y") != std::string::npos);
  CHECK(test::refusal([] { return MonotoneCurve({1, 3, 3}, {1, 1, 1})(1); }).find("point 2") != std::string::npos);
  constexpr double infinite = std::numeric_limits<double>::infinity();
  CHECK(test::refusal([] { return MonotoneCurve({1, 2}, {1, infinite})(1); }).find("point 1 of a curve is at 2, inf") !=
        std::string::npos);
  CHECK(test::refusal([] { return MonotoneCurve({1, infinite}, {1, 2})(1); }).find("point 1") != std::string::npos);
}
