// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tunewright/core/outcome.hpp"
#include "tunewright/core/reason_counts.hpp"
#include "tunewright/core/task.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/spaces/concept.hpp"

namespace tunewright {

/// The rest of a pool after a filter, and the reasons of the rejections.
struct Kept {
  std::vector<std::size_t> indices;  ///< kept positions, ascending
  ReasonCounts rejected;
};

/// Throws `std::logic_error` for positions beyond the pool, so that a faulty filter is found at once.
void check_kept(const Kept& kept, std::size_t pool);

/// Removes candidates that are not worth a measurement, because they exceed static limits or are predicted to fail.
///
/// `keep(space, task, pool)` judges each candidate independently of the rest of the pool. It is called during
/// exploration (rejected candidates rank -infinity) and before sampling, from several threads at once.
///
/// Optional hook, detected: `learn(space, task, configs, outcomes)` after every batch.
template <class F, class S>
concept FilterFor =
    SearchSpace<S> && requires(const F& filter, const S& space, const Task& task, std::span<const config_t<S>> pool) {
      { filter.keep(space, task, pool) } -> std::same_as<Kept>;
    };

/// Refinement: learns from measurements.
template <class F, class S>
concept LearningFilterFor =
    FilterFor<F, S> && requires(F& filter, const S& space, const Task& task, std::span<const config_t<S>> configs,
                                std::span<const Outcome> outcomes) { filter.learn(space, task, configs, outcomes); };

/// Refinement: judges lowered programs, so that each candidate is lowered once for filter and ranking.
/// `why_rejected(space, task, program)` gives the reason under which `keep` would count it, empty if `keep` keeps it.
/// `keep` still judges configurations that cannot be lowered.
template <class F, class S>
concept ProgramFilterFor =
    FilterFor<F, S> && requires(const F& filter, const S& space, const Task& task, const program_t<S>& program) {
      { filter.why_rejected(space, task, program) } -> std::convertible_to<std::string_view>;
    };

/// Refinement: judges summaries of programs, so that ranking need not lower. `why_rejected(space, task, summary)` gives
/// the result for the program, or `nullopt` if only the program can tell.
template <class F, class S>
concept SummaryFilterFor =
    ProgramFilterFor<F, S> && SummarizingSpace<S> &&
    requires(const F& filter, const S& space, const Task& task, const typename S::summary_type& summary) {
      { filter.why_rejected(space, task, summary) } -> std::convertible_to<std::optional<std::string>>;
    };

}  // namespace tunewright

#if TUNEWRIGHT_DEFINES(core)

#include <stdexcept>

namespace tunewright {

TUNEWRIGHT_INLINE void check_kept(const Kept& kept, std::size_t pool) {
  for (const std::size_t index : kept.indices) {
    if (index < pool) continue;
    throw std::logic_error("the filter kept position " + std::to_string(index) + " of a pool of " +
                           std::to_string(pool) + "; it is out of range");
  }
}

}  // namespace tunewright

#endif
