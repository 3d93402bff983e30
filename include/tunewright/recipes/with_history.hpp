// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>

#include "tunewright/adaptations/transferred.hpp"
#include "tunewright/adaptations/warm_start.hpp"
#include "tunewright/models/gbdt.hpp"
#include "tunewright/models/gbdt/objective.hpp"

namespace tunewright::recipes {

/// `AutoTvmRegression`, or a recipe that derives from it, with a model of earlier measurements: trees taught what
/// similar tasks, or the same task on other devices, measured. They choose the first batch, and their weight halves
/// with every 64 trials of the search.
///
///   Parts<recipes::WithHistory<recipes::AutoTvmRegression<Space, Measurer>>> parts{.space = space};
///   parts.model.source.fit(x, y, group);  // of the earlier measurements; Tuner<Recipe>{parts} then searches
///
/// Without it the first batch is random, so a search no longer than that is random search.
///
/// Paper:    Chen et al., Learning to Optimize Tensor Programs, NeurIPS 2018, section 4, by its code: `load_history`,
///           400 trees.
/// Deviates: as `adaptations::WarmStart`, whose form is Discounted. Earlier labels are relative to the best of their
///           own task; the code's are relative to the best of all earlier tasks. The code wants 500 earlier
///           measurements at least and stops training early; this takes any number.
/// Errors:   `std::invalid_argument`, from the constructor of `Parts`, for trees that rank, as `AutoTvm`'s: the scores
///           of both models are added, and those of a ranking have no scale.
template <class Recipe>
struct WithHistory : Recipe {
  using model = adaptations::Transferred<models::Gbdt>;
  using adaptation = adaptations::WarmStart;

  static void set_model(model& trees) {
    Recipe::set_model(trees.source);
    trees.source.rounds = 400;
    Recipe::set_model(trees.own);
    if (models::gbdt::is_ranking(trees.own.objective)) {
      throw std::invalid_argument(
          "recipes::WithHistory: the trees of the recipe rank, so their scores cannot be added to those of the "
          "history; take AutoTvmRegression, or a recipe that derives from it");
    }
  }
  static void set_adaptation(adaptation& warm_start) { warm_start.form = adaptation::Form::Discounted; }
};

}  // namespace tunewright::recipes
