// SPDX-License-Identifier: Apache-2.0
#include "tunewright/measurers/concept.hpp"

#include "support/toy_space.hpp"
#include "tunewright/measurers/replay.hpp"

using namespace tunewright;

namespace {

static_assert(StreamingMeasurerFor<measurers::Function<int>, int>);
static_assert(StreamingMeasurerFor<measurers::Replay<int>, int>);
static_assert(StreamingMeasurerFor<toy::Measurer, toy::Program>);
static_assert(!MeasurerFor<measurers::Function<int>, toy::Program>);
static_assert(IdentifiedMeasurer<measurers::Function<int>>);
static_assert(!IdentifiedMeasurer<measurers::Replay<int>>);
static_assert(!BestAwareMeasurer<measurers::Function<int>>);

struct AtOnce {
  std::vector<Outcome> measure(const Task&, std::span<const int>);
  std::string identity() const;
  void note_best(const Task&, Seconds);
};
static_assert(MeasurerFor<AtOnce, int>);
static_assert(!StreamingMeasurerFor<AtOnce, int>);
static_assert(IdentifiedMeasurer<AtOnce>);
static_assert(BestAwareMeasurer<AtOnce>);

struct OneByOne {
  Outcome measure(const Task&, const int&);
};
static_assert(!MeasurerFor<OneByOne, int>);

}  // namespace
