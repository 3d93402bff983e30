// SPDX-License-Identifier: Apache-2.0
//
// Kernels of Eigen, compiled once for each instruction set; see eigen_kernels.hpp. Eigen runs large matrix products on
// all threads of OpenMP; the loops over rows here are given to them.

#include "eigen_kernels.hpp"

#include <Eigen/Core>
#include <algorithm>

namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Rows = Eigen::Map<const Matrix>;
using Vector = Eigen::Map<const Eigen::ArrayXf>;
using Result = Eigen::Map<Eigen::ArrayXf>;

/// So many columns at once, where threads share a matrix by its columns.
constexpr std::int64_t column_block = 1024;
/// Rows and columns of a tile of a transposition, which stays in the first cache.
constexpr std::int64_t tile = 32;

void product(const float* a, const float* b, float* c, std::int64_t m, std::int64_t n, std::int64_t k, bool transpose_a,
             bool transpose_b) {
  Eigen::Map<Matrix> result(c, m, n);
  const Rows left(a, transpose_a ? k : m, transpose_a ? m : k);
  const Rows right(b, transpose_b ? n : k, transpose_b ? k : n);
  if (transpose_a && transpose_b)
    result.noalias() = left.transpose() * right.transpose();
  else if (transpose_a)
    result.noalias() = left.transpose() * right;
  else if (transpose_b)
    result.noalias() = left * right.transpose();
  else
    result.noalias() = left * right;
}

void softmax(const float* x, float* y, std::int64_t rows, std::int64_t columns) {
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < rows; ++i) {
    const Vector in(x + i * columns, columns);
    Result out(y + i * columns, columns);
    out = (in - in.maxCoeff()).exp();
    out *= 1.0F / out.sum();
  }
}

void layer_norm(const float* x, const float* gamma, const float* beta, float* y, std::int64_t rows,
                std::int64_t columns, float epsilon) {
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < rows; ++i) {
    const Vector in(x + i * columns, columns);
    const float mean = in.mean();
    const float variance = (in - mean).square().mean();
    Result(y + i * columns, columns) =
        (in - mean) * (1.0F / std::sqrt(variance + epsilon)) * Vector(gamma, columns) + Vector(beta, columns);
  }
}

void scale_shift(const float* x, const float* scale, const float* shift, float* y, std::int64_t rows,
                 std::int64_t columns) {
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < rows; ++i) {
    Result(y + i * columns, columns) =
        Vector(x + i * columns, columns) * Vector(scale, columns) + Vector(shift, columns);
  }
}

void sum(const float* x, float* y, std::int64_t outer, std::int64_t summed, std::int64_t inner) {
  if (inner == 1) {
#pragma omp parallel for schedule(static)
    for (std::int64_t i = 0; i < outer; ++i) y[i] = Vector(x + i * summed, summed).sum();
    return;
  }
  const std::int64_t blocks = (inner + column_block - 1) / column_block;
#pragma omp parallel for schedule(static)
  for (std::int64_t part = 0; part < outer * blocks; ++part) {
    const std::int64_t i = part / blocks, begin = part % blocks * column_block;
    const std::int64_t width = std::min(column_block, inner - begin);
    Result out(y + i * inner + begin, width);
    out.setZero();
    for (std::int64_t s = 0; s < summed; ++s) out += Vector(x + (i * summed + s) * inner + begin, width);
  }
}

void add_relu(const float* a, const float* b, float* y, std::int64_t rows, std::int64_t columns, bool bias) {
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < rows; ++i) {
    Result(y + i * columns, columns) =
        (Vector(a + i * columns, columns) + Vector(bias ? b : b + i * columns, columns)).max(0.0F);
  }
}

void transpose(const float* x, float* y, std::int64_t rows, std::int64_t columns) {
  const Rows in(x, rows, columns);
  Eigen::Map<Matrix> out(y, columns, rows);
#pragma omp parallel for schedule(static)
  for (std::int64_t j = 0; j < columns; j += tile) {
    const std::int64_t width = std::min(tile, columns - j);
    for (std::int64_t i = 0; i < rows; i += tile) {
      const std::int64_t height = std::min(tile, rows - i);
      out.block(j, i, width, height) = in.block(i, j, height, width).transpose();
    }
  }
}

}  // namespace

#define TUNEWRIGHT_TEXT_OF(number) #number
#define TUNEWRIGHT_TEXT(number) TUNEWRIGHT_TEXT_OF(number)

extern "C" __attribute__((visibility("default"))) const tunewright_eigen_kernels* tunewright_eigen() {
  static const tunewright_eigen_kernels kernels{TUNEWRIGHT_TEXT(EIGEN_WORLD_VERSION) "." TUNEWRIGHT_TEXT(
                                                    EIGEN_MAJOR_VERSION) "." TUNEWRIGHT_TEXT(EIGEN_MINOR_VERSION),
                                                Eigen::SimdInstructionSetsInUse(),
                                                product,
                                                softmax,
                                                layer_norm,
                                                scale_shift,
                                                sum,
                                                add_relu,
                                                transpose};
  return &kernels;
}
