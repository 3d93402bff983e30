// SPDX-License-Identifier: Apache-2.0
#include "tunewright/samplers/core_set.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "support/toy_model.hpp"

using namespace tunewright;

namespace {

// Points on a line, or in a plane: score 0, deviation 0, then the embedding.
FeatureBatch at(const std::vector<std::vector<float>>& points) {
  FeatureBatch x(2 + points.front().size());
  for (const std::vector<float>& point : points) {
    const std::span<float> row = x.append_row();
    std::copy(point.begin(), point.end(), row.begin() + 2);
    x.close_program();
  }
  return x;
}

// The largest distance of a point to the nearest of `centres`.
float radius(const std::vector<std::vector<float>>& points, const std::vector<std::size_t>& centres) {
  float worst = 0;
  for (const auto& point : points) {
    float nearest = std::numeric_limits<float>::infinity();
    for (const std::size_t c : centres) nearest = std::min(nearest, samplers::squared_distance(point, points[c]));
    worst = std::max(worst, nearest);
  }
  return std::sqrt(worst);
}

}  // namespace

TEST_CASE("the farthest from everything measured comes next") {
  const FeatureBatch x = at({{1}, {10}, {2}, {6}});
  const std::vector<float> score(4);
  Rng rng(1);
  const FeatureBatch known = at({{0}});
  CHECK(samplers::CoreSet{}.select(toy::OpenBook{}, x, score, 4, rng, {.x = known}) ==
        std::vector<std::size_t>{1, 3, 2, 0});  // 10 away; then 4, 2 and 1
  // Without labels from the best-scored.
  CHECK(samplers::CoreSet{}.select(toy::OpenBook{}, x, std::vector<float>{0, 0, 1, 0}, 2, rng) ==
        std::vector<std::size_t>{2, 1});
}

TEST_CASE("the covering radius is within twice the smallest possible") {
  Rng rng(5);
  for (int trial = 0; trial < 30; ++trial) {
    std::vector<std::vector<float>> points;
    for (int i = 0; i < 12; ++i)
      points.push_back({static_cast<float>(rng.uniform()), static_cast<float>(rng.uniform())});
    float optimum = std::numeric_limits<float>::infinity();
    for (std::size_t a = 0; a < 12; ++a) {
      for (std::size_t b = a + 1; b < 12; ++b) {
        for (std::size_t c = b + 1; c < 12; ++c) optimum = std::min(optimum, radius(points, {a, b, c}));
      }
    }
    const auto chosen = samplers::CoreSet{}.select(toy::OpenBook{}, at(points), std::vector<float>(12), 3, rng);
    CHECK(radius(points, chosen) <= 2 * optimum * 1.0001F);
  }
}

TEST_CASE("standardised, a coordinate in large units does not decide alone") {
  const FeatureBatch x = at({{1000, 0}, {1040, 0}, {1000, 1}});
  const FeatureBatch known = at({{1000, 0}, {1000, 0}, {1100, 0}, {900, 0}});
  const std::vector<float> score(3);
  Rng rng(1);
  CHECK(samplers::CoreSet{}.select(toy::OpenBook{}, x, score, 1, rng, {.x = known}).front() == 1);
  CHECK(samplers::CoreSet{.standardised = true}.select(toy::OpenBook{}, x, score, 1, rng, {.x = known}).front() == 2);
}
