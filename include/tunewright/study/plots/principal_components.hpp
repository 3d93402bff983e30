// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "tunewright/detail/config.hpp"

namespace tunewright::study {

/// Points in the plane of their largest variance.
struct PrincipalComponents {
  std::vector<std::array<double, 2>> points{};  ///< [N]
  std::array<double, 2> share{};                ///< of the variance of all columns that each axis shows, 0 to 1
};

/// The first two principal components of N points of D columns, row-major. Columns are first standardised; constant
/// ones are omitted.
///
///   R = Z' Z / N,   R v1 = l1 v1,   R v2 = l2 v2,   share = l / trace R,   point = (z v1, z v2)
///
/// Paper:       Hotelling, Analysis of a complex of statistical variables into principal components, Journal of
///              Educational Psychology 24, 1933.
/// Errors:      `std::invalid_argument` for values that are not N complete rows, or not finite.
/// Cost:        O(N D^2) for R and O(D^2) per step of the power iteration, at most 500 steps per axis.
/// Determinism: a pure function; the largest component of an axis is positive.
[[nodiscard]] PrincipalComponents principal_components(std::span<const float> values, std::size_t columns);

}  // namespace tunewright::study

#if TUNEWRIGHT_DEFINES(plots)

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>

namespace tunewright::study::principal_components_detail {

/// [N * columns], standardised; `columns` becomes the number of columns that vary.
inline std::vector<double> standardized(std::span<const float> values, std::size_t& columns) {
  const std::size_t rows = columns == 0 ? 0 : values.size() / columns;
  std::vector<std::vector<double>> kept;
  for (std::size_t c = 0; c < columns; ++c) {
    std::vector<double> column(rows);
    for (std::size_t r = 0; r < rows; ++r) column[r] = static_cast<double>(values[r * columns + c]);
    const double mean = std::accumulate(column.begin(), column.end(), 0.0) / static_cast<double>(rows);
    double variance = 0;
    for (double& value : column) {
      value -= mean;
      variance += value * value / static_cast<double>(rows);
    }
    if (variance <= 1e-12 * mean * mean) continue;
    for (double& value : column) value /= std::sqrt(variance);
    kept.push_back(std::move(column));
  }
  columns = kept.size();
  std::vector<double> result(rows * columns);
  for (std::size_t c = 0; c < columns; ++c)
    for (std::size_t r = 0; r < rows; ++r) result[r * columns + c] = kept[c][r];
  return result;
}

inline double dot(std::span<const double> a, std::span<const double> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// The eigenvector of the largest eigenvalue, orthogonal to `before` if given.
inline std::vector<double> leading(const std::vector<double>& matrix, std::size_t size,
                                   std::span<const double> before) {
  std::vector<double> axis(size), image(size);
  for (std::size_t i = 0; i < size; ++i)
    axis[i] = 1 + 0.5 * std::sin(static_cast<double>(i + 1));  // no likely null space
  const auto clean = [&](std::vector<double>& v) {
    if (!before.empty()) {
      const double along = dot(v, before);
      for (std::size_t i = 0; i < size; ++i) v[i] -= along * before[i];
    }
    const double length = std::sqrt(dot(v, v));
    for (double& x : v) x = length > 1e-12 ? x / length : 0;
  };
  clean(axis);
  for (int step = 0; step < 500; ++step) {
    for (std::size_t i = 0; i < size; ++i) image[i] = dot(std::span(matrix).subspan(i * size, size), axis);
    clean(image);
    const double agreement = std::abs(dot(image, axis));
    axis.swap(image);
    if (1 - agreement < 1e-12) break;
  }
  const auto largest =
      std::max_element(axis.begin(), axis.end(), [](double a, double b) { return std::abs(a) < std::abs(b); });
  if (largest != axis.end() && *largest < 0)
    for (double& x : axis) x = -x;
  return axis;
}

}  // namespace tunewright::study::principal_components_detail

namespace tunewright::study {

TUNEWRIGHT_INLINE PrincipalComponents principal_components(std::span<const float> values, std::size_t columns) {
  using namespace principal_components_detail;
  if (columns == 0 ? !values.empty() : values.size() % columns != 0) {
    throw std::invalid_argument("principal_components: " + std::to_string(values.size()) +
                                " values are not whole rows of " + std::to_string(columns) + " columns");
  }
  if (!std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); }))
    throw std::invalid_argument("principal_components: a value is not finite; leave its row out");
  PrincipalComponents result;
  const std::size_t rows = columns == 0 ? 0 : values.size() / columns;
  result.points.resize(rows);
  const std::vector<double> z = standardized(values, columns);
  if (columns == 0) return result;
  std::vector<double> correlation(columns * columns);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t i = 0; i < columns; ++i)
      for (std::size_t j = 0; j < columns; ++j)
        correlation[i * columns + j] += z[r * columns + i] * z[r * columns + j] / static_cast<double>(rows);
  std::vector<double> first;
  for (std::size_t a = 0; a < 2; ++a) {
    const std::vector<double> axis = leading(correlation, columns, first);
    for (std::size_t r = 0; r < rows; ++r) {
      const double along = dot(std::span(z).subspan(r * columns, columns), axis);
      result.points[r][a] = along;
      result.share[a] += along * along / static_cast<double>(rows * columns);
    }
    first = axis;
  }
  return result;
}

}  // namespace tunewright::study

#endif
