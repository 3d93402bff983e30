// SPDX-License-Identifier: Apache-2.0
#include "tunewright/filters/concept.hpp"

#include "support/toy_space.hpp"
#include "tunewright/filters/learned_validity.hpp"
#include "tunewright/filters/none.hpp"
#include "tunewright/filters/static_limits.hpp"

using namespace tunewright;

namespace {

static_assert(FilterFor<filters::None, toy::Space>);
static_assert(FilterFor<filters::StaticLimits, toy::Space>);
static_assert(!LearningFilterFor<filters::StaticLimits, toy::Space>);
static_assert(!FilterFor<filters::StaticLimits, int>);

struct KeepsOnlyWhenNotConst {
  Kept keep(const toy::Space&, const Task&, std::span<const toy::Tiles>);
};
static_assert(!FilterFor<KeepsOnlyWhenNotConst, toy::Space>);

struct Learns : filters::None {
  void learn(const toy::Space&, const Task&, std::span<const toy::Tiles>, std::span<const Outcome>);
};
static_assert(LearningFilterFor<Learns, toy::Space>);

using Learned = filters::LearnedValidity<toy::Linear, toy::Features>;
static_assert(LearningFilterFor<Learned, toy::Space>);
struct DescribesNothing {};
static_assert(!FilterFor<filters::LearnedValidity<toy::Linear, DescribesNothing>, toy::Space>);

}  // namespace
