// SPDX-License-Identifier: Apache-2.0
#include "tunewright/samplers/badge.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <vector>

#include "support/toy_model.hpp"

using namespace tunewright;

TEST_CASE("the factorised distance of gradients is that of the gradients written out") {
  Rng rng(2);
  for (int trial = 0; trial < 50; ++trial) {
    std::array<float, 3> a{}, b{};
    std::array<float, 11> h{}, k{};
    for (auto* values : {&a, &b}) {
      for (float& value : *values) value = static_cast<float>(rng.normal());
    }
    for (auto* values : {&h, &k}) {
      for (float& value : *values) value = static_cast<float>(rng.normal());
    }
    std::vector<float> g, other;
    for (std::size_t i = 0; i < a.size(); ++i) {
      for (std::size_t j = 0; j < h.size(); ++j) {
        g.push_back(a[i] * h[j]);
        other.push_back(b[i] * k[j]);
      }
    }
    CHECK(samplers::gradient_distance(a, h, b, k) ==
          doctest::Approx(samplers::squared_distance(g, other)).epsilon(1e-4));
    CHECK(samplers::gradient_distance(a, h, a, h) < 1e-4F * samplers::dot(g, g));
  }
}

TEST_CASE("the largest gradient first, then by squared distance") {
  //                                 score deviation embedding     gradient
  const FeatureBatch x = toy::programs({{0, 1, 1, 0},    // ( 1, 0)
                                        {0, 2, 2, 0},    // ( 4, 0)
                                        {0, 2, 2, 1},    // ( 4, 2)
                                        {0, 0, 9, 9},    // ( 0, 0)  sure of itself
                                        {0, 5, 1, 0}});  // ( 5, 0)
  const std::vector<float> score(5);
  std::array<int, 5> second{};
  constexpr int draws = 4000;
  for (std::uint64_t seed = 0; seed < draws; ++seed) {
    Rng rng(seed);
    const auto chosen = samplers::Badge{}.select(toy::OpenBook{}, x, score, 2, rng);
    REQUIRE(chosen[0] == 4);
    ++second[chosen[1]];
  }
  // Squared distances to (5, 0): 16, 1, 5, 25, of 47 in all.
  const std::array expected{16, 1, 5, 25, 0};
  for (std::size_t i = 0; i < 5; ++i) {
    const double share = expected[i] / 47.0, deviation = std::sqrt(draws * share * (1 - share));
    CHECK(std::abs(second[i] - draws * share) <= 4.5 * deviation);
  }
}

TEST_CASE("candidates of one gradient fill a batch by score") {
  const FeatureBatch x = toy::programs({{0.1F, 1, 1}, {0.3F, 1, 1}, {0.2F, 1, 1}});
  Rng rng(1);
  CHECK(samplers::Badge{}.select(toy::OpenBook{}, x, toy::scores(toy::OpenBook{}, x), 3, rng) ==
        std::vector<std::size_t>{0, 1, 2});
}
