// SPDX-License-Identifier: Apache-2.0
// A sampler that compares configurations column by column is given some rows of each.
// error: recipe: slot 'sampler' cannot read the rows of slot 'featurizer'
#include "support/toy_recipes.hpp"
#include "tunewright/samplers/uncertainty_ping_pong.hpp"
#include "tunewright/tuner.hpp"

struct Rows : toy::Features {
#ifndef TUNEWRIGHT_SHOULD_FAIL
  static constexpr bool one_row = true;
#endif
};

struct Recipe : toy::Evolution {
  using featurizer = Rows;
  using sampler = tunewright::samplers::UncertaintyPingPong<toy::Linear>;
};

tunewright::Tuner<Recipe> tuner;
