// SPDX-License-Identifier: Apache-2.0
// A featurizer describes the configurations of the recipe's space.
// error: recipe: slot 'featurizer' does not model FeaturizerFor<space>: it has no extract(const Space&
#include "support/toy_recipes.hpp"
#include "tunewright/tuner.hpp"

struct DescribesIntegers {
  tunewright::FeatureBatch extract(const toy::Space&, const tunewright::Task&, std::span<const int>) const {
    return {};
  }
  tunewright::FeatureSchema schema() const { return {}; }
};

struct Recipe : toy::Evolution {
#ifdef TUNEWRIGHT_SHOULD_FAIL
  using featurizer = DescribesIntegers;
#endif
};

tunewright::Tuner<Recipe> tuner;
