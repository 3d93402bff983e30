// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "tunewright/core/order.hpp"
#include "tunewright/samplers/concept.hpp"
#include "tunewright/samplers/pool.hpp"

namespace tunewright::samplers {

/// Selects the candidates with the highest scores, best first; among equals the earlier one in the pool.
///
/// Models:      SamplerFor<M> for every CostModel M.
/// Shapes:      score [P]; result [min(n, P)].
/// Cost:        O(P log n). Determinism: no randomness.
struct TopK {
  template <CostModel M>
  [[nodiscard]] std::vector<std::size_t> select(const M&, const FeatureBatch&, std::span<const float> score,
                                                std::size_t n, Rng&) const {
    return largest(positions(score.size()), n, score, score);
  }
};

}  // namespace tunewright::samplers
