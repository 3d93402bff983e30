// SPDX-License-Identifier: Apache-2.0
#include "tunewright/program/range.hpp"

#include <doctest/doctest.h>

#include <cstdint>

namespace {

using tunewright::program::ceil_div;
using tunewright::program::floor_div;
using tunewright::program::floor_mod;
using tunewright::program::Range;

TEST_CASE("a closed interval holds both of its ends") {
  CHECK(Range{-2, 3}.extent() == 6);
  CHECK(Range{}.extent() == 1);
}

TEST_CASE("floor division rounds down on both sides of zero") {
  CHECK(floor_div(7, 3) == 2);
  CHECK(floor_div(-7, 3) == -3);
  CHECK(floor_div(-6, 3) == -2);
  CHECK(floor_mod(-7, 3) == 2);
  CHECK(ceil_div(7, 3) == 3);
  CHECK(ceil_div(-7, 3) == -2);
}

TEST_CASE("numbers beyond 32 bits are divided like small ones") {
  constexpr std::int64_t large = std::int64_t{1} << 40;
  CHECK(floor_div(large + 1, 2) == large / 2);
  CHECK(floor_div(-large - 1, 2) == -large / 2 - 1);
  CHECK(floor_div(std::int64_t{1} << 32, 3) == 1431655765);  // the first beyond
  CHECK(floor_div((std::int64_t{1} << 32) - 1, 3) == 1431655765);
  CHECK(floor_div(7, large) == 0);
  CHECK(floor_mod(-1, large) == large - 1);
  CHECK(ceil_div(large + 1, large) == 2);
}

}  // namespace
