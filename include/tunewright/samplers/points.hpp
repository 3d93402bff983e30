// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright::samplers {

/// N points of E coordinates, row-major.
struct Points {
  std::size_t columns = 0;    // E
  std::vector<float> values;  // (N, E)
  std::size_t count = 0;      // N; not values.size() / columns, because E may be 0

  [[nodiscard]] std::size_t size() const noexcept { return count; }
  [[nodiscard]] std::span<const float> operator[](std::size_t i) const noexcept {
    return std::span(values).subspan(i * columns, columns);
  }
  void append(std::span<const float> point);
};

/// The embeddings of the programs at `which`. Throws `std::invalid_argument` unless each of them has one row.
[[nodiscard]] Points points_of(const FeatureBatch& embedding, std::span<const std::size_t> which);

/// The programs at `which`, each as the sum of its rows; a program with one row, as features of knobs give, is
/// unchanged.
[[nodiscard]] Points summed_rows(const FeatureBatch& x, std::span<const std::size_t> which);

/// ‖a − b‖². Eight partial sums, so that compilers can vectorize without reordering.
[[nodiscard]] float squared_distance(std::span<const float> a, std::span<const float> b) noexcept;

/// a · b, with the same partial sums.
[[nodiscard]] float dot(std::span<const float> a, std::span<const float> b) noexcept;

/// Scales every coordinate to mean 0 and deviation 1 over both sets together; a constant or non-finite coordinate
/// becomes 0. O((N + M) E).
void standardise(Points& a, Points& b);

/// The squared distance of N points to the nearest of the centres added so far, updated per centre: the basis of
/// k-center, k-means++ and variants. `Distance(i, j)` gives the squared distance of two points.
///
/// Cost: O(N) distances per centre.
class NearestCentre {
 public:
  explicit NearestCentre(std::size_t points) : squared_(points, std::numeric_limits<float>::infinity()) {}

  /// `to_centre(i)`: squared distance of point i to the new centre.
  template <class Distance>
  void add(const Distance& to_centre) {
    for (std::size_t i = 0; i < squared_.size(); ++i) squared_[i] = std::min(squared_[i], std::max(0.0F, to_centre(i)));
    any_ = true;
  }
  void add(const Points& points, std::span<const float> centre) {
    add([&](std::size_t i) { return squared_distance(points[i], centre); });
  }

  /// Before the first centre, the distance of all points is 1.
  [[nodiscard]] float squared(std::size_t i) const noexcept { return any_ ? squared_[i] : 1.0F; }
  [[nodiscard]] std::size_t size() const noexcept { return squared_.size(); }

 private:
  std::vector<float> squared_;  // [N]
  bool any_ = false;
};

/// A position drawn with probability proportional to its weight [N]; weights that are not positive numbers count as 0.
/// Returns N if all weights are 0. O(N).
[[nodiscard]] std::size_t draw_by_weight(std::span<const double> weight, Rng& rng);

}  // namespace tunewright::samplers

#if TUNEWRIGHT_DEFINES(core)

namespace tunewright::samplers {

TUNEWRIGHT_INLINE void Points::append(std::span<const float> point) {
  values.insert(values.end(), point.begin(), point.end());
  ++count;
}

TUNEWRIGHT_INLINE Points points_of(const FeatureBatch& embedding, std::span<const std::size_t> which) {
  Points points{.columns = embedding.columns(), .values = {}, .count = 0};
  points.values.reserve(which.size() * points.columns);
  for (const std::size_t p : which) {
    if (p >= embedding.programs() || embedding.program(p).size() != embedding.columns()) {
      throw std::invalid_argument("samplers: the model's embedding of program " + std::to_string(p) +
                                  " is not one row; embed gives exactly one a program");
    }
    points.append(embedding.program(p));
  }
  return points;
}

TUNEWRIGHT_INLINE Points summed_rows(const FeatureBatch& x, std::span<const std::size_t> which) {
  Points points{.columns = x.columns(), .values = {}, .count = 0};
  std::vector<float> sum(x.columns());
  for (const std::size_t p : which) {
    std::fill(sum.begin(), sum.end(), 0.0F);
    const std::span<const float> rows = x.program(p);
    for (std::size_t i = 0; i < rows.size(); ++i) sum[i % x.columns()] += rows[i];
    points.append(sum);
  }
  return points;
}

TUNEWRIGHT_INLINE float squared_distance(std::span<const float> a, std::span<const float> b) noexcept {
  constexpr std::size_t lanes = 8;
  std::array<float, lanes> sum{};
  std::size_t i = 0;
  for (; i + lanes <= a.size(); i += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const float off = a[i + lane] - b[i + lane];
      sum[lane] += off * off;
    }
  }
  for (; i < a.size(); ++i) sum[i % lanes] += (a[i] - b[i]) * (a[i] - b[i]);
  return ((sum[0] + sum[4]) + (sum[1] + sum[5])) + ((sum[2] + sum[6]) + (sum[3] + sum[7]));
}

TUNEWRIGHT_INLINE float dot(std::span<const float> a, std::span<const float> b) noexcept {
  constexpr std::size_t lanes = 8;
  std::array<float, lanes> sum{};
  std::size_t i = 0;
  for (; i + lanes <= a.size(); i += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) sum[lane] += a[i + lane] * b[i + lane];
  }
  for (; i < a.size(); ++i) sum[i % lanes] += a[i] * b[i];
  return ((sum[0] + sum[4]) + (sum[1] + sum[5])) + ((sum[2] + sum[6]) + (sum[3] + sum[7]));
}

TUNEWRIGHT_INLINE void standardise(Points& a, Points& b) {
  const std::size_t columns = std::max(a.columns, b.columns);
  const double total = static_cast<double>(a.size() + b.size());
  std::vector<double> mean(columns), deviation(columns);
  const auto each = [&](auto&& use) {
    for (Points* points : {&a, &b}) {
      for (std::size_t i = 0; i < points->values.size(); ++i) use(points->values[i], i % columns);
    }
  };
  each([&](float value, std::size_t c) { mean[c] += static_cast<double>(value) / total; });
  each([&](float value, std::size_t c) {
    const double off = static_cast<double>(value) - mean[c];
    deviation[c] += off * off / total;
  });
  std::vector<float> factor(columns);
  for (std::size_t c = 0; c < columns; ++c) {
    const double root = std::sqrt(deviation[c]);
    // A constant column may have a nonzero deviation by rounding.
    const bool varies = std::isfinite(root) && root > 1e-6 * std::abs(mean[c]) && root > 0;
    factor[c] = varies ? static_cast<float>(1 / root) : 0.0F;
  }
  each([&](float& value, std::size_t c) {
    value = factor[c] == 0 ? 0.0F : static_cast<float>((static_cast<double>(value) - mean[c])) * factor[c];
  });
}

TUNEWRIGHT_INLINE std::size_t draw_by_weight(std::span<const double> weight, Rng& rng) {
  double total = 0;
  for (const double one : weight) total += one > 0 && std::isfinite(one) ? one : 0;
  if (!(total > 0)) return weight.size();
  double left = rng.uniform() * total;
  std::size_t last = weight.size();
  for (std::size_t i = 0; i < weight.size(); ++i) {
    if (!(weight[i] > 0 && std::isfinite(weight[i]))) continue;
    last = i;  // rounding may leave a little when the sum is used up
    left -= weight[i];
    if (left < 0) break;
  }
  return last;
}

}  // namespace tunewright::samplers

#endif
