// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/adaptations/refit.hpp"
#include "tunewright/drafts/symbol_analyzer.hpp"
#include "tunewright/explorers/draft_set.hpp"
#include "tunewright/features/draft_score.hpp"
#include "tunewright/features/joined.hpp"
#include "tunewright/features/per_statement.hpp"
#include "tunewright/filters/static_limits.hpp"
#include "tunewright/measurers/concept.hpp"
#include "tunewright/models/gbdt_on_draft.hpp"
#include "tunewright/samplers/epsilon_greedy.hpp"
#include "tunewright/spaces/concept.hpp"

namespace tunewright::recipes {

/// The recipe to start from for schedules: Pruner's draft, corrected by Ansor's trees.
///
///   Tuner<recipes::DraftAndTrees<Space, Measurer>> tuner{{.seed = 7}};
///   tuner.run(task, {.trials = 100, .batch = 10});
///
/// The draft makes the first batch good. Trees then learn what the draft misses in a hundredth of a second per round,
/// while a network takes as long as some measurements. They start from the draft's score: trained alone on a first
/// batch of ten, they rank worse than the draft that chose it.
///
/// Our own recipe, from parts of Qiao et al., Pruner, ASPLOS 2025 (drafts, and mutations of the fastest programs as in
/// `PrunerQuick`), and Zheng et al., Ansor, OSDI 2020 (trees on statement rows, trained from scratch after every
/// round). An option of the draft is to be set in the featurizer's `DraftScore`, too.
template <SearchSpace Space, MeasurerFor<program_t<Space>> Measurer>
struct DraftAndTrees {
  using space = Space;
  using featurizer = features::Joined<features::PerStatement, features::DraftScore<drafts::SymbolAnalyzer>>;
  using model = models::GbdtOnDraft;
  using draft = drafts::SymbolAnalyzer;
  using explorer = explorers::DraftSet<>;
  using sampler = samplers::EpsilonGreedy;
  using filter = filters::StaticLimits;
  using adaptation = adaptations::Refit;
  using measurer = Measurer;

  static void set_draft(drafts::SymbolAnalyzer& draft) { draft.form = drafts::SymbolAnalyzer::Form::Hierarchical; }
  static void set_explorer(explorers::DraftSet<>& drafts) { drafts.mutated_factor = 20; }
  /// One in ten is random.
  static void set_sampler(samplers::EpsilonGreedy& sampler) { sampler.epsilon = 0.1; }
};

}  // namespace tunewright::recipes
