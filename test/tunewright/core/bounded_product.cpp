// SPDX-License-Identifier: Apache-2.0
#include "tunewright/core/bounded_product.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>

using tunewright::bounded_product;

TEST_CASE("a product up to the bound is exact, a larger one the bound") {
  static_assert(bounded_product(6, 7, 100) == 42);
  static_assert(bounded_product(0, 7, 100) == 0);
  static_assert(bounded_product(7, 0, 100) == 0);
  static_assert(bounded_product(10, 10, 100) == 100);
  static_assert(bounded_product(100, 1, 100) == 100);
  static_assert(bounded_product(3, 33, 100) == 99);
  static_assert(bounded_product(3, 34, 100) == 100);
}

TEST_CASE("a product that 64 bits do not hold is the bound, also where the low bits are few") {
  constexpr std::int64_t two_32 = std::int64_t{1} << 32, two_31 = two_32 / 2;
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  static_assert(bounded_product(two_32, two_32, 100) == 100);  // 2^64, of which 64 bits hold 0
  static_assert(bounded_product(two_32, two_31, most) == most);
  static_assert(bounded_product(two_31, two_31, most) == std::int64_t{1} << 62);
  static_assert(bounded_product(most, most, most) == most);
}
