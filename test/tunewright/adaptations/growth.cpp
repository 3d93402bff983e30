// SPDX-License-Identifier: Apache-2.0
#include "tunewright/adaptations/growth.hpp"

#include <doctest/doctest.h>

#include <limits>

using tunewright::adaptations::has_grown;

TEST_CASE("a share of new programs, or another session's, is enough for a fit") {
  CHECK(has_grown(10, 10, 0));
  CHECK_FALSE(has_grown(10, 10, 0.1));
  CHECK_FALSE(has_grown(11, 10, 0.2));
  CHECK(has_grown(12, 10, 0.2));
  CHECK(has_grown(1, 0, 0.5));
  CHECK(has_grown(9, 10, 0.5));
  constexpr double infinity = std::numeric_limits<double>::infinity();
  CHECK(has_grown(1, 0, infinity));
  CHECK_FALSE(has_grown(1000, 10, infinity));
}
