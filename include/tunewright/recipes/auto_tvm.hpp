// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/adaptations/refit.hpp"
#include "tunewright/drafts/none.hpp"
#include "tunewright/explorers/annealing.hpp"
#include "tunewright/features/knobs.hpp"
#include "tunewright/filters/static_limits.hpp"
#include "tunewright/measurers/concept.hpp"
#include "tunewright/models/gbdt.hpp"
#include "tunewright/samplers/diverse_top_k.hpp"
#include "tunewright/spaces/concept.hpp"

namespace tunewright::recipes {

/// Simulated annealing over knobs guided by boosted trees. Of the best candidates it measures those that cover the most
/// values of the knobs, and a twentieth of all trials is random.
///
///   Tuner<recipes::AutoTvm<Space, Measurer>> tuner{{.space = space}};
///   tuner.run(task, {.trials = 1000, .batch = 64});
///
/// A batch is a plan of the paper's code: after each, trees are trained and the next candidates are planned. Its plans
/// have 64 candidates.
///
/// Paper:    Chen et al., Learning to Optimize Tensor Programs, NeurIPS 2018.
/// Deviates: knobs as features, which the code takes only if asked, instead of loops: recorded tables have no loops.
///           100 trees instead of up to 8000 with early stopping; histograms instead of exact splits; 16 pairs of a
///           candidate instead of 2. Transfer from earlier tasks is `WithHistory`. As `samplers::DiverseTopK` for the
///           random share.
template <KnobSpace Space, MeasurerFor<program_t<Space>> Measurer>
struct AutoTvm {
  using space = Space;
  using featurizer = features::Knobs;
  using model = models::Gbdt;
  using draft = drafts::None;
  using explorer = explorers::Annealing;
  using sampler = samplers::DiverseTopK;
  using filter = filters::StaticLimits;
  using adaptation = adaptations::Refit;
  using measurer = Measurer;

  static void set_featurizer(features::Knobs& features, const Space& space) { features.knobs = space.knobs(); }
  /// Shallow trees that rank pairs, as in the paper; a failed candidate is the slowest. XGBoost's pairwise loss counts
  /// hessians twice, which these options undo: there they are 0.3, 1 and 1.
  static void set_model(models::Gbdt& trees) {
    trees.max_depth = 3;
    trees.learning_rate = 0.15F;
    trees.lambda = 0.25F;
    trees.min_child_weight = 0.25F;
    trees.objective = models::gbdt::Objective::RankPairwise;
  }
  /// The code does not measure candidates of a negative score, and XGBoost's scores start at 0.5; random ones replace
  /// them.
  static void set_explorer(explorers::Annealing& annealing) {
    annealing.least_score = -0.5;
    annealing.random_immigrant_factor = random_share;
  }
  static void set_sampler(samplers::DiverseTopK& sampler) { sampler.epsilon = random_share; }

  static constexpr double random_share = 0.05;  ///< of the trials
};

/// AutoTVM with trees of squared loss, the default of later versions of its code. Their scores are labels: for recipes
/// that add to them, learn their errors or need rewards.
///
/// Deviates: as `AutoTvm`.
template <KnobSpace Space, MeasurerFor<program_t<Space>> Measurer>
struct AutoTvmRegression : AutoTvm<Space, Measurer> {
  static void set_model(models::Gbdt& trees) {
    trees.max_depth = 3;
    trees.learning_rate = 0.3F;
    trees.min_child_weight = 1;
    trees.objective = models::gbdt::Objective::Squared;
  }
  /// Candidates that the trees predict to be slower than a failure are not measured; random ones replace them.
  static void set_explorer(explorers::Annealing& annealing) {
    AutoTvm<Space, Measurer>::set_explorer(annealing);
    annealing.least_score = 0;
  }
};

}  // namespace tunewright::recipes
