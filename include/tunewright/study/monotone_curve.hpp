// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/core/number_text.hpp"

namespace tunewright::study {

/// A smooth curve through points that rises and falls nowhere but where they do: piecewise cubic Hermite interpolation
/// with the weighted harmonic mean of the neighbouring slopes as derivative.
///
///   d_i = (w + v) / (w / m_{i-1} + v / m_i),  w = 2 h_i + h_{i-1},  v = h_i + 2 h_{i-1};  0 where the m differ in sign
///
/// with h the distances of the x, m the slopes between points; three-point differences at the ends. Fritsch and
/// Butland, A Method for Constructing Local Monotone Piecewise Cubic Interpolants, SIAM J. Sci. Stat. Comput. 5, 1984.
/// Its values are those of SciPy's PchipInterpolator.
///
/// Shapes: N points. Cost: O(N) to make, O(log N) a value. Deterministic.
class MonotoneCurve {
 public:
  /// Throws `std::invalid_argument` for other than one y an x, for fewer than two points, for x that do not rise, and
  /// for numbers that are not finite.
  MonotoneCurve(std::vector<double> x, std::vector<double> y) : x_(std::move(x)), y_(std::move(y)) {
    if (x_.size() != y_.size() || x_.size() < 2) {
      throw std::invalid_argument("a curve through points of " + std::to_string(x_.size()) + " x and " +
                                  std::to_string(y_.size()) + " y; give as many of both, at least 2");
    }
    for (std::size_t i = 0; i < x_.size(); ++i) {
      if (std::isfinite(x_[i]) && std::isfinite(y_[i])) continue;
      throw std::invalid_argument("point " + std::to_string(i) + " of a curve is at " + number_text(x_[i]) + ", " +
                                  number_text(y_[i]) + "; give finite numbers");
    }
    for (std::size_t i = 1; i < x_.size(); ++i) {
      if (x_[i - 1] < x_[i]) continue;
      throw std::invalid_argument("x of point " + std::to_string(i) + " of a curve does not exceed that before it; " +
                                  "sort the points and leave repeated ones out");
    }
    const std::size_t last = x_.size() - 1;
    slope_.assign(x_.size(), slope_after(0));
    if (last == 1) return;
    slope_[0] = at_end(width(0), width(1), slope_after(0), slope_after(1));
    slope_[last] = at_end(width(last - 1), width(last - 2), slope_after(last - 1), slope_after(last - 2));
    for (std::size_t i = 1; i < last; ++i) {
      const double before = slope_after(i - 1), after = slope_after(i);
      const double w = 2 * width(i) + width(i - 1), v = width(i) + 2 * width(i - 1);
      slope_[i] = before * after > 0 ? (w + v) / (w / before + v / after) : 0;
    }
  }

  /// The value at `x`, which must lie between the first and the last point.
  [[nodiscard]] double operator()(double x) const {
    const auto above = std::upper_bound(x_.begin() + 1, x_.end() - 1, x);
    const auto i = static_cast<std::size_t>(above - x_.begin()) - 1;
    const double h = width(i), m = slope_after(i), from = x - x_[i];
    const double square = (3 * m - 2 * slope_[i] - slope_[i + 1]) / h;
    const double cube = (slope_[i] + slope_[i + 1] - 2 * m) / (h * h);
    const double y = y_[i] + from * (slope_[i] + from * (square + from * cube));
    // Rounded, it could be a bit beyond a point, or beside one that it is at.
    if (x == x_[i + 1]) return y_[i + 1];
    const auto [least, most] = std::minmax(y_[i], y_[i + 1]);
    return std::clamp(y, least, most);
  }

 private:
  [[nodiscard]] double width(std::size_t i) const { return x_[i + 1] - x_[i]; }
  [[nodiscard]] double slope_after(std::size_t i) const { return (y_[i + 1] - y_[i]) / width(i); }

  static double at_end(double h, double next_h, double m, double next_m) {
    const double slope = ((2 * h + next_h) * m - h * next_m) / (h + next_h);
    if (!(slope * m > 0)) return 0;
    if (!(m * next_m > 0) && std::abs(slope) > 3 * std::abs(m)) return 3 * m;
    return slope;
  }

  std::vector<double> x_, y_, slope_;  // [N]
};

}  // namespace tunewright::study
