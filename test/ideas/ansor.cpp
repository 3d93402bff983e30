// SPDX-License-Identifier: Apache-2.0
#include "tunewright/recipes/ansor.hpp"

#include <doctest/doctest.h>

#include <cstdint>

#include "ideas/paired_seeds.hpp"
#include "ideas/simulated_programs.hpp"
#include "tunewright/explorers/uniform.hpp"

// Zheng et al., Ansor: evolution finds better programs than sampling at random.
namespace {

using namespace tunewright;
using test::SimulatedSearch;

struct Evolving : recipes::AnsorQuick<test::SimulatedSpace, measurers::Simulated> {
  static void set_explorer(explorers::Evolutionary& evolution) { evolution.population = 64; }
};
/// As many candidates as evolution ranks, all of them random.
struct Sampling : Evolving {
  using explorer = explorers::Uniform;
  static void set_explorer(explorers::Uniform& draws) { draws.pool = 64 * 5; }
};

template <class Recipe>
SimulatedSearch searched(std::uint64_t seed) {
  return test::searched_simulated(Parts<Recipe>{}, test::searched_product(), seed, 48, 16);
}

TEST_CASE("Ansor's evolution measures faster programs than random candidates ranked by the same trees") {
  const auto runs = test::on_seeds(20, searched<Evolving>, searched<Sampling>);
  const auto median = runs.more(&SimulatedSearch::median_of_rest);
  const auto best = runs.more(&SimulatedSearch::best);
  CAPTURE(median);
  CAPTURE(best);
  CHECK(median.idea_is_better());
}

}  // namespace
