// SPDX-License-Identifier: Apache-2.0
// What every explorer owes, whatever it is: see explorers/concept.hpp.
#include <doctest/doctest.h>

#include "support/toy_knob_space.hpp"
#include "support/toy_recipes.hpp"
#include "tunewright/explorers/adaptive_exploration.hpp"
#include "tunewright/explorers/draft_set.hpp"

using namespace tunewright;

namespace {

const auto by_cost_refusing_deep = [](std::span<const toy::Tiles> configs, std::span<float> score) {
  for (std::size_t i = 0; i < configs.size(); ++i) {
    score[i] = configs[i][2] == 7 ? -std::numeric_limits<float>::infinity()
                                  : static_cast<float>(1e-3 / toy::cost_s(configs[i]));
  }
};

}  // namespace

#define EXPLORERS                                                                                    \
  explorers::Uniform, explorers::Evolutionary, explorers::Annealing, explorers::AdaptiveExploration, \
      explorers::DraftSet<>

TEST_CASE_TEMPLATE("pools are distinct, unmeasured, and at least as large as wanted", Explorer, EXPLORERS) {
  const toy::KnobbedSpace space;
  KeySet measured;
  std::vector<toy::Tiles> seeds;
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < 8; ++j) {
      seeds.push_back({3, i, j, 2});
      measured.insert(space.key(seeds.back()));
    }
  }
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    Explorer explorer;
    for (unsigned round = 0; round < 3; ++round) {  // state of earlier rounds must not matter
      Rng rng = Rng(seed).split(round);
      const Guidance<toy::Tiles> guidance{
          .rank = by_cost_refusing_deep, .seeds = seeds, .measured = measured, .wanted = 24};
      const auto pool = explorer.explore(space, toy::task(), guidance, rng);
      CHECK(pool.size() >= 24);
      CHECK(pool.size() <= explorer.pool_bound(24).most);
      KeySet keys;
      for (const auto& tiles : pool) {
        CHECK(keys.insert(space.key(tiles)).second);
        CHECK(measured.count(space.key(tiles)) == 0);
        if constexpr (!std::same_as<Explorer, explorers::Uniform>) CHECK(tiles[2] != 7);  // Uniform ranks nothing
      }
    }
  }
}

TEST_CASE_TEMPLATE("the same generator gives the same pool at any number of threads", Explorer, EXPLORERS) {
  const auto pool = [](unsigned threads, std::uint64_t seed) {
    Explorer explorer;
    Rng rng(seed);
    const KeySet measured;
    const Guidance<toy::Tiles> guidance{
        .rank = by_cost_refusing_deep, .seeds = {}, .measured = measured, .wanted = 16, .threads = threads};
    return explorer.explore(toy::KnobbedSpace{}, toy::task(), guidance, rng);
  };
  const auto one = pool(1, 5);
  CHECK(one == pool(2, 5));
  CHECK(one == pool(3, 5));
}

TEST_CASE_TEMPLATE("a used-up space gives an empty pool", Explorer, EXPLORERS) {
  const toy::KnobbedSpace space;
  KeySet measured;
  for (const auto& tiles : spaces::draw(space, toy::task(), 5000, {}, 1, Rng(1))) measured.insert(space.key(tiles));
  REQUIRE(measured.size() == 4096);
  Explorer explorer;
  Rng rng(1);
  const Guidance<toy::Tiles> guidance{.rank = by_cost_refusing_deep, .seeds = {}, .measured = measured, .wanted = 16};
  CHECK(explorer.explore(space, toy::task(), guidance, rng).empty());
}
