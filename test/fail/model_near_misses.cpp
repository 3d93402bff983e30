// SPDX-License-Identifier: Apache-2.0
// What a cost model lacks is named; samplers and adaptations are judged beside it.
// error 1: recipe: slot 'model' does not model CostModel: predict is not const
// error 2: recipe: slot 'model' does not model CostModel: predict must return void
// error 3: recipe: slot 'model' does not model CostModel: it has no void predict(
// error 4: recipe: slot 'model' does not model CostModel: fit must return void
// error 5: recipe: slot 'model' does not model CostModel: it has no void fit(
// error 6: recipe: slot 'model' does not model CostModel: it cannot be copied
// error 7: recipe: slot 'sampler' does not model SamplerFor<model>: it has no select(
// error 8: recipe: slot 'adaptation' does not model AdaptationFor<model>: it has no update(
#include <memory>

#include "support/toy_recipes.hpp"
#include "tunewright/tuner.hpp"

using Batch = tunewright::FeatureBatch;
using Labels = std::span<const float>;
using Groups = std::span<const std::uint32_t>;

struct Faulty : toy::Linear {
#if TUNEWRIGHT_SHOULD_FAIL == 1
  void predict(const Batch&, std::span<float>) {}
#elif TUNEWRIGHT_SHOULD_FAIL == 2
  std::vector<float> predict(const Batch&, std::span<float>) const { return {}; }
#elif TUNEWRIGHT_SHOULD_FAIL == 3 || TUNEWRIGHT_SHOULD_FAIL == 7 || TUNEWRIGHT_SHOULD_FAIL == 8
  std::vector<float> predict(const Batch&) const { return {}; }
#elif TUNEWRIGHT_SHOULD_FAIL == 4
  float fit(const Batch&, Labels, Groups) { return 0; }
#elif TUNEWRIGHT_SHOULD_FAIL == 5
  void fit(const Batch&) {}
#elif TUNEWRIGHT_SHOULD_FAIL == 6
  std::unique_ptr<int> learned;
#endif
};

struct Recipe : toy::Evolution {
  using model = Faulty;
#if TUNEWRIGHT_SHOULD_FAIL == 7
  using sampler = tunewright::explorers::Uniform;
#elif TUNEWRIGHT_SHOULD_FAIL == 8
  using adaptation = tunewright::samplers::TopK;
#endif
};

tunewright::Tuner<Recipe> tuner;
