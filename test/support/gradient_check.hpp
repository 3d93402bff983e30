// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

namespace tunewright::test {

/// Largest difference between `gradient` and the central differences of `f` at `x`, relative to the size of
/// the gradient. `f()` must read `x`. Every `every`-th position is tried.
template <class F>
double gradient_error(std::span<double> x, std::span<const double> gradient, F&& f, std::size_t every = 1) {
  double worst = 0, size = 1e-3;
  for (const double g : gradient) size = std::max(size, std::abs(g));
  for (std::size_t i = 0; i < x.size(); i += every) {
    constexpr double h = 1e-5;
    const double at = x[i];
    x[i] = at + h;
    const double up = f();
    x[i] = at - h;
    const double down = f();
    x[i] = at;
    worst = std::max(worst, std::abs((up - down) / (2 * h) - gradient[i]));
  }
  return worst / size;
}

}  // namespace tunewright::test
