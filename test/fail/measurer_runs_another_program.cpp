// SPDX-License-Identifier: Apache-2.0
// A measurer takes what the space lowers to.
// error: recipe: slot 'measurer' does not model MeasurerFor<program of the space>: it has no measure(const Task&
#include "support/toy_recipes.hpp"
#include "tunewright/tuner.hpp"

struct Recipe : toy::Evolution {
#ifdef TUNEWRIGHT_SHOULD_FAIL
  using measurer = tunewright::measurers::Function<int>;
#endif
};

tunewright::Tuner<Recipe> tuner;
