// SPDX-License-Identifier: Apache-2.0
#include "tunewright/samplers/cluster_centres.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "support/toy_model.hpp"
#include "tunewright/samplers/k_means.hpp"

using namespace tunewright;
using samplers::Points;

TEST_CASE("k-means of two pairs on a line") {
  const Points points{.columns = 1, .values = {0, 10, 1, 11}, .count = 4};
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Rng rng(seed);
    const samplers::Clusters found = samplers::k_means(points, 2, 100, rng);
    const std::set<float> centres(found.centres.values.begin(), found.centres.values.end());
    CHECK(centres == std::set<float>{0.5F, 10.5F});
    CHECK(found.loss == doctest::Approx(1));
    CHECK(found.cluster[0] == found.cluster[2]);
    CHECK(found.cluster[0] != found.cluster[1]);
  }
  Rng rng(1);
  CHECK(samplers::k_means(points, 1, 100, rng).loss == doctest::Approx(101));  // 4 * 25 + 4 * 0.25
  CHECK(samplers::k_means(points, 4, 100, rng).loss == 0);
  CHECK(samplers::k_means(points, 6, 100, rng).centres.size() == 6);  // more centres than points
}

namespace {

// A 16 x 16 grid of two knobs, of which only 4 x 4 blocks of 2 x 2 occur; a third knob of two values.
struct Blocks {
  FeatureBatch x{3};
  std::vector<float> score;
  Blocks() {
    for (int block = 0; block < 16; ++block) {
      for (int i = 0; i < 8; ++i) {
        const std::span<float> row = x.append_row();
        row[0] = static_cast<float>(block % 4 * 4 + i % 2);
        row[1] = static_cast<float>(i / 4);
        row[2] = static_cast<float>(1 << (block / 4 * 4 + i / 2 % 2));
        x.close_program();
        score.push_back(static_cast<float>(i));
      }
    }
  }
};

}  // namespace

TEST_CASE("one candidate a cluster, however many were asked for") {
  const Blocks pool;
  Rng rng(3);
  const samplers::ClusterCentres sampler{.step = 16, .knee = 100};
  const auto chosen = sampler.select(toy::OpenBook{}, pool.x, pool.score, 64, rng);
  CHECK(chosen.size() < 64);
  CHECK(chosen.size() >= 16);
  std::set<std::size_t> blocks;
  for (const std::size_t p : chosen) blocks.insert(p / 8);
  CHECK(blocks.size() >= 14);  // seeds may meet in a block
  CHECK(std::is_sorted(chosen.begin(), chosen.end(),
                       [&](std::size_t a, std::size_t b) { return pool.score[a] > pool.score[b]; }));
}

TEST_CASE("of candidates alike in the widest knobs the best-scored stands for them") {
  FeatureBatch x(2);
  std::vector<float> score;
  for (int i = 0; i < 12; ++i) {
    x.append_program(std::vector<float>{static_cast<float>(i % 3), static_cast<float>(i % 2)});
    score.push_back(static_cast<float>(i));
  }
  Rng rng(1);
  const samplers::ClusterCentres sampler{.step = 3, .widest = 1};
  CHECK(sampler.select(toy::OpenBook{}, x, score, 3, rng) == std::vector<std::size_t>{11, 10, 9});
}

TEST_CASE("options out of range are refused") {
  Rng rng(1);
  const FeatureBatch x = toy::programs({{1, 1}});
  const std::vector<float> score{1};
  CHECK_THROWS_WITH_AS((void)samplers::ClusterCentres{.step = 0}.select(toy::OpenBook{}, x, score, 1, rng),
                       doctest::Contains("step is 0"), std::invalid_argument);
  CHECK_THROWS_WITH_AS((void)samplers::ClusterCentres{.knee = 1}.select(toy::OpenBook{}, x, score, 1, rng),
                       doctest::Contains("knee is 1"), std::invalid_argument);
}
