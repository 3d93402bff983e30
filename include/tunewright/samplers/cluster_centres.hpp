// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "tunewright/core/require.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/samplers/concept.hpp"
#include "tunewright/samplers/knobs.hpp"
#include "tunewright/samplers/pool.hpp"

namespace tunewright::samplers {

/// Selects one candidate per cluster and adapts the number of clusters, because explored candidates crowd together and
/// neighbours perform alike.
///
///   k = step, 2 step, ... up to n: k-means on the knobs; stop at the knee, loss(k) >= loss(k - step) / knee
///   measure the candidate nearest to each centre
///
/// Paper:       Ahn et al., Chameleon, ICLR 2020, adaptive sampling.
/// Models:      LabelAwareSamplerFor<M> for every CostModel M. Features: the knobs, one row per program; several rows
///              of a program are summed.
/// Shapes:      x [P, D]; result at most min(n, P), usually fewer than n, best-scored first.
/// Cost:        O(n / step * iterations * P n widest).
/// Determinism: the generator chooses the first centres; among equally near candidates the best-scored, then the first.
/// Errors:      `std::invalid_argument` for options out of range, and unless there is one score or label per program.
/// Deviates:    Chameleon builds a new configuration at each centre, from the centre's two knobs and values of the
///              others drawn among the candidates; it may be illegal. Here the nearest candidate, the best-scored among
///              equally near ones, represents the cluster. Centres start from k-means++ and are not rounded to whole
///              indices. The widest knobs have the most values among the candidates, in Chameleon in the space. All of
///              the pool is clustered, usually twice the batch (`elite_factor`); Chameleon clusters the n best. A knob
///              that `features::Knobs` describes by one column per category counts as that many knobs of two values, so
///              every knob of three values is wider.
struct ClusterCentres {
  std::size_t step = 8;              ///< clusters added at a time, at least 1
  double knee = 2.5;                 ///< adds clusters while the loss decreases by this factor, above 1
  std::size_t widest = 2;            ///< uses this many knobs, those with the most values; 0: all
  std::size_t max_iterations = 100;  ///< of one k-means

  /// Throws `std::invalid_argument` for options out of range.
  void check_options() const {
    require(step >= 1, "ClusterCentres", "step", static_cast<double>(step), "at least 1");
    require(knee > 1, "ClusterCentres", "knee", knee, "more than 1");
  }

  template <CostModel M>
  [[nodiscard]] std::vector<std::size_t> select(const M&, const FeatureBatch& x, std::span<const float> score,
                                                std::size_t n, Rng& rng, const Labelled& labelled = {}) const {
    check_options();
    check_pool("ClusterCentres", x, score, labelled);
    const std::vector<std::size_t> candidates = described_positions(score);
    std::vector<std::size_t> chosen;
    if (!candidates.empty() && n > 0)
      chosen = representatives(widest_knobs(knob_table(summed_rows(x, candidates))), candidates, score, n, rng);
    if (chosen.empty()) fill_up(chosen, score, n);
    return chosen;
  }

 private:
  // The columns with the most values, as points of indices.
  [[nodiscard]] Points widest_knobs(const KnobTable& table) const;

  [[nodiscard]] std::vector<std::size_t> representatives(const Points& points, std::span<const std::size_t> candidates,
                                                         std::span<const float> score, std::size_t n, Rng& rng) const;
};

}  // namespace tunewright::samplers

#if TUNEWRIGHT_DEFINES(core)

#include "tunewright/core/order.hpp"
#include "tunewright/samplers/k_means.hpp"

namespace tunewright::samplers {

TUNEWRIGHT_INLINE Points ClusterCentres::widest_knobs(const KnobTable& table) const {
  const std::vector<std::size_t> columns =
      first_in_order(positions(table.columns), widest == 0 ? table.columns : widest, [&](std::size_t a, std::size_t b) {
        return table.values[a] != table.values[b] ? table.values[a] > table.values[b] : a < b;
      });
  Points points{.columns = columns.size(), .values = {}, .count = 0};
  std::vector<float> point(columns.size());
  const std::size_t count = table.columns == 0 ? 0 : table.index.size() / table.columns;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t c = 0; c < columns.size(); ++c) point[c] = static_cast<float>(table.at(i, columns[c]));
    points.append(point);
  }
  return points;
}

TUNEWRIGHT_INLINE std::vector<std::size_t> ClusterCentres::representatives(const Points& points,
                                                                           std::span<const std::size_t> candidates,
                                                                           std::span<const float> score, std::size_t n,
                                                                           Rng& rng) const {
  const std::size_t most = std::min(n, points.size());
  Clusters clusters;
  double before = std::numeric_limits<double>::infinity();
  for (std::size_t k = std::min(step, most); k >= 1; k = std::min(k + step, most)) {
    clusters = k_means(points, k, max_iterations, rng);
    if (k == most || clusters.loss >= before / knee) break;
    before = clusters.loss;
  }
  std::vector<bool> taken(points.size());
  std::vector<std::size_t> chosen;
  for (std::size_t c = 0; c < clusters.centres.size(); ++c) {
    std::size_t nearest = points.size();
    float least = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (taken[i]) continue;
      const float squared = squared_distance(points[i], clusters.centres[c]);
      if (nearest == points.size() || squared < least ||
          (squared == least && score[candidates[i]] > score[candidates[nearest]])) {
        nearest = i;
        least = squared;
      }
    }
    taken[nearest] = true;
    chosen.push_back(candidates[nearest]);
  }
  return largest(std::move(chosen), n, score, score);
}

}  // namespace tunewright::samplers

#endif
