// SPDX-License-Identifier: Apache-2.0
// A sampler that asks how sure the model is needs a model that knows.
// error: recipe: slot 'sampler' does not model SamplerFor<model>: it needs an UncertainCostModel
#include "support/toy_recipes.hpp"
#include "tunewright/tuner.hpp"

struct AsksHowSure {
  template <tunewright::UncertainCostModel M>
  std::vector<std::size_t> select(const M&, const tunewright::FeatureBatch&, std::span<const float>, std::size_t,
                                  tunewright::Rng&) const {
    return {};
  }
};

struct Recipe : toy::Evolution {
#ifdef TUNEWRIGHT_SHOULD_FAIL
  using sampler = AsksHowSure;
#endif
};

tunewright::Tuner<Recipe> tuner;
