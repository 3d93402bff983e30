// SPDX-License-Identifier: Apache-2.0
// What a sampler lacks is named.
// error 1: recipe: slot 'sampler' does not model SamplerFor<model>: the last parameter of select has no default
// error 2: recipe: slot 'sampler' does not model SamplerFor<model>: select must return std::vector<std::size_t>
// error 3: recipe: slot 'sampler' does not model SamplerFor<model>: it has no select(
// error 4: recipe: slot 'sampler' does not model SamplerFor<model>: it needs more of the model than a CostModel gives
#include "support/toy_recipes.hpp"
#include "tunewright/tuner.hpp"

using tunewright::CostModel;
using tunewright::FeatureBatch;
using tunewright::Rng;
using Score = std::span<const float>;
using Labelled = tunewright::samplers::Labelled;

struct Sampler {
#if TUNEWRIGHT_SHOULD_FAIL == 1
  template <CostModel M>
  std::vector<std::size_t> select(const M&, const FeatureBatch&, Score, std::size_t, Rng&, const Labelled&) const {
    return {};
  }
#elif TUNEWRIGHT_SHOULD_FAIL == 2
  template <CostModel M>
  std::size_t select(const M&, const FeatureBatch&, Score, std::size_t, Rng&) const {
    return 0;
  }
#elif TUNEWRIGHT_SHOULD_FAIL == 3
  std::vector<std::size_t> select(const FeatureBatch&, Score, std::size_t, Rng&) const { return {}; }
#elif TUNEWRIGHT_SHOULD_FAIL == 4
  template <tunewright::PersistentCostModel M>
  std::vector<std::size_t> select(const M&, const FeatureBatch&, Score, std::size_t, Rng&) const {
    return {};
  }
#else
  template <CostModel M>
  std::vector<std::size_t> select(const M&, const FeatureBatch&, Score, std::size_t, Rng&, const Labelled& = {}) const {
    return {};
  }
#endif
};

struct Recipe : toy::Evolution {
  using sampler = Sampler;
};

tunewright::Tuner<Recipe> tuner;
