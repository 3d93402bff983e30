// SPDX-License-Identifier: Apache-2.0
// Training on in small steps needs a model that can be trained from what it has.
// error: recipe: slot 'adaptation' does not model AdaptationFor<model>: it needs a FineTunableCostModel
#include "support/toy_recipes.hpp"
#include "tunewright/adaptations/incremental_refit.hpp"
#include "tunewright/tuner.hpp"

struct Recipe : toy::Evolution {
#ifdef TUNEWRIGHT_SHOULD_FAIL
  using adaptation = tunewright::adaptations::IncrementalRefit;
#endif
};

tunewright::Tuner<Recipe> tuner;
