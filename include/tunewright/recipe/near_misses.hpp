// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <span>
#include <type_traits>
#include <vector>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/core/knob.hpp"
#include "tunewright/models/concept.hpp"
#include "tunewright/spaces/concept.hpp"

/// Classifies how a class misses a contract, for the messages of `check_recipe`. Nothing here is ever called.
namespace tunewright::near_misses {

/// How a member function fits its contract.
enum class Fit : std::uint8_t {
  Good,
  NotConst,     ///< fits, but cannot be called on a const object
  OtherResult,  ///< can be called, but returns another type
  Missing       ///< is missing, or takes other arguments
};

/// A placeholder for a result that a contract leaves open.
struct AnyResult {};

template <class Wanted, class Result>
inline constexpr bool good_result = std::same_as<Wanted, AnyResult> || std::same_as<Wanted, Result>;

/// Fit of a member that must work on a const `Object`. `Call` is `[](auto& o, auto&&... a) -> decltype(o.f(a...))`.
template <class Object, class Wanted, class... Arguments, class Call>
consteval Fit const_fit(Call) {
  if constexpr (std::invocable<Call, const Object&, Arguments...>) {
    return good_result<Wanted, std::invoke_result_t<Call, const Object&, Arguments...>> ? Fit::Good : Fit::OtherResult;
  } else {
    return std::invocable<Call, Object&, Arguments...> ? Fit::NotConst : Fit::Missing;
  }
}

/// Fit of a member that may change the object.
template <class Object, class Wanted, class... Arguments, class Call>
consteval Fit fit(Call) {
  if constexpr (std::invocable<Call, Object&, Arguments...>) {
    return good_result<Wanted, std::invoke_result_t<Call, Object&, Arguments...>> ? Fit::Good : Fit::OtherResult;
  } else {
    return Fit::Missing;
  }
}

// Minimal models with one capability each: a part that accepts one of them but not the recipe's model needs that
// capability.

struct PlainModel {
  void predict(const FeatureBatch&, std::span<float>) const;
  void fit(const FeatureBatch&, std::span<const float>, std::span<const std::uint32_t>);
};
struct WithDeviation {
  void predict_with_deviation(const FeatureBatch&, std::span<float>, std::span<float>) const;
};
struct WithEmbedding {
  FeatureBatch embed(const FeatureBatch&) const;
};
struct WithParameters {
  std::span<float> parameters();
};
struct WithTrainingFromCurrent : WithParameters {
  nn::Training training;
  std::vector<nn::ParameterBlock> blocks() const;
  void train_from_current(const FeatureBatch&, std::span<const float>, std::span<const std::uint32_t>,
                          const nn::Training&, const nn::Continuation&);
};
struct WithHeads {
  std::size_t heads;
  void fit_heads(const FeatureBatch&, std::span<const float>, std::span<const std::uint32_t>);
  void predict_head(const FeatureBatch&, std::size_t, std::span<float>) const;
};
struct WithPersistence {
  void save(std::ostream&, std::uint64_t) const;
  void load(std::istream&, std::uint64_t);
};

template <class... Capabilities>
struct ModelWith : PlainModel, Capabilities... {};

using ModelWithAll = ModelWith<WithDeviation, WithEmbedding, WithTrainingFromCurrent, WithHeads, WithPersistence>;

/// A space and knobs.
template <class Space>
struct SpaceWithKnobs : Space {
  std::vector<Knob> knobs() const;
  std::vector<double> knob_values(const config_t<Space>&) const;
};
template <class Space>
using with_knobs_t = std::conditional_t<std::is_final_v<Space>, Space, SpaceWithKnobs<Space>>;

}  // namespace tunewright::near_misses
