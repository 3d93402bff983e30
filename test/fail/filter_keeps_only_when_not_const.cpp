// SPDX-License-Identifier: Apache-2.0
// A filter judges from several threads at once, so judging changes nothing.
// error: recipe: slot 'filter' does not model FilterFor<space>: keep is not const
#include "support/toy_recipes.hpp"
#include "tunewright/tuner.hpp"

struct Counts {
  tunewright::Kept keep(const toy::Space&, const tunewright::Task&, std::span<const toy::Tiles>) { return {}; }
};

struct Recipe : toy::Evolution {
#ifdef TUNEWRIGHT_SHOULD_FAIL
  using filter = Counts;
#endif
};

tunewright::Tuner<Recipe> tuner;
