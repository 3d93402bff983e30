// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/models/concept.hpp"

namespace tunewright {

/// Decides how the cost model follows new measurements.
///
/// `update(model, x, y, group)` is called after every batch with everything the session has: features `x` of
/// N candidates, labels `y` [N] in [0, 1] (best of the task / cost, failed = 0; a new best has rescaled older
/// ones) and `group` [N], equal for candidates of one task.
///
/// An adaptation that needs more of the model than `CostModel` (its weights, say) constrains its `update`;
/// the slot check then names the mismatch.
///
/// Semantics the compiler cannot see: the same calls leave the same model.
template <class A, class M>
concept AdaptationFor =
    CostModel<M> && requires(A& adaptation, M& model, const FeatureBatch& x, std::span<const float> y,
                             std::span<const std::uint32_t> group) { adaptation.update(model, x, y, group); };

}  // namespace tunewright
