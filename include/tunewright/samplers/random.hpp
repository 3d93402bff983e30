// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "tunewright/samplers/concept.hpp"
#include "tunewright/samplers/pool.hpp"

namespace tunewright::samplers {

/// Selects random candidates of the pool without replacement. The score only puts candidates that could not be
/// described last.
///
/// Models:      SamplerFor<M> for every CostModel M, IndifferentSampler.
/// Shapes:      score [P]; result [min(n, P)].
/// Cost:        O(P).
/// Determinism: a function of the generator and of which candidates are described.
/// Errors:      none; features are neither read nor checked.
struct Random {
  static constexpr bool is_indifferent = true;

  template <CostModel M>
  [[nodiscard]] std::vector<std::size_t> select(const M&, const FeatureBatch&, std::span<const float> score,
                                                std::size_t n, Rng& rng) const {
    std::vector<std::size_t> order = described_positions(score);
    rng.shuffle(std::span(order));
    order.resize(std::min(n, order.size()));
    fill_up(order, score, n);
    return order;
  }
};

}  // namespace tunewright::samplers
