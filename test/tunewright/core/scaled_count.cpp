// SPDX-License-Identifier: Apache-2.0
#include "tunewright/core/scaled_count.hpp"

#include <doctest/doctest.h>

#include <limits>

using tunewright::scaled_count;

TEST_CASE("a multiple of a count is rounded up") {
  CHECK(scaled_count(0.15, 8) == 2);
  CHECK(scaled_count(2, 8) == 16);
  CHECK(scaled_count(0, 8) == 0);
  CHECK(scaled_count(1e300, 0) == 0);
}

TEST_CASE("a multiple beyond every count is the largest count") {
  constexpr auto most = std::numeric_limits<std::size_t>::max();
  CHECK(scaled_count(1e300, 1) == most);
  CHECK(scaled_count(1e300, most) == most);
  CHECK(scaled_count(1, most) == most);  // which a double rounds up to 2^64
}

TEST_CASE("a sum beyond every count is the largest count") {
  constexpr auto most = std::numeric_limits<std::size_t>::max();
  CHECK(tunewright::bounded_sum(2, 3) == 5);
  CHECK(tunewright::bounded_sum(most, 0) == most);
  CHECK(tunewright::bounded_sum(most, 1) == most);
  CHECK(tunewright::bounded_sum(most - 1, most) == most);
}
