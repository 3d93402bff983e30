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

/// Pruner's choice of a batch: one in ten at random.
[[nodiscard]] inline samplers::EpsilonGreedy pruner_sampler() { return {.epsilon = 0.1}; }

/// Pruner's network for CPUs, which measure a hundred programs in some seconds. It has half the paper's width and
/// trains on mini-batches of 16 programs at 1e-3, 60 or four epochs of them, whichever are more, where TenSet's
/// training, the default of `models::PatternAware`, takes at least 300 mini-batches of up to 512 at 7e-4.
[[nodiscard]] inline models::PatternAware quickly_trained_network() {
  models::PatternAware network;
  network.hidden = 128;
  network.training.epochs = 4;
  network.training.least_steps = 60;
  network.training.batch_programs = 16;
  network.training.learning_rate = 1e-3F;
  return network;
}

/// Pruner's training: anew on everything after every round.
[[nodiscard]] inline adaptations::IncrementalRefit pruner_training() { return {.renewal_factor = 1, .min_growth = 0}; }

/// Draft, then verify: evolution ranked by symbols of the program alone gives a set of candidates, and a network
/// on statements and data movements, trained after every round, ranks that set.
///
///   Tuner<recipes::Pruner<Space, Measurer>> tuner{
///       {.draft = {.form = drafts::SymbolAnalyzer::Form::Released}, .sampler = recipes::pruner_sampler()}};
///   tuner.run(task, {.trials = 2000, .batch = 10});
///
/// Where measuring is quick, as on CPUs, training takes much of a search. Settings for that, with a network that also
/// ranks mutations of the fastest programs:
///
///   Tuner<recipes::Pruner<Space, Measurer>> tuner{{.model = recipes::quickly_trained_network(),
///                                                  .explorer = {.mutated_factor = 20},
///                                                  .sampler = recipes::pruner_sampler()}};
///
/// Paper:    Qiao et al., Pruner: A Draft-then-Verify Exploration Mechanism to Accelerate Tensor Program Tuning,
///           ASPLOS 2025, doi:10.1145/3676641.3716269.
/// Deviates: the analyser's default form is ours, the released one is an option. The network is trained anew at
///           doublings of the data and a few steps in between, since measuring takes a hundredth of the paper's time
///           here; `pruner_training()` is the paper's. `quickly_trained_network()` and `DraftSet::mutated_factor` are
///           ours. As `drafts::SymbolAnalyzer`, `features::Dataflow`, `explorers::DraftSet` and
///           `models::PatternAware`. Rows of statements have 164 columns, without the ten flags on the text of the
///           computation. On CPUs, which the paper does not treat, all of it by analogy.
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
};

}  // namespace tunewright::recipes
