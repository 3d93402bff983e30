// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <limits>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/models/concept.hpp"
#include "tunewright/models/program_vectors.hpp"

namespace tunewright::models {

/// Ridge regression on the summed or mean rows of a program.
///
///   score = b + w . z                      z: standardised features of the program, see ProgramVectors
///   w     = argmin 1/n sum_p (y_p - b - w . z_p)^2 + lambda |w|^2  =  A^-1 1/n Z^T (y - b),  b = mean of y
///   A     = 1/n Z^T Z + lambda I
///   deviation^2 = s^2 / n (1 + z . A^-1 z),   s^2 = sum of squared residuals / max(1, n - 1 - tr(I - lambda A^-1)),
///                                             at least 1e-6 if all labels are equal, which leave no residuals
///
/// The deviation is that of the mean, the part of the error that vanishes with more labels, without the noise of a
/// single program. The baseline for larger models.
///
/// Paper:       Hoerl and Kennard, Ridge Regression, Technometrics 1970.
/// Models:      CostModel, UncertainCostModel, EmbeddingCostModel (w_c z_c: the contribution of each column to the
///              score), PersistentCostModel.
/// Shapes:      P or n programs, D columns (4,096 at most). Units: those of y.
/// Cost:        fit O(n D^2 + D^3); predict O(D) per program plus its rows, deviation O(D^2).
/// Determinism: no threads, no randomness.
/// Errors:      `std::invalid_argument` as every CostModel, for labels not from 0 to `most_label`, for a negative
///              `lambda`, and for more than 4,096 columns.
struct Linear {
  double lambda = 1e-3;  ///< penalty, at least 0, finite
  RowsAs rows = RowsAs::Sum;

  ProgramVectors vectors{};        ///< the trained state, from here on; empty before the first fit
  std::vector<double> weights{};   ///< [D]
  double offset = 0;               ///< b
  std::vector<double> variance{};  ///< (D, D) A^-1 s^2 / n
  double offset_variance = 0;      ///< s^2 / n

  static constexpr std::size_t most_columns = 4096;

  void predict(const FeatureBatch& x, std::span<float> score) const;

  /// Before the first fit every deviation is 1, because labels are in [0, 1].
  void predict_with_deviation(const FeatureBatch& x, std::span<float> score, std::span<float> deviation) const;

  /// [P, D], see EmbeddingCostModel.
  [[nodiscard]] FeatureBatch embed(const FeatureBatch& x) const;

  /// Throws `std::invalid_argument` for lambda below 0, sizes that do not match, labels that are negative or not
  /// finite, NaN features, more than 4,096 columns, and for lambda 0 with linearly dependent columns.
  void fit(const FeatureBatch& x, std::span<const float> y, std::span<const std::uint32_t> group);

  /// See PersistentCostModel.
  void save(std::ostream& out, std::uint64_t feature_schema) const;
  void load(std::istream& in, std::uint64_t feature_schema);

 private:
  // Calls f(p, z) for every program; z is null for a program without rows.
  template <class F>
  void each(const FeatureBatch& x, const char* where, F&& f) const {
    if (!weights.empty()) vectors.check_width(std::string("models::Linear::") + where, x);
    std::vector<double> z(std::max<std::size_t>(weights.size(), 1));
    for (std::size_t p = 0; p < x.programs(); ++p) {
      const bool described =
          weights.empty() ? !x.program(p).empty() : vectors.standardise(x, p, std::span(z).first(weights.size()));
      f(p, described ? z.data() : nullptr);
    }
  }
  float score_of(const double* z) const;

  void learn(const FeatureBatch& x, std::span<const float> y);
};

}  // namespace tunewright::models

#if TUNEWRIGHT_DEFINES(models)

#include "tunewright/core/require.hpp"
#include "tunewright/models/cholesky.hpp"
#include "tunewright/models/labels.hpp"
#include "tunewright/models/persistence.hpp"

namespace tunewright::models {

TUNEWRIGHT_INLINE void Linear::predict(const FeatureBatch& x, std::span<float> score) const {
  check_predict_sizes("models::Linear", x, score.size());
  each(x, "predict", [&](std::size_t p, const double* z) { score[p] = score_of(z); });
}

TUNEWRIGHT_INLINE void Linear::predict_with_deviation(const FeatureBatch& x, std::span<float> score,
                                                      std::span<float> deviation) const {
  check_predict_sizes("models::Linear", x, score.size());
  check_predict_sizes("models::Linear", x, deviation.size());
  const std::size_t columns = weights.size();
  each(x, "predict_with_deviation", [&](std::size_t p, const double* z) {
    score[p] = score_of(z);
    deviation[p] = std::abs(score[p]);  // where there is no program
    if (z == nullptr) return;
    double square = offset_variance;
    for (std::size_t c = 0; c < columns; ++c) square += z[c] * dot(variance.data() + c * columns, z, columns);
    deviation[p] = columns == 0 ? 1.0F : static_cast<float>(std::sqrt(std::max(square, 0.0)));
  });
}

TUNEWRIGHT_INLINE FeatureBatch Linear::embed(const FeatureBatch& x) const {
  FeatureBatch out(std::max<std::size_t>(weights.size(), 1));
  each(x, "embed", [&](std::size_t, const double* z) {
    const auto row = out.append_row();
    for (std::size_t c = 0; z != nullptr && c < weights.size(); ++c) row[c] = static_cast<float>(weights[c] * z[c]);
    out.close_program();
  });
  return out;
}

TUNEWRIGHT_INLINE void Linear::fit(const FeatureBatch& x, std::span<const float> y,
                                   std::span<const std::uint32_t> group) {
  require(lambda >= 0 && std::isfinite(lambda), "models::Linear", "lambda", lambda, "a finite penalty of at least 0");
  check_lesson("models::Linear", x, y, 1, group);
  if (x.columns() > most_columns) {
    throw std::invalid_argument("models::Linear::fit: " + std::to_string(x.columns()) +
                                " columns; at most 4096 are supported");
  }
  Linear learned{.lambda = lambda, .rows = rows};
  if (x.rows() > 0) learned.learn(x, y);
  *this = std::move(learned);
}

TUNEWRIGHT_INLINE void Linear::save(std::ostream& out, std::uint64_t feature_schema) const {
  std::vector<data::Tensor> tensors;
  vectors.keep(tensors);
  tensors.push_back(data::Tensor::of("weights", weights));
  tensors.push_back(data::Tensor::of("offset", std::vector<double>{offset, offset_variance}));
  tensors.push_back(data::Tensor::of("variance", {weights.size(), weights.size()}, std::span<const double>(variance)));
  save_tensors("models::Linear", out, feature_schema, tensors);
}

TUNEWRIGHT_INLINE void Linear::load(std::istream& in, std::uint64_t feature_schema) {
  Linear stored = load_tensors("models::Linear", in, feature_schema, [&](const data::TensorFile& file) {
    Linear model{.lambda = lambda};
    model.vectors = ProgramVectors::kept(file);
    model.rows = model.vectors.rows;
    model.weights = file.at("weights").values<double>();
    model.variance = file.at("variance").values<double>();
    const auto offsets = file.at("offset").values<double>();
    const std::size_t columns = model.vectors.columns();
    if (model.weights.size() != columns || model.variance.size() != columns * columns || offsets.size() != 2)
      throw std::runtime_error("the tensors do not belong to one width");
    model.offset = offsets[0];
    model.offset_variance = offsets[1];
    for (const std::vector<double>* numbers :
         {&std::as_const(model.weights), &std::as_const(model.variance), &offsets}) {
      for (const double number : *numbers) {
        if (!std::isfinite(number)) throw std::runtime_error("a number is not finite");
      }
    }
    return model;
  });
  *this = std::move(stored);
}

TUNEWRIGHT_INLINE float Linear::score_of(const double* z) const {
  if (z == nullptr) return -std::numeric_limits<float>::infinity();
  return static_cast<float>(offset + dot(weights.data(), z, weights.size()));
}

TUNEWRIGHT_INLINE void Linear::learn(const FeatureBatch& x, std::span<const float> y) {
  const std::size_t columns = x.columns();
  vectors = ProgramVectors::fit(x, rows);
  std::vector<double> z(columns), right(columns, 0.0), a(columns * columns, 0.0);
  double n = 0, sum = 0, squares = 0;
  double least = std::numeric_limits<double>::infinity(), most = 0;  // labels
  std::vector<double> z_sum(columns, 0.0);
  for (std::size_t p = 0; p < x.programs(); ++p) {
    if (!vectors.standardise(x, p, z)) continue;
    const auto label = static_cast<double>(y[p]);
    n += 1;
    sum += label;
    squares += label * label;
    least = std::min(least, label);
    most = std::max(most, label);
    for (std::size_t i = 0; i < columns; ++i) {
      right[i] += z[i] * label;
      z_sum[i] += z[i];
      if (z[i] == 0) continue;
      double* row = a.data() + i * columns;
      for (std::size_t j = 0; j <= i; ++j) row[j] += z[i] * z[j];
    }
  }
  if (n == 0) {
    vectors = {};
    return;
  }
  offset = sum / n;
  for (std::size_t i = 0; i < columns; ++i) {
    // Clipping may have made the mean of z nonzero; b stays the mean of y.
    right[i] = (right[i] - offset * z_sum[i]) / n;
    for (std::size_t j = 0; j <= i; ++j) a[i * columns + j] /= n;
    a[i * columns + i] += lambda;
    if (vectors.deviation[i] == 0) a[i * columns + i] += 1;  // a column that is always zero
  }
  const std::optional<Cholesky> factor = Cholesky::of(std::move(a), columns);
  if (!factor) {
    throw std::invalid_argument(
        "models::Linear::fit: lambda = 0, but columns depend on each other; choose lambda above 0");
  }
  weights = right;
  factor->solve(weights);
  variance.assign(columns * columns, 0.0);
  double freedom = 0;  // of the fit: tr(I - lambda A^-1)
  for (std::size_t c = 0; c < columns; ++c) {
    double* row = variance.data() + c * columns;
    row[c] = 1;
    factor->solve(std::span(row, columns));
    if (vectors.deviation[c] == 0) row[c] = 0;
    if (vectors.deviation[c] > 0) freedom += 1 - lambda * row[c];
  }
  // |y - b - Zw|^2 = |y - b|^2 - 2 n w . right + n w . (A - lambda) w, and A w = right.
  const double residual = squares - n * offset * offset - n * dot(weights.data(), right.data(), columns) -
                          n * lambda * dot(weights.data(), weights.data(), columns);
  const double floor = least == most ? 1e-6 : 0;  // one label, or the same again, is no reason to be certain
  offset_variance = std::max(std::max(residual, 0.0) / std::max(n - 1 - freedom, 1.0), floor) / n;
  for (double& value : variance) value *= offset_variance;
}

}  // namespace tunewright::models

#endif
