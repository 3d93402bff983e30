// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tunewright/detail/config.hpp"

namespace tunewright::models {

/// sum a_i b_i, four partial sums at a time in an order that depends only on the length, so that the result has the
/// same bits at any memory alignment.
[[nodiscard]] double dot(const double* a, const double* b, std::size_t n) noexcept;

/// Number of right-hand sides solved at once, so that the matrix is read from memory once for all of them. They are
/// interleaved, (n, solve_lanes), and independent.
inline constexpr std::size_t solve_lanes = 8;

/// A = L L^T of a symmetric positive definite matrix (n, n). O(n^3 / 6) multiplications.
///
/// Eigen's LLT is not used, because its last bits depend on memory alignment, and every program with a small model
/// would take 8 s instead of 3.5 s to compile. In programs compiled without `-march` it is not faster: 0.7 to 2 times
/// the time for n of 50 to 400, 0.7 to 0.9 times for 1,000.
class Cholesky {
 public:
  Cholesky() = default;

  /// Empty if A is not positive definite. Reads only the lower triangle of `a` (row-major).
  [[nodiscard]] static std::optional<Cholesky> of(std::vector<double> a, std::size_t n);

  [[nodiscard]] std::size_t size() const noexcept { return n_; }

  /// v <- L^-1 v. O(n^2).
  void solve_lower(std::span<double> v) const {
    for (std::size_t i = 0; i < n_; ++i) v[i] = (v[i] - dot(lower_.data() + i * n_, v.data(), i)) / lower_[i * n_ + i];
  }
  /// The same for each of the columns of v (n, solve_lanes).
  void solve_lower_lanes(std::span<double> v) const { solve_lanes_lower(lower_.data(), n_, n_, v.data()); }
  /// v <- A^-1 v. O(n^2).
  void solve(std::span<double> v) const;
  /// log det A.
  [[nodiscard]] double log_determinant() const;

 private:
  // v (count, solve_lanes) <- L^-1 v for the first `count` rows and columns of `lower`, whose rows have stride
  // `stride`. Pairs of numbers are explicit, because compilers do not vectorize the loop at -O2.
  static void solve_lanes_lower(const double* lower, std::size_t stride, std::size_t count, double* v);

  std::size_t n_ = 0;
  std::vector<double> lower_;  // (n, n) row-major; above the diagonal lies what was there
};

}  // namespace tunewright::models

#if TUNEWRIGHT_DEFINES(models)

namespace tunewright::models {

TUNEWRIGHT_INLINE double dot(const double* a, const double* b, std::size_t n) noexcept {
  double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  std::size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    s0 += a[i] * b[i];
    s1 += a[i + 1] * b[i + 1];
    s2 += a[i + 2] * b[i + 2];
    s3 += a[i + 3] * b[i + 3];
  }
  for (; i < n; ++i) s0 += a[i] * b[i];
  return (s0 + s1) + (s2 + s3);
}

TUNEWRIGHT_INLINE std::optional<Cholesky> Cholesky::of(std::vector<double> a, std::size_t n) {
  std::vector<double> rows(n * solve_lanes);  // those of a block, interleaved
  for (std::size_t first = 0; first < n; first += solve_lanes) {
    const std::size_t count = std::min(solve_lanes, n - first);
    std::fill_n(rows.begin(), first * solve_lanes, 0.0);
    for (std::size_t r = 0; r < count; ++r) {
      for (std::size_t j = 0; j < first; ++j) rows[j * solve_lanes + r] = a[(first + r) * n + j];
    }
    solve_lanes_lower(a.data(), n, first, rows.data());
    for (std::size_t r = 0; r < count; ++r) {
      const std::size_t i = first + r;
      double* row = a.data() + i * n;
      for (std::size_t j = 0; j < first; ++j) row[j] = rows[j * solve_lanes + r];
      for (std::size_t j = first; j < i; ++j) row[j] = (row[j] - dot(row, a.data() + j * n, j)) / a[j * n + j];
      const double square = row[i] - dot(row, row, i);
      // A remaining diagonal below this is rounding error.
      if (!(square > 1e-15 * row[i]) || !std::isfinite(square)) return std::nullopt;
      row[i] = std::sqrt(square);
    }
  }
  Cholesky out;
  out.n_ = n;
  out.lower_ = std::move(a);
  return out;
}

TUNEWRIGHT_INLINE void Cholesky::solve(std::span<double> v) const {
  solve_lower(v);
  for (std::size_t i = n_; i-- > 0;) {
    v[i] /= lower_[i * n_ + i];
    for (std::size_t j = 0; j < i; ++j) v[j] -= lower_[i * n_ + j] * v[i];
  }
}

TUNEWRIGHT_INLINE double Cholesky::log_determinant() const {
  double sum = 0;
  for (std::size_t i = 0; i < n_; ++i) sum += std::log(lower_[i * n_ + i]);
  return 2 * sum;
}

TUNEWRIGHT_INLINE void Cholesky::solve_lanes_lower(const double* lower, std::size_t stride, std::size_t count,
                                                   double* v) {
  using Pair = double __attribute__((vector_size(16)));
  for (std::size_t i = 0; i < count; ++i) {
    const double* row = lower + i * stride;
    Pair sum[solve_lanes / 2] = {};
    for (std::size_t k = 0; k < i; ++k) {
      const Pair factor{row[k], row[k]};
      Pair known[solve_lanes / 2];
      std::memcpy(known, v + k * solve_lanes, sizeof known);
      sum[0] += factor * known[0];
      sum[1] += factor * known[1];
      sum[2] += factor * known[2];
      sum[3] += factor * known[3];
    }
    double of_lane[solve_lanes];
    std::memcpy(of_lane, sum, sizeof of_lane);
    for (std::size_t lane = 0; lane < solve_lanes; ++lane) {
      double& value = v[i * solve_lanes + lane];
      value = (value - of_lane[lane]) / row[i];
    }
  }
}

}  // namespace tunewright::models

#endif
