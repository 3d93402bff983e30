// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/adaptations/refit.hpp"
#include "tunewright/drafts/none.hpp"
#include "tunewright/explorers/evolutionary.hpp"
#include "tunewright/features/per_statement.hpp"
#include "tunewright/filters/static_limits.hpp"
#include "tunewright/measurers/concept.hpp"
#include "tunewright/models/gbdt.hpp"
#include "tunewright/samplers/epsilon_greedy.hpp"
#include "tunewright/spaces/concept.hpp"

namespace tunewright::recipes {

/// Evolutionary search guided by boosted trees that are trained anew on all measurements after every round.
///
/// Paper: Zheng et al., Ansor: Generating High-Performance Tensor Programs for Deep Learning, OSDI 2020.
template <SearchSpace Space, MeasurerFor<program_t<Space>> Measurer>
struct Ansor {
  using space = Space;
  using featurizer = features::PerStatement;
  using model = models::Gbdt;
  using draft = drafts::None;
  using explorer = explorers::Evolutionary;
  using sampler = samplers::EpsilonGreedy;
  using filter = filters::StaticLimits;
  using adaptation = adaptations::Refit;
  using measurer = Measurer;
};

}  // namespace tunewright::recipes
