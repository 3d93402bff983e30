// SPDX-License-Identifier: Apache-2.0
// error: recipe: slot 'draft' is missing; name a type for it or derive from a recipe
#include "support/toy_recipes.hpp"
#include "tunewright/tuner.hpp"

struct Recipe {
  using space = toy::Space;
  using featurizer = toy::Features;
  using model = toy::Linear;
#ifndef TUNEWRIGHT_SHOULD_FAIL
  using draft = tunewright::drafts::None;
#endif
  using explorer = tunewright::explorers::Uniform;
  using sampler = tunewright::samplers::TopK;
  using filter = tunewright::filters::StaticLimits;
  using adaptation = tunewright::adaptations::Refit;
  using measurer = toy::Measurer;
};

tunewright::Tuner<Recipe> tuner;
