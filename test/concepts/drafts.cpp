// SPDX-License-Identifier: Apache-2.0
#include "tunewright/drafts/concept.hpp"

#include "support/toy_space.hpp"

using namespace tunewright;

namespace {

struct Draft {
  void score(const toy::Space&, const Task&, std::span<const toy::Tiles>, std::span<float>) const;
};
struct ScoreIsNotConst {
  void score(const toy::Space&, const Task&, std::span<const toy::Tiles>, std::span<float>);
};
static_assert(DraftModelFor<drafts::None, toy::Space>);
static_assert(DraftModelFor<Draft, toy::Space>);
static_assert(!DraftModelFor<ScoreIsNotConst, toy::Space>);
static_assert(!DraftModelFor<drafts::None, int>);

}  // namespace
