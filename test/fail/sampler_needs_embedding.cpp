// SPDX-License-Identifier: Apache-2.0
// A sampler that looks for diversity needs a model that places programs in a space.
// error: recipe: slot 'sampler' does not model SamplerFor<model>: it needs an EmbeddingCostModel
#include "support/toy_recipes.hpp"
#include "tunewright/samplers/core_set.hpp"
#include "tunewright/tuner.hpp"

struct Recipe : toy::Evolution {
#ifdef TUNEWRIGHT_SHOULD_FAIL
  using sampler = tunewright::samplers::CoreSet;
#endif
};

tunewright::Tuner<Recipe> tuner;
