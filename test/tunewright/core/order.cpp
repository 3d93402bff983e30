// SPDX-License-Identifier: Apache-2.0
#include "tunewright/core/order.hpp"

#include <doctest/doctest.h>

using namespace tunewright;

TEST_CASE("the first few of the given positions, in the given order") {
  const auto falling = [](std::size_t a, std::size_t b) { return a > b; };
  CHECK(positions(3) == std::vector<std::size_t>{0, 1, 2});
  CHECK(positions(0).empty());
  CHECK(first_in_order({4, 9, 2, 7}, 2, falling) == std::vector<std::size_t>{9, 7});
  CHECK(first_in_order({4, 9, 2, 7}, 10, falling) == std::vector<std::size_t>{9, 7, 4, 2});
  CHECK(first_in_order({4, 9, 2, 7}, 0, falling).empty());
  CHECK(first_in_order({}, 3, falling).empty());
}
