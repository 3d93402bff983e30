// SPDX-License-Identifier: Apache-2.0
#include "tunewright/explorers/annealing.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "support/toy_space.hpp"

using namespace tunewright;

namespace {

const auto by_cost = [](std::span<const toy::Tiles> configs, std::span<float> score) {
  for (std::size_t i = 0; i < configs.size(); ++i) score[i] = static_cast<float>(1e-3 / toy::cost_s(configs[i]));
};
const KeySet nothing_measured;

}  // namespace

TEST_CASE("chains that know the cost find the optimum among 4096") {
  const Guidance<toy::Tiles> guidance{.rank = by_cost, .seeds = {}, .measured = nothing_measured, .wanted = 8};
  Rng rng(3);
  explorers::Annealing annealing{.chains = 16, .steps = 200};
  const auto pool = annealing.explore(toy::Space{}, toy::task(), guidance, rng);
  REQUIRE(pool.size() == 16);  // two for each one wanted
  CHECK(pool.front() == toy::best);
}

TEST_CASE("chains go on where they ended") {
  const Guidance<toy::Tiles> guidance{.rank = by_cost, .seeds = {}, .measured = nothing_measured, .wanted = 4};
  explorers::Annealing annealing{.chains = 8, .steps = 400, .last_temperature = 0};
  Rng first(1);
  (void)annealing.explore(toy::Space{}, toy::task(), guidance, first);
  REQUIRE(annealing.chain_ends.size() == 8);

  annealing.chain_ends.assign(8, toy::Space{}.encode(toy::best));
  annealing.steps = 1;
  Rng second(2);
  const auto pool = annealing.explore(toy::Space{}, toy::task(), guidance, second);
  CHECK(pool.front() == toy::best);  // a random start finds it with probability 8 / 4096
}

TEST_CASE("cold chains never accept a worse candidate, hot ones do") {
  const auto first_tile = [](std::span<const toy::Tiles> configs, std::span<float> score) {
    for (std::size_t i = 0; i < configs.size(); ++i) score[i] = static_cast<float>(configs[i][0]);
  };
  const Guidance<toy::Tiles> guidance{.rank = first_tile, .seeds = {}, .measured = nothing_measured, .wanted = 4096};
  explorers::Annealing cold{
      .chains = 4, .steps = 60, .patience_steps = 60, .first_temperature = 0, .last_temperature = 0};
  explorers::Annealing hot = cold;
  cold.chain_ends.assign(4, "7000");
  hot.chain_ends = cold.chain_ends;
  hot.first_temperature = hot.last_temperature = 100;
  Rng rng(5);
  (void)cold.explore(toy::Space{}, toy::task(), guidance, rng);
  for (const std::string& end : cold.chain_ends) CHECK(end[0] == '7');
  (void)hot.explore(toy::Space{}, toy::task(), guidance, rng);
  CHECK(std::count_if(hot.chain_ends.begin(), hot.chain_ends.end(), [](const auto& end) { return end[0] != '7'; }) >=
        2);
}

TEST_CASE("what chains bring is left out below the least score, and random candidates end the pool") {
  // Scores are first tiles less 5, so that those of 5 to 7 are not negative.
  const auto first_tile = [](std::span<const toy::Tiles> configs, std::span<float> score) {
    for (std::size_t i = 0; i < configs.size(); ++i) score[i] = static_cast<float>(configs[i][0]) - 5;
  };
  const Guidance<toy::Tiles> guidance{.rank = first_tile, .seeds = {}, .measured = nothing_measured, .wanted = 100};
  explorers::Annealing annealing{.chains = 4, .steps = 100, .elite_factor = 4, .least_score = 0};
  CHECK(annealing.pool_bound(100).most == 400);
  Rng rng(3);
  const auto kept = annealing.explore(toy::Space{}, toy::task(), guidance, rng);
  REQUIRE(kept.size() > 100);
  CHECK(kept.size() < 400);
  for (const toy::Tiles& tiles : kept) CHECK(tiles[0] >= 5);
  CHECK(std::any_of(kept.begin(), kept.end(), [](const toy::Tiles& tiles) { return tiles[0] == 5; }));

  annealing = {.chains = 4, .steps = 100, .elite_factor = 4, .random_immigrant_factor = 0.5, .least_score = 0};
  CHECK(annealing.pool_bound(100).most == 450);
  Rng again(3);
  const auto pool = annealing.explore(toy::Space{}, toy::task(), guidance, again);
  REQUIRE(pool.size() == kept.size() + 50);
  CHECK(std::equal(kept.begin(), kept.end(), pool.begin()));
  std::size_t low = 0;
  KeySet keys;
  for (const toy::Tiles& tiles : pool) keys.insert(toy::Space{}.key(tiles));
  for (std::size_t i = kept.size(); i < pool.size(); ++i) low += pool[i][0] < 5 ? 1 : 0;
  CHECK(keys.size() == pool.size());
  CHECK(low >= 20);  // 5 of 8 first tiles are below 5

  // Where nothing is worth it, random candidates are all there is.
  annealing = {.chains = 4, .steps = 100, .random_immigrant_factor = 0.5, .least_score = 7};
  Rng third(3);
  CHECK(annealing.explore(toy::Space{}, toy::task(), guidance, third).size() == 150);
}

TEST_CASE("a round ends after as many steps in a row as patience says that bring nothing better") {
  // One chain, whose neighbours are a list: the first digits are scores, the others tell candidates apart.
  struct Listed : toy::Space {
    std::vector<toy::Tiles> list;
    mutable std::size_t asked = 0;
    std::optional<toy::Tiles> mutate(const Task&, const toy::Tiles& tiles, Rng&) const {
      ++asked;
      return asked <= list.size() ? list[asked - 1] : tiles;
    }
  };
  const auto first_tile = [](std::span<const toy::Tiles> configs, std::span<float> score) {
    for (std::size_t i = 0; i < configs.size(); ++i) score[i] = static_cast<float>(configs[i][0]);
  };
  const Guidance<toy::Tiles> guidance{.rank = first_tile, .seeds = {}, .measured = nothing_measured, .wanted = 1};
  const auto steps_with = [&](std::vector<toy::Tiles> list) {
    Listed space;
    space.list = std::move(list);
    explorers::Annealing annealing{.chains = 1,
                                   .steps = 40,
                                   .patience_steps = 3,
                                   .first_temperature = 0,
                                   .last_temperature = 0,
                                   .elite_factor = 1,
                                   .chain_ends = {"4000"}};
    Rng rng(1);
    (void)annealing.explore(space, toy::task(), guidance, rng);
    return space.asked;
  };
  CHECK(steps_with({}) == 3);                                                        // it stays where it is
  CHECK(steps_with({{1, 0, 0, 0}, {1, 0, 0, 1}, {1, 0, 0, 2}, {1, 0, 0, 3}}) == 3);  // new ones, all worse
  CHECK(steps_with({{1, 0, 0, 0}, {4, 0, 0, 0}, {5, 0, 0, 0}, {1, 0, 0, 1}}) == 6);  // the third is better
}

TEST_CASE("random candidates of the pool are neither measured nor refused by the ranking") {
  const auto refuse_odd = [](std::span<const toy::Tiles> configs, std::span<float> score) {
    for (std::size_t i = 0; i < configs.size(); ++i)
      score[i] = configs[i][0] % 2 == 1 ? -std::numeric_limits<float>::infinity() : 1.0F;
  };
  KeySet measured;
  Rng draws(1);
  for (int i = 0; i < 2000; ++i) measured.insert(toy::Space{}.key(*toy::Space{}.sample(toy::task(), draws)));
  const Guidance<toy::Tiles> guidance{.rank = refuse_odd, .seeds = {}, .measured = measured, .wanted = 100};
  Rng rng(3);
  explorers::Annealing annealing{.chains = 4, .steps = 10, .random_immigrant_factor = 3, .least_score = 2};
  const auto pool = annealing.explore(toy::Space{}, toy::task(), guidance, rng);
  REQUIRE(pool.size() > 100);  // half of 300
  for (const toy::Tiles& tiles : pool) {
    CHECK(tiles[0] % 2 == 0);
    CHECK(measured.count(toy::Space{}.key(tiles)) == 0);
  }
}

TEST_CASE("options out of range are refused") {
  const Guidance<toy::Tiles> guidance{.rank = by_cost, .seeds = {}, .measured = nothing_measured};
  Rng rng(1);
  const auto run = [&](explorers::Annealing annealing) {
    (void)annealing.explore(toy::Space{}, toy::task(), guidance, rng);
  };
  CHECK_THROWS_WITH_AS(run({.chains = 0}), doctest::Contains("chains"), std::invalid_argument);
  CHECK_THROWS_AS(run({.steps = 0}), std::invalid_argument);
  CHECK_THROWS_AS(run({.patience_steps = 0}), std::invalid_argument);
  CHECK_THROWS_AS(run({.first_temperature = -1}), std::invalid_argument);
  CHECK_THROWS_AS(run({.last_temperature = -1}), std::invalid_argument);
  CHECK_THROWS_AS(run({.elite_factor = 0}), std::invalid_argument);
  CHECK_THROWS_WITH_AS(run({.random_immigrant_factor = -1}), doctest::Contains("random_immigrant_factor is -1"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(run({.least_score = std::numeric_limits<double>::quiet_NaN()}),
                       doctest::Contains("least_score is"), std::invalid_argument);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  CHECK_THROWS_WITH_AS(run({.elite_factor = infinity}), doctest::Contains("elite_factor is inf"),
                       std::invalid_argument);
  CHECK_THROWS_AS(run({.first_temperature = infinity}), std::invalid_argument);
  CHECK_THROWS_AS(run({.last_temperature = infinity}), std::invalid_argument);
  CHECK_THROWS_WITH_AS((void)explorers::Annealing{.elite_factor = -1}.pool_bound(64),
                       doctest::Contains("elite_factor is -1"), std::invalid_argument);
}
