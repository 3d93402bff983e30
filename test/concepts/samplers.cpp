// SPDX-License-Identifier: Apache-2.0
#include "tunewright/samplers/concept.hpp"

#include "support/toy_model.hpp"
#include "tunewright/models/random.hpp"
#include "tunewright/samplers/badge.hpp"
#include "tunewright/samplers/biased_diversity.hpp"
#include "tunewright/samplers/cluster_centres.hpp"
#include "tunewright/samplers/core_set.hpp"
#include "tunewright/samplers/diverse_top_k.hpp"
#include "tunewright/samplers/epsilon_greedy.hpp"
#include "tunewright/samplers/random.hpp"
#include "tunewright/samplers/top_k.hpp"
#include "tunewright/samplers/uncertainty.hpp"
#include "tunewright/samplers/uncertainty_ping_pong.hpp"

using namespace tunewright;

namespace {

static_assert(SamplerFor<samplers::TopK, models::Random>);
static_assert(SamplerFor<samplers::EpsilonGreedy, models::Random>);
static_assert(SamplerFor<samplers::Random, models::Random>);
static_assert(!SamplerFor<samplers::TopK, int>);

struct NarrowPositions {
  std::vector<unsigned> select(const models::Random&, const FeatureBatch&, std::span<const float>, std::size_t, Rng&);
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

// What each needs of the model: embeddings, deviations, both, or neither.
struct Embedding : models::Random {
  FeatureBatch embed(const FeatureBatch&) const;
};
template <class X>
constexpr int fits = (SamplerFor<X, models::Random> ? 1 : 0) + (LabelAwareSamplerFor<X, Embedding> ? 2 : 0) +
                     (LabelAwareSamplerFor<X, Uncertain> ? 4 : 0) + (LabelAwareSamplerFor<X, toy::OpenBook> ? 8 : 0);
static_assert(fits<samplers::DiverseTopK> == 15);
static_assert(fits<samplers::ClusterCentres> == 15);
static_assert(fits<samplers::UncertaintyPingPong<models::Random>> == 15);
static_assert(fits<samplers::CoreSet> == 2 + 8);
static_assert(fits<samplers::BiasedDiversity> == 2 + 8);
static_assert(fits<samplers::Uncertainty> == 4 + 8);
static_assert(fits<samplers::Badge> == 8);

// Looking at labels is a refinement; without the plain form it is no sampler.
static_assert(!LabelAwareSamplerFor<samplers::TopK, models::Random>);
struct OnlyWithLabels {
  std::vector<std::size_t> select(const models::Random&, const FeatureBatch&, std::span<const float>, std::size_t, Rng&,
                                  const samplers::Labelled&);
};
static_assert(!SamplerFor<OnlyWithLabels, models::Random>);

// Guiding exploration is another: it needs the labels, and must give a Guide.
static_assert(GuidingSamplerFor<samplers::UncertaintyPingPong<models::Random>, models::Random>);
static_assert(!GuidingSamplerFor<samplers::DiverseTopK, models::Random>);
struct GuidesByScore : samplers::DiverseTopK {
  float guide(const models::Random&, const samplers::Labelled&, Rng&) const;
};
static_assert(LabelAwareSamplerFor<GuidesByScore, models::Random>);
static_assert(!GuidingSamplerFor<GuidesByScore, models::Random>);

}  // namespace
