// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include "tunewright/core/require.hpp"
#include "tunewright/core/scaled_count.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/samplers/concept.hpp"
#include "tunewright/samplers/knobs.hpp"
#include "tunewright/samplers/pool.hpp"

namespace tunewright::samplers {

/// Selects good candidates that together cover as many values of every knob as possible.
///
///   F(S) = score_weight * sum over S of score + knob_weight * sum over knobs of |distinct values in S|
///   S grows from the pool's best `candidates_factor` * n by the largest gain of F, which comes within 1 - 1/e
///   of the largest F possible for scores that are not negative
///   the last of the batch, a share `epsilon` of all trials (`random_share`), are drawn from the rest of the pool; of a
///   small pool fewer are considered, so that the rest, those of the lowest scores, is large enough
///
/// The score weight of 0 is what AutoTVM's tuner uses: it picks for coverage alone among the best.
///
/// Paper:       Chen et al., Learning to Optimize Tensor Programs, NeurIPS 2018, section 3.3.
/// Models:      LabelAwareSamplerFor<M> for every CostModel M. Features: the knobs, one row per program; several rows
///              of a program are summed.
/// Shapes:      x [P, D]; result [min(n, P)] in the order of selection.
/// Cost:        O(P log P) and at most O(n C D), C = candidates_factor * n; usually far less, because gains only
///              shrink and are computed again only when a candidate comes first.
/// Determinism: the generator draws the random part only; equal gains go by score, then by place in the pool.
/// Errors:      `std::invalid_argument` for options out of their range, and for scores or labels that are not one
///              a program.
/// Deviates:    AutoTVM draws the random part from the whole space; here it comes from whatever the explorer put into
///              the pool beyond what is considered (`explorers::Annealing::random_immigrant_factor`). Its code rounds
///              the share down for each batch of 64, which makes 3; here it is the share of all trials.
struct DiverseTopK {
  double score_weight = 0;       ///< at least 0, finite
  double knob_weight = 1;        ///< of one new value of one knob, at least 0, finite
  double candidates_factor = 2;  ///< candidates considered for each one chosen, at least 1
  double epsilon = 0;            ///< share of the trials chosen at random, in [0, 1]

  /// Throws `std::invalid_argument` for options out of range.
  void check_options() const {
    constexpr const char* policy = "DiverseTopK";
    require(std::isfinite(score_weight) && score_weight >= 0, policy, "score_weight", score_weight,
            "finite and 0 or more");
    require(std::isfinite(knob_weight) && knob_weight >= 0, policy, "knob_weight", knob_weight, "finite and 0 or more");
    require(std::isfinite(candidates_factor) && candidates_factor >= 1, policy, "candidates_factor", candidates_factor,
            "finite and at least 1");
    require(epsilon >= 0 && epsilon <= 1, policy, "epsilon", epsilon, "a share, 0 to 1");
  }

  template <CostModel M>
  [[nodiscard]] std::vector<std::size_t> select(const M&, const FeatureBatch& x, std::span<const float> score,
                                                std::size_t n, Rng& rng, const Labelled& labelled = {}) const {
    check_options();
    check_pool("DiverseTopK", x, score, labelled);
    const std::size_t share = random_share(epsilon, labelled_of_pool_task(labelled), n);
    const std::size_t considered = considered_beside(share, scaled_count(candidates_factor, n), score);
    const std::vector<std::size_t> candidates =
        largest(described_positions(score), considered, score, score);  // best first
    const KnobTable knobs = knob_table(summed_rows(x, candidates));
    const std::vector<std::size_t> random = random_others(score, candidates, share, rng);
    std::vector<std::size_t> chosen;
    for (const std::size_t i : greedy(knobs, candidates, score, n - random.size())) chosen.push_back(candidates[i]);
    chosen.insert(chosen.end(), random.begin(), random.end());
    fill_up(chosen, score, n);
    return chosen;
  }

 private:
  [[nodiscard]] std::vector<std::size_t> greedy(const KnobTable& knobs, std::span<const std::size_t> candidates,
                                                std::span<const float> score, std::size_t n) const;
};

}  // namespace tunewright::samplers

#if TUNEWRIGHT_DEFINES(core)

namespace tunewright::samplers {

TUNEWRIGHT_INLINE std::vector<std::size_t> DiverseTopK::greedy(const KnobTable& knobs,
                                                               std::span<const std::size_t> candidates,
                                                               std::span<const float> score, std::size_t n) const {
  std::vector<std::vector<bool>> tried(knobs.columns);  // by column and value
  for (std::size_t c = 0; c < knobs.columns; ++c) tried[c].resize(knobs.values[c]);
  const auto gain = [&](std::size_t i) {
    std::size_t fresh = 0;
    for (std::size_t c = 0; c < knobs.columns; ++c) fresh += tried[c][knobs.at(i, c)] ? 0 : 1;
    // A weight of 0 also ignores infinite scores.
    const double of_score = score_weight == 0 ? 0.0 : score_weight * double{score[candidates[i]]};
    return of_score + knob_weight * static_cast<double>(fresh);
  };
  // Largest gain first, then the position among the candidates, which are sorted by score.
  using Entry = std::pair<double, std::size_t>;
  const auto after = [](const Entry& a, const Entry& b) {
    return a.first != b.first ? a.first < b.first : a.second > b.second;
  };
  std::priority_queue<Entry, std::vector<Entry>, decltype(after)> queue(after);
  for (std::size_t i = 0; i < candidates.size(); ++i) queue.emplace(gain(i), i);
  std::vector<std::size_t> chosen;
  while (chosen.size() < n && !queue.empty()) {
    const auto [bound, i] = queue.top();
    queue.pop();
    if (const double now = gain(i); now < bound) {
      queue.emplace(now, i);
      continue;
    }
    chosen.push_back(i);
    for (std::size_t c = 0; c < knobs.columns; ++c) tried[c][knobs.at(i, c)] = true;
  }
  return chosen;
}

}  // namespace tunewright::samplers

#endif
