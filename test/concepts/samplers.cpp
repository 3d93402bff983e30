// SPDX-License-Identifier: Apache-2.0
#include "tunewright/samplers/concept.hpp"

#include "tunewright/models/random.hpp"
#include "tunewright/samplers/epsilon_greedy.hpp"
#include "tunewright/samplers/random.hpp"
#include "tunewright/samplers/top_k.hpp"

using namespace tunewright;

namespace {

static_assert(SamplerFor<samplers::TopK, models::Random>);
static_assert(SamplerFor<samplers::EpsilonGreedy, models::Random>);
static_assert(SamplerFor<samplers::Random, models::Random>);
static_assert(!SamplerFor<samplers::TopK, int>);

struct NarrowPositions {
  std::vector<unsigned> select(const models::Random&, const FeatureBatch&, std::span<const float>,
                               std::size_t, Rng&);
};
static_assert(!SamplerFor<NarrowPositions, models::Random>);

// A sampler that needs uncertainty fits only models that have it.
struct NeedsDeviation {
  template <UncertainCostModel M>
  std::vector<std::size_t> select(const M&, const FeatureBatch&, std::span<const float>, std::size_t, Rng&);
};
struct Uncertain : models::Random {
  void predict_with_deviation(const FeatureBatch&, std::span<float>, std::span<float>) const;
};
static_assert(SamplerFor<NeedsDeviation, Uncertain>);
static_assert(!SamplerFor<NeedsDeviation, models::Random>);

}  // namespace
