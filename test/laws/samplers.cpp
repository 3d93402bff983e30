// SPDX-License-Identifier: Apache-2.0
// What every sampler owes, whatever it is: see samplers/concept.hpp.
#include <doctest/doctest.h>

#include <vector>

#include "tunewright/models/random.hpp"
#include "tunewright/samplers/epsilon_greedy.hpp"
#include "tunewright/samplers/random.hpp"
#include "tunewright/samplers/top_k.hpp"

using namespace tunewright;

#define SAMPLERS samplers::TopK, samplers::EpsilonGreedy, samplers::Random

TEST_CASE_TEMPLATE("min(n, P) distinct positions in range, for any scores", Sampler, SAMPLERS) {
  Rng draw(17);
  for (const std::size_t pool : {0U, 1U, 5U, 64U, 300U}) {
    for (const std::size_t n : {0U, 1U, 5U, 64U}) {
      for (int kind = 0; kind < 3; ++kind) {
        std::vector<float> score(pool);
        for (float& one : score) {
          one = kind == 0   ? static_cast<float>(draw.uniform())
                : kind == 1 ? 0.5F
                            : -std::numeric_limits<float>::infinity();
        }
        Rng rng(draw());
        const auto chosen = Sampler{}.select(models::Random{}, {}, score, n, rng);
        CHECK(chosen.size() == std::min(n, pool));
        CHECK_NOTHROW(samplers::check_selection(chosen, pool, n));
      }
    }
  }
}

TEST_CASE_TEMPLATE("the choice depends on the arguments alone", Sampler, SAMPLERS) {
  const std::vector<float> score{0.3F, 0.1F, 0.9F, 0.5F, 0.7F, 0.2F, 0.8F};
  Sampler sampler;
  Rng first(4);
  Rng second(4);
  const auto once = sampler.select(models::Random{}, {}, score, 4, first);
  CHECK(once == sampler.select(models::Random{}, {}, score, 4, second));
}
