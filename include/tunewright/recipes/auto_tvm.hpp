// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/adaptations/refit.hpp"
#include "tunewright/drafts/none.hpp"
#include "tunewright/explorers/annealing.hpp"
#include "tunewright/features/knobs.hpp"
#include "tunewright/filters/static_limits.hpp"
#include "tunewright/measurers/concept.hpp"
#include "tunewright/models/gbdt.hpp"
#include "tunewright/samplers/diverse_top_k.hpp"
#include "tunewright/spaces/concept.hpp"

namespace tunewright::recipes {

/// Simulated annealing over knobs guided by boosted trees; among the best candidates it measures those that cover most
/// knob values.
///
///   Tuner<recipes::AutoTvm<Space, Measurer>> tuner{{.space = space}};
///
/// Paper:    Chen et al., Learning to Optimize Tensor Programs, NeurIPS 2018.
/// Deviates: 100 trees instead of up to 8000 with early stopping; no random part of the batch (the paper and its code:
///           a twentieth); histograms instead of exact splits; no transfer from earlier tasks.
template <KnobSpace Space, MeasurerFor<program_t<Space>> Measurer>
struct AutoTvm {
  using space = Space;
  using featurizer = features::Knobs;
  using model = models::Gbdt;
  using draft = drafts::None;
  using explorer = explorers::Annealing;
  using sampler = samplers::DiverseTopK;
  using filter = filters::StaticLimits;
  using adaptation = adaptations::Refit;
  using measurer = Measurer;

  static void set_featurizer(features::Knobs& features, const Space& space) { features.knobs = space.knobs(); }
  /// Shallow trees with squared loss, trained on failed candidates too.
  static void set_model(models::Gbdt& trees) {
    trees.max_depth = 3;
    trees.learning_rate = 0.3F;
    trees.min_child_weight = 1;
    trees.objective = models::gbdt::Objective::Squared;
  }
};

}  // namespace tunewright::recipes
