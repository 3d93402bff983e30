// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "tunewright/detail/config.hpp"

namespace tunewright::schedulers {

/// How the best throughput of a search grows with its trials:
///
///   f(x) = limit / (1 + (x / e^centre)^power),   power <= 0
///
/// the log-power curve of learning curves. A power of 0 is a search that stands still: f(x) = limit / 2.
struct LearningCurve {
  double limit = 0;   ///< of f for many trials, where power is negative
  double centre = 0;  ///< logarithm of the trials at which half of it is reached
  double power = 0;

  [[nodiscard]] double operator()(double x) const;

  /// The curve of least squares through `y` [N] at `x` [N], of which x rises, y never falls, and all are positive.
  ///
  /// For a given limit, log(limit / y - 1) is linear in log x, so that the other two follow by linear regression; the
  /// limit is the one of the least squared differences between curve and `y`, searched between 1.001 and 11 times the
  /// largest y on a logarithmic scale. Throws `std::invalid_argument` for fewer than 3 points, for as many x as y not
  /// being there, and for values that break what is said above.
  /// Cost: O(N), some 120 regressions. Determinism: no randomness.
  [[nodiscard]] static LearningCurve fitted(std::span<const double> x, std::span<const double> y);
};

}  // namespace tunewright::schedulers

#if TUNEWRIGHT_DEFINES(core)

#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string>

namespace tunewright::schedulers {

TUNEWRIGHT_INLINE double LearningCurve::operator()(double x) const {
  return limit / (1 + std::exp(power * (std::log(x) - centre)));
}

TUNEWRIGHT_INLINE LearningCurve LearningCurve::fitted(std::span<const double> x, std::span<const double> y) {
  const std::size_t n = x.size();
  if (n != y.size() || n < 3) {
    throw std::invalid_argument("LearningCurve: " + std::to_string(n) + " x and " + std::to_string(y.size()) +
                                " y; give at least 3 points");
  }
  for (std::size_t i = 0; i < n; ++i) {
    const bool rises = i == 0 || (x[i] > x[i - 1] && y[i] >= y[i - 1]);
    if (x[i] > 0 && y[i] > 0 && std::isfinite(x[i]) && std::isfinite(y[i]) && rises) continue;
    throw std::invalid_argument("LearningCurve: point " + std::to_string(i) + " is (" + std::to_string(x[i]) + ", " +
                                std::to_string(y[i]) + "); give positive ones of rising x and y that never falls");
  }
  if (y.front() == y.back()) return {.limit = 2 * y.back(), .centre = 0, .power = 0};

  const auto with_limit = [&](double excess) {  // logarithm of limit / largest y - 1
    const double limit = y.back() * (1 + std::exp(excess));
    double mean_x = 0, mean_z = 0, xx = 0, xz = 0;
    const auto z = [&](std::size_t i) { return std::log(limit / y[i] - 1); };
    for (std::size_t i = 0; i < n; ++i) {
      mean_x += std::log(x[i]) / static_cast<double>(n);
      mean_z += z(i) / static_cast<double>(n);
    }
    for (std::size_t i = 0; i < n; ++i) {
      const double d = std::log(x[i]) - mean_x;
      xx += d * d;
      xz += d * (z(i) - mean_z);
    }
    const double power = xz / xx;
    return LearningCurve{.limit = limit, .centre = mean_x - mean_z / power, .power = power};
  };
  const auto squares = [&](double excess) {
    const LearningCurve curve = with_limit(excess);
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += (curve(x[i]) - y[i]) * (curve(x[i]) - y[i]);
    return sum;
  };
  // A grid first, since there may be several minima; then the golden section between the neighbours of the best.
  constexpr int steps = 60;
  const double low = std::log(1e-3), step = (std::log(10.0) - low) / steps;
  int best = 0;
  for (int i = 1; i <= steps; ++i)
    if (squares(low + i * step) < squares(low + best * step)) best = i;
  double left = low + std::fmax(best - 1, 0) * step, right = low + std::fmin(best + 1, steps) * step;
  constexpr double golden = 0.6180339887498949;
  for (int i = 0; i < 40; ++i) {
    const double a = right - golden * (right - left), b = left + golden * (right - left);
    if (squares(a) <= squares(b))
      right = b;
    else
      left = a;
  }
  return with_limit((left + right) / 2);
}

}  // namespace tunewright::schedulers

#endif
