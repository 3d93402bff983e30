// SPDX-License-Identifier: Apache-2.0
// A filter that learns from features needs a featurizer of the space it filters.
// error: recipe: slot 'filter' does not model FilterFor<space>: it has no keep(const Space&
#include "support/toy_recipes.hpp"
#include "tunewright/filters/learned_validity.hpp"
#include "tunewright/tuner.hpp"

struct OfNumbers {
  tunewright::FeatureBatch extract(const int&, const tunewright::Task&, std::span<const int>) const { return {}; }
};

struct Recipe : toy::Evolution {
#ifdef TUNEWRIGHT_SHOULD_FAIL
  using filter = tunewright::filters::LearnedValidity<toy::Linear, OfNumbers>;
#else
  using filter = tunewright::filters::LearnedValidity<toy::Linear, toy::Features>;
#endif
};

tunewright::Tuner<Recipe> tuner;
