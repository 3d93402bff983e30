// SPDX-License-Identifier: Apache-2.0
#include "tunewright/core/rounded_up.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>

using tunewright::rounded_up;

TEST_CASE("a number is rounded up to a multiple, and a multiple stays") {
  static_assert(rounded_up(std::size_t{0}, 64) == 0);
  static_assert(rounded_up(std::size_t{1}, 64) == 64);
  static_assert(rounded_up(std::size_t{64}, 64) == 64);
  static_assert(rounded_up(std::int64_t{65}, 64) == 128);
  static_assert(rounded_up(std::int64_t{10}, 3) == 12);  // no power of two
}
