// SPDX-License-Identifier: Apache-2.0
// A draft scores from several threads at once, so scoring changes nothing.
// error: recipe: slot 'draft' does not model DraftModelFor<space>: score is not const
#include "support/toy_recipes.hpp"
#include "tunewright/tuner.hpp"

struct Counts {
  void score(const toy::Space&, const tunewright::Task&, std::span<const toy::Tiles>, std::span<float>) {}
};

struct Recipe : toy::Evolution {
#ifdef TUNEWRIGHT_SHOULD_FAIL
  using draft = Counts;
#endif
};

tunewright::Tuner<Recipe> tuner;
