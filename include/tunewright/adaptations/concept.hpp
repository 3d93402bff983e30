// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/models/concept.hpp"

namespace tunewright {

/// Decides how new measurements update the cost model.
///
/// `update(model, x, y, group)` is called after every batch with all data of the session: features `x` of N candidates,
/// labels `y` [N] in [0, 1] (best latency of the task / latency, 0 if failed; a new best rescales older ones) and
/// `group` [N], equal for candidates of one task.
///
/// An adaptation that needs more of the model than `CostModel`, such as its weights, constrains its `update`; the slot
/// check then names the mismatch.
///
/// Semantics the compiler cannot see: the same calls give the same model.
template <class A, class M>
concept AdaptationFor =
    CostModel<M> && requires(A& adaptation, M& model, const FeatureBatch& x, std::span<const float> y,
                             std::span<const std::uint32_t> group) { adaptation.update(model, x, y, group); };

/// Refinement, found by detection: an adaptation whose models know the tasks that they were trained on and no others,
/// and that says so by `static constexpr bool is_task_bound = true`. If the tuner has trained the model on other tasks,
/// sessions choose the first batch of a task without it, by the draft or at random.
template <class A>
concept TaskBoundAdaptation = requires { requires A::is_task_bound; };

/// Number of labelled programs that an adaptation leaves unused until there are more: its optional member
/// `warmup_candidates`.
template <class A>
[[nodiscard]] std::size_t warmup_candidates_of(const A& adaptation) {
  if constexpr (requires { adaptation.warmup_candidates; }) {
    return adaptation.warmup_candidates;
  } else {
    return 0;
  }
}

}  // namespace tunewright
