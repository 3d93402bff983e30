// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tunewright {

/// A policy with the settings of a recipe, before options replace it.
///
/// A recipe names types; values that its paper gives to options of a policy stand in static functions of the recipe,
/// one for each policy that has any. A setting that is a property of the space takes the space as well:
///
///   static void settings(samplers::EpsilonGreedy& sampler) { sampler.epsilon = 0.1; }
///   static void settings(features::Knobs& features, const Space& space) { features.knobs = space.knobs(); }
///
/// A policy without such a function keeps its own defaults, as do the slots that a variant names anew, unless the new
/// policy derives from the old one. A variant with settings of its own says `using Base::settings;` to keep the others.
/// Options of a tuner replace a policy as a whole: who gives some of its options, gives those of the paper, too.
template <class Recipe, class Policy, class Space>
[[nodiscard]] Policy policy_as_set(const Space& space) {
  if constexpr (requires(Policy& policy) { Recipe::settings(policy, space); }) {
    Policy policy{};
    Recipe::settings(policy, space);
    return policy;
  } else if constexpr (requires(Policy& policy) { Recipe::settings(policy); }) {
    Policy policy{};
    Recipe::settings(policy);
    return policy;
  } else {
    return Policy{};
  }
}

}  // namespace tunewright
