// SPDX-License-Identifier: Apache-2.0
// An adaptation that moves weights needs a model that has weights.
// error: recipe: slot 'adaptation' does not model AdaptationFor<model>: it needs a ParametricCostModel
#include "support/toy_recipes.hpp"
#include "tunewright/tuner.hpp"

struct MovesWeights {
  template <tunewright::ParametricCostModel M>
  void update(M&, const tunewright::FeatureBatch&, std::span<const float>, std::span<const std::uint32_t>) {}
};

struct Recipe : toy::Evolution {
#ifdef TUNEWRIGHT_SHOULD_FAIL
  using adaptation = MovesWeights;
#endif
};

tunewright::Tuner<Recipe> tuner;
