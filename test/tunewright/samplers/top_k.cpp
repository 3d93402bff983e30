// SPDX-License-Identifier: Apache-2.0
#include "tunewright/samplers/top_k.hpp"

#include <doctest/doctest.h>

#include <array>

#include "tunewright/models/random.hpp"

using namespace tunewright;

TEST_CASE("the best come first, equals in pool order") {
  Rng rng(1);
  const std::array score{0.5F, 0.9F, -1.0F, 0.9F, 0.7F};
  const samplers::TopK top;
  CHECK(top.select(models::Random{}, {}, score, 3, rng) == std::vector<std::size_t>{1, 3, 4});
  CHECK(top.select(models::Random{}, {}, score, 9, rng) == std::vector<std::size_t>{1, 3, 4, 0, 2});
  CHECK(top.select(models::Random{}, {}, score, 0, rng).empty());
}
