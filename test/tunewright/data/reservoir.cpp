// SPDX-License-Identifier: Apache-2.0
#include "tunewright/data/reservoir.hpp"

#include <doctest/doctest.h>

using namespace tunewright;

TEST_CASE("a reservoir keeps its capacity of each task, and every record as likely") {
  std::vector<int> kept(20);
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    data::Reservoir<int> reservoir(5, Rng(seed));
    for (int i = 0; i < 20; ++i)
      if (int* place = reservoir.offer(1)) *place = i;
    CHECK(reservoir.seen(1) == 20);
    for (const int i : reservoir.release()) ++kept[static_cast<std::size_t>(i)];
  }
  for (const int count : kept) {  // 500 +- 19 each
    CHECK(count > 420);
    CHECK(count < 580);
  }
}

TEST_CASE("what is kept of a task does not depend on the tasks around it, and few records are all kept") {
  data::Reservoir<int> mixed(3, Rng(7)), alone(3, Rng(7));
  for (int i = 0; i < 50; ++i) {
    if (int* place = mixed.offer(1)) *place = i;
    if (int* place = mixed.offer(2)) *place = -i;
    if (int* place = alone.offer(1)) *place = i;
  }
  *mixed.offer(3) = 99;
  CHECK(mixed.tasks() == 3);
  const std::vector<int> all = mixed.release(), one = alone.release();
  REQUIRE(all.size() == 7);
  CHECK(std::vector<int>(all.begin(), all.begin() + 3) == one);
  CHECK(all[6] == 99);
  CHECK_THROWS_WITH_AS(data::Reservoir<int>(0, Rng(1)), doctest::Contains("at least 1"), std::invalid_argument);
}
