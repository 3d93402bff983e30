// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/nn/matrix.hpp"

namespace tunewright::nn {

/// Divides every column by its largest finite magnitude in the training set (by 1 if that is 0), so that network inputs
/// are in [-1, 1]. Larger values, including infinity, are clamped to 4 times the largest magnitude; NaN becomes 0.
///
/// Deviates: TenSet and Pruner divide by the maximum, which is the same for their columns, because none is negative.
struct InputScale {
  std::vector<float> magnitude;  ///< [D], positive

  static constexpr float furthest = 4;

  [[nodiscard]] static InputScale fit(const FeatureBatch& x) {
    InputScale scale{std::vector<float>(x.columns(), 0.0F)};
    for (std::size_t r = 0; r < x.rows(); ++r) {
      const auto row = x.row(r);
      for (std::size_t c = 0; c < row.size(); ++c) {
        const float size = std::abs(row[c]);
        if (size > scale.magnitude[c] && std::isfinite(size)) scale.magnitude[c] = size;
      }
    }
    for (float& size : scale.magnitude) {
      if (!(size > 0)) size = 1;
    }
    return scale;
  }

  /// out[i] = row[first + i], scaled and clamped.
  template <class T>
  void apply(std::span<const float> row, std::size_t first, std::size_t count, T* out) const {
    for (std::size_t i = 0; i < count; ++i) {
      const float value = row[first + i] / magnitude[first + i];
      const float number = value == value ? value : 0.0F;
      out[i] = static_cast<T>(std::min(std::max(number, -furthest), furthest));
    }
  }
};

/// A selection of the programs of a batch, by position.
struct Programs {
  const FeatureBatch* x = nullptr;
  std::span<const std::uint32_t> positions;
  const InputScale* scale = nullptr;

  [[nodiscard]] std::size_t size() const noexcept { return positions.size(); }
};

/// Copies columns [first, first + count) of those rows that `wanted(row)` accepts: `rows` (R padded, count),
/// offsets [P + 1]. Padding is zero.
template <class T, class Wanted>
void gather(const Programs& programs, std::size_t first, std::size_t count, Wanted&& wanted, Matrix<T>& rows,
            std::vector<std::uint32_t>& offsets) {
  const FeatureBatch& x = *programs.x;
  offsets.assign(1, 0);
  for (const std::uint32_t p : programs.positions) {
    std::uint32_t here = offsets.back();
    for (std::uint32_t r = x.offsets()[p]; r < x.offsets()[p + 1]; ++r) here += wanted(x.row(r)) ? 1U : 0U;
    offsets.push_back(here);
  }
  rows.resize(padded(offsets.back()), count);
  std::size_t next = 0;
  for (const std::uint32_t p : programs.positions) {
    for (std::uint32_t r = x.offsets()[p]; r < x.offsets()[p + 1]; ++r) {
      if (wanted(x.row(r))) programs.scale->apply(x.row(r), first, count, rows.row(next++));
    }
  }
  std::fill(rows.row(next), rows.row(rows.rows()), T{0});
}

}  // namespace tunewright::nn
