// SPDX-License-Identifier: Apache-2.0
#include "tunewright/features/per_statement/intensity.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace {

using tunewright::features::per_statement::curve_samples;
using tunewright::features::per_statement::intensity_curve;

TEST_CASE("linear between loops, constant before the first") {
  // Innermost 5 iterations of 2 operations on 20 bytes; all 10 * 5 iterations on 50 bytes.
  const std::vector<std::int64_t> extents{10, 5};
  const std::vector<double> bytes{50, 20};
  const auto curve = intensity_curve(2, extents, bytes);
  CHECK(curve[0] == doctest::Approx(0.5));  // 10 operations: the innermost loop
  for (std::size_t i = 1; i < curve_samples; ++i) {
    const double done = 10.0 * static_cast<double>(i + 1);
    CHECK(curve[i] == doctest::Approx(0.5 + (2.0 - 0.5) * (done - 10) / 90));
  }
}

TEST_CASE("one loop gives a flat curve, no loops or no operations none") {
  const std::vector<std::int64_t> extents{7};
  const std::vector<double> bytes{28};
  for (const double value : intensity_curve(3, extents, bytes)) CHECK(value == doctest::Approx(0.75));
  for (const double value : intensity_curve(0, extents, bytes)) CHECK(value == 0.0);
  for (const double value : intensity_curve(3, {}, {})) CHECK(value == 0.0);
}

TEST_CASE("loops of one iteration add no work") {
  const std::vector<std::int64_t> extents{4, 1, 2};
  const std::vector<double> bytes{32, 8, 8};
  const auto curve = intensity_curve(1, extents, bytes);
  CHECK(curve[1] == doctest::Approx(0.25));
  CHECK(curve[9] == doctest::Approx(0.25));
}

}  // namespace
