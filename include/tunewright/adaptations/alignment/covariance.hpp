// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright::adaptations::alignment {

/// Maps one set of programs so that its columns get the means and the covariance of another set.
///
///   x <- (x - mean_from) A + mean_to,    A = (C_from + r I)^(-1/2) (C_to + r I)^(1/2),    r = regularisation
///   C = (X' X - n mean' mean) / (n - 1)  over rows
///
/// Paper:       Sun, Feng and Saenko, "Return of Frustratingly Easy Domain Adaptation" (CORAL), AAAI 2016,
///              r = 1.
/// Shapes:      A is (D, D).
/// Cost:        fit O(R D^2 + D^3), apply O(R D^2) for R rows.
/// Determinism: bit-identical for the same rows in the same order.
/// Deviates:    the paper's columns have mean zero; here the means are aligned as well.
///
/// Labels are not needed. The additional loss of `Deep CORAL` (Sun and Saenko, ECCV 2016 workshops),
/// |C_from - C_to|^2 / (4 D^2) on the last hidden layer, belongs to the training of a network and is not included; on
/// embeddings of a trained network this map is the linear counterpart.
struct Covariance {
  double regularisation = 1;  ///< added to every variance, above 0, in the unit of a column squared

  std::vector<double> mean_from{}, mean_to{};  ///< run-time state: [D]
  std::vector<double> map{};                   ///< run-time state: A (D, D), row-major

  /// Throws `std::invalid_argument` for sets of different widths, values that are not finite, and a regularisation
  /// that is not positive and finite.
  void fit(const FeatureBatch& from, const FeatureBatch& to);

  [[nodiscard]] bool fitted() const noexcept { return !map.empty(); }

  /// The mapped programs; unchanged before the first fit. Throws `std::invalid_argument` for another width than the
  /// fitted one.
  [[nodiscard]] FeatureBatch apply(const FeatureBatch& x) const;

 private:
  using Matrix = Eigen::MatrixXd;

  static std::pair<std::vector<double>, Matrix> moments(const FeatureBatch& x);

  /// (C + r I)^exponent. Rounding may make an eigenvalue of C slightly negative; it then counts as zero.
  [[nodiscard]] Matrix power(const Matrix& covariance, double exponent) const;
};

}  // namespace tunewright::adaptations::alignment

#if TUNEWRIGHT_DEFINES(networks)

#include "tunewright/core/require.hpp"

namespace tunewright::adaptations::alignment {

TUNEWRIGHT_INLINE void Covariance::fit(const FeatureBatch& from, const FeatureBatch& to) {
  require(std::isfinite(regularisation) && regularisation > 0, "alignment::Covariance", "regularisation",
          regularisation, "a finite value above 0");
  const std::size_t width = from.columns();
  if (to.columns() != width) {
    throw std::invalid_argument("alignment::Covariance: rows of " + std::to_string(width) +
                                " columns cannot be moved to rows of " + std::to_string(to.columns()) +
                                "; describe both with one featurizer");
  }
  if (from.rows() < 2 || to.rows() < 2) {  // no covariance: stay
    *this = Covariance{regularisation};
    return;
  }
  auto [old_mean, old_covariance] = moments(from);
  auto [new_mean, new_covariance] = moments(to);
  const Matrix a = power(old_covariance, -0.5) * power(new_covariance, 0.5);
  mean_from = std::move(old_mean);
  mean_to = std::move(new_mean);
  map.assign(width * width, 0);
  for (std::size_t i = 0; i < width; ++i) {
    for (std::size_t j = 0; j < width; ++j)
      map[i * width + j] = a(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j));
  }
}

TUNEWRIGHT_INLINE FeatureBatch Covariance::apply(const FeatureBatch& x) const {
  if (!fitted()) return x;
  const std::size_t width = mean_from.size();
  if (x.rows() > 0 && x.columns() != width) {
    throw std::invalid_argument("alignment::Covariance: rows of " + std::to_string(x.columns()) +
                                " columns, but it was fitted on " + std::to_string(width) +
                                "; describe both with one featurizer");
  }
  FeatureBatch moved(x.columns());
  std::vector<double> out(width);
  for (std::size_t p = 0; p < x.programs(); ++p) {
    for (std::uint32_t r = x.offsets()[p]; r < x.offsets()[p + 1]; ++r) {
      const std::span<const float> row = x.row(r);
      out = mean_to;
      for (std::size_t i = 0; i < width; ++i) {
        const double centred = static_cast<double>(row[i]) - mean_from[i];
        if (centred == 0) continue;
        for (std::size_t j = 0; j < width; ++j) out[j] += centred * map[i * width + j];
      }
      const std::span<float> values = moved.append_row();
      for (std::size_t j = 0; j < width; ++j) values[j] = static_cast<float>(out[j]);
    }
    moved.close_program();
  }
  return moved;
}

TUNEWRIGHT_INLINE std::pair<std::vector<double>, Covariance::Matrix> Covariance::moments(const FeatureBatch& x) {
  const std::size_t width = x.columns();
  const auto n = static_cast<double>(x.rows());
  std::vector<double> mean(width, 0);
  for (std::size_t r = 0; r < x.rows(); ++r) {
    const std::span<const float> row = x.row(r);
    for (std::size_t c = 0; c < width; ++c) {
      if (!std::isfinite(row[c])) {
        throw std::invalid_argument("alignment::Covariance: column " + std::to_string(c) + " of row " +
                                    std::to_string(r) + " is not finite; leave the row out or use alignment::Columns");
      }
      mean[c] += static_cast<double>(row[c]) / n;
    }
  }
  std::vector<double> sum(width * width, 0), centred(width);
  for (std::size_t r = 0; r < x.rows(); ++r) {
    const std::span<const float> row = x.row(r);
    for (std::size_t c = 0; c < width; ++c) centred[c] = static_cast<double>(row[c]) - mean[c];
    for (std::size_t i = 0; i < width; ++i) {
      if (centred[i] == 0) continue;
      for (std::size_t j = 0; j <= i; ++j) sum[i * width + j] += centred[i] * centred[j];
    }
  }
  Matrix covariance(width, width);
  for (std::size_t i = 0; i < width; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      const auto row = static_cast<Eigen::Index>(i), column = static_cast<Eigen::Index>(j);
      covariance(row, column) = covariance(column, row) = sum[i * width + j] / (n - 1);
    }
  }
  return {std::move(mean), std::move(covariance)};
}

TUNEWRIGHT_INLINE Covariance::Matrix Covariance::power(const Matrix& covariance, double exponent) const {
  const Eigen::SelfAdjointEigenSolver<Matrix> solver(covariance);
  Eigen::VectorXd scaled = solver.eigenvalues();
  for (Eigen::Index i = 0; i < scaled.size(); ++i)
    scaled(i) = std::pow(std::max(0.0, scaled(i)) + regularisation, exponent);
  const Matrix& vectors = solver.eigenvectors();
  return vectors * scaled.asDiagonal() * vectors.transpose();
}

}  // namespace tunewright::adaptations::alignment

#endif
