// SPDX-License-Identifier: Apache-2.0
// Exploring and sampling are separate slots.
// error: recipe: slot 'explorer' does not model ExplorerFor<space>: it is a sampler
#include "support/toy_recipes.hpp"
#include "tunewright/tuner.hpp"

struct Recipe : toy::Evolution {
#ifdef TUNEWRIGHT_SHOULD_FAIL
  using explorer = tunewright::samplers::TopK;
#endif
};

tunewright::Tuner<Recipe> tuner;
