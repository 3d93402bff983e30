// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/explorers/adaptive_exploration.hpp"
#include "tunewright/measurers/concept.hpp"
#include "tunewright/recipes/auto_tvm.hpp"
#include "tunewright/samplers/cluster_centres.hpp"
#include "tunewright/spaces/concept.hpp"

namespace tunewright::recipes {

/// AutoTVM's trees, an agent that learns where to explore, and one measurement per cluster of visited configurations.
///
///   Tuner<recipes::Chameleon<Space, Measurer>> tuner{{.space = space}};
///
/// Paper:    Ahn et al., Chameleon: Adaptive Code Optimization for Expedited Deep Neural Network Compilation, ICLR
///           2020.
/// Deviates: as its parts: candidates represent clusters, instead of configurations synthesized at their centres
///           (`samplers::ClusterCentres`), and the space may have holes (`explorers::AdaptiveExploration`). The
///           released code does not combine exploration and sampling; this recipe does, as the paper says. No trial is
///           random: the code inherits AutoTVM's twentieth, but does not say which clusters it would replace.
template <SettableKnobSpace Space, MeasurerFor<program_t<Space>> Measurer>
struct Chameleon : AutoTvmRegression<Space, Measurer> {
  using explorer = explorers::AdaptiveExploration;
  using sampler = samplers::ClusterCentres;
};

}  // namespace tunewright::recipes
