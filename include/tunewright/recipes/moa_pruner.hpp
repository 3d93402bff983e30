// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/adaptations/momentum.hpp"
#include "tunewright/models/pattern_aware.hpp"
#include "tunewright/recipes/pruner.hpp"

namespace tunewright::recipes {

/// Pruner with a model pretrained on another device, which adapts slowly to the measurements of the search.
///
///   Tuner<recipes::MoaPruner<Space, Measurer>> tuner{{.model = pretrained}};
///
/// Paper:    as `Pruner`, section 4.3 (momentum online adaptation).
/// Deviates: as `Pruner` and `adaptations::Momentum`. Weights trained on other devices are not part of the
///           library.
template <SearchSpace Space, MeasurerFor<program_t<Space>> Measurer>
struct MoaPruner : Pruner<Space, Measurer> {
  using adaptation = adaptations::Momentum;

  /// Trains as `Pruner` does, also a network that was pretrained with other options.
  static void set_adaptation(adaptations::Momentum& momentum) {
    models::PatternAware network;
    MoaPruner::set_model(network);
    momentum.training = network.training;
  }
};

}  // namespace tunewright::recipes
