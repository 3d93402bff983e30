// SPDX-License-Identifier: Apache-2.0
// Knobs describes spaces that name theirs; joined to another featurizer it still does.
// error: recipe: slot 'featurizer' does not model FeaturizerFor<space>: it needs a KnobSpace
#include "tunewright/features/knobs.hpp"
#include "support/toy_recipes.hpp"
#include "tunewright/features/hardware.hpp"
#include "tunewright/features/joined.hpp"
#include "tunewright/tuner.hpp"

#ifdef TUNEWRIGHT_SHOULD_FAIL
using Description = tunewright::features::Knobs;
#else
using Description = toy::Features;
#endif

struct Recipe : toy::Evolution {
  using featurizer = tunewright::features::Joined<Description, tunewright::features::Hardware>;
};

tunewright::Tuner<Recipe> tuner;
