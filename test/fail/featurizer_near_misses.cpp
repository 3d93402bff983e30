// SPDX-License-Identifier: Apache-2.0
// What a featurizer lacks is named.
// error 1: recipe: slot 'featurizer' does not model FeaturizerFor<space>: extract is not const
// error 2: recipe: slot 'featurizer' does not model FeaturizerFor<space>: extract must return a FeatureBatch
// error 3: recipe: slot 'featurizer' does not model FeaturizerFor<space>: it has no FeatureSchema schema() const
#include "support/toy_recipes.hpp"
#include "tunewright/tuner.hpp"

using tunewright::FeatureBatch;
using Pool = std::span<const toy::Tiles>;

struct Faulty : toy::Features {
#if TUNEWRIGHT_SHOULD_FAIL == 1
  FeatureBatch extract(const toy::Space&, const tunewright::Task&, Pool) { return {}; }
#elif TUNEWRIGHT_SHOULD_FAIL == 2
  std::vector<float> extract(const toy::Space&, const tunewright::Task&, Pool) const { return {}; }
#elif TUNEWRIGHT_SHOULD_FAIL == 3
  void schema() const {}
#endif
};

struct Recipe : toy::Evolution {
  using featurizer = Faulty;
};

tunewright::Tuner<Recipe> tuner;
