// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/adaptations/refit.hpp"
#include "tunewright/drafts/none.hpp"
#include "tunewright/explorers/draft_set.hpp"
#include "tunewright/explorers/uniform.hpp"
#include "tunewright/features/knobs.hpp"
#include "tunewright/filters/static_limits.hpp"
#include "tunewright/measurers/concept.hpp"
#include "tunewright/models/committee.hpp"
#include "tunewright/models/gbdt.hpp"
#include "tunewright/samplers/uncertainty.hpp"
#include "tunewright/spaces/concept.hpp"

namespace tunewright::recipes {

/// The recipe to start from for spaces with knobs: expected improvement by a committee of boosted trees, over random
/// candidates and neighbours of the fastest.
///
///   Tuner<recipes::ExpectedImprovement<Space, Measurer>> tuner{{.space = space, .measurer = measurer}};
///   tuner.run(task, {.trials = 200, .batch = 4});
///
/// Small batches suit it, because every measurement influences the next choice.
///
/// Our own recipe, after Jones et al., Efficient Global Optimization of Expensive Black-Box Functions, Journal of
/// Global Optimization 1998 (expected improvement), and Hutter et al., Sequential Model-Based Optimization for General
/// Algorithm Configuration, LION 2011 (tree ensemble as the model, random candidates and neighbours of the best).
template <KnobSpace Space, MeasurerFor<program_t<Space>> Measurer>
struct ExpectedImprovement {
  using space = Space;
  using featurizer = features::Knobs;
  using model = models::Committee<models::Gbdt, 5>;
  using draft = drafts::None;
  using explorer = explorers::DraftSet<explorers::Uniform>;
  using sampler = samplers::Uncertainty;
  using filter = filters::StaticLimits;
  using adaptation = adaptations::Refit;
  using measurer = Measurer;

  static void set_featurizer(features::Knobs& features, const Space& space) { features.knobs = space.knobs(); }
  /// Half as many trees as by default, because the committee has five times as many.
  static void set_model(model& committee) {
    committee.member.objective = models::gbdt::Objective::Squared;
    committee.member.rounds = 50;
  }
  /// A thousand random candidates, and 25 neighbours of each of the fastest per batch.
  static void set_explorer(explorer& candidates) {
    candidates.explorer.pool = candidates.size = 1000;
    candidates.refresh_rounds = 1;
    candidates.random_factor = 0;
    candidates.mutated_factor = 25;
  }
  static void set_sampler(samplers::Uncertainty& sampler) {
    sampler.acquisition = samplers::Acquisition::ExpectedImprovement;
  }
  /// Training from scratch after every few of a thousand trials would take most of a search.
  static void set_adaptation(adaptations::Refit& refit) { refit.min_growth = 0.03; }
};

}  // namespace tunewright::recipes
