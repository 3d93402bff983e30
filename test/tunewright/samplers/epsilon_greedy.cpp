// SPDX-License-Identifier: Apache-2.0
#include "tunewright/samplers/epsilon_greedy.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

#include "tunewright/models/random.hpp"

using namespace tunewright;

namespace {

std::vector<float> falling(std::size_t n) {
  std::vector<float> score;
  for (std::size_t i = 0; i < n; ++i) score.push_back(1.0F - 0.001F * static_cast<float>(i));
  return score;
}

FeatureBatch programs(std::size_t n) {
  FeatureBatch x(1);
  for (std::size_t i = 0; i < n; ++i) x.append_program(std::vector<float>{0});
  return x;
}

}  // namespace

TEST_CASE("a batch of 64 at 0.05 is 61 by score and 3 at random, as in the paper") {
  std::set<std::size_t> random_part;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Rng rng(seed);
    const auto chosen = samplers::EpsilonGreedy{}.select(models::Random{}, programs(200), falling(200), 64, rng);
    REQUIRE(chosen.size() == 64);
    for (std::size_t i = 0; i < 61; ++i) CHECK(chosen[i] == i);
    random_part.insert(chosen.begin() + 61, chosen.end());
  }
  CHECK(*random_part.begin() >= 61);
  CHECK(random_part.size() > 50);  // 120 draws of 139 places; fewer than 50 different ones would be a broken draw
}

TEST_CASE("at 0 it is greedy, at 1 it is random") {
  Rng rng(3);
  const auto greedy = samplers::EpsilonGreedy{.epsilon = 0}.select(models::Random{}, programs(10), falling(10), 4, rng);
  CHECK(greedy == std::vector<std::size_t>{0, 1, 2, 3});
  const auto random =
      samplers::EpsilonGreedy{.epsilon = 1}.select(models::Random{}, programs(1000), falling(1000), 4, rng);
  CHECK(random != std::vector<std::size_t>{0, 1, 2, 3});
}

TEST_CASE("batches too small for a random candidate of their own have one now and then") {
  // A tenth of 8, 16, 24, 32, 40 and 48 trials is 0, 1, 2, 3, 4 and 4.
  constexpr std::array<std::size_t, 6> random_of_batch{0, 1, 1, 1, 1, 0};
  Rng rng(1);
  FeatureBatch known(1);
  std::vector<std::uint32_t> task;
  for (const std::size_t random : random_of_batch) {
    const std::vector<std::uint32_t> pool_task(100, 7);
    const auto chosen = samplers::EpsilonGreedy{.epsilon = 0.1}.select(
        models::Random{}, programs(100), falling(100), 8, rng, {.x = known, .task = task, .pool_task = pool_task});
    REQUIRE(chosen.size() == 8);
    CHECK(static_cast<std::size_t>(std::count_if(chosen.begin(), chosen.end(), [](std::size_t i) { return i >= 8; })) ==
          random);
    for (int l = 0; l < 8; ++l) known.append_program(std::vector<float>{1});
    task.resize(known.programs(), 7);
    for (int l = 0; l < 3; ++l) known.append_program(std::vector<float>{1});
    task.resize(known.programs(), 6);  // those of another task do not count
  }
}

TEST_CASE("hopeless candidates come last") {
  std::vector<float> score = falling(20);
  for (std::size_t i = 10; i < 20; ++i) score[i] = -std::numeric_limits<float>::infinity();
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Rng rng(seed);
    for (const std::size_t i :
         samplers::EpsilonGreedy{.epsilon = 0.5}.select(models::Random{}, programs(20), score, 10, rng))
      CHECK(i < 10);
  }
}

TEST_CASE("a share outside of [0, 1] is refused") {
  Rng rng(1);
  CHECK_THROWS_WITH_AS(
      (void)samplers::EpsilonGreedy{.epsilon = 1.5}.select(models::Random{}, programs(3), falling(3), 1, rng),
      doctest::Contains("1.5"), std::invalid_argument);
}
