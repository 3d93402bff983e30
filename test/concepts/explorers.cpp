// SPDX-License-Identifier: Apache-2.0
#include "tunewright/explorers/concept.hpp"

#include "support/toy_recipes.hpp"
#include "tunewright/samplers/top_k.hpp"

using namespace tunewright;

namespace {

static_assert(ExplorerFor<explorers::Uniform, toy::Space>);
static_assert(ExplorerFor<explorers::Evolutionary, toy::Space>);
static_assert(ExplorerFor<explorers::Annealing, toy::Space>);
static_assert(!ExplorerFor<explorers::Evolutionary, int>);
static_assert(!ExplorerFor<samplers::TopK, toy::Space>);  // the usual mistake

struct ReturnsPositions {
  std::vector<std::size_t> explore(const toy::Space&, const Task&, const Guidance<toy::Tiles>&, Rng&);
};
static_assert(!ExplorerFor<ReturnsPositions, toy::Space>);

// Whatever takes configurations and a span to fill can rank; what takes something else cannot.
struct Ranks {
  void operator()(std::span<const toy::Tiles>, std::span<float>) const;
};
struct RanksAnother {
  void operator()(std::span<const int>, std::span<float>) const;
};
struct RanksNotConst {
  void operator()(std::span<const toy::Tiles>, std::span<float>);
};
static_assert(std::convertible_to<const Ranks&, Ranker<toy::Tiles>>);
static_assert(!std::convertible_to<const RanksAnother&, Ranker<toy::Tiles>>);
static_assert(!std::convertible_to<const RanksNotConst&, Ranker<toy::Tiles>>);

}  // namespace
