// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/adaptations/concept.hpp"
#include "tunewright/adaptations/fine_tune.hpp"
#include "tunewright/adaptations/transferred.hpp"
#include "tunewright/drafts/none.hpp"
#include "tunewright/explorers/evolutionary.hpp"
#include "tunewright/features/per_statement.hpp"
#include "tunewright/filters/static_limits.hpp"
#include "tunewright/measurers/concept.hpp"
#include "tunewright/models/concept.hpp"
#include "tunewright/models/gbdt.hpp"
#include "tunewright/models/gbdt/objective.hpp"
#include "tunewright/models/mlp.hpp"
#include "tunewright/samplers/epsilon_greedy.hpp"
#include "tunewright/spaces/concept.hpp"

namespace tunewright::recipes {

/// Ansor's search with a cost model pretrained on measurements of many other tasks.
///
///   Tuner<recipes::TenSet<Space, Measurer>> tuner{{.model = pretrained}};
///
///   recipes::TenSet<Space, Measurer, models::Mlp, adaptations::None>
///   recipes::TenSet<Space, Measurer, adaptations::Transferred<models::Gbdt>, adaptations::WarmStart>
///
/// The second recipe does not train the network further; the third uses pretrained trees (assign them to
/// `parts.model.source`) and adds new ones, which learn corrections. Trees have TenSet's settings, also as the model
/// itself.
///
/// Paper:    Zheng et al., TenSet: A Large-scale Program Performance Dataset for Learned Tensor Compilers, NeurIPS 2021
///           datasets and benchmarks.
/// Deviates: as `Ansor`, `models::Mlp`, `adaptations::FineTune` and `adaptations::WarmStart`. Rows lack the nine flags
///           on the text of the computation. One run is one task; the paper's transfer spends one round per task, and
///           later tasks learn from earlier ones.
template <SearchSpace Space, MeasurerFor<program_t<Space>> Measurer, CostModel Model = models::Mlp,
          AdaptationFor<Model> Adaptation = adaptations::FineTune>
struct TenSet {
  using space = Space;
  using featurizer = features::PerStatement;
  using model = Model;
  using draft = drafts::None;
  using explorer = explorers::Evolutionary;
  using sampler = samplers::EpsilonGreedy;
  using filter = filters::StaticLimits;
  using adaptation = Adaptation;
  using measurer = Measurer;

  /// As in Ansor.
  static void set_explorer(explorers::Evolutionary& evolution) { evolution.population = 2048; }
  /// Up to 300 trees, which fit slow programs as much as fast ones.
  static void set_model(models::Gbdt& trees) {
    trees.rounds = 300;
    trees.early_stopping_rounds = 100;
    trees.max_depth = 6;
    trees.learning_rate = 0.2F;
    trees.gamma = 3e-3F;
    trees.min_child_weight = 2;
    trees.objective = models::gbdt::Objective::Squared;
  }
  static void set_model(adaptations::Transferred<models::Gbdt>& trees) {
    set_model(trees.source);
    set_model(trees.own);
  }
  /// At least ten steps of gradient descent.
  static void set_adaptation(adaptations::FineTune& tuning) { tuning.training = adaptations::tenset_fine_tuning(); }
};

}  // namespace tunewright::recipes
