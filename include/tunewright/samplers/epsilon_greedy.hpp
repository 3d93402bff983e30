// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "tunewright/core/order.hpp"
#include "tunewright/core/require.hpp"
#include "tunewright/samplers/concept.hpp"
#include "tunewright/samplers/pool.hpp"

namespace tunewright::samplers {

/// Selects the best-scored candidates and a few random others of the pool, which correct a wrong model.
///
///   random = floor(epsilon * n)       the n - random best by score, then `random` of the rest of the pool
///
/// Paper:       Zheng et al., Ansor, OSDI 2020, section 5.1 (epsilon 0.05).
/// Models:      SamplerFor<M> for every CostModel M.
/// Shapes:      score [P]; result [min(n, P)], greedy part first.
/// Cost:        O(P log P).
/// Determinism: the generator shuffles only the random part; among equal scores the first in the pool.
/// Errors:      `std::invalid_argument` for an `epsilon` outside [0, 1]. Features are neither read nor checked.
/// Deviates:    Ansor draws the random part from its random first population; here it comes from the rest of the pool.
///              A candidate scored -infinity is chosen only if nothing else is left.
struct EpsilonGreedy {
  double epsilon = 0.05;  ///< share of the batch chosen at random, in [0, 1]

  template <CostModel M>
  [[nodiscard]] std::vector<std::size_t> select(const M&, const FeatureBatch&, std::span<const float> score,
                                                std::size_t n, Rng& rng) const {
    require(epsilon >= 0 && epsilon <= 1, "EpsilonGreedy", "epsilon", epsilon, "a share, 0 to 1");
    std::vector<std::size_t> order = largest(positions(score.size()), score.size(), score, score);
    const std::size_t count = std::min(n, order.size());
    // The small offset makes 0.1 * 30 give 3 despite rounding.
    const auto random = static_cast<std::size_t>(std::floor(epsilon * static_cast<double>(count) + 1e-9));
    const std::size_t greedy = count - random;
    const auto hopeless = std::find_if(order.begin() + static_cast<std::ptrdiff_t>(greedy), order.end(),
                                       [&](std::size_t i) { return !described(score[i]); });
    rng.shuffle(std::span<std::size_t>(order.begin() + static_cast<std::ptrdiff_t>(greedy), hopeless));
    order.resize(count);
    return order;
  }
};

}  // namespace tunewright::samplers
