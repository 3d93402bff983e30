// SPDX-License-Identifier: Apache-2.0
#include "tunewright/core/order.hpp"

#include <doctest/doctest.h>

#include <utility>
#include <vector>

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

TEST_CASE("a few values are sorted in place, and equal ones stay in order") {
  std::vector<std::pair<int, char>> values{{3, 'a'}, {1, 'b'}, {3, 'c'}, {2, 'd'}, {1, 'e'}, {1, 'f'}};
  sort_few(values, [](const auto& a, const auto& b) { return a.first < b.first; });
  CHECK(values == std::vector<std::pair<int, char>>{{1, 'b'}, {1, 'e'}, {1, 'f'}, {2, 'd'}, {3, 'a'}, {3, 'c'}});
  std::vector<int> falling{5, 4, 3, 2, 1};
  sort_few(falling);
  CHECK(falling == std::vector<int>{1, 2, 3, 4, 5});
  std::vector<int> none;
  sort_few(none);
  CHECK(none.empty());
}
