// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <type_traits>

/// Settings of a recipe: the paper's values of policy options. For each slot the recipe may have a static function that
/// changes a default-constructed policy; it may read properties of the space:
///
///   static void set_sampler(samplers::EpsilonGreedy& sampler) { sampler.epsilon = 0.1; }
///   static void set_featurizer(features::Knobs& features, const Space& space) { features.knobs = space.knobs(); }
///
/// A variant that derives from the recipe inherits the settings and may redefine them for a slot. If a variant names a
/// policy of another type for a slot, that policy keeps its own defaults, unless the variant sets it. Options given to
/// a tuner replace a policy entirely, including its settings.
namespace tunewright::settings {

/// Passes a class as an argument, so that a missing member is not an error.
template <class Recipe>
using Of = std::type_identity<Recipe>;

inline constexpr auto featurizer = []<class R>(Of<R>, auto&... a) -> decltype(R::set_featurizer(a...)) {
  R::set_featurizer(a...);
};
inline constexpr auto model = []<class R>(Of<R>, auto&... a) -> decltype(R::set_model(a...)) { R::set_model(a...); };
inline constexpr auto draft = []<class R>(Of<R>, auto&... a) -> decltype(R::set_draft(a...)) { R::set_draft(a...); };
inline constexpr auto explorer = []<class R>(Of<R>, auto&... a) -> decltype(R::set_explorer(a...)) {
  R::set_explorer(a...);
};
inline constexpr auto sampler = []<class R>(Of<R>, auto&... a) -> decltype(R::set_sampler(a...)) {
  R::set_sampler(a...);
};
inline constexpr auto filter = []<class R>(Of<R>, auto&... a) -> decltype(R::set_filter(a...)) { R::set_filter(a...); };
inline constexpr auto adaptation = []<class R>(Of<R>, auto&... a) -> decltype(R::set_adaptation(a...)) {
  R::set_adaptation(a...);
};
inline constexpr auto measurer = []<class R>(Of<R>, auto&... a) -> decltype(R::set_measurer(a...)) {
  R::set_measurer(a...);
};

/// The policy of a slot that is not given to a tuner.
template <class Policy>
[[nodiscard]] Policy by_default() {
  static_assert(std::default_initializable<Policy>,
                "recipe: the policy of a slot has no default constructor; give it to the tuner by the name of its "
                "slot, as in Tuner<Recipe> tuner{{.model = Model(8)}}, or give each of its options a default "
                "(docs/recipes.md)");
  if constexpr (std::default_initializable<Policy>) return Policy();
}

/// The scheduler of a network that is not given.
template <class Scheduler>
[[nodiscard]] Scheduler scheduler_by_default() {
  static_assert(std::default_initializable<Scheduler>,
                "scheduler: it has no default constructor; give one behind the parts of the tuner, as in "
                "MultiTaskTuner<Recipe, Scheduler> tuner{{.seed = 7}, Scheduler(8)}, or give each of its options a "
                "default (docs/concepts/schedulers.md)");
  if constexpr (std::default_initializable<Scheduler>) return Scheduler();
}

/// The default policy after applying setting `set`, one of the above, if the recipe has it.
template <class Recipe, class Policy, class Space, class Set>
[[nodiscard]] Policy applied(const Space& space, Set set) {
  Policy policy = by_default<Policy>();
  if constexpr (std::invocable<Set, Of<Recipe>, Policy&, const Space&>)
    set(Of<Recipe>{}, policy, space);
  else if constexpr (std::invocable<Set, Of<Recipe>, Policy&>)
    set(Of<Recipe>{}, policy);
  return policy;
}

}  // namespace tunewright::settings
