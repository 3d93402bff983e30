// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/adaptations/incremental_refit.hpp"
#include "tunewright/drafts/symbol_analyzer.hpp"
#include "tunewright/explorers/draft_set.hpp"
#include "tunewright/features/dataflow.hpp"
#include "tunewright/features/joined.hpp"
#include "tunewright/features/per_statement.hpp"
#include "tunewright/filters/static_limits.hpp"
#include "tunewright/measurers/concept.hpp"
#include "tunewright/models/pattern_aware.hpp"
#include "tunewright/samplers/epsilon_greedy.hpp"
#include "tunewright/spaces/concept.hpp"

namespace tunewright::recipes {

/// Draft, then verify: evolution ranked by a symbol-based draft gives a set of candidates, and a network on statements
/// and data movements, trained after every round, ranks that set.
///
///   Tuner<recipes::Pruner<Space, Measurer>> tuner{{.seed = 7}};
///   tuner.run(task, {.trials = 2000, .batch = 10});
///
/// Paper:    Qiao et al., Pruner: A Draft-then-Verify Exploration Mechanism to Accelerate Tensor Program Tuning, ASPLOS
///           2025, doi:10.1145/3676641.3716269.
/// Deviates: as `drafts::SymbolAnalyzer` (in the form of the released code), `features::Dataflow`,
///           `explorers::DraftSet` and `models::PatternAware`. Random trials come from what the batch leaves of the
///           pool, mostly drafts, in the code from random programs. Statement rows have 164 columns, without the ten
///           flags on the text of the computation. CPUs, which the paper does not cover, are treated by analogy.
template <SearchSpace Space, MeasurerFor<program_t<Space>> Measurer>
struct Pruner {
  using space = Space;
  using featurizer = features::Joined<features::PerStatement, features::Dataflow>;
  using model = models::PatternAware;
  using draft = drafts::SymbolAnalyzer;
  using explorer = explorers::DraftSet<>;
  using sampler = samplers::EpsilonGreedy;
  using filter = filters::StaticLimits;
  using adaptation = adaptations::IncrementalRefit;
  using measurer = Measurer;

  static void set_draft(drafts::SymbolAnalyzer& draft) { draft.form = drafts::SymbolAnalyzer::Form::Released; }
  /// 50 epochs, however few programs there are, or fewer if 16 bring no lower loss.
  static void set_model(models::PatternAware& network) {
    network.training.least_steps = 0;
    network.training.patience_epochs = 16;
  }
  /// Every set of drafts is evolved from random programs only.
  static void set_explorer(explorers::DraftSet<>& drafts) { drafts.explorer.measured_share = 0; }
  /// One in ten is random.
  static void set_sampler(samplers::EpsilonGreedy& sampler) { sampler.epsilon = 0.1; }
  /// From scratch on all data after every round.
  static void set_adaptation(adaptations::IncrementalRefit& training) {
    training.renewal_factor = 1;
    training.min_growth = 0;
  }
};

/// Pruner for machines that measure quickly: on CPUs a hundred programs take some seconds, a hundredth of the paper's
/// time, and training with its settings would take most of a search.
///
/// Differences from `Pruner`, all our own: the form of the draft models more of the machine
/// (`SymbolAnalyzer::Form::Hierarchical`); drafts are also evolved from the fastest programs, which may be a tenth of
/// the first generation; the network trains by `models::PatternAware::quick`, from scratch when the data doubles, and
/// some steps in between; and it also ranks mutations of the fastest programs, 20 per measured candidate.
template <SearchSpace Space, MeasurerFor<program_t<Space>> Measurer>
struct PrunerQuick : Pruner<Space, Measurer> {
  static void set_draft(drafts::SymbolAnalyzer& draft) { draft.form = drafts::SymbolAnalyzer::Form::Hierarchical; }
  static void set_model(models::PatternAware& network) { network = models::PatternAware::quick(); }
  static void set_explorer(explorers::DraftSet<>& drafts) { drafts.mutated_factor = 20; }
  static void set_adaptation(adaptations::IncrementalRefit& training) { training = {}; }
};

}  // namespace tunewright::recipes
