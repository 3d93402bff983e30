// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <type_traits>

#include "tunewright/adaptations/concept.hpp"
#include "tunewright/core/clock.hpp"
#include "tunewright/core/require.hpp"
#include "tunewright/core/training_set.hpp"
#include "tunewright/drafts/concept.hpp"
#include "tunewright/explorers/concept.hpp"
#include "tunewright/features/concept.hpp"
#include "tunewright/filters/concept.hpp"
#include "tunewright/measurers/concept.hpp"
#include "tunewright/models/concept.hpp"
#include "tunewright/recipe/check_slots.hpp"
#include "tunewright/recipe/near_misses.hpp"
#include "tunewright/recipe/settings.hpp"
#include "tunewright/samplers/concept.hpp"
#include "tunewright/schedulers/concept.hpp"
#include "tunewright/spaces/concept.hpp"

namespace tunewright {

/// A recipe is a struct that names one type per slot. A variant derives from it and redefines slots:
///
///   struct Mine : recipes::Ansor<Space, Measurer> { using sampler = samplers::TopK; };
///
/// Slots: space, featurizer, model, draft, explorer, sampler, filter, adaptation, measurer.
///
/// `Parts` holds the policies, with the settings of the recipe (recipe/settings.hpp), and the other state of a run. All
/// are aggregates, so options are designated initialisers, in the order of the members:
///
///   Tuner<Mine> tuner{{.explorer = {.population = 256}, .seed = 7}};
template <class Recipe>
struct Parts {
  using recipe = Recipe;

  typename Recipe::space space = settings::by_default<typename Recipe::space>();
  typename Recipe::featurizer featurizer =
      settings::applied<Recipe, typename Recipe::featurizer>(space, settings::featurizer);
  typename Recipe::model model = settings::applied<Recipe, typename Recipe::model>(space, settings::model);
  typename Recipe::draft draft = settings::applied<Recipe, typename Recipe::draft>(space, settings::draft);
  typename Recipe::explorer explorer = settings::applied<Recipe, typename Recipe::explorer>(space, settings::explorer);
  typename Recipe::sampler sampler = settings::applied<Recipe, typename Recipe::sampler>(space, settings::sampler);
  typename Recipe::filter filter = settings::applied<Recipe, typename Recipe::filter>(space, settings::filter);
  typename Recipe::adaptation adaptation =
      settings::applied<Recipe, typename Recipe::adaptation>(space, settings::adaptation);
  typename Recipe::measurer measurer = settings::applied<Recipe, typename Recipe::measurer>(space, settings::measurer);

  std::uint64_t seed = 0;  ///< same seed, same history
  unsigned threads = 1;  ///< for exploring, filtering and featurizing, 0: all hardware ones; does not change the result
  Clock clock = steady_seconds();  ///< read for budgets and reports only; not empty
  TrainingSet training{};          ///< training data of the model; grows with every session over these parts
  /// Configurations of a task to measure before any other, for example from a store of schedules
  /// (`data::ScheduleStore`). Measured and rejected ones are skipped. The search continues from the fastest.
  std::function<std::vector<config_t<typename Recipe::space>>(const typename Recipe::space&, const Task&)> starts{};
};

/// Throws `std::invalid_argument` for options of policies out of range, so that a search finds out before it measures:
/// calls `check_options() const` of the policies that have it, as `check_options_of` does.
template <class Recipe>
void check_options(const Parts<Recipe>& parts) {
  check_options_of(parts.featurizer);
  check_options_of(parts.model);
  check_options_of(parts.draft);
  check_options_of(parts.explorer);
  check_options_of(parts.sampler);
  check_options_of(parts.filter);
  check_options_of(parts.adaptation);
}

/// Reports slot, contract, missing capability and documentation page of every part of a recipe that does not fit. A
/// class template over a recipe calls it once: `static_assert(check_recipe<Recipe>())`. If the space is not a
/// `SearchSpace`, parts that depend on it are not checked; samplers and adaptations are checked with any model.
template <class R>
consteval bool check_recipe() {
  static_assert(
      requires { typename R::space; },
      "recipe: slot 'space' is missing; name a type for it or derive from a recipe (docs/recipes.md)");
  static_assert(
      requires { typename R::featurizer; },
      "recipe: slot 'featurizer' is missing; name a type for it or derive from a recipe (docs/recipes.md)");
  static_assert(
      requires { typename R::model; },
      "recipe: slot 'model' is missing; name a type for it or derive from a recipe (docs/recipes.md)");
  static_assert(
      requires { typename R::draft; },
      "recipe: slot 'draft' is missing; name a type for it or derive from a recipe (docs/recipes.md)");
  static_assert(
      requires { typename R::explorer; },
      "recipe: slot 'explorer' is missing; name a type for it or derive from a recipe (docs/recipes.md)");
  static_assert(
      requires { typename R::sampler; },
      "recipe: slot 'sampler' is missing; name a type for it or derive from a recipe (docs/recipes.md)");
  static_assert(
      requires { typename R::filter; },
      "recipe: slot 'filter' is missing; name a type for it or derive from a recipe (docs/recipes.md)");
  static_assert(
      requires { typename R::adaptation; },
      "recipe: slot 'adaptation' is missing; name a type for it or derive from a recipe (docs/recipes.md)");
  static_assert(
      requires { typename R::measurer; },
      "recipe: slot 'measurer' is missing; name a type for it or derive from a recipe (docs/recipes.md)");
  // Contracts are checked only if every slot has a type, so that a missing slot is the only error.
  if constexpr (requires {
                  typename R::space;
                  typename R::featurizer;
                  typename R::model;
                  typename R::draft;
                  typename R::explorer;
                  typename R::sampler;
                  typename R::filter;
                  typename R::adaptation;
                  typename R::measurer;
                }) {
    using Space = typename R::space;
    using Model = typename R::model;
    if constexpr (!SearchSpace<Space>) {
      check_slots::space<Space>();
    } else {
      if constexpr (!FeaturizerFor<typename R::featurizer, Space>)
        check_slots::featurizer<typename R::featurizer, Space>();
      if constexpr (!DraftModelFor<typename R::draft, Space>) check_slots::draft<typename R::draft, Space>();
      if constexpr (!ExplorerFor<typename R::explorer, Space>) check_slots::explorer<typename R::explorer, Space>();
      if constexpr (!FilterFor<typename R::filter, Space>) check_slots::filter<typename R::filter, Space>();
      if constexpr (!MeasurerFor<typename R::measurer, program_t<Space>>)
        check_slots::measurer<typename R::measurer, program_t<Space>>();
    }
    if constexpr (!CostModel<Model>) check_slots::model<Model>();
    // If the model is faulty, checks against a model with every capability, to report independent errors as well.
    using Judged = std::conditional_t<CostModel<Model>, Model, near_misses::ModelWithAll>;
    if constexpr (!SamplerFor<typename R::sampler, Judged>) check_slots::sampler<typename R::sampler, Judged>();
    if constexpr (!AdaptationFor<typename R::adaptation, Judged>)
      check_slots::adaptation<typename R::adaptation, Judged>();
    check_slots::rows<typename R::featurizer, Model, typename R::sampler>();
  }
  return true;
}

/// Reports what a class lacks to be a `TaskScheduler`, as `check_recipe` does for the parts of a recipe.
template <class S>
consteval bool check_scheduler() {
  if constexpr (!TaskScheduler<S>) check_slots::scheduler<S>();
  return true;
}

/// `Parts` of a checked recipe: errors are reported before any part is built.
template <class Recipe>
struct CheckedParts {
  static_assert(check_recipe<Recipe>());
  using type = Parts<Recipe>;
};

}  // namespace tunewright
