// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tunewright/core/order.hpp"
#include "tunewright/core/require.hpp"
#include "tunewright/filters/concept.hpp"

namespace tunewright::filters {

/// Keeps the candidates that all its filters keep. Filters run in order; a candidate counts under the reason of the
/// first filter that rejects it, and later filters do not see it.
///
///   using filter = filters::All<filters::StaticLimits, filters::LearnedValidity<Model, Features>>;
///
/// Models:      FilterFor<S> if all of F are; LearningFilterFor<S> if one of them also is.
/// Cost:        the sum of theirs, later ones on the remaining candidates.
/// Determinism: that of its filters.
/// Errors:      `std::logic_error` for a filter that keeps a position beyond its pool; errors of its filters.
template <class... F>
struct All {
  std::tuple<F...> filters{};

  /// Throws `std::invalid_argument` for options of a filter out of range.
  void check_options() const {
    std::apply([](const F&... filter) { (check_options_of(filter), ...); }, filters);
  }

  template <SearchSpace S>
    requires(FilterFor<F, S> && ...)
  [[nodiscard]] Kept keep(const S& space, const Task& task, std::span<const config_t<S>> pool) const {
    Kept kept{.indices = positions(pool.size()), .rejected = {}};
    const auto ask = [&](const auto& filter) {
      std::vector<config_t<S>> copies;  // only once something was rejected: configurations may be large
      std::span<const config_t<S>> left = pool;
      if (kept.indices.size() < pool.size()) {
        for (const std::size_t i : kept.indices) copies.push_back(pool[i]);
        left = copies;
      }
      const Kept next = filter.keep(space, task, left);
      check_kept(next, left.size());
      add_counts(kept.rejected, next.rejected);
      std::vector<std::size_t> indices;
      for (const std::size_t i : next.indices) indices.push_back(kept.indices[i]);
      kept.indices = std::move(indices);
    };
    std::apply([&](const F&... filter) { (ask(filter), ...); }, filters);
    return kept;
  }

  template <SearchSpace S>
    requires(FilterFor<F, S> && ...) && (LearningFilterFor<F, S> || ...)
  void learn(const S& space, const Task& task, std::span<const config_t<S>> configs,
             std::span<const Outcome> outcomes) {
    const auto tell = [&](auto& filter) {
      if constexpr (LearningFilterFor<std::remove_reference_t<decltype(filter)>, S>)
        filter.learn(space, task, configs, outcomes);
    };
    std::apply([&](F&... filter) { (tell(filter), ...); }, filters);
  }
};

}  // namespace tunewright::filters
