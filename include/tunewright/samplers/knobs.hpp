// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tunewright/samplers/points.hpp"

namespace tunewright::samplers {

/// Points as knob settings: each coordinate becomes the index of its value among the distinct values of its column,
/// which is the index of the knob value in any unit.
struct KnobTable {
  std::size_t columns = 0;            // D
  std::vector<std::uint32_t> index;   // (N, D)
  std::vector<std::uint32_t> values;  // [D] distinct ones of each column

  [[nodiscard]] std::uint32_t at(std::size_t i, std::size_t c) const { return index[i * columns + c]; }
};

/// O(N D log N). All NaN count as one value, the largest.
[[nodiscard]] inline KnobTable knob_table(const Points& points) {
  KnobTable table{.columns = points.columns,
                  .index = std::vector<std::uint32_t>(points.values.size()),
                  .values = std::vector<std::uint32_t>(points.columns)};
  const auto before = [](float a, float b) { return a < b || (b != b && a == a); };
  std::vector<float> seen(points.size());
  for (std::size_t c = 0; c < points.columns; ++c) {
    for (std::size_t i = 0; i < points.size(); ++i) seen[i] = points[i][c];
    std::sort(seen.begin(), seen.end(), before);
    const auto end = std::unique(seen.begin(), seen.end(), [&](float a, float b) { return !before(a, b); });
    table.values[c] = static_cast<std::uint32_t>(end - seen.begin());
    for (std::size_t i = 0; i < points.size(); ++i) {
      const auto at = std::lower_bound(seen.begin(), end, points[i][c], before);
      table.index[i * points.columns + c] = static_cast<std::uint32_t>(at - seen.begin());
    }
  }
  return table;
}

}  // namespace tunewright::samplers
