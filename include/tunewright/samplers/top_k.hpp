// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

#include "tunewright/samplers/concept.hpp"

namespace tunewright::samplers {

/// Measures the candidates of the highest scores, best first; of equals the one earlier in the pool.
///
/// Models:      SamplerFor<M> for every CostModel M.
/// Shapes:      score [P]; result [min(n, P)].
/// Cost:        O(P log n). Determinism: no randomness.
struct TopK {
  template <CostModel M>
  [[nodiscard]] std::vector<std::size_t> select(const M&, const FeatureBatch&, std::span<const float> score,
                                                std::size_t n, Rng&) const {
    std::vector<std::size_t> order(score.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const std::size_t count = std::min(n, order.size());
    std::partial_sort(
        order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
        [&](std::size_t a, std::size_t b) { return score[a] != score[b] ? score[a] > score[b] : a < b; });
    order.resize(count);
    return order;
  }
};

}  // namespace tunewright::samplers
