// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/toy_space.hpp"
#include "tunewright/adaptations/refit.hpp"
#include "tunewright/explorers/annealing.hpp"
#include "tunewright/explorers/evolutionary.hpp"
#include "tunewright/recipes/random.hpp"
#include "tunewright/samplers/epsilon_greedy.hpp"
#include "tunewright/samplers/top_k.hpp"

namespace toy {

using RandomSearch = tunewright::recipes::Random<Space, Measurer>;

/// What Ansor is made of, over the table.
struct Evolution : RandomSearch {
  using featurizer = Features;
  using model = Linear;
  using explorer = tunewright::explorers::Evolutionary;
  using sampler = tunewright::samplers::EpsilonGreedy;
  using adaptation = tunewright::adaptations::Refit;
};

/// What AutoTVM is made of, over the table.
struct Anneal : Evolution {
  using explorer = tunewright::explorers::Annealing;
  using sampler = tunewright::samplers::TopK;
};

}  // namespace toy
