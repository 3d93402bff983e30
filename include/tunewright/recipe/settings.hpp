// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <type_traits>

/// Settings of a recipe: values that its paper gives to options of a policy, beside the types that it names. Each slot
/// has a static function of the recipe, which changes a policy made by default; what is a property of the space is read
/// from it:
///
///   static void set_sampler(samplers::EpsilonGreedy& sampler) { sampler.epsilon = 0.1; }
///   static void set_featurizer(features::Knobs& features, const Space& space) { features.knobs = space.knobs(); }
///
/// A variant that derives from the recipe keeps them, and replaces those of a slot by a function of its own. A slot for
/// which a variant names a policy of another type keeps that policy's own defaults, unless the variant sets it, too.
/// Options given to a tuner replace a policy as a whole, settings included.
namespace tunewright::settings {

/// A class as an argument, so that what it lacks is no error.
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

/// A policy as the recipe sets it by `set`, one of the above; by default where the recipe does not.
template <class Recipe, class Policy, class Space, class Set>
[[nodiscard]] Policy applied(const Space& space, Set set) {
  Policy policy{};
  if constexpr (std::invocable<Set, Of<Recipe>, Policy&, const Space&>)
    set(Of<Recipe>{}, policy, space);
  else if constexpr (std::invocable<Set, Of<Recipe>, Policy&>)
    set(Of<Recipe>{}, policy);
  return policy;
}

}  // namespace tunewright::settings
