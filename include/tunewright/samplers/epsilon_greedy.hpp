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

/// Measures the best-scored candidates and a few random others of the pool, so that a model that is wrong
/// finds out.
///
///   random = floor(epsilon * n)       the first n - random by score, then `random` of the rest of the pool
///
/// Paper:       Zheng et al., Ansor, OSDI 2020, section 5.1 (epsilon 0.05).
/// Models:      SamplerFor<M> for every CostModel M.
/// Shapes:      score [P]; result [min(n, P)], greedy part first.
/// Cost:        O(P log P).
/// Determinism: the generator shuffles the random part only; of equal scores the first in the pool.
/// Errors:      `std::invalid_argument` for an `epsilon` that is no share. The features are not looked at, nor
///              whether they are as many as the scores.
/// Deviates:    Ansor draws the random part from its random first population; here it comes from whatever the
///              explorer put into the pool beyond the greedy part. A candidate scored -infinity is chosen
///              only when nothing else is left.
struct EpsilonGreedy {
  double epsilon = 0.05;  ///< share of the batch chosen at random, in [0, 1]

  template <CostModel M>
  [[nodiscard]] std::vector<std::size_t> select(const M&, const FeatureBatch&, std::span<const float> score,
                                                std::size_t n, Rng& rng) const {
    require(epsilon >= 0 && epsilon <= 1, "EpsilonGreedy", "epsilon", epsilon, "a share, 0 to 1");
    std::vector<std::size_t> order = largest(positions(score.size()), score.size(), score, score);
    const std::size_t count = std::min(n, order.size());
    // The nudge keeps 0.1 * 30 at 3, whatever its rounding.
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
