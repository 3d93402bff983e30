// SPDX-License-Identifier: Apache-2.0
#include "tunewright/samplers/epsilon_greedy.hpp"

#include <doctest/doctest.h>

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

}  // namespace

TEST_CASE("a batch of 64 at 0.05 is 61 by score and 3 at random, as in the paper") {
  std::set<std::size_t> random_part;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Rng rng(seed);
    const auto chosen = samplers::EpsilonGreedy{}.select(models::Random{}, {}, falling(200), 64, rng);
    REQUIRE(chosen.size() == 64);
    for (std::size_t i = 0; i < 61; ++i) CHECK(chosen[i] == i);
    random_part.insert(chosen.begin() + 61, chosen.end());
  }
  CHECK(*random_part.begin() >= 61);
  CHECK(random_part.size() > 50);  // 120 draws of 139 places; fewer than 50 different ones would be a broken draw
}

TEST_CASE("at 0 it is greedy, at 1 it is random") {
  Rng rng(3);
  const auto greedy = samplers::EpsilonGreedy{.epsilon = 0}.select(models::Random{}, {}, falling(10), 4, rng);
  CHECK(greedy == std::vector<std::size_t>{0, 1, 2, 3});
  const auto random = samplers::EpsilonGreedy{.epsilon = 1}.select(models::Random{}, {}, falling(1000), 4, rng);
  CHECK(random != std::vector<std::size_t>{0, 1, 2, 3});
}

TEST_CASE("hopeless candidates come last") {
  std::vector<float> score = falling(20);
  for (std::size_t i = 10; i < 20; ++i) score[i] = -std::numeric_limits<float>::infinity();
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Rng rng(seed);
    for (const std::size_t i : samplers::EpsilonGreedy{.epsilon = 0.5}.select(models::Random{}, {}, score, 10, rng))
      CHECK(i < 10);
  }
}

TEST_CASE("a share outside of [0, 1] is refused") {
  Rng rng(1);
  CHECK_THROWS_WITH_AS((void)samplers::EpsilonGreedy{.epsilon = 1.5}.select(models::Random{}, {}, falling(3), 1, rng),
                       doctest::Contains("1.5"), std::invalid_argument);
}
