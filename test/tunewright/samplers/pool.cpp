// SPDX-License-Identifier: Apache-2.0
#include "tunewright/samplers/pool.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

using namespace tunewright;
using Positions = std::vector<std::size_t>;

TEST_CASE("a twentieth of all trials, by hand") {
  // AutoTVM's code takes 3 of every 64; 0.05 * 64 k is 3.2, 6.4, 9.6, 12.8, 16.
  CHECK(samplers::random_share(0.05, 0, 64) == 3);
  CHECK(samplers::random_share(0.05, 64, 64) == 3);
  CHECK(samplers::random_share(0.05, 192, 64) == 3);
  CHECK(samplers::random_share(0.05, 256, 64) == 4);
  // Every fifth batch of 4 has one random trial.
  Positions of_batches;
  for (std::size_t measured = 0; measured < 40; measured += 4)
    of_batches.push_back(samplers::random_share(0.05, measured, 4));
  CHECK(of_batches == Positions{0, 0, 0, 0, 1, 0, 0, 0, 0, 1});
  CHECK(samplers::random_share(0, 7, 100) == 0);
  CHECK(samplers::random_share(1, 7, 100) == 100);
  CHECK(samplers::random_share(0.29, 0, 100) == 29);  // which 0.29 * 100 is a little less than
}

TEST_CASE("others are drawn from what is described and not considered, each equally often") {
  constexpr float undescribed = -std::numeric_limits<float>::infinity();
  const std::vector<float> score{1, 2, undescribed, 3, 4};
  const Positions considered{4, 0};
  std::size_t drawn_1 = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed);
    const Positions one = samplers::random_others(score, considered, 1, rng);
    REQUIRE(one.size() == 1);
    CHECK((one[0] == 1 || one[0] == 3));
    drawn_1 += one[0] == 1 ? 1 : 0;
  }
  CHECK(drawn_1 > 70);
  CHECK(drawn_1 < 130);
  Rng rng(1);
  Positions all = samplers::random_others(score, considered, 9, rng);
  std::sort(all.begin(), all.end());
  CHECK(all == Positions{1, 3});
  CHECK(samplers::random_others(score, Positions{0, 1, 3, 4}, 2, rng).empty());
}

TEST_CASE("as many are considered as leave the random ones a rest") {
  constexpr float undescribed = -std::numeric_limits<float>::infinity();
  const std::vector<float> score{1, 2, undescribed, 3, 4};
  CHECK(samplers::considered_beside(0, 9, score) == 4);
  CHECK(samplers::considered_beside(0, 2, score) == 2);
  CHECK(samplers::considered_beside(1, 9, score) == 3);
  CHECK(samplers::considered_beside(1, 3, score) == 3);
  CHECK(samplers::considered_beside(9, 9, score) == 0);
}

TEST_CASE("without any random ones the generator stays as it was") {
  Rng rng(5), untouched(5);
  CHECK(samplers::random_others(std::vector<float>{1, 2}, {}, 0, rng).empty());
  CHECK(rng.below(1000) == untouched.below(1000));
}

TEST_CASE("labels of the pool's task are counted, all where tasks have no numbers") {
  FeatureBatch x(1);
  for (int l = 0; l < 3; ++l) x.append_program(std::vector<float>{0});
  const std::vector<std::uint32_t> task{4, 9, 4}, pool_task{4, 4};
  CHECK(samplers::labelled_of_pool_task({.x = x}) == 3);
  CHECK(samplers::labelled_of_pool_task({.x = x, .task = task, .pool_task = pool_task}) == 2);
  CHECK(samplers::labelled_of_pool_task({}) == 0);
}
