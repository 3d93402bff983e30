// SPDX-License-Identifier: Apache-2.0
#include "tunewright/samplers/diverse_top_k.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "support/toy_model.hpp"

using namespace tunewright;
using samplers::DiverseTopK;

namespace {

double objective(const DiverseTopK& sampler, const FeatureBatch& x, const std::vector<float>& score,
                 const std::vector<std::size_t>& chosen) {
  double sum = 0;
  std::set<std::pair<std::size_t, float>> values;
  for (const std::size_t p : chosen) {
    sum += sampler.score_weight * double{score[p]};
    for (std::size_t c = 0; c < x.columns(); ++c) values.emplace(c, x.program(p)[c]);
  }
  return sum + sampler.knob_weight * static_cast<double>(values.size());
}

}  // namespace

TEST_CASE("coverage of knob values among the best, by hand") {
  const FeatureBatch x = toy::programs({{1, 1}, {1, 2}, {2, 2}, {1, 1}, {3, 3}});
  const std::vector<float> score{0.9F, 0.8F, 0.7F, 0.6F, 0.1F};
  Rng rng(1);
  // All open two values; the best-scored does first. Then (2, 2) opens two, (1, 2) one.
  CHECK(DiverseTopK{}.select(toy::OpenBook{}, x, score, 2, rng) == std::vector<std::size_t>{0, 2});
  // (3, 3) is not among the best 4; nothing else is new, so the score decides.
  CHECK(DiverseTopK{.candidates_factor = 4.0 / 3}.select(toy::OpenBook{}, x, score, 3, rng) ==
        std::vector<std::size_t>{0, 2, 1});
  CHECK(DiverseTopK{}.select(toy::OpenBook{}, x, score, 3, rng) == std::vector<std::size_t>{0, 2, 4});
  // Scores count: 0.8 + 0.05 against 0.7 + 0.1.
  CHECK(DiverseTopK{.score_weight = 1, .knob_weight = 0.05}.select(toy::OpenBook{}, x, score, 2, rng) ==
        std::vector<std::size_t>{0, 1});
}

TEST_CASE("greedy comes within 1 - 1/e of the best set there is") {
  Rng rng(7);
  for (int trial = 0; trial < 30; ++trial) {
    FeatureBatch x(3);
    std::vector<float> score;
    for (int p = 0; p < 10; ++p) {
      const std::span<float> row = x.append_row();
      for (float& value : row) value = static_cast<float>(rng.below(4));
      x.close_program();
      score.push_back(static_cast<float>(rng.uniform()));
    }
    const DiverseTopK sampler{.score_weight = 1, .knob_weight = rng.uniform(), .candidates_factor = 4};
    double best = 0;
    for (std::size_t a = 0; a < 10; ++a) {
      for (std::size_t b = a + 1; b < 10; ++b) {
        for (std::size_t c = b + 1; c < 10; ++c) best = std::max(best, objective(sampler, x, score, {a, b, c}));
      }
    }
    const auto chosen = sampler.select(toy::OpenBook{}, x, score, 3, rng);
    CHECK(objective(sampler, x, score, chosen) >= (1 - std::exp(-1.0)) * best);
  }
}

TEST_CASE("the random share is drawn from what is not considered, and ends the batch") {
  // Half of the first 4 trials is 2; the sampler considers the best 4, so that 4 and 5 are left.
  const FeatureBatch x = toy::programs({{1, 1}, {1, 2}, {2, 2}, {1, 1}, {3, 3}, {4, 4}});
  const std::vector<float> score{0.9F, 0.8F, 0.7F, 0.6F, 0.1F, 0.2F};
  const DiverseTopK sampler{.candidates_factor = 1, .epsilon = 0.5};
  Rng rng(1);
  std::vector<std::size_t> chosen = sampler.select(toy::OpenBook{}, x, score, 4, rng);
  REQUIRE(chosen.size() == 4);
  CHECK(chosen[0] == 0);
  CHECK(chosen[1] == 2);
  std::sort(chosen.begin() + 2, chosen.end());
  CHECK(chosen[2] == 4);
  CHECK(chosen[3] == 5);
  // After one other trial the half of all five is 2 less the 0 of before, after two it is 3 less 1.
  FeatureBatch known(2);
  known.append_program(std::vector<float>{1, 1});
  CHECK(sampler.select(toy::OpenBook{}, x, score, 2, rng, {.x = known}).front() == 0);
  // A share of a fifth gives two trials none, but the fifth of all.
  const DiverseTopK fifth{.candidates_factor = 1, .epsilon = 0.2};
  CHECK(fifth.select(toy::OpenBook{}, x, score, 2, rng) == std::vector<std::size_t>{0, 1});
  for (int l = 0; l < 2; ++l) known.append_program(std::vector<float>{1, 1});
  CHECK(fifth.select(toy::OpenBook{}, x, score, 2, rng, {.x = known}).back() >= 2);
}

TEST_CASE("a pool that could be considered as a whole keeps its random share") {
  // Twice the batch is all there is; a third of three trials is one, of the two lowest scores of which one is not
  // considered.
  const FeatureBatch x = toy::programs({{1, 1}, {1, 2}, {2, 2}, {1, 1}, {3, 3}, {4, 4}});
  const std::vector<float> score{0.9F, 0.8F, 0.7F, 0.6F, 0.1F, 0.2F};
  const double third = 1.0 / 3;
  Rng rng(1);
  CHECK(DiverseTopK{}.select(toy::OpenBook{}, x, score, 3, rng) == std::vector<std::size_t>{0, 2, 5});
  CHECK(DiverseTopK{.epsilon = third}.select(toy::OpenBook{}, x, score, 3, rng) == std::vector<std::size_t>{0, 2, 4});
  // A pool no larger than the batch is measured as it is.
  std::vector<std::size_t> all = DiverseTopK{.epsilon = third}.select(toy::OpenBook{}, x, score, 6, rng);
  std::sort(all.begin(), all.end());
  CHECK(all == std::vector<std::size_t>{0, 1, 2, 3, 4, 5});
  CHECK(DiverseTopK{.epsilon = 1}.select(toy::OpenBook{}, x, score, 9, rng).size() == 6);
}

TEST_CASE("an infinite score comes first and ends nothing else") {
  const FeatureBatch x = toy::programs({{1, 1}, {1, 2}, {2, 2}});
  const std::vector<float> score{0.9F, std::numeric_limits<float>::infinity(), 0.1F};
  Rng rng(1);
  // After (1, 2) either of the others opens one value, and the score decides.
  for (const double score_weight : {0.0, 1.0}) {
    const DiverseTopK sampler{.score_weight = score_weight};
    CHECK(sampler.select(toy::OpenBook{}, x, score, 2, rng) == std::vector<std::size_t>{1, 0});
    CHECK(sampler.select(toy::OpenBook{}, x, score, 3, rng) == std::vector<std::size_t>{1, 0, 2});
  }
}

TEST_CASE("at a weight of 0 infinite scores do not hide that nothing new is opened") {
  const float infinity = std::numeric_limits<float>::infinity();
  const FeatureBatch x = toy::programs({{1, 1}, {1, 1}, {1, 1}, {2, 2}});
  const std::vector<float> score{infinity, infinity, infinity, 0.9F};
  Rng rng(1);
  CHECK(DiverseTopK{}.select(toy::OpenBook{}, x, score, 2, rng) == std::vector<std::size_t>{0, 3});
}

TEST_CASE("options out of range are refused") {
  Rng rng(1);
  const FeatureBatch x = toy::programs({{1, 1}});
  const std::vector<float> score{1};
  const auto select = [&](const DiverseTopK& sampler) { (void)sampler.select(toy::OpenBook{}, x, score, 1, rng); };
  CHECK_THROWS_WITH_AS(select({.score_weight = -1}), doctest::Contains("score_weight"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(select({.knob_weight = -1}), doctest::Contains("knob_weight"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(select({.candidates_factor = 0.5}), doctest::Contains("candidates_factor is 0.5"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(select({.epsilon = 1.5}), doctest::Contains("epsilon is 1.5"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(select({.epsilon = -0.5}), doctest::Contains("epsilon"), std::invalid_argument);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  CHECK_THROWS_WITH_AS(select({.score_weight = infinity}), doctest::Contains("score_weight is inf"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(select({.knob_weight = infinity}), doctest::Contains("knob_weight is inf"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(select({.candidates_factor = infinity}), doctest::Contains("candidates_factor is inf"),
                       std::invalid_argument);
  CHECK_NOTHROW(select({.candidates_factor = 1e300}));
}
