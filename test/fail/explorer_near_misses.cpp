// SPDX-License-Identifier: Apache-2.0
// What an explorer lacks is named.
// error 1: recipe: slot 'explorer' does not model ExplorerFor<space>: explore takes Guidance&; take const
// error 2: recipe: slot 'explorer' does not model ExplorerFor<space>: explore must return std::vector<config_type>
// error 3: recipe: slot 'explorer' does not model ExplorerFor<space>: it has no explore(const Space&
// error 4: recipe: slot 'explorer' does not model ExplorerFor<space>: it cannot be copied
#include <memory>

#include "support/toy_recipes.hpp"
#include "tunewright/tuner.hpp"

using Guidance = tunewright::Guidance<toy::Tiles>;

struct Faulty : tunewright::explorers::Uniform {
  using Uniform::explore;
#if TUNEWRIGHT_SHOULD_FAIL == 4
  std::unique_ptr<int> state;
#endif
};
struct Other {
#if TUNEWRIGHT_SHOULD_FAIL == 1
  std::vector<toy::Tiles> explore(const toy::Space&, const tunewright::Task&, Guidance&, tunewright::Rng&) {
    return {};
  }
#elif TUNEWRIGHT_SHOULD_FAIL == 2
  toy::Tiles explore(const toy::Space&, const tunewright::Task&, const Guidance&, tunewright::Rng&) { return {}; }
#elif TUNEWRIGHT_SHOULD_FAIL == 3
  std::vector<toy::Tiles> explore(const toy::Space&, tunewright::Rng&) { return {}; }
#endif
};

struct Recipe : toy::Evolution {
#if defined(TUNEWRIGHT_SHOULD_FAIL) && TUNEWRIGHT_SHOULD_FAIL < 4
  using explorer = Other;
#else
  using explorer = Faulty;
#endif
};

tunewright::Tuner<Recipe> tuner;
