// SPDX-License-Identifier: Apache-2.0
#include "tunewright/samplers/biased_diversity.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "support/toy_model.hpp"
#include "tunewright/models/random.hpp"

using namespace tunewright;
using samplers::Bias;
using samplers::BiasedDiversity;
using Positions = std::vector<std::size_t>;

namespace {

// No random part and no scaling, so that choices can be worked out by hand.
BiasedDiversity plain(Bias bias) { return {.bias = bias, .random_share = 0, .standardised = false}; }

Positions choose(const BiasedDiversity& sampler, const FeatureBatch& x, std::size_t n,
                 const samplers::Labelled& labelled = {}, std::uint64_t seed = 1) {
  Rng rng(seed);
  return sampler.select(toy::OpenBook{}, x, toy::scores(toy::OpenBook{}, x), n, rng, labelled);
}

}  // namespace

TEST_CASE("each bias weighs the distance its own way") {
  //                              score deviation place   D from 0, q
  const FeatureBatch x = toy::programs({{0.0F, 0.1F, 10},    // 10, 0
                                        {0.5F, 0.1F, 4},     // 4, 0.5
                                        {1.0F, 0.1F, 3},     // 3, 1
                                        {0.1F, 0.9F, -2}});  // 2, 0.1
  const FeatureBatch known = toy::programs({{0.05F, 0, 0}});
  const samplers::Labelled labelled{.x = known};
  CHECK(choose(plain(Bias::None), x, 1, labelled) == Positions{0});
  CHECK(choose(plain(Bias::High), x, 1, labelled) == Positions{2});  // 1, 2.4, 3.3, 0.4
  CHECK(choose(plain(Bias::Qbc), x, 1, labelled) == Positions{3});   // 1, 0.4, 0.3, 1.8
  // One of level 0 is labelled: 10 / 2 against 4. Then 4 alone in its level; then 3 is 1 from it, -2 is 2 from 0.
  CHECK(choose(plain(Bias::Strata), x, 3, labelled) == Positions{0, 1, 3});
  // The levels hold 2, 1, 1 and 1 of five programs, and the labelled one is of level 0. Even shares: a level
  // without any is due min(10, 0.1 / 0.001) = 10, level 0 0.1 / 1. So 10 * 0.1 against 4 * 10.
  BiasedDiversity restore = plain(Bias::Restore);
  restore.beta = 1;
  CHECK(choose(restore, x, 1, labelled) == Positions{1});
  // The pool's shares: 10 * 0.4 / 1 against 4 * 10 still. Then levels 0 and 5 have half of the labels each: place 10
  // is worth 6 * 0.4 / 0.5, place 3 1 * 10, place -2 2 * 10.
  restore.beta = 0;
  CHECK(choose(restore, x, 2, labelled) == Positions{1, 3});
}

TEST_CASE("infinite scores are the best and do not widen the range of the others") {
  const FeatureBatch known = toy::programs({{0, 0, 0}});
  constexpr float infinity = std::numeric_limits<float>::infinity();
  // q is 1, 0.5 and 1: 1 * 1.1 against 4 * 0.6 and 3 * 1.1; then both others are 1 from what is known.
  CHECK(choose(plain(Bias::High), toy::programs({{infinity, 0, 1}, {0.5F, 0, 4}, {1, 0, 3}}), 3, {.x = known}) ==
        Positions{2, 0, 1});
}

TEST_CASE("weights by score and by level have the size of their formulas") {
  const FeatureBatch origin = toy::programs({{0, 0, 0}});
  const samplers::Labelled labelled{.x = origin};
  // 40 * (0.1 + 0) against 3 * (0.1 + 1): the slowest counts, if it is far enough.
  CHECK(choose(plain(Bias::High), toy::programs({{0, 0, 40}, {1, 0, 3}}), 1, labelled) == Positions{0});
  // Labelled scores widen the range: from -1 on, q is 0.5 and 1, and 6 * 0.6 against 3 * 1.1.
  const FeatureBatch slower = toy::programs({{-1, 0, 0}});
  CHECK(choose(plain(Bias::High), toy::programs({{0, 0, 6}, {1, 0, 3}}), 1, {.x = slower}) == Positions{0});
  // One of level 0 is labelled: 7 / (1 + 1) against 4 / (1 + 0).
  CHECK(choose(plain(Bias::Strata), toy::programs({{0, 0, 7}, {0.5F, 0, 4}, {1, 0, 1}}), 1, labelled) == Positions{1});
  // Nothing of levels 9 and 5 is labelled; they are due 0.6 and 0.2 of the labels, 600 and 200 times a share of 0.001,
  // but weights end at 10: 3 * 10 against 4 * 10.
  BiasedDiversity restore = plain(Bias::Restore);
  restore.beta = 0;
  CHECK(choose(restore, toy::programs({{1, 0, 3}, {1, 0, 3}, {1, 0, 3}, {0.5F, 0, 4}}), 1, labelled) == Positions{3});
  // H is a share: both labels are of level 0, so it has all of them: 150 * 0.1 / 1 against 1 * 10.
  restore.beta = 1;
  const FeatureBatch twice = toy::programs({{0, 0, 0}, {0, 0, 0}});
  CHECK(choose(restore, toy::programs({{0, 0, 150}, {1, 0, 1}}), 1, {.x = twice}) == Positions{0});
  // P counts labelled ones: level 0 has four of five programs, so 15 * 0.8 against 1 * 10.
  restore.beta = 0;
  const FeatureBatch thrice = toy::programs({{0, 0, 0}, {0, 0, 0}, {0, 0, 0}});
  CHECK(choose(restore, toy::programs({{0, 0, 15}, {1, 0, 1}}), 1, {.x = thrice}) == Positions{0});
}

TEST_CASE("the k-means++ form draws by squared distance") {
  const FeatureBatch x = toy::programs({{0, 0, 1}, {0, 0, 2}, {0, 0, 0}});
  const FeatureBatch known = toy::programs({{0, 0, 0}});
  std::array<int, 3> count{};
  for (std::uint64_t seed = 0; seed < 4000; ++seed) ++count[choose(plain(Bias::Dpp), x, 1, {.x = known}, seed)[0]];
  CHECK(count[2] == 0);
  CHECK(std::abs(count[0] - 800) < 115);  // 1 of 5; deviation 25
  CHECK(choose(plain(Bias::Dpp), x, 3, {.x = known}).back() == 2);
}

TEST_CASE("the next call with a generator draws anew") {
  const FeatureBatch x = toy::programs({{0, 0, 1}, {0, 0, 2}});
  Rng rng(1), untouched(1);
  (void)plain(Bias::Dpp).select(toy::OpenBook{}, x, toy::scores(toy::OpenBook{}, x), 1, rng);
  CHECK(rng() != untouched());
  BiasedDiversity random = plain(Bias::Dpp);
  random.random_share = 1;
  FeatureBatch pool(3);
  for (int i = 0; i < 100; ++i) pool.append_program(std::vector<float>{0, 0, static_cast<float>(i)});
  const auto drawn = [&] { return random.select(toy::OpenBook{}, pool, toy::scores(toy::OpenBook{}, pool), 10, rng); };
  const auto first = drawn();
  CHECK(drawn() != first);
}

TEST_CASE("only labels of the same task are near") {
  const FeatureBatch x = toy::programs({{0, 0, 1}, {0, 0, 5}, {0, 0, 1}, {0, 0, 5}});
  const FeatureBatch known = toy::programs({{0, 0, 0}, {0, 0, 6}});
  const std::array<std::uint32_t, 4> pool_task{3, 3, 8, 8};
  const std::array<std::uint32_t, 2> task{3, 8};
  CHECK(choose(plain(Bias::None), x, 2, {.x = known, .task = task, .pool_task = pool_task}) == Positions{1, 2});
}

TEST_CASE("quotas grow with the root of the pool, and with doubt") {
  // Five tasks: one of 16 candidates, four of 4. The last is the least sure: of each candidate, not of all of them.
  FeatureBatch x(3);
  std::vector<std::uint32_t> pool_task;
  for (std::uint32_t p = 0; p < 32; ++p) {
    const std::uint32_t task = p < 16 ? 0 : p / 4 - 3;
    x.append_program(std::vector<float>{0, task == 4 ? 0.3F : 0.1F, static_cast<float>(p)});
    pool_task.push_back(task);
  }
  const auto per_task = [&](double factor) {
    BiasedDiversity sampler = plain(Bias::None);
    sampler.unsure_task_factor = factor;
    std::array<int, 5> count{};
    for (const std::size_t p : choose(sampler, x, 12, {.pool_task = pool_task})) ++count[pool_task[p]];
    return count;
  };
  CHECK(per_task(1) == std::array{4, 2, 2, 2, 2});  // roots 4, 2, 2, 2, 2
  CHECK(per_task(2) == std::array{3, 2, 2, 2, 3});  // 4, 2, 2, 2, 4 of 14: 3.4, 1.7, 1.7, 1.7, 3.4
}

TEST_CASE("the random share is of the size asked for, on average even in small quotas") {
  FeatureBatch x(3);
  std::vector<std::uint32_t> pool_task;
  for (std::uint32_t p = 0; p < 400; ++p) {
    const bool corner = p % 10 == 9;  // far out: what diversity takes first
    x.append_program(std::vector<float>{0, 0, corner ? 100.0F * static_cast<float>(p) : 0.0F});
    pool_task.push_back(p / 10);
  }
  BiasedDiversity sampler = plain(Bias::None);
  sampler.random_share = 0.25;
  int elsewhere = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    for (const std::size_t p : choose(sampler, x, 40, {.pool_task = pool_task}, seed)) elsewhere += p % 10 != 9;
  }
  // 4,000 quotas of one: 0.25 are random, and 0.9 of those miss the corner; ties at the first choice go to the
  // first candidate, so what is not random misses it too unless something is labelled.
  CHECK(elsewhere > 3000);
  const FeatureBatch known = [] {
    FeatureBatch batch(3);
    for (int task = 0; task < 40; ++task) batch.append_program(std::vector<float>{0, 0, 0});
    return batch;
  }();
  std::vector<std::uint32_t> task(40);
  for (std::uint32_t t = 0; t < 40; ++t) task[t] = t;
  elsewhere = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    for (const std::size_t p : choose(sampler, x, 40, {.x = known, .task = task, .pool_task = pool_task}, seed))
      elsewhere += p % 10 != 9;
  }
  CHECK(std::abs(elsewhere - 900) < 120);  // 4,000 * 0.25 * 0.9; deviation 26
}

TEST_CASE("levels even out what is labelled") {
  // 90 slow programs spread wide, 10 fast ones close together: diversity alone takes the slow.
  FeatureBatch x(3);
  for (int p = 0; p < 100; ++p) {
    const bool fast = p >= 90;
    x.append_program(std::vector<float>{fast ? 0.95F : 0.02F, 0,
                                        fast ? 20.0F * static_cast<float>(p - 90) : static_cast<float>(10 * p)});
  }
  const auto fast_ones = [&](Bias bias) {
    const Positions chosen = choose(plain(bias), x, 10);
    return std::count_if(chosen.begin(), chosen.end(), [](std::size_t p) { return p >= 90; });
  };
  CHECK(fast_ones(Bias::None) <= 2);
  CHECK(fast_ones(Bias::Strata) > fast_ones(Bias::None));
  CHECK(fast_ones(Bias::Restore) > fast_ones(Bias::None));
}

TEST_CASE("what it cannot do is said") {
  struct NoDeviation : models::Random {
    FeatureBatch embed(const FeatureBatch& x) const { return toy::OpenBook{}.embed(x); }
  };
  static_assert(SamplerFor<BiasedDiversity, NoDeviation>);
  static_assert(!SamplerFor<BiasedDiversity, models::Random>);
  const FeatureBatch x = toy::programs({{0, 0, 1}});
  Rng rng(1);
  const auto select = [&](const BiasedDiversity& sampler) {
    (void)sampler.select(NoDeviation{}, x, std::array{0.0F}, 1, rng);
  };
  CHECK_NOTHROW(select({}));
  CHECK_THROWS_WITH_AS(select({.bias = Bias::Qbc}), doctest::Contains("models::Committee"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(select({.random_share = 2}), doctest::Contains("random_share is 2"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(select({.beta = -1}), doctest::Contains("beta is -1"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(select({.unsure_task_factor = 0}), doctest::Contains("unsure_task_factor is 0"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(select({.unsure_task_factor = std::numeric_limits<double>::infinity()}),
                       doctest::Contains("unsure_task_factor is inf"), std::invalid_argument);
}
