// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "ideas/paired_seeds.hpp"
#include "ideas/simulated_programs.hpp"
#include "tunewright/adaptations/transferred.hpp"
#include "tunewright/adaptations/warm_start.hpp"
#include "tunewright/features/per_statement.hpp"
#include "tunewright/models/gbdt.hpp"
#include "tunewright/recipes/ansor.hpp"
#include "tunewright/recipes/one_shot.hpp"
#include "tunewright/recipes/random.hpp"
#include "tunewright/recipes/tenset.hpp"

// Zheng et al., TenSet: a model of other tasks' measurements spares the search its blind start. Ryu et al., One-Shot
// Tuner: with such a model one search without measurements is enough.
namespace {

using namespace tunewright;
using measurers::Simulated;
using test::SimulatedSearch;
using Trees = adaptations::Transferred<models::Gbdt>;

/// Trees that learned 100 random programs of each of eight other products; not one of them is that searched for.
models::Gbdt pretrained(std::uint64_t seed) {
  models::Gbdt trees{.objective = models::gbdt::Objective::Squared, .threads = 1, .seed = seed};
  const auto programs = test::random_programs(test::other_products(), 100, seed, features::PerStatement{});
  trees.fit(programs.x, programs.y, programs.group);
  return trees;
}

struct Scratch : recipes::AnsorQuick<test::SimulatedSpace, Simulated> {
  static void set_explorer(explorers::Evolutionary& evolution) { evolution.population = 128; }
};
struct TenSet : recipes::TenSet<test::SimulatedSpace, Simulated, Trees, adaptations::WarmStart> {
  static void set_explorer(explorers::Evolutionary& evolution) { evolution.population = 128; }
  static void set_model(Trees& trees) { trees.own = {.objective = models::gbdt::Objective::Squared, .threads = 1}; }
};
/// On rows of statements: by the recipe's own features trees taught so little do not beat random programs.
struct OneShot : recipes::OneShot<test::SimulatedSpace, Simulated, Trees> {
  using featurizer = features::PerStatement;
  static void set_explorer(explorers::Annealing& annealing) {
    annealing = {.chains = 64, .steps = 20, .elite_factor = 4};
  }
};
using Random = recipes::Random<test::SimulatedSpace, Simulated>;

TEST_CASE("trees that know other products find fast programs sooner: TenSet and One-Shot Tuner") {
  test::Runs<SimulatedSearch> tenset, one_shot;
  for (std::uint64_t seed = test::first_seed; seed < test::first_seed + 20; ++seed) {
    const auto searched = [&](auto parts, std::size_t batch) {
      return test::searched_simulated(std::move(parts), test::searched_product(), seed, 16, batch);
    };
    const models::Gbdt trees = pretrained(seed);
    Parts<TenSet> warm;
    warm.model.source = trees;
    tenset.idea.push_back(searched(std::move(warm), 8));
    tenset.ablation.push_back(searched(Parts<Scratch>{}, 8));
    Parts<OneShot> only;
    only.model.source = trees;
    one_shot.idea.push_back(searched(std::move(only), 16));
    one_shot.ablation.push_back(searched(Parts<Random>{}, 16));
  }
  const auto tenset_first_batch = tenset.more(&SimulatedSearch::first_batch);
  const auto tenset_best = tenset.more(&SimulatedSearch::best);
  const auto one_shot_best = one_shot.more(&SimulatedSearch::best);
  CAPTURE(tenset_first_batch);
  CAPTURE(tenset_best);
  CAPTURE(one_shot_best);
  CHECK(tenset_first_batch.idea_is_better());
  CHECK(tenset_best.idea_is_better());
  CHECK(one_shot_best.idea_is_better());
}

}  // namespace
