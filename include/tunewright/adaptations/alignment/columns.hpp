// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright::adaptations::alignment {

/// Maps each column of one set of programs to its distribution in another set.
///
///   Affine     (x - mean_from) * deviation_to / deviation_from + mean_to;  only shifted if x is constant
///   Quantile   the value at the same quantile: piecewise linear between `quantiles` of them, shifted beyond
///
/// Shapes:      rows of D columns; K knots per column.
/// Cost:        fit O(D R log R), apply O(D R log K) for R rows.
/// Determinism: bit-identical everywhere; independent of the order of values.
///
/// Labels are not needed: a pool of candidates of either side is enough. Non-finite values are ignored in fitting and
/// not changed.
struct Columns {
  enum class Method : std::uint8_t { Affine, Quantile };
  Method method = Method::Affine;
  std::vector<std::size_t> columns{};  ///< the mapped columns; empty: all
  unsigned quantiles = 33;             ///< maximum number of knots per column, 2 to `most_quantiles`
  static constexpr unsigned most_quantiles = 1U << 16;

  struct Knots {
    std::vector<double> from, to;  ///< ascending; Affine has the mean only
    double slope = 1;              ///< of Affine
  };
  std::vector<Knots> knots{};  ///< run-time state: [D], without knots for a column that stays

  /// Throws `std::invalid_argument` for sets of different widths and for unknown columns.
  void fit(const FeatureBatch& from, const FeatureBatch& to);

  [[nodiscard]] bool fitted() const noexcept { return !knots.empty(); }

  /// The mapped programs; unchanged before the first fit. Throws `std::invalid_argument` for another width than the
  /// fitted one.
  [[nodiscard]] FeatureBatch apply(const FeatureBatch& x) const;

 private:
  static std::vector<double> sorted(const FeatureBatch& x, std::size_t column);

  static double mean(std::span<const double> values);
  static double deviation(std::span<const double> values, double mean);
  static Knots affine(std::span<const double> from, std::span<const double> to);

  static double at(std::span<const double> sorted, double quantile);
  /// Quantiles of equal value are one knot, whose target is the mean of their targets.
  [[nodiscard]] Knots matched(std::span<const double> from, std::span<const double> to) const;

  [[nodiscard]] float move(const Knots& knots_of_column, float value) const;
};

}  // namespace tunewright::adaptations::alignment

#if TUNEWRIGHT_DEFINES(core)

#include "tunewright/core/require.hpp"

namespace tunewright::adaptations::alignment {

TUNEWRIGHT_INLINE void Columns::fit(const FeatureBatch& from, const FeatureBatch& to) {
  require(quantiles >= 2 && quantiles <= most_quantiles, "alignment::Columns", "quantiles", quantiles, "2 to 65536");
  const std::size_t width = from.columns();
  if (to.columns() != width) {
    throw std::invalid_argument("alignment::Columns: rows of " + std::to_string(width) +
                                " columns cannot be moved to rows of " + std::to_string(to.columns()) +
                                "; describe both with one featurizer");
  }
  for (const std::size_t column : columns) {
    if (column >= width) {
      throw std::invalid_argument("alignment::Columns: column " + std::to_string(column) + " of " +
                                  std::to_string(width) + " is to be moved; count from 0");
    }
  }
  std::vector<Knots> found(width);
  for (std::size_t c = 0; c < width; ++c) {
    if (!columns.empty() && std::find(columns.begin(), columns.end(), c) == columns.end()) continue;
    const std::vector<double> a = sorted(from, c), b = sorted(to, c);
    if (a.empty() || b.empty()) continue;
    found[c] = method == Method::Affine ? affine(a, b) : matched(a, b);
  }
  knots = std::move(found);
}

TUNEWRIGHT_INLINE FeatureBatch Columns::apply(const FeatureBatch& x) const {
  if (!fitted()) return x;
  if (x.rows() > 0 && x.columns() != knots.size()) {
    throw std::invalid_argument("alignment::Columns: rows of " + std::to_string(x.columns()) +
                                " columns, but it was fitted on " + std::to_string(knots.size()) +
                                "; describe both with one featurizer");
  }
  FeatureBatch moved(x.columns());
  for (std::size_t p = 0; p < x.programs(); ++p) {
    for (std::uint32_t r = x.offsets()[p]; r < x.offsets()[p + 1]; ++r) {
      const std::span<const float> row = x.row(r);
      const std::span<float> out = moved.append_row();
      for (std::size_t c = 0; c < row.size(); ++c) out[c] = move(knots[c], row[c]);
    }
    moved.close_program();
  }
  return moved;
}

TUNEWRIGHT_INLINE std::vector<double> Columns::sorted(const FeatureBatch& x, std::size_t column) {
  std::vector<double> values;
  for (std::size_t r = 0; r < x.rows(); ++r) {
    const float value = x.row(r)[column];
    if (std::isfinite(value)) values.push_back(static_cast<double>(value));
  }
  std::sort(values.begin(), values.end());
  return values;
}

TUNEWRIGHT_INLINE double Columns::mean(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

TUNEWRIGHT_INLINE double Columns::deviation(std::span<const double> values, double mean) {
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(values.size()));
}

TUNEWRIGHT_INLINE Columns::Knots Columns::affine(std::span<const double> from, std::span<const double> to) {
  const double mean_from = mean(from), mean_to = mean(to);
  const double spread = deviation(from, mean_from);
  const double least = 1e-6 * std::max(std::abs(from.front()), std::abs(from.back()));  // less is rounding
  return {{mean_from}, {mean_to}, spread > least ? deviation(to, mean_to) / spread : 1};
}

TUNEWRIGHT_INLINE double Columns::at(std::span<const double> sorted, double quantile) {
  const double place = quantile * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

TUNEWRIGHT_INLINE Columns::Knots Columns::matched(std::span<const double> from, std::span<const double> to) const {
  Knots result;
  std::size_t equal = 0;
  for (unsigned q = 0; q < quantiles; ++q) {
    const double quantile = static_cast<double>(q) / (quantiles - 1);
    const double a = at(from, quantile), b = at(to, quantile);
    if (!result.from.empty() && a == result.from.back()) {
      ++equal;
      result.to.back() += (b - result.to.back()) / static_cast<double>(equal);
    } else {
      equal = 1;
      result.from.push_back(a);
      result.to.push_back(b);
    }
  }
  return result;
}

TUNEWRIGHT_INLINE float Columns::move(const Knots& knots_of_column, float value) const {
  const auto& [from, to, slope] = knots_of_column;
  if (from.empty() || !std::isfinite(value)) return value;
  const auto x = static_cast<double>(value);
  if (method == Method::Affine) return static_cast<float>((x - from[0]) * slope + to[0]);
  if (x <= from.front()) return static_cast<float>(x - from.front() + to.front());
  if (x >= from.back()) return static_cast<float>(x - from.back() + to.back());
  const auto above = static_cast<std::size_t>(std::upper_bound(from.begin(), from.end(), x) - from.begin());
  const double share = (x - from[above - 1]) / (from[above] - from[above - 1]);
  return static_cast<float>(to[above - 1] + share * (to[above] - to[above - 1]));
}

}  // namespace tunewright::adaptations::alignment

#endif
