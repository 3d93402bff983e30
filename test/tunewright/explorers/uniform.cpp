// SPDX-License-Identifier: Apache-2.0
#include "tunewright/explorers/uniform.hpp"

#include <doctest/doctest.h>

#include "support/toy_space.hpp"

using namespace tunewright;

TEST_CASE("the pool is as large as asked, at least as the batch") {
  const auto no_rank = [](std::span<const toy::Tiles>, std::span<float>) { FAIL("random search ranks nothing"); };
  const KeySet measured;
  const Guidance<toy::Tiles> guidance{.rank = no_rank, .seeds = {}, .measured = measured, .wanted = 20};
  Rng rng(1);
  CHECK(explorers::Uniform{}.explore(toy::Space{}, toy::task(), guidance, rng).size() == 20);
  CHECK(explorers::Uniform{.pool = 50}.explore(toy::Space{}, toy::task(), guidance, rng).size() == 50);
  CHECK(explorers::Uniform{.pool = 5}.explore(toy::Space{}, toy::task(), guidance, rng).size() == 20);
}
