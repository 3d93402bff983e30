// SPDX-License-Identifier: Apache-2.0
#include "tunewright/nn/vector_product.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "tunewright/core/rng.hpp"
#include "tunewright/nn/matrix.hpp"

namespace {

using namespace tunewright;
using nn::vector_product::Operand;

constexpr float untouched = -12345;

/// A matrix of which rows are three elements further apart than they are long, stored transposed or not.
struct Stored {
  Stored(std::size_t rows_, std::size_t columns_, bool transposed_, Rng& rng)
      : rows(rows_),
        columns(columns_),
        transposed(transposed_),
        stride((transposed ? rows : columns) + 3),
        values((transposed ? columns : rows) * stride, std::numeric_limits<float>::quiet_NaN()) {
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t c = 0; c < columns; ++c) values[at(r, c)] = static_cast<float>(2 * rng.uniform() - 1);
  }
  [[nodiscard]] std::size_t at(std::size_t r, std::size_t c) const {
    return transposed ? c * stride + r : r * stride + c;
  }
  [[nodiscard]] Operand operand() const {
    return transposed ? Operand{values.data(), 1, stride} : Operand{values.data(), stride, 1};
  }
  [[nodiscard]] nn::Matrix<double> wide() const {
    nn::Matrix<double> matrix(rows, columns);
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t c = 0; c < columns; ++c) matrix.row(r)[c] = static_cast<double>(values[at(r, c)]);
    return matrix;
  }

  std::size_t rows, columns;
  bool transposed;
  std::size_t stride;
  std::vector<float> values;  // what lies between rows is no number and must not be read
};

#if defined(__x86_64__)

/// Largest difference from the product of doubles, which Eigen computes; infinite where memory beside `out` was
/// written.
template <class Isa>
double error(std::size_t m, std::size_t n, std::size_t k, bool transpose_a, bool transpose_b, bool add) {
  Rng rng(m * 10007 + n * 101 + k);
  const Stored a(m, k, transpose_a, rng), b(k, n, transpose_b, rng);
  const std::size_t stride = n + 5;
  std::vector<float> out((m + 1) * stride, untouched);
  nn::Matrix<double> expected(m, n);
  nn::multiply<double>(a.wide(), b.wide(), expected);
  for (std::size_t r = 0; r < m; ++r) {
    for (std::size_t c = 0; c < n; ++c) {
      out[r * stride + c] = static_cast<float>(r + c);
      if (add) expected.row(r)[c] += static_cast<double>(r + c);
    }
  }
  nn::vector_product::multiply_by<Isa>(a.operand(), b.operand(), out.data(), stride, m, n, k, add);
  double worst = 0;
  for (std::size_t r = 0; r <= m; ++r) {
    for (std::size_t c = 0; c < stride; ++c) {
      const double got = static_cast<double>(out[r * stride + c]);
      const double want = r < m && c < n ? expected.row(r)[c] : static_cast<double>(untouched);
      const double off = std::fabs(got - want) / (1 + std::fabs(want));
      worst = std::isnan(off) ? std::numeric_limits<double>::infinity() : std::max(worst, off);
    }
  }
  return worst;
}

constexpr auto skipped = "skipped: this processor lacks the instructions";

}  // namespace

#define ISAS nn::vector_product::Avx512, nn::vector_product::Avx2

TEST_CASE_TEMPLATE("products of every odd size, layout and start are Eigen's", Isa, ISAS) {
  if (!Isa::available()) {
    MESSAGE(skipped);
    return;
  }
  // Around a vector (16 or 8), a panel (32 or 16), a tile (14 or 6 rows) and a panel's depth (256).
  constexpr std::array<std::size_t, 6> rows{1, 5, 6, 7, 14, 29};
  constexpr std::array<std::size_t, 9> columns{1, 7, 8, 9, 16, 17, 31, 33, 67};
  constexpr std::array<std::size_t, 6> depths{0, 1, 5, 255, 257, 515};
  for (const std::size_t m : rows) {
    for (const std::size_t n : columns) {
      for (const std::size_t k : depths) {
        for (int layout = 0; layout < 8; ++layout) {
          INFO(m, " x ", n, " x ", k, ", layout ", layout);
          // Rounding of k products below 1, each half a unit in the last place of sums below k.
          const double allowed = 1e-6 + 6e-8 * static_cast<double>(k);
          REQUIRE(error<Isa>(m, n, k, (layout & 1) != 0, (layout & 2) != 0, (layout & 4) != 0) <= allowed);
        }
      }
    }
  }
}

TEST_CASE_TEMPLATE("an element is rounded alike wherever in a product it is, and by either width", Isa, ISAS) {
  if (!Isa::available()) {
    MESSAGE(skipped);
    return;
  }
  constexpr std::size_t k = 300;
  Rng rng(4);
  std::vector<float> row(k), column(k);
  for (float& value : row) value = static_cast<float>(rng.uniform());
  for (float& value : column) value = static_cast<float>(rng.uniform());
  float alone = 0;
  for (std::size_t i = 0; i < k; ++i) alone = std::fma(row[i], column[i], alone);
  constexpr std::size_t m = 31, n = 45;  // the same row and column over and over
  std::vector<float> out(m * n);
  nn::vector_product::multiply_by<Isa>({row.data(), 0, 1}, {column.data(), 1, 0}, out.data(), n, m, n, k, false);
  for (const float value : out) REQUIRE(value == alone);
  // Rows of b that are read where they lie, few rows of a, and rows that are copied first; none begins on a vector's border.
  constexpr std::size_t stride = n + 2;
  std::vector<float> beside(1 + k * stride);
  for (std::size_t i = 0; i < k; ++i)
    std::fill_n(beside.begin() + 1 + static_cast<std::ptrdiff_t>(i * stride), n, column[i]);
  for (const std::size_t few : {std::size_t{1}, std::size_t{6}, m}) {
    std::fill(out.begin(), out.end(), untouched);
    nn::vector_product::multiply_by<Isa>({row.data(), 0, 1}, {beside.data() + 1, stride, 1}, out.data(), n, few, n, k,
                                         false);
    for (std::size_t i = 0; i < out.size(); ++i) REQUIRE(out[i] == (i < few * n ? alone : untouched));
  }
  nn::vector_product::multiply({row.data(), k, 1}, {column.data(), 1, k}, out.data(), 1, 1, 1, k, false);
  CHECK(out[0] == alone);
}

#endif
