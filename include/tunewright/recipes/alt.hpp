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

/// ALT's filter: rejects candidates beyond the limits of the space, or that trees on the knobs predict to fail.
using AltFilter = filters::All<filters::StaticLimits, filters::LearnedValidity<models::Gbdt, features::Knobs>>;

/// AutoTVM's search with a learned validity filter, which alternates between the candidates with the largest expected
/// model error and the best-scored ones.
///
///   Tuner<recipes::Alt<Space, Measurer>> tuner{{.space = space}};
///
/// Paper:    Zeng et al., ALT: Optimizing Tensor Compilation in Deep Learning Compilers with Active Learning, ICCD
///           2020.
/// Deviates: only the abstract and reports by others are public: model types, thresholds and the alternation are a
///           reconstruction, see `samplers::UncertaintyPingPong` and `filters::LearnedValidity`.
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
  /// Squared loss, so that failed programs have as much weight as slow ones.
  static void set_model(models::Gbdt& trees) { trees.objective = models::gbdt::Objective::Squared; }
  static void set_sampler(samplers::UncertaintyPingPong<models::Gbdt>& sampler) {
    sampler.error_predictor.objective = models::gbdt::Objective::Squared;
  }
  /// Gives the sampler four times the batch to choose from.
  static void set_explorer(explorers::Annealing& annealing) { annealing.elite_factor = 4; }
  /// Log-odds of validity, learned from the knobs.
  static void set_filter(AltFilter& filter, const Space& space) {
    auto& learned = std::get<1>(filter.filters);
    learned.model.objective = models::gbdt::Objective::Logistic;
    learned.log_odds = true;
    learned.featurizer.knobs = space.knobs();
  }
};

}  // namespace tunewright::recipes
