// SPDX-License-Identifier: Apache-2.0
// A warm start needs a model that holds what was learned elsewhere.
// error: recipe: slot 'adaptation' does not model AdaptationFor<model>: it has no update(Model&
#include "support/toy_recipes.hpp"
#include "tunewright/adaptations/warm_start.hpp"
#include "tunewright/tuner.hpp"

struct Recipe : toy::Evolution {
  using adaptation = tunewright::adaptations::WarmStart;
#ifndef TUNEWRIGHT_SHOULD_FAIL
  using model = tunewright::adaptations::Transferred<toy::Linear>;
#endif
};

tunewright::Tuner<Recipe> tuner;
