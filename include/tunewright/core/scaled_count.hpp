// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace tunewright {

/// ceil(factor * count), or the largest `std::size_t` if the result is larger, so that options such as "candidates per
/// wanted one" may have any value. `factor` must be a number of at least 0. A product that exceeds a whole number by at
/// most the share `rounding` of itself, such as 0.07 * 100, is that number.
[[nodiscard]] inline std::size_t scaled_count(double factor, std::size_t count, double rounding = 1e-12) noexcept {
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
  if (count == 0) return 0;  // infinity times 0 is no number
  const double product = factor * static_cast<double>(count);
  const double scaled = std::ceil(product - std::min(product * rounding, 0.5));  // never one less than a whole number
  return scaled < static_cast<double>(most) ? static_cast<std::size_t>(scaled) : most;
}

/// a + b, or the largest `std::size_t` if the sum is larger.
[[nodiscard]] inline std::size_t bounded_sum(std::size_t a, std::size_t b) noexcept {
  return a > std::numeric_limits<std::size_t>::max() - b ? std::numeric_limits<std::size_t>::max() : a + b;
}

}  // namespace tunewright
