// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "tunewright/nn/matrix.hpp"

namespace tunewright::nn {

// Ragged rows: program p owns the rows offsets[p] to offsets[p + 1] - 1. Matrices of rows and of programs may have more
// rows; these are padding, with meaningless values and zero gradients.

/// out[p] = sum of the rows of program p; padding becomes zero. (R, D) -> (P padded, D).
template <class T>
void segment_sum(const Matrix<T>& rows, std::span<const std::uint32_t> offsets, Matrix<T>& out) {
  const std::size_t programs = offsets.size() - 1, columns = rows.columns();
  out.resize(padded(programs), columns);
  for (std::size_t p = 0; p < out.rows(); ++p) {
    auto sum = array(out.row(p), columns);
    sum.setZero();
    if (p >= programs) continue;
    for (std::uint32_t r = offsets[p]; r < offsets[p + 1]; ++r) sum += array(rows.row(r), columns);
  }
}

/// The gradient of `segment_sum`: every row gets the gradient of its program. (P padded, D) -> (rows, D).
template <class T>
void segment_spread(const Matrix<T>& d_out, std::span<const std::uint32_t> offsets, std::size_t rows,
                    Matrix<T>& d_rows) {
  const std::size_t programs = offsets.size() - 1, columns = d_out.columns();
  d_rows.resize(rows, columns);
  for (std::size_t p = 0; p < programs; ++p) {
    for (std::uint32_t r = offsets[p]; r < offsets[p + 1]; ++r) std::copy_n(d_out.row(p), columns, d_rows.row(r));
  }
  std::fill(d_rows.row(offsets[programs]), d_rows.row(rows), T{0});
}

}  // namespace tunewright::nn
