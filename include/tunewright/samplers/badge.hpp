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

/// Squared distance of the gradient embeddings a ⊗ h and b ⊗ k, which are not materialized:
///
///   |a⊗h - b⊗k|² = |a|²|h|² + |b|²|k|² - 2 (a·b)(h·k)
///
/// a, b [A] are the gradients of the loss by the outputs, h, k [E] the last hidden layer. O(A + E).
[[nodiscard]] inline float gradient_distance(std::span<const float> a, std::span<const float> h,
                                             std::span<const float> b, std::span<const float> k) {
  const float squared = dot(a, a) * dot(h, h) + dot(b, b) * dot(k, k) - 2 * dot(a, b) * dot(h, k);
  return std::max(0.0F, squared);  // rounding may fall below
}

/// Selects a batch whose training gradients would be large and point into different directions: k-means++ seeding on
/// gradient embeddings, which combines uncertainty and diversity without a weight between them.
///
///   g(p) = s(p) h(p)        h: embedding, s: standard deviation of the model's score
///   first: the largest |g|; each next: drawn with probability D(p)² / sum D²,
///   D(p) = the distance of g(p) to the nearest chosen
///
/// Paper:       Ash et al., BADGE, ICLR 2020.
/// Models:      LabelAwareSamplerFor<M> for every M that is both an EmbeddingCostModel and an UncertainCostModel.
/// Shapes:      h [P, E]; result [min(n, P)] in the order drawn.
/// Cost:        O(P n E).
/// Determinism: the generator draws all but the first; among equal gradients the first in the pool.
/// Errors:      `std::invalid_argument` unless there is one score or label per program.
/// Deviates:    BADGE is for classifiers and uses the most probable class as the label of the gradient. Under a squared
///              loss this pseudo-label gives no residual, so the deviation, which is the expected residual, replaces
///              it.
struct Badge {
  template <EmbeddingCostModel M>
    requires UncertainCostModel<M>
  [[nodiscard]] std::vector<std::size_t> select(const M& model, const FeatureBatch& x, std::span<const float> score,
                                                std::size_t n, Rng& rng, const Labelled& labelled = {}) const {
    check_pool("Badge", x, score, labelled);
    const std::vector<std::size_t> candidates = described_positions(score);
    std::vector<float> mean(score.size()), deviation(score.size());  // [P]
    model.predict_with_deviation(x, mean, deviation);
    const Points h = points_of(model.embed(x), candidates);
    const auto residual = [&](std::size_t i) { return std::span(deviation).subspan(candidates[i], 1); };

    const auto gradient = [&](std::size_t i) { return dot(residual(i), residual(i)) * dot(h[i], h[i]); };

    std::vector<double> weight(candidates.size());  // D², 0 once chosen
    NearestCentre nearest(candidates.size());
    std::vector<std::size_t> chosen;
    std::size_t next = 0;
    for (std::size_t i = 1; i < candidates.size(); ++i) {
      if (gradient(i) > gradient(next)) next = i;
    }
    std::vector<bool> taken(candidates.size());
    while (chosen.size() < std::min(n, candidates.size()) && next < candidates.size()) {
      chosen.push_back(candidates[next]);
      taken[next] = true;
      nearest.add([&](std::size_t i) { return gradient_distance(residual(i), h[i], residual(next), h[next]); });
      for (std::size_t i = 0; i < weight.size(); ++i) weight[i] = taken[i] ? 0.0 : double{nearest.squared(i)};
      next = draw_by_weight(weight, rng);  // none once all that is left has the gradient of something chosen
    }
    fill_up(chosen, score, n);
    return chosen;
  }
};

}  // namespace tunewright::samplers
