// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tunewright/adaptations/concept.hpp"
#include "tunewright/core/clock.hpp"
#include "tunewright/core/training_set.hpp"
#include "tunewright/drafts/concept.hpp"
#include "tunewright/explorers/concept.hpp"
#include "tunewright/features/concept.hpp"
#include "tunewright/filters/concept.hpp"
#include "tunewright/measurers/concept.hpp"
#include "tunewright/models/concept.hpp"
#include "tunewright/samplers/concept.hpp"
#include "tunewright/spaces/concept.hpp"

namespace tunewright {

/// A recipe is a struct naming one type a slot; a variant derives from it and names again what differs:
///
///   struct Mine : recipes::Ansor<Space, Measurer> { using sampler = samplers::TopK; };
///
/// Slots: space, featurizer, model, draft, explorer, sampler, filter, adaptation, measurer.
///
/// `Parts` holds the built policies and what a run needs besides. Each is an aggregate, so options read as
/// sentences:
///
///   Tuner<Mine> tuner{{.explorer = {.population = 256}, .seed = 7}};
template <class Recipe>
struct Parts {
  typename Recipe::space space{};
  typename Recipe::featurizer featurizer{};
  typename Recipe::model model{};
  typename Recipe::draft draft{};
  typename Recipe::explorer explorer{};
  typename Recipe::sampler sampler{};
  typename Recipe::filter filter{};
  typename Recipe::adaptation adaptation{};
  typename Recipe::measurer measurer{};

  std::uint64_t seed = 0;          ///< same seed, same history
  unsigned threads = 1;            ///< for exploring, filtering and featurizing; does not change the result
  Clock clock = steady_seconds();  ///< read for budgets and reports only
  TrainingSet training{};          ///< what the model may learn from; grows with every session over these parts
};

/// Names the slot, the contract, the usual cause and the page of every part of a recipe that does not fit. A
/// class that takes a recipe calls it once: `static_assert(check_recipe<Recipe>())`.
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
  // Contracts are checked only where there is a type for every slot, so that a missing one is the only thing reported.
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
    static_assert(SearchSpace<Space>,
                  "recipe: slot 'space' does not model SearchSpace; usually a const is missing or sample and "
                  "mutate return the configuration instead of an optional (docs/concepts/spaces.md)");
    static_assert(CostModel<Model>,
                  "recipe: slot 'model' does not model CostModel; usually predict is not const or fit takes no "
                  "groups (docs/concepts/models.md)");
    if constexpr (SearchSpace<Space>) {
      static_assert(FeaturizerFor<typename R::featurizer, Space>,
                    "recipe: slot 'featurizer' does not model FeaturizerFor<space>; usually it describes the "
                    "programs of another space (docs/concepts/features.md)");
      static_assert(DraftModelFor<typename R::draft, Space>,
                    "recipe: slot 'draft' does not model DraftModelFor<space>; usually score is not const; "
                    "drafts::None takes the stage out (docs/concepts/drafts.md)");
      static_assert(ExplorerFor<typename R::explorer, Space>,
                    "recipe: slot 'explorer' does not model ExplorerFor<space>; usually a sampler stands in "
                    "its place (docs/concepts/explorers.md)");
      static_assert(FilterFor<typename R::filter, Space>,
                    "recipe: slot 'filter' does not model FilterFor<space>; usually keep is not const; "
                    "filters::None takes the stage out (docs/concepts/filters.md)");
      static_assert(MeasurerFor<typename R::measurer, program_t<Space>>,
                    "recipe: slot 'measurer' does not model MeasurerFor<program of the space>; usually it runs "
                    "another kind of program (docs/concepts/measurers.md)");
    }
    if constexpr (CostModel<Model>) {
      static_assert(SamplerFor<typename R::sampler, Model>,
                    "recipe: slot 'sampler' does not model SamplerFor<model>; usually it needs more of the "
                    "model than a CostModel gives (docs/concepts/samplers.md)");
      static_assert(AdaptationFor<typename R::adaptation, Model>,
                    "recipe: slot 'adaptation' does not model AdaptationFor<model>; usually it needs the "
                    "weights of a model that has none (docs/concepts/adaptations.md)");
    }
  }
  return true;
}

}  // namespace tunewright
