// SPDX-License-Identifier: Apache-2.0
// A cost model is told which candidates belong to one task.
// error: recipe: slot 'model' does not model CostModel: fit takes no groups
#include "support/toy_recipes.hpp"
#include "tunewright/tuner.hpp"

struct WithoutGroups {
  void predict(const tunewright::FeatureBatch&, std::span<float>) const {}
  void fit(const tunewright::FeatureBatch&, std::span<const float>) {}
};

struct Recipe : toy::Evolution {
#ifdef TUNEWRIGHT_SHOULD_FAIL
  using model = WithoutGroups;
#endif
};

tunewright::Tuner<Recipe> tuner;
