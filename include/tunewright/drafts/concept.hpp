// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <span>
#include <type_traits>

#include "tunewright/core/task.hpp"
#include "tunewright/drafts/none.hpp"
#include "tunewright/spaces/concept.hpp"

namespace tunewright {

/// Ranks configurations before there is any measurement. A draft is cheaper than the cost model and is never trained.
///
/// `score(space, task, configs, score)` writes one number per configuration: larger is better, -infinity rejects it.
/// Explorers then rank by the draft instead of the model. `drafts::None` removes the stage.
///
/// Semantics the compiler cannot see: equal configurations get equal scores, independent of the others in the call;
/// `score` may be called from several threads at once.
template <class D, class S>
concept DraftModelFor =
    SearchSpace<S> && (std::same_as<D, drafts::None> ||
                       requires(const D& draft, const S& space, const Task& task, std::span<const config_t<S>> configs,
                                std::span<float> score) { draft.score(space, task, configs, score); });

/// Refinement: scores lowered programs. `score_of(task)` is a function of programs with the same result as `score`. It
/// may own working memory, so each thread creates its own.
template <class D, class S>
concept ProgramDraftFor =
    DraftModelFor<D, S> && requires(const D& draft, const Task& task, const program_t<S>& program) {
      { draft.score_of(task)(program) } -> std::same_as<float>;
    };

/// Refinement: the same function also scores summaries of programs, with the same result.
template <class D, class S>
concept SummaryDraftFor = ProgramDraftFor<D, S> && SummarizingSpace<S> &&
                          requires(const D& draft, const Task& task, const typename S::summary_type& summary) {
                            { draft.score_of(task)(summary) } -> std::same_as<float>;
                          };

}  // namespace tunewright
