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

/// What a filter leaves of a pool, and why the rest went.
struct Kept {
  std::vector<std::size_t> indices;  ///< positions kept, ascending
  ReasonCounts rejected;
};

/// Throws `std::logic_error` for a filter that keeps positions beyond its pool, so that a faulty one is found at once.
void check_kept(const Kept& kept, std::size_t pool);

/// Keeps candidates out that are not worth a measurement: over static limits, or believed to fail.
///
/// `keep(space, task, pool)` judges each candidate by itself: the verdict does not depend on the rest of the
/// pool. It is asked both while exploring (rejected candidates rank -infinity) and before sampling, from
/// several threads at once.
///
/// Optional hook, found by detection: `learn(space, task, configs, outcomes)` after every batch.
template <class F, class S>
concept FilterFor =
    SearchSpace<S> && requires(const F& filter, const S& space, const Task& task, std::span<const config_t<S>> pool) {
      { filter.keep(space, task, pool) } -> std::same_as<Kept>;
    };

/// Refinement: learns from what was measured.
template <class F, class S>
concept LearningFilterFor =
    FilterFor<F, S> && requires(F& filter, const S& space, const Task& task, std::span<const config_t<S>> configs,
                                std::span<const Outcome> outcomes) { filter.learn(space, task, configs, outcomes); };

/// Refinement: judges a program that somebody lowered already, so that ranking lowers each candidate once.
/// `why_rejected(space, task, program)` gives the reason under which `keep` would count it, and nothing where `keep`
/// would keep it. Configurations that cannot be lowered are still asked of `keep`.
template <class F, class S>
concept ProgramFilterFor =
    FilterFor<F, S> && requires(const F& filter, const S& space, const Task& task, const program_t<S>& program) {
      { filter.why_rejected(space, task, program) } -> std::convertible_to<std::string_view>;
    };

/// Refinement: judges summaries of programs, so that ranking need not lower. `why_rejected(space, task, summary)` gives
/// what it gives of the program, or nothing where it takes the program to tell.
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
