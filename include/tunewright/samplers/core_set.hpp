// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "tunewright/samplers/concept.hpp"
#include "tunewright/samplers/points.hpp"
#include "tunewright/samplers/pool.hpp"

namespace tunewright::samplers {

/// Repeatedly selects the candidate farthest from everything measured, so that no candidate is far from all labels:
/// greedy k-center, within twice the optimal covering radius.
///
///   D(p) = min over labelled and chosen z of |h(p) - h(z)|;   choose argmax D, update D, repeat
///
/// Paper:       Sener and Savarese, A Core-Set Approach, ICLR 2018; Gonzalez, 1985 (the bound).
/// Models:      LabelAwareSamplerFor<M> for every EmbeddingCostModel M.
/// Shapes:      h [P + L, E]; result [min(n, P)], farthest first.
/// Cost:        O(P (L + n) E).
/// Determinism: no randomness; equally far candidates are ordered by score, then by position in the pool.
/// Errors:      `std::invalid_argument` unless there is one score or label per program.
/// Deviates:    without labels, the first choice is the best-scored candidate instead of any.
struct CoreSet {
  bool standardised = false;  ///< scales every coordinate to deviation 1 over pool and labelled programs

  template <EmbeddingCostModel M>
  [[nodiscard]] std::vector<std::size_t> select(const M& model, const FeatureBatch& x, std::span<const float> score,
                                                std::size_t n, Rng&, const Labelled& labelled = {}) const {
    check_pool("CoreSet", x, score, labelled);
    const std::vector<std::size_t> candidates = described_positions(score);
    const std::vector<std::size_t> known = described_positions(labelled);
    Points points = points_of(model.embed(x), candidates);  // (P, E)
    Points centres;                                         // (L, E)
    if (!known.empty()) centres = points_of(model.embed(labelled.x), known);
    if (standardised) standardise(points, centres);

    NearestCentre nearest(points.size());
    for (std::size_t l = 0; l < centres.size(); ++l) nearest.add(points, centres[l]);
    std::vector<bool> taken(points.size());
    std::vector<std::size_t> chosen;
    while (chosen.size() < std::min(n, points.size())) {
      const std::size_t next = farthest(nearest, taken, candidates, score);
      taken[next] = true;
      chosen.push_back(candidates[next]);
      nearest.add(points, points[next]);
    }
    fill_up(chosen, score, n);
    return chosen;
  }

 private:
  static std::size_t farthest(const NearestCentre& nearest, const std::vector<bool>& taken,
                              std::span<const std::size_t> candidates, std::span<const float> score) {
    std::size_t best = taken.size();
    for (std::size_t i = 0; i < taken.size(); ++i) {
      if (taken[i]) continue;
      const bool first = best == taken.size();
      if (first || nearest.squared(i) > nearest.squared(best) ||
          (nearest.squared(i) == nearest.squared(best) && score[candidates[i]] > score[candidates[best]]))
        best = i;
    }
    return best;
  }
};

}  // namespace tunewright::samplers
