// SPDX-License-Identifier: Apache-2.0
#include "tunewright/study/plots/principal_components.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

using namespace tunewright;

TEST_CASE("two columns that agree are one component, a third one is the other") {
  // Columns 0 and 1 move together, column 2 on its own, column 3 not at all: R = [[1 1 0] [1 1 0] [0 0 1]] with
  // eigenvalues 2, 1 and 0 of a trace of 3.
  const std::vector<float> values{-1, -10, -1, 7, 1, 10, -1, 7, -1, -10, 1, 7, 1, 10, 1, 7};
  const auto found = study::principal_components(values, 4);
  REQUIRE(found.points.size() == 4);
  CHECK(found.share[0] == doctest::Approx(2.0 / 3));
  CHECK(found.share[1] == doctest::Approx(1.0 / 3));
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(found.points[i][0] == doctest::Approx(std::copysign(std::sqrt(2.0), values[4 * i])));
    CHECK(found.points[i][1] == doctest::Approx(static_cast<double>(values[4 * i + 2])));
  }
}

TEST_CASE("the unit of a column does not count") {
  const auto found = study::principal_components(std::vector<float>{1, 2e-9F, 2, -1e-9F, 3, 3e-9F, 4, 0}, 2);
  const auto larger = study::principal_components(std::vector<float>{1, 2, 2, -1, 3, 3, 4, 0}, 2);
  CHECK(found.share[1] > 0);
  CHECK(found.share[0] == doctest::Approx(larger.share[0]));
}

TEST_CASE("what does not vary has no component, one column has one") {
  const auto still = study::principal_components(std::vector<float>{3, 3, 3}, 1);
  CHECK(still.points == std::vector<std::array<double, 2>>(3));
  CHECK(still.share == std::array<double, 2>{});
  const auto line = study::principal_components(std::vector<float>{1, 2, 3}, 1);
  CHECK(line.share[0] == doctest::Approx(1));
  CHECK(line.share[1] == 0);
  CHECK(line.points[2][0] == doctest::Approx(std::sqrt(1.5)));
  CHECK(study::principal_components({}, 5).points.empty());
}

TEST_CASE("values that are no rows, or not finite, are refused") {
  CHECK_THROWS_WITH_AS((void)study::principal_components(std::vector<float>(5), 2),
                       doctest::Contains("5 values are not whole rows of 2 columns"), std::invalid_argument);
  CHECK_THROWS_WITH_AS((void)study::principal_components(std::vector<float>(5), 0), doctest::Contains("not whole rows"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(
      (void)study::principal_components(std::vector<float>{1, std::numeric_limits<float>::quiet_NaN()}, 1),
      doctest::Contains("leave its row out"), std::invalid_argument);
}
