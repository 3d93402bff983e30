// SPDX-License-Identifier: Apache-2.0
// What an adaptation lacks is named.
// error 1: recipe: slot 'adaptation' does not model AdaptationFor<model>: update takes no groups
// error 2: recipe: slot 'adaptation' does not model AdaptationFor<model>: it needs a MultiHeadCostModel
// error 3: recipe: slot 'adaptation' does not model AdaptationFor<model>: it needs more of the model than a CostModel
#include "support/toy_recipes.hpp"
#include "tunewright/tuner.hpp"

using tunewright::FeatureBatch;
using Labels = std::span<const float>;
using Groups = std::span<const std::uint32_t>;

struct Adaptation {
#if TUNEWRIGHT_SHOULD_FAIL == 1
  template <tunewright::CostModel M>
  void update(M&, const FeatureBatch&, Labels) {}
#elif TUNEWRIGHT_SHOULD_FAIL == 2
  template <tunewright::MultiHeadCostModel M>
  void update(M&, const FeatureBatch&, Labels, Groups) {}
#elif TUNEWRIGHT_SHOULD_FAIL == 3
  template <tunewright::PersistentCostModel M>
  void update(M&, const FeatureBatch&, Labels, Groups) {}
#else
  template <tunewright::CostModel M>
  void update(M&, const FeatureBatch&, Labels, Groups) {}
#endif
};

struct Recipe : toy::Evolution {
  using adaptation = Adaptation;
};

tunewright::Tuner<Recipe> tuner;
