// SPDX-License-Identifier: Apache-2.0
#include "tunewright/explorers/draft_set.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <span>
#include <stdexcept>
#include <vector>

#include "support/toy_space.hpp"
#include "tunewright/explorers/uniform.hpp"

using namespace tunewright;

namespace {

/// Ranks by cost and counts what it ranks.
struct Counting {
  std::size_t* ranked;
  void operator()(std::span<const toy::Tiles> configs, std::span<float> score) const {
    *ranked += configs.size();
    for (std::size_t i = 0; i < configs.size(); ++i) score[i] = static_cast<float>(1e-3 / toy::cost_s(configs[i]));
  }
};

std::vector<toy::Tiles> explored(explorers::DraftSet<>& explorer, const KeySet& measured, std::size_t wanted,
                                 std::size_t& ranked, std::uint64_t round) {
  ranked = 0;
  const Counting rank{&ranked};
  Rng rng = Rng(7).split(round);
  return explorer.explore(toy::Space{}, toy::task(),
                          Guidance<toy::Tiles>{.rank = rank, .seeds = {}, .measured = measured, .wanted = wanted}, rng);
}

KeySet keys_of(const std::vector<toy::Tiles>& configs) {
  KeySet keys;
  for (const toy::Tiles& tiles : configs) keys.insert(toy::Space{}.key(tiles));
  return keys;
}

/// A pool of `wanted` drafts and `factor` times as many mutations of the measured `seeds`, the fastest first.
std::vector<toy::Tiles> mutated(const std::vector<toy::Tiles>& seeds, std::size_t wanted, double factor) {
  const KeySet measured = keys_of(seeds);
  explorers::DraftSet<> explorer{.size = wanted, .random_factor = 0, .mutated_factor = factor};
  explorer.explorer.population = 32;
  std::size_t ranked = 0;
  const Counting rank{&ranked};
  Rng rng(3);
  return explorer.explore(toy::Space{}, toy::task(),
                          Guidance<toy::Tiles>{.rank = rank, .seeds = seeds, .measured = measured, .wanted = wanted},
                          rng);
}

int steps_apart(const toy::Tiles& a, const toy::Tiles& b) {
  int steps = 0;
  for (std::size_t t = 0; t < 4; ++t) steps += std::abs(a[t] - b[t]);
  return steps;
}

}  // namespace

TEST_CASE("a set of its own size is kept for two rounds and then drafted anew") {
  explorers::DraftSet<> explorer{.size = 64, .random_factor = 0.5};
  explorer.explorer.population = 128;
  const toy::Space space;
  KeySet measured;
  std::size_t ranked = 0;
  const auto first = explored(explorer, measured, 8, ranked, 0);
  REQUIRE(first.size() == 64 + 4);
  CHECK(ranked > 128);
  for (std::size_t i = 1; i < 64; ++i) CHECK(toy::cost_s(first[i - 1]) <= toy::cost_s(first[i]) * 1.000001);
  for (std::size_t i = 0; i < 8; ++i) measured.insert(space.key(first[i]));

  const auto second = explored(explorer, measured, 8, ranked, 1);
  CHECK(ranked == 4);  // only the random ones
  REQUIRE(second.size() == 64 - 8 + 4);
  for (std::size_t i = 0; i < 64 - 8; ++i) CHECK(second[i] == first[i + 8]);

  const auto third = explored(explorer, measured, 8, ranked, 2);
  CHECK(ranked > 128);
  CHECK(third.size() == 64 + 4);
}

TEST_CASE("of what an explorer returns beyond the size of the set, the best stay") {
  explorers::DraftSet<explorers::Uniform> explorer{.explorer = {.pool = 256}, .size = 16, .random_factor = 0};
  std::size_t ranked = 0;
  const Counting rank{&ranked};
  const KeySet measured;
  const Guidance<toy::Tiles> guidance{.rank = rank, .seeds = {}, .measured = measured, .wanted = 4};
  Rng rng(3);
  const auto pool = explorer.explore(toy::Space{}, toy::task(), guidance, rng);
  REQUIRE(pool.size() == 16);
  CHECK(explorer.pool_bound(4).most == 16);
  Rng again = Rng(3).split(0);
  std::vector<double> costs_s;
  for (const toy::Tiles& tiles : explorers::Uniform{.pool = 256}.explore(toy::Space{}, toy::task(), guidance, again))
    costs_s.push_back(toy::cost_s(tiles));
  std::sort(costs_s.begin(), costs_s.end());
  REQUIRE(costs_s.size() == 256);
  for (std::size_t i = 0; i < 16; ++i) CHECK(toy::cost_s(pool[i]) == doctest::Approx(costs_s[i]));
}

TEST_CASE("the best stay, too, where a third of the scores are no numbers, and none of these does") {
  const toy::Space space;
  const auto rank = [&](std::span<const toy::Tiles> configs, std::span<float> score) {
    for (std::size_t i = 0; i < configs.size(); ++i) {
      score[i] = space.key(configs[i]) % 3 == 0 ? std::numeric_limits<float>::quiet_NaN()
                                                : static_cast<float>(1e-3 / toy::cost_s(configs[i]));
    }
  };
  const KeySet measured;
  const Guidance<toy::Tiles> guidance{.rank = rank, .seeds = {}, .measured = measured, .wanted = 8};
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    explorers::DraftSet<explorers::Uniform> explorer{.explorer = {.pool = 1000}, .size = 20, .random_factor = 0};
    Rng rng(seed);
    const auto pool = explorer.explore(space, toy::task(), guidance, rng);
    Rng again = Rng(seed).split(0);
    std::vector<double> costs_s;
    for (const toy::Tiles& tiles : explorers::Uniform{.pool = 1000}.explore(space, toy::task(), guidance, again))
      if (space.key(tiles) % 3 != 0) costs_s.push_back(toy::cost_s(tiles));
    std::sort(costs_s.begin(), costs_s.end());
    REQUIRE(pool.size() == 20);
    for (std::size_t i = 0; i < 20; ++i) CHECK(toy::cost_s(pool[i]) == doctest::Approx(costs_s.at(i)));
  }
}

TEST_CASE("a used-up set is drafted anew at once, and a batch larger than the set is filled") {
  explorers::DraftSet<> explorer{.size = 16, .refresh_rounds = 100, .random_factor = 0};
  explorer.explorer.population = 128;
  const toy::Space space;
  KeySet measured;
  std::size_t ranked = 0;
  const auto first = explored(explorer, measured, 16, ranked, 0);
  CHECK(first.size() == 16);
  for (const toy::Tiles& tiles : first) measured.insert(space.key(tiles));
  const auto second = explored(explorer, measured, 16, ranked, 1);
  CHECK(second.size() == 16);
  CHECK(ranked > 0);
  CHECK(explored(explorer, measured, 40, ranked, 2).size() == 40);
}

TEST_CASE("copies of an explorer keep sets of their own") {
  explorers::DraftSet<> one{.size = 32, .random_factor = 0};
  one.explorer.population = 64;
  std::size_t ranked = 0;
  const KeySet measured;
  explorers::DraftSet<> fresh = one;
  const auto pool = explored(one, measured, 8, ranked, 0);
  explorers::DraftSet<> copy = one;
  CHECK(explored(copy, measured, 8, ranked, 5) == pool);
  CHECK(explored(fresh, measured, 8, ranked, 5) != pool);
}

TEST_CASE("mutations of the fastest measured candidates, one tile a step away, end the pool") {
  const std::vector<toy::Tiles> seeds{{3, 3, 3, 3}, {0, 0, 7, 7}};
  const auto pool = mutated(seeds, 4, 3);
  REQUIRE(pool.size() > 4);
  CHECK(pool.size() <= 4 + 12);
  KeySet distinct = keys_of(seeds);
  for (const toy::Tiles& tiles : pool) CHECK(distinct.insert(toy::Space{}.key(tiles)).second);
  for (std::size_t i = 4; i < pool.size(); ++i)
    CHECK(std::min(steps_apart(pool[i], seeds[0]), steps_apart(pool[i], seeds[1])) == 1);
}

TEST_CASE("only as many of the fastest measured candidates as a batch has are mutated") {
  // Those after the first two are not within two steps of these.
  const std::vector<toy::Tiles> seeds{{3, 3, 3, 3}, {0, 0, 7, 7}, {7, 5, 0, 0},
                                      {5, 7, 1, 1}, {7, 0, 0, 7}, {0, 7, 7, 0}};
  const auto pool = mutated(seeds, 2, 20);
  REQUIRE(pool.size() > 2 + 6);
  for (std::size_t i = 2; i < pool.size(); ++i)
    CHECK(std::min(steps_apart(pool[i], seeds[0]), steps_apart(pool[i], seeds[1])) == 1);
}

TEST_CASE("options out of range") {
  const KeySet measured;
  std::size_t ranked = 0;
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (explorers::DraftSet<> bad :
       {explorers::DraftSet<>{.size = 0}, explorers::DraftSet<>{.refresh_rounds = 0},
        explorers::DraftSet<>{.random_factor = -1}, explorers::DraftSet<>{.mutated_factor = -1},
        explorers::DraftSet<>{.random_factor = infinity}, explorers::DraftSet<>{.mutated_factor = infinity},
        explorers::DraftSet<>{.random_factor = 1e300}, explorers::DraftSet<>{.mutated_factor = 1e300},
        explorers::DraftSet<>{.random_factor = nan}, explorers::DraftSet<>{.mutated_factor = nan},
        explorers::DraftSet<>{.mutated_factor = 10001}})
    CHECK_THROWS_AS((void)explored(bad, measured, 8, ranked, 0), std::invalid_argument);
  explorers::DraftSet<> absurd{.random_factor = 20000};
  CHECK_THROWS_WITH_AS((void)explored(absurd, measured, 8, ranked, 0),
                       "DraftSet: random_factor is 20000; give 0 to 10000 for each candidate wanted",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS((void)absurd.pool_bound(8), doctest::Contains("random_factor is 20000"), std::invalid_argument);
  constexpr auto most = std::numeric_limits<std::size_t>::max();
  CHECK(explorers::DraftSet<>{.size = most}.pool_bound(8).most == most);
}
