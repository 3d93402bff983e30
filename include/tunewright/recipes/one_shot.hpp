// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tuple>

#include "tunewright/adaptations/none.hpp"
#include "tunewright/drafts/none.hpp"
#include "tunewright/explorers/annealing.hpp"
#include "tunewright/features/curve.hpp"
#include "tunewright/features/joined.hpp"
#include "tunewright/features/tags.hpp"
#include "tunewright/filters/static_limits.hpp"
#include "tunewright/measurers/concept.hpp"
#include "tunewright/models/concept.hpp"
#include "tunewright/models/mlp.hpp"
#include "tunewright/samplers/top_k.hpp"
#include "tunewright/spaces/concept.hpp"

namespace tunewright::recipes {

/// A search without measurements, by a model trained once for all tasks; then the best few are measured, and the
/// fastest is the result.
///
///   Tuner<recipes::OneShot<Space, Measurer>> tuner{{.model = trained}};
///   tuner.run(task, {.trials = 64, .batch = 64});
///
/// Paper:    Ryu et al., One-Shot Tuner for Deep Learning Compilers, CC 2022.
/// Deviates: tags of the operator and its size replace knobs and shapes, which not every space has. The paper's
///           transformer reads sequences of length 1, which makes it a residual network; here TenSet's network and its
///           training are used, with a ranking loss. The caller provides the training set.
template <SearchSpace Space, MeasurerFor<program_t<Space>> Measurer, CostModel Model = models::Mlp>
struct OneShot {
  using space = Space;
  using featurizer = features::Joined<features::Curve, features::Tags>;
  using model = Model;
  using draft = drafts::None;
  using explorer = explorers::Annealing;
  using sampler = samplers::TopK;
  using filter = filters::StaticLimits;
  using adaptation = adaptations::None;
  using measurer = Measurer;

  /// 30 samples of each curve of three buffers are the code's 720 numbers.
  static void set_featurizer(features::Joined<features::Curve, features::Tags>& features) {
    std::get<features::Curve>(features.parts).samples = 30;
  }
  /// 512 chains of 160 steps. Returns more than a batch, so that another sampler can choose; the best of them form the
  /// batch.
  static void set_explorer(explorers::Annealing& annealing) {
    annealing.chains = 512;
    annealing.steps = 160;
    annealing.elite_factor = 4;
  }
};

}  // namespace tunewright::recipes
