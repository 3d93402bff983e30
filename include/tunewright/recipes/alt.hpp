// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tuple>
#include <utility>
#include <vector>

#include "tunewright/adaptations/refit.hpp"
#include "tunewright/core/knob.hpp"
#include "tunewright/drafts/none.hpp"
#include "tunewright/explorers/annealing.hpp"
#include "tunewright/features/knobs.hpp"
#include "tunewright/filters/all.hpp"
#include "tunewright/filters/learned_validity.hpp"
#include "tunewright/filters/static_limits.hpp"
#include "tunewright/measurers/concept.hpp"
#include "tunewright/models/gbdt.hpp"
#include "tunewright/samplers/uncertainty_ping_pong.hpp"
#include "tunewright/spaces/concept.hpp"

namespace tunewright::recipes {

/// What ALT keeps out: candidates that the limits of the space, or trees on the knobs, believe to fail.
using AltFilter = filters::All<filters::StaticLimits, filters::LearnedValidity<models::Gbdt, features::Knobs>>;

/// AutoTVM's search that learns which candidates fail, and turns between measuring what its model may be
/// wrong about and what it thinks best.
///
///   Tuner<recipes::Alt<Space, Measurer>> tuner{{.space = space}};
///
/// Paper:    Zeng et al., ALT: Optimizing Tensor Compilation in Deep Learning Compilers with Active Learning,
///           ICCD 2020.
/// Deviates: the abstract and reports of others are all that is public: kinds of models, thresholds and how
///           the turns are taken are a reconstruction, see `samplers::UncertaintyPingPong` and
///           `filters::LearnedValidity`.
template <KnobSpace Space, MeasurerFor<program_t<Space>> Measurer>
struct Alt {
  using space = Space;
  using featurizer = features::Knobs;
  using model = models::Gbdt;
  using draft = drafts::None;
  using explorer = explorers::Annealing;
  using sampler = samplers::UncertaintyPingPong<models::Gbdt>;
  using filter = AltFilter;
  using adaptation = adaptations::Refit;
  using measurer = Measurer;

  static void set_featurizer(features::Knobs& features, const Space& space) { features.knobs = space.knobs(); }
  /// What fails counts as much as what is slow.
  static void set_model(models::Gbdt& trees) { trees.objective = models::gbdt::Objective::Squared; }
  static void set_sampler(samplers::UncertaintyPingPong<models::Gbdt>& sampler) {
    sampler.error_predictor.objective = models::gbdt::Objective::Squared;
  }
  /// Four times the batch for the sampler to choose from.
  static void set_explorer(explorers::Annealing& annealing) { annealing.elite_factor = 4; }
  /// Odds of being valid, learned from the knobs.
  static void set_filter(AltFilter& filter, const Space& space) {
    auto& learned = std::get<1>(filter.filters);
    learned.model.objective = models::gbdt::Objective::Logistic;
    learned.log_odds = true;
    learned.featurizer.knobs = space.knobs();
  }
};

}  // namespace tunewright::recipes
