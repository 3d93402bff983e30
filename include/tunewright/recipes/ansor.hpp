// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/adaptations/refit.hpp"
#include "tunewright/drafts/none.hpp"
#include "tunewright/explorers/evolutionary.hpp"
#include "tunewright/features/per_statement.hpp"
#include "tunewright/filters/static_limits.hpp"
#include "tunewright/measurers/concept.hpp"
#include "tunewright/models/gbdt.hpp"
#include "tunewright/samplers/epsilon_greedy.hpp"
#include "tunewright/spaces/concept.hpp"

namespace tunewright::recipes {

/// Evolutionary search guided by boosted trees, which are trained from scratch on all measurements after every round.
///
///   Tuner<recipes::Ansor<Space, Measurer>> tuner{{.seed = 7}};
///
/// Paper:    Zheng et al., Ansor: Generating High-Performance Tensor Programs for Deep Learning, OSDI 2020; settings of
///           its released code.
/// Deviates: as its parts; batches of the warm-up, and the first one of every task, are random, where its code evolves
///           by random scores or by trees of other tasks. `MultiTaskTuner` with `schedulers::Gradient` searches a
///           network, as the paper does.
template <SearchSpace Space, MeasurerFor<program_t<Space>> Measurer>
struct Ansor {
  using space = Space;
  using featurizer = features::PerStatement;
  using model = models::Gbdt;
  using draft = drafts::None;
  using explorer = explorers::Evolutionary;
  using sampler = samplers::EpsilonGreedy;
  using filter = filters::StaticLimits;
  using adaptation = adaptations::Refit;
  using measurer = Measurer;

  static void set_explorer(explorers::Evolutionary& evolution) { evolution.population = 2048; }
  /// Up to 10,000 deep trees, stopped when 50 more do not lower the loss; the code judges every second tree, by the
  /// root mean squared error without weights.
  static void set_model(models::Gbdt& trees) {
    trees.rounds = 10000;
    trees.early_stopping_rounds = 50;
    trees.max_depth = 10;
    trees.learning_rate = 0.2F;
    trees.gamma = 1e-3F;
  }
  /// Trees learn once more than 100 trials, of all tasks together, are known; batches until then are random.
  static void set_adaptation(adaptations::Refit& refit) { refit.warmup_candidates = 100; }
};

/// Ansor for machines that measure quickly: on CPUs a batch of 64 takes some seconds, and the settings of the paper
/// would spend more time on searching than on measuring.
///
/// Differences from `Ansor`: MetaSchedule's population, a quarter of the paper's; 100 trees of depth 6 with half the
/// learning rate (`models::Gbdt` says why), which learn a thousand programs in some 50 ms, and which choose from the
/// second batch on.
template <SearchSpace Space, MeasurerFor<program_t<Space>> Measurer>
struct AnsorQuick : Ansor<Space, Measurer> {
  static void set_explorer(explorers::Evolutionary& evolution) { evolution = {}; }
  static void set_model(models::Gbdt& trees) { trees = {}; }
  static void set_adaptation(adaptations::Refit& refit) { refit = {}; }
};

}  // namespace tunewright::recipes
