// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/adaptations/refit.hpp"
#include "tunewright/features/per_statement.hpp"
#include "tunewright/measurers/concept.hpp"
#include "tunewright/models/gbdt.hpp"
#include "tunewright/recipes/pruner.hpp"
#include "tunewright/spaces/concept.hpp"

namespace tunewright::recipes {

/// The recipe to start from for schedules: Pruner's draft with Ansor's trees.
///
///   Tuner<recipes::DraftAndTrees<Space, Measurer>> tuner{{.seed = 7}};
///   tuner.run(task, {.trials = 100, .batch = 10});
///
/// The draft makes the first batch good. Trees then learn what the draft misses in a hundredth of a second per round,
/// while a network takes as long as some measurements.
///
/// Our own recipe, from parts of Qiao et al., Pruner, ASPLOS 2025 (drafts, and mutations of the fastest programs as in
/// `PrunerQuick`), and Zheng et al., Ansor, OSDI 2020 (trees on statement rows, trained from scratch after every
/// round).
template <SearchSpace Space, MeasurerFor<program_t<Space>> Measurer>
struct DraftAndTrees : PrunerQuick<Space, Measurer> {
  using featurizer = features::PerStatement;
  using model = models::Gbdt;
  using adaptation = adaptations::Refit;

  static void set_model(models::Gbdt&) {}
  static void set_adaptation(adaptations::Refit&) {}
};

}  // namespace tunewright::recipes
