// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/data/safetensors/tensor.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright::models {

/// How a model aggregates the rows of a program into one vector.
enum class RowsAs : std::uint8_t { Sum, Mean };

/// One standardised vector per program, for models that need a fixed number of inputs.
///
///   v_c = sum or mean over the rows of p of x_c        z_c = (v_c - mean_c) / deviation_c, within +-10
///
/// Means and deviations are those of the finite training values. A constant column gives 0, and so does NaN; infinite
/// values give +-10.
/// Shapes: D columns.
struct ProgramVectors {
  static constexpr double furthest = 10;

  RowsAs rows = RowsAs::Sum;
  std::vector<double> mean, deviation;  ///< [D]; deviation is 0 for a constant column

  [[nodiscard]] std::size_t columns() const noexcept { return mean.size(); }  // D

  [[nodiscard]] static ProgramVectors fit(const FeatureBatch& x, RowsAs rows);

  /// Writes z of program `p` of `x` to `z` [D]; false and zeros for a program without rows.
  bool standardise(const FeatureBatch& x, std::size_t p, std::span<double> z) const;

  /// Throws `std::invalid_argument` unless `x` has the training width.
  void check_width(const std::string& where, const FeatureBatch& x) const;

  /// Converts to tensors, and back.
  void keep(std::vector<data::Tensor>& tensors) const;
  [[nodiscard]] static ProgramVectors kept(const data::TensorFile& file);

 private:
  bool describe(const FeatureBatch& x, std::size_t p, std::span<double> v) const;
};

}  // namespace tunewright::models

#if TUNEWRIGHT_DEFINES(models)

#include "tunewright/data/safetensors.hpp"

namespace tunewright::models {

TUNEWRIGHT_INLINE ProgramVectors ProgramVectors::fit(const FeatureBatch& x, RowsAs rows) {
  ProgramVectors out{rows, std::vector<double>(x.columns()), std::vector<double>(x.columns())};
  std::vector<double> vector(x.columns()), count(x.columns(), 0.0), squares(x.columns(), 0.0);
  // Distances from the first program rather than from zero, so that a large common offset costs no precision.
  std::vector<double> origin;
  for (std::size_t p = 0; p < x.programs(); ++p) {
    if (!out.describe(x, p, vector)) continue;
    if (origin.empty()) {
      origin = vector;
      for (double& value : origin) value = std::isfinite(value) ? value : 0.0;
    }
    for (std::size_t c = 0; c < vector.size(); ++c) {
      if (!std::isfinite(vector[c])) continue;
      const double off = vector[c] - origin[c];
      count[c] += 1;
      out.mean[c] += off;
      squares[c] += off * off;
    }
  }
  for (std::size_t c = 0; c < vector.size() && !origin.empty(); ++c) {
    const double n = std::max(count[c], 1.0), off = out.mean[c] / n;
    const double variance = squares[c] / n - off * off;
    out.mean[c] = origin[c] + off;
    out.deviation[c] = variance > 1e-12 * (squares[c] / n) ? std::sqrt(variance) : 0.0;
  }
  return out;
}

TUNEWRIGHT_INLINE bool ProgramVectors::standardise(const FeatureBatch& x, std::size_t p, std::span<double> z) const {
  if (!describe(x, p, z)) return false;
  for (std::size_t c = 0; c < z.size(); ++c) {
    const double value = deviation[c] > 0 ? (z[c] - mean[c]) / deviation[c] : 0.0;
    z[c] = value == value ? std::clamp(value, -furthest, furthest) : 0.0;
  }
  return true;
}

TUNEWRIGHT_INLINE void ProgramVectors::check_width(const std::string& where, const FeatureBatch& x) const {
  if (x.rows() == 0 || x.columns() == columns()) return;
  throw std::invalid_argument(where + ": rows of " + std::to_string(x.columns()) +
                              " features, but the model was trained on " + std::to_string(columns()) +
                              "; use the featurizer it was trained with");
}

TUNEWRIGHT_INLINE void ProgramVectors::keep(std::vector<data::Tensor>& tensors) const {
  tensors.push_back(data::Tensor::of("rows_as", std::vector<std::uint8_t>{static_cast<std::uint8_t>(rows)}));
  tensors.push_back(data::Tensor::of("mean", mean));
  tensors.push_back(data::Tensor::of("deviation", deviation));
}

TUNEWRIGHT_INLINE ProgramVectors ProgramVectors::kept(const data::TensorFile& file) {
  ProgramVectors out;
  const auto as = file.at("rows_as").values<std::uint8_t>();
  if (as.size() != 1 || as[0] > 1) throw std::runtime_error("'rows_as' is neither 0, sum, nor 1, mean");
  out.rows = static_cast<RowsAs>(as[0]);
  out.mean = file.at("mean").values<double>();
  out.deviation = file.at("deviation").values<double>();
  bool sound = out.mean.size() == out.deviation.size();
  for (std::size_t c = 0; sound && c < out.mean.size(); ++c)
    sound = std::isfinite(out.mean[c]) && std::isfinite(out.deviation[c]) && out.deviation[c] >= 0;
  if (!sound) throw std::runtime_error("'mean' and 'deviation' are not sound");
  return out;
}

TUNEWRIGHT_INLINE bool ProgramVectors::describe(const FeatureBatch& x, std::size_t p, std::span<double> v) const {
  std::fill(v.begin(), v.end(), 0.0);
  const std::span<const float> values = x.program(p);
  if (values.empty()) return false;
  for (std::size_t i = 0; i < values.size(); i += v.size()) {
    for (std::size_t c = 0; c < v.size(); ++c) v[c] += static_cast<double>(values[i + c]);
  }
  if (rows == RowsAs::Mean) {
    const auto count = static_cast<double>(values.size() / v.size());
    for (double& value : v) value /= count;
  }
  return true;
}

}  // namespace tunewright::models

#endif
