// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tuple>

#include "tunewright/features/knobs.hpp"
#include "tunewright/filters/all.hpp"
#include "tunewright/filters/learned_validity.hpp"
#include "tunewright/filters/static_limits.hpp"
#include "tunewright/measurers/concept.hpp"
#include "tunewright/models/gbdt.hpp"
#include "tunewright/recipes/auto_tvm.hpp"
#include "tunewright/samplers/uncertainty_ping_pong.hpp"
#include "tunewright/spaces/concept.hpp"

namespace tunewright::recipes {

/// ALT's filter: rejects candidates that exceed the limits of the space, or that boosted trees on the knobs predict to
/// fail.
using AltFilter = filters::All<filters::StaticLimits, filters::LearnedValidity<models::Gbdt, features::Knobs>>;

/// AutoTVM's search with a learned filter for failing candidates. It alternates between candidates for which it expects
/// a large error of the cost model and candidates that the model predicts to be the best.
///
///   Tuner<recipes::Alt<Space, Measurer>> tuner{{.space = space}};
///   tuner.run(task, {.trials = 1000, .batch = 64});
///
/// All trees (of scores, of their errors and of failures) have the settings of `AutoTvmRegression`.
///
/// Paper:    Zeng et al., ALT: Optimizing Tensor Compilation in Deep Learning Compilers with Active Learning,
///           ICCD 2020.
/// Deviates: only the abstract and reports by others are public: kinds of models, thresholds and the alternation are a
/// reconstruction, see `samplers::UncertaintyPingPong` and `filters::LearnedValidity`. As `AutoTvm`.
template <KnobSpace Space, MeasurerFor<program_t<Space>> Measurer>
struct Alt : AutoTvmRegression<Space, Measurer> {
  using Search = AutoTvmRegression<Space, Measurer>;
  using sampler = samplers::UncertaintyPingPong<models::Gbdt>;
  using filter = AltFilter;

  /// A pool of four times the batch for the sampler.
  static void set_explorer(explorers::Annealing& annealing) {
    Search::set_explorer(annealing);
    annealing.elite_factor = 4;
  }
  static void set_sampler(samplers::UncertaintyPingPong<models::Gbdt>& sampler) {
    Search::set_model(sampler.error_predictor);
    sampler.epsilon = Search::random_share;
  }
  /// Learns the log odds of being valid from the knobs.
  static void set_filter(AltFilter& filter, const Space& space) {
    auto& learned = std::get<1>(filter.filters);
    Search::set_model(learned.model);
    learned.model.objective = models::gbdt::Objective::Logistic;
    learned.log_odds = true;
    learned.featurizer.knobs = space.knobs();
  }
};

}  // namespace tunewright::recipes
