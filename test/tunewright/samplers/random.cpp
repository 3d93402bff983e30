// SPDX-License-Identifier: Apache-2.0
#include "tunewright/samplers/random.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "tunewright/models/random.hpp"

using namespace tunewright;

TEST_CASE("every candidate is equally likely, whatever its score") {
  // 2 of 5 in 4,000 draws: 1,600 expected each, standard deviation 31. Five of them beyond 4.5 deviations:
  // under 1 in 29,000.
  std::vector<int> count(5);
  const std::vector<float> score{9, 1, 1, 1, 0};
  Rng rng(11);
  for (int draw = 0; draw < 4000; ++draw) {
    for (const std::size_t i : samplers::Random{}.select(models::Random{}, {}, score, 2, rng)) ++count[i];
  }
  for (const int n : count) CHECK(std::abs(n - 1600) < 140);
}
