// SPDX-License-Identifier: Apache-2.0
#include "tunewright/adaptations/concept.hpp"

#include "tunewright/adaptations/none.hpp"
#include "tunewright/adaptations/refit.hpp"
#include "tunewright/models/random.hpp"

using namespace tunewright;

namespace {

static_assert(AdaptationFor<adaptations::None, models::Random>);
static_assert(AdaptationFor<adaptations::Refit, models::Random>);
static_assert(!AdaptationFor<adaptations::Refit, int>);

// An adaptation that moves weights fits only models that have weights.
struct MovesWeights {
  template <ParametricCostModel M>
  void update(M&, const FeatureBatch&, std::span<const float>, std::span<const std::uint32_t>);
};
struct Weighted : models::Random {
  std::span<float> parameters();
};
static_assert(AdaptationFor<MovesWeights, Weighted>);
static_assert(!AdaptationFor<MovesWeights, models::Random>);

struct WithoutGroups {
  void update(models::Random&, const FeatureBatch&, std::span<const float>);
};
static_assert(!AdaptationFor<WithoutGroups, models::Random>);

}  // namespace
