// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "tunewright/core/rng.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/samplers/points.hpp"

namespace tunewright::samplers {

struct Clusters {
  Points centres;                    // (K, E)
  std::vector<std::size_t> cluster;  // [N] the nearest centre of each point, the first of equals
  double loss = 0;                   ///< sum of squared distances to the nearest centre
};

/// K centres of N points by Lloyd's iteration from k-means++ seeds; stops when no point changes its cluster. An empty
/// cluster restarts from a random point.
///
/// Paper:  Lloyd, 1982; Arthur and Vassilvitskii, k-means++, SODA 2007.
/// Shapes: points (N, E).
/// Errors: `std::invalid_argument` for no points and for a `k` of 0.
/// Cost:   O(iterations * N K E).
[[nodiscard]] Clusters k_means(const Points& points, std::size_t k, std::size_t max_iterations, Rng& rng);

}  // namespace tunewright::samplers

#if TUNEWRIGHT_DEFINES(core)

#include <stdexcept>
#include <string>

namespace tunewright::samplers {

TUNEWRIGHT_INLINE Clusters k_means(const Points& points, std::size_t k, std::size_t max_iterations, Rng& rng) {
  if (points.size() == 0 || k == 0) {
    throw std::invalid_argument("k_means: " + std::to_string(k) + " clusters of " + std::to_string(points.size()) +
                                " points; give at least 1 of both");
  }
  Clusters found{.centres = {.columns = points.columns, .values = {}, .count = 0},
                 .cluster = std::vector<std::size_t>(points.size()),
                 .loss = 0};
  NearestCentre nearest(points.size());
  std::vector<double> weight(points.size(), 1.0);
  while (found.centres.size() < k) {
    std::size_t next = draw_by_weight(weight, rng);
    if (next == points.size()) next = static_cast<std::size_t>(rng.below(points.size()));
    found.centres.append(points[next]);
    nearest.add(points, points[next]);
    for (std::size_t i = 0; i < weight.size(); ++i) weight[i] = double{nearest.squared(i)};
  }

  const auto assign = [&] {
    bool changed = false;
    found.loss = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
      float least = std::numeric_limits<float>::infinity();
      std::size_t centre = 0;
      for (std::size_t c = 0; c < k; ++c) {
        const float squared = squared_distance(points[i], found.centres[c]);
        if (squared < least) {
          least = squared;
          centre = c;
        }
      }
      changed = changed || found.cluster[i] != centre;
      found.cluster[i] = centre;
      found.loss += double{least};
    }
    return changed;
  };
  assign();
  for (std::size_t iteration = 0; iteration < max_iterations; ++iteration) {
    std::vector<double> sum(k * points.columns);
    std::vector<std::size_t> members(k);
    for (std::size_t i = 0; i < points.size(); ++i) {
      ++members[found.cluster[i]];
      for (std::size_t c = 0; c < points.columns; ++c)
        sum[found.cluster[i] * points.columns + c] += double{points[i][c]};
    }
    for (std::size_t centre = 0; centre < k; ++centre) {
      const auto random = static_cast<std::size_t>(members[centre] == 0 ? rng.below(points.size()) : 0);
      for (std::size_t c = 0; c < points.columns; ++c) {
        const std::size_t at = centre * points.columns + c;
        found.centres.values[at] = members[centre] == 0
                                       ? points[random][c]
                                       : static_cast<float>(sum[at] / static_cast<double>(members[centre]));
      }
    }
    if (!assign()) break;
  }
  return found;
}

}  // namespace tunewright::samplers

#endif
