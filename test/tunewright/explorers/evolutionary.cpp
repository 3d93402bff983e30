// SPDX-License-Identifier: Apache-2.0
#include "tunewright/explorers/evolutionary.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "support/toy_space.hpp"

using namespace tunewright;

namespace {

const auto by_cost = [](std::span<const toy::Tiles> configs, std::span<float> score) {
  for (std::size_t i = 0; i < configs.size(); ++i) score[i] = static_cast<float>(1e-3 / toy::cost_s(configs[i]));
};

}  // namespace

TEST_CASE("a small population that knows the cost finds the optimum among 4096") {
  const KeySet measured;
  const Guidance<toy::Tiles> guidance{.rank = by_cost, .seeds = {}, .measured = measured, .wanted = 8};
  Rng rng(3);
  const explorers::Evolutionary evolution{.population = 64, .generations = 8};
  const auto pool = evolution.explore(toy::Space{}, toy::task(), guidance, rng);
  REQUIRE(pool.size() == 16 + 2);  // elite 2 * 8, unbred ceil(0.15 * 8)
  CHECK(pool.front() == toy::best);
  for (std::size_t i = 1; i < 16; ++i) CHECK(toy::cost_s(pool[i - 1]) <= toy::cost_s(pool[i]));
}

TEST_CASE("measured seeds are bred from and not returned") {
  const toy::Space space;
  const std::vector<toy::Tiles> seeds{toy::best};
  const KeySet measured{space.key(toy::best)};
  const Guidance<toy::Tiles> guidance{.rank = by_cost, .seeds = seeds, .measured = measured, .wanted = 4};
  Rng rng(1);
  // One generation from one seed among 40: neighbours of the optimum can only come from it.
  const explorers::Evolutionary evolution{.population = 40, .generations = 1, .random_immigrant_factor = 0};
  const auto pool = evolution.explore(space, toy::task(), guidance, rng);
  REQUIRE(pool.size() == 8);
  CHECK(toy::cost_s(pool.front()) < 1.3e-3);
  for (const auto& tiles : pool) CHECK(tiles != toy::best);
}

TEST_CASE("with no positive score parents are drawn uniformly, and what is refused never returns") {
  const auto refuse_odd = [](std::span<const toy::Tiles> configs, std::span<float> score) {
    for (std::size_t i = 0; i < configs.size(); ++i) {
      score[i] = configs[i][0] % 2 == 1 ? -std::numeric_limits<float>::infinity() : -1.0F;
    }
  };
  const KeySet measured;
  const Guidance<toy::Tiles> guidance{.rank = refuse_odd, .seeds = {}, .measured = measured, .wanted = 32};
  Rng rng(1);
  const auto pool = explorers::Evolutionary{.population = 128}.explore(toy::Space{}, toy::task(), guidance, rng);
  CHECK(pool.size() >= 64);
  for (const auto& tiles : pool) CHECK(tiles[0] % 2 == 0);
}

TEST_CASE("with no positive score refused candidates are no parents, unless there are no others") {
  struct Spying : toy::Space {
    mutable std::size_t refused = 0;
    std::optional<toy::Tiles> mutate(const Task&, const toy::Tiles& tiles, Rng&) const {
      refused += tiles[0] < 4 ? 1 : 0;
      return tiles;
    }
  };
  const Spying space;
  const KeySet measured;
  const auto refused_parents = [&](float score_of_others) {
    const auto refuse_half = [&](std::span<const toy::Tiles> configs, std::span<float> score) {
      for (std::size_t i = 0; i < configs.size(); ++i)
        score[i] = configs[i][0] < 4 ? -std::numeric_limits<float>::infinity() : score_of_others;
    };
    const Guidance<toy::Tiles> guidance{.rank = refuse_half, .seeds = {}, .measured = measured};
    Rng rng(2);
    space.refused = 0;
    (void)explorers::Evolutionary{.population = 200, .generations = 1, .mutation_probability = 1}.explore(
        space, toy::task(), guidance, rng);
    return space.refused;
  };
  CHECK(refused_parents(-1.0F) == 0);
  CHECK(refused_parents(0.0F) == 0);
  CHECK(refused_parents(-std::numeric_limits<float>::infinity()) > 0);
}

TEST_CASE("parents are chosen in proportion to their score") {
  // Two kinds of parents, scores 3 and 1, nothing mutates: three quarters of the copies are of the first
  // kind. What cannot be seen in the result is seen in what mutation is asked for.
  struct Spying : toy::Space {
    mutable std::size_t good = 0;
    mutable std::size_t all = 0;
    std::optional<toy::Tiles> mutate(const Task&, const toy::Tiles& tiles, Rng&) const {
      ++all;
      good += tiles[0] < 4 ? 1 : 0;
      return tiles;
    }
  };
  const auto halves = [](std::span<const toy::Tiles> configs, std::span<float> score) {
    for (std::size_t i = 0; i < configs.size(); ++i) score[i] = configs[i][0] < 4 ? 3.0F : 1.0F;
  };
  const KeySet measured;
  const Guidance<toy::Tiles> guidance{.rank = halves, .seeds = {}, .measured = measured};
  const Spying space;
  Rng rng(8);
  (void)explorers::Evolutionary{.population = 2000, .generations = 1, .mutation_probability = 1}.explore(
      space, toy::task(), guidance, rng);
  CHECK(space.all == 2000);
  // The first population is half and half to 1.1 % (one deviation), so the share is 0.75 to about 1.3 %.
  CHECK(static_cast<double>(space.good) / 2000.0 == doctest::Approx(0.75).epsilon(0.07));

  // A negative score is as good as none.
  const auto only_good = [](std::span<const toy::Tiles> configs, std::span<float> score) {
    for (std::size_t i = 0; i < configs.size(); ++i) score[i] = configs[i][0] < 4 ? 1.0F : -3.0F;
  };
  const Guidance<toy::Tiles> positive{.rank = only_good, .seeds = {}, .measured = measured};
  space.good = space.all = 0;
  (void)explorers::Evolutionary{.population = 2000, .generations = 1, .mutation_probability = 1}.explore(
      space, toy::task(), positive, rng);
  CHECK(space.all == 2000);
  CHECK(space.good == 2000);
}

TEST_CASE("where a parent has no legal mutation, another one is tried") {
  struct Half : toy::Space {
    mutable std::size_t children = 0;
    std::optional<toy::Tiles> mutate(const Task&, const toy::Tiles& tiles, Rng&) const {
      if (tiles[0] < 4) return std::nullopt;
      ++children;
      return tiles;
    }
  };
  const KeySet measured;
  const Guidance<toy::Tiles> guidance{.rank = by_cost, .seeds = {}, .measured = measured};
  const Half space;
  Rng rng(8);
  (void)explorers::Evolutionary{.population = 64, .generations = 1, .mutation_probability = 1, .max_tries = 1000}
      .explore(space, toy::task(), guidance, rng);
  CHECK(space.children == 64);
}

TEST_CASE("a parent may be copied once a generation, and then others are bred") {
  struct Counting : toy::Space {
    mutable std::size_t children = 0;
    std::optional<toy::Tiles> mutate(const Task&, const toy::Tiles& tiles, Rng&) const {
      ++children;
      return tiles;
    }
  };
  // Only one parent is worth anything.
  const auto by_optimum = [](std::span<const toy::Tiles> configs, std::span<float> score) {
    for (std::size_t i = 0; i < configs.size(); ++i) score[i] = configs[i] == toy::best ? 1.0F : 0.0F;
  };
  const std::vector<toy::Tiles> seeds{toy::best};
  const KeySet measured{toy::Space{}.key(toy::best)};
  const Guidance<toy::Tiles> guidance{.rank = by_optimum, .seeds = seeds, .measured = measured};
  const auto children = [&](const explorers::Evolutionary& evolution) {
    const Counting space;
    Rng rng(8);
    (void)evolution.explore(space, toy::task(), guidance, rng);
    return space.children;
  };
  explorers::Evolutionary evolution{
      .population = 64, .generations = 1, .mutation_probability = 0.5, .max_tries = 1000, .one_copy_each = true};
  CHECK(children(evolution) == 63);
  evolution.max_tries = 1;  // nothing else is tried
  CHECK(children(evolution) < 45);
  evolution.mutation_probability = 0;  // no tries bring another
  evolution.max_tries = 1000;
  CHECK(children(evolution) == 0);
  evolution = {.population = 64, .generations = 1, .mutation_probability = 0.5};
  CHECK(children(evolution) < 45);
}

TEST_CASE("copies that are drawn anew are the same at any number of threads") {
  const KeySet measured;
  const auto pool = [&](unsigned threads, bool one_copy_each) {
    const Guidance<toy::Tiles> guidance{
        .rank = by_cost, .seeds = {}, .measured = measured, .wanted = 16, .threads = threads};
    Rng rng(3);
    return explorers::Evolutionary{.population = 64, .mutation_probability = 0.5, .one_copy_each = one_copy_each}
        .explore(toy::Space{}, toy::task(), guidance, rng);
  };
  CHECK(pool(1, true) == pool(3, true));
  CHECK(pool(1, true) != pool(1, false));
}

TEST_CASE("a random candidate that is among the best is returned once, and equally good ones are ordered by key") {
  const auto all_equal = [](std::span<const toy::Tiles> configs, std::span<float> score) {
    std::fill_n(score.begin(), configs.size(), 1.0F);
  };
  const KeySet measured;
  const Guidance<toy::Tiles> guidance{.rank = all_equal, .seeds = {}, .measured = measured, .wanted = 4};
  Rng rng(5);
  // 12 candidates and no generation: the best 8, then the 4 others, although these need not be the last 4 drawn.
  const explorers::Evolutionary evolution{.population = 12, .generations = 0, .random_immigrant_factor = 1};
  const auto pool = evolution.explore(toy::Space{}, toy::task(), guidance, rng);
  REQUIRE(pool.size() == 12);
  std::vector<std::uint64_t> keys;
  for (const toy::Tiles& tiles : pool) keys.push_back(toy::Space{}.key(tiles));
  CHECK(std::is_sorted(keys.begin(), keys.begin() + 8));
  CHECK(*std::min_element(keys.begin() + 8, keys.end()) > keys[7]);
  CHECK(KeySet(keys.begin(), keys.end()).size() == 12);
}

TEST_CASE("options out of range are refused") {
  const KeySet measured;
  const Guidance<toy::Tiles> guidance{.rank = by_cost, .seeds = {}, .measured = measured};
  Rng rng(1);
  const auto run = [&](const explorers::Evolutionary& evolution) {
    (void)evolution.explore(toy::Space{}, toy::task(), guidance, rng);
  };
  CHECK_THROWS_WITH_AS(run({.population = 1}), doctest::Contains("population"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(run({.mutation_probability = 1.5}), doctest::Contains("1.5"), std::invalid_argument);
  CHECK_THROWS_AS(run({.measured_share = -0.1}), std::invalid_argument);
  CHECK_THROWS_AS(run({.elite_factor = 0.5}), std::invalid_argument);
  CHECK_THROWS_AS(run({.random_immigrant_factor = -1}), std::invalid_argument);
  CHECK_THROWS_AS(run({.max_tries = 0}), std::invalid_argument);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  CHECK_THROWS_WITH_AS(run({.elite_factor = infinity}), doctest::Contains("elite_factor is inf"),
                       std::invalid_argument);
  CHECK_THROWS_AS(run({.random_immigrant_factor = infinity}), std::invalid_argument);
  CHECK_THROWS_AS(run({.random_immigrant_factor = 1e300}), std::invalid_argument);
  CHECK_THROWS_AS(run({.elite_factor = std::numeric_limits<double>::quiet_NaN()}), std::invalid_argument);
  CHECK_THROWS_WITH_AS(run({.elite_factor = 10001}),
                       "Evolutionary: elite_factor is 10001; give 1 to 10000 for each candidate wanted",
                       std::invalid_argument);
  CHECK_NOTHROW(run({.elite_factor = 10000, .random_immigrant_factor = 10000}));
}

TEST_CASE("the bound of the pool is told of options in range only, and of batches of any size") {
  constexpr auto most = std::numeric_limits<std::size_t>::max();
  const auto bound = [](const explorers::Evolutionary& evolution) { return evolution.pool_bound(64).most; };
  CHECK(bound({.elite_factor = 2, .random_immigrant_factor = 0.5}) == 160);
  CHECK(explorers::Evolutionary{}.pool_bound(most).most == most);
  CHECK_THROWS_WITH_AS((void)bound({.elite_factor = std::numeric_limits<double>::quiet_NaN()}),
                       doctest::Contains("elite_factor is"), std::invalid_argument);
  CHECK_THROWS_WITH_AS((void)bound({.elite_factor = -1}), doctest::Contains("elite_factor is -1"),
                       std::invalid_argument);
}
