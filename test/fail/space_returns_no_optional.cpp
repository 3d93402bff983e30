// SPDX-License-Identifier: Apache-2.0
// Sampling may lead nowhere, and says so.
// error: recipe: slot 'space' does not model SearchSpace: sample must return std::optional<config_type>
#include "support/toy_recipes.hpp"
#include "tunewright/tuner.hpp"

struct AlwaysSucceeds : toy::Space {
  toy::Tiles sample(const tunewright::Task&, tunewright::Rng&) const { return {}; }
};

struct Recipe : toy::Evolution {
#ifdef TUNEWRIGHT_SHOULD_FAIL
  using space = AlwaysSucceeds;
#endif
};

tunewright::Tuner<Recipe> tuner;
