// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "tunewright/features/per_statement/schema.hpp"

namespace tunewright::features::per_statement {

/// Arithmetic intensity against work done: with C_l the operations of loop l and those inside and M_l the bytes they
/// access, the curve through the points (C_l, C_l / M_l), sampled at 1/10, 2/10, .. 10/10 of all operations. Linear
/// between points, constant before the first; all zero without operations or loops.
///
/// `operations` are those of one iteration; `extents` and `bytes` are by depth, outermost first. Cost: O(loops).
[[nodiscard]] inline std::array<double, curve_samples> intensity_curve(double operations,
                                                                       std::span<const std::int64_t> extents,
                                                                       std::span<const double> bytes) {
  std::array<double, curve_samples> curve{};
  if (operations <= 0 || extents.empty()) return curve;
  double total = operations;
  for (const std::int64_t extent : extents) total *= static_cast<double>(extent);

  constexpr double tolerance = 1e-4;  // operations; they are whole numbers
  std::size_t l = extents.size() - 1;
  double done = operations * static_cast<double>(extents[l]);
  double intensity = done / bytes[l];
  double done_inside = 0;
  double intensity_inside = intensity;
  for (std::size_t i = 0; i < curve_samples; ++i) {
    const double wanted = total * (static_cast<double>(i + 1) / static_cast<double>(curve_samples));
    while (l > 0 && done < wanted - tolerance) {
      --l;
      done_inside = done;
      intensity_inside = intensity;
      done *= static_cast<double>(extents[l]);
      intensity = done / bytes[l];
    }
    curve[i] = done_inside == 0 || done == done_inside
                   ? intensity
                   : intensity_inside + (intensity - intensity_inside) * (wanted - done_inside) / (done - done_inside);
  }
  return curve;
}

}  // namespace tunewright::features::per_statement
