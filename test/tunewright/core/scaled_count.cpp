// SPDX-License-Identifier: Apache-2.0
#include "tunewright/core/scaled_count.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <limits>

using tunewright::scaled_count;

TEST_CASE("a multiple of a count is rounded up") {
  CHECK(scaled_count(0.15, 8) == 2);
  CHECK(scaled_count(2, 8) == 16);
  CHECK(scaled_count(std::numeric_limits<double>::infinity(), 0) == 0);
  CHECK(scaled_count(std::numeric_limits<double>::infinity(), 1) == std::numeric_limits<std::size_t>::max());
  CHECK(scaled_count(0, 8) == 0);
  CHECK(scaled_count(1e300, 0) == 0);
}

TEST_CASE("the rounding of a product adds nothing to a whole number") {
  CHECK(scaled_count(0.07, 100) == 7);  // which 0.07 * 100 is a little more than
  CHECK(scaled_count(0.55, 100) == 55);
  CHECK(scaled_count(1.1, 10) == 11);
  CHECK(scaled_count(0.29, 100) == 29);  // which 0.29 * 100 is a little less than
  CHECK(scaled_count(0.0701, 100) == 8);
  CHECK(scaled_count(1e-9, 1) == 1);
  CHECK(scaled_count(1, std::size_t{1} << 52) == std::size_t{1} << 52);
  CHECK(scaled_count(double{0.1F}, 10) == 2);
  CHECK(scaled_count(double{0.1F}, 10, 1e-7) == 1);
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
