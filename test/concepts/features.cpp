// SPDX-License-Identifier: Apache-2.0
#include "tunewright/features/concept.hpp"

#include "support/toy_space.hpp"
#include "tunewright/features/none.hpp"

using namespace tunewright;

namespace {

static_assert(FeaturizerFor<features::None, toy::Space>);
static_assert(FeaturizerFor<toy::Features, toy::Space>);
static_assert(!FeaturizerFor<features::None, int>);

struct Another : toy::Space {
  using config_type = int;
};
static_assert(!FeaturizerFor<toy::Features, Another>);

struct NoSchema {
  FeatureBatch extract(const toy::Space&, const Task&, std::span<const toy::Tiles>) const;
};
static_assert(!FeaturizerFor<NoSchema, toy::Space>);

struct ExtractIsNotConst {
  FeatureBatch extract(const toy::Space&, const Task&, std::span<const toy::Tiles>);
  FeatureSchema schema() const;
};
static_assert(!FeaturizerFor<ExtractIsNotConst, toy::Space>);

}  // namespace
