// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "tunewright/core/require.hpp"
#include "tunewright/samplers/concept.hpp"
#include "tunewright/samplers/pool.hpp"

namespace tunewright::samplers {

/// Selects the best-scored candidates and a few random others of the pool, which correct a wrong model.
///
///   random = `random_share` of the batch       the n - random best by score, then `random` of the rest of the pool
///
/// Paper:       Zheng et al., Ansor, OSDI 2020, section 5.1 (epsilon 0.05).
/// Models:      LabelAwareSamplerFor<M> for every CostModel M.
/// Shapes:      score [P]; result [min(n, P)], greedy part first.
/// Cost:        O(P log P + L).
/// Determinism: the generator draws only the random part; among equal scores the first in the pool.
/// Errors:      `std::invalid_argument` for an `epsilon` outside [0, 1], and unless there is one score or label per
///              program.
/// Deviates:    Ansor draws the random part from its random first population; here it comes from the rest of the pool.
///              Its code rounds the share down for each batch of 64, which makes 3; here it is the share of all trials,
///              so that small batches have a random trial now and then. A candidate scored -infinity is chosen only if
///              nothing else is left.
struct EpsilonGreedy {
  double epsilon = 0.05;  ///< share of the trials chosen at random, in [0, 1]

  /// Throws `std::invalid_argument` for options out of range.
  void check_options() const {
    require(epsilon >= 0 && epsilon <= 1, "EpsilonGreedy", "epsilon", epsilon, "a share, 0 to 1");
  }

  template <CostModel M>
  [[nodiscard]] std::vector<std::size_t> select(const M&, const FeatureBatch& x, std::span<const float> score,
                                                std::size_t n, Rng& rng, const Labelled& labelled = {}) const {
    check_options();
    check_pool("EpsilonGreedy", x, score, labelled);
    n = std::min(n, score.size());
    const std::size_t random = random_share(epsilon, labelled_of_pool_task(labelled), n);
    std::vector<std::size_t> chosen = largest(described_positions(score), n - random, score, score);
    const std::vector<std::size_t> others = random_others(score, chosen, random, rng);
    chosen.insert(chosen.end(), others.begin(), others.end());
    fill_up(chosen, score, n);
    return chosen;
  }
};

}  // namespace tunewright::samplers
