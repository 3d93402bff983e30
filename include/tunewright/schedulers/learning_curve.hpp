// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "tunewright/detail/config.hpp"

namespace tunewright::schedulers {

/// The best throughput of a search as a function of its trials:
///
///   f(x) = limit / (1 + (x / e^centre)^power),   power <= 0
///
/// the log-power curve. A power of 0 means a search that does not improve: f(x) = limit / 2.
struct LearningCurve {
  double limit = 0;   ///< of f for many trials, if power is negative
  double centre = 0;  ///< logarithm of the trials that reach half of it
  double power = 0;

  [[nodiscard]] double operator()(double x) const;

  /// The least-squares curve through `y` [N] at `x` [N]; x rises, y never falls, and all are positive.
  ///
  /// For a given limit, log(limit / y - 1) is linear in log x, so linear regression gives the other two parameters. The
  /// limit with the least squared error is searched between 1.001 and 11 times the largest y on a logarithmic scale.
  /// Throws `std::invalid_argument` for fewer than 3 points, for different sizes of x and y, and for values that
  /// violate these conditions.
  /// Cost: O(N), some 60 regressions. Determinism: no randomness.
  [[nodiscard]] static LearningCurve fitted(std::span<const double> x, std::span<const double> y);
};

}  // namespace tunewright::schedulers

#if TUNEWRIGHT_DEFINES(core)

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

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
  const LearningCurve flat{.limit = 2 * y.back(), .centre = 0, .power = 0};
  if (y.front() == y.back()) return flat;

  std::vector<double> log_x;
  double mean_x = 0, xx = 0;
  for (std::size_t i = 0; i < n; ++i) {
    log_x.push_back(std::log(x[i]));
    mean_x += log_x[i] / static_cast<double>(n);
  }
  for (const double one : log_x) xx += (one - mean_x) * (one - mean_x);
  const auto with_limit = [&](double excess) {  // logarithm of limit / largest y - 1
    const double limit = y.back() * (1 + std::exp(excess));
    double mean_z = 0, xz = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double z = std::log(limit / y[i] - 1);
      mean_z += z / static_cast<double>(n);
      xz += (log_x[i] - mean_x) * z;
    }
    const double power = xz / xx;
    // Differences of y near the precision of numbers give a slope that is lost, or of the wrong sign.
    if (!(power < 0)) return flat;
    return LearningCurve{.limit = limit, .centre = mean_x - mean_z / power, .power = power};
  };
  const auto squares = [&](double excess) {
    const LearningCurve curve = with_limit(excess);
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double difference = curve.limit / (1 + std::exp(curve.power * (log_x[i] - curve.centre))) - y[i];
      sum += difference * difference;
    }
    return sum;
  };
  // A grid first, because there may be several minima; then the golden section between the neighbours of the best
  // point.
  constexpr int steps = 30;
  const double low = std::log(1e-3), step = (std::log(10.0) - low) / steps;
  int best = 0;
  double least = squares(low);
  for (int i = 1; i <= steps; ++i) {
    const double sum = squares(low + i * step);
    if (sum < least) best = i;
    least = std::min(sum, least);
  }
  double left = low + std::fmax(best - 1, 0) * step, right = low + std::fmin(best + 1, steps) * step;
  constexpr double golden = 0.6180339887498949;
  double a = right - golden * (right - left), b = left + golden * (right - left);
  double at_a = squares(a), at_b = squares(b);
  for (int i = 0; i < 30; ++i) {
    if (at_a <= at_b) {
      right = b;
      b = a, at_b = at_a;
      a = right - golden * (right - left), at_a = squares(a);
    } else {
      left = a;
      a = b, at_a = at_b;
      b = left + golden * (right - left), at_b = squares(b);
    }
  }
  return with_limit((left + right) / 2);
}

}  // namespace tunewright::schedulers

#endif
