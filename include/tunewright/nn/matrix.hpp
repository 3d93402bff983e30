// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <vector>

#include "tunewright/core/rounded_up.hpp"
#include "tunewright/nn/vector_product.hpp"

namespace tunewright::nn {

/// Numbers with aligned storage. Vector and scalar instructions round differently, and the address decides which
/// elements vector instructions process; results must not depend on where an array is allocated.
template <class T>
using Numbers = std::vector<T, Eigen::aligned_allocator<T>>;

/// A view of a row-major matrix; row r starts `stride` numbers after row r - 1.
template <class T>
struct View {
  T* data = nullptr;
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t stride = 0;

  [[nodiscard]] T* row(std::size_t r) const noexcept { return data + r * stride; }
  [[nodiscard]] View block(std::size_t row0, std::size_t count, std::size_t column0, std::size_t width) const noexcept {
    return {data + row0 * stride + column0, count, width, stride};
  }
  operator View<const T>() const noexcept
    requires(!std::is_const_v<T>)
  {
    return {data, rows, columns, stride};
  }
};

/// A contiguous row-major matrix that keeps its memory when it shrinks: mini-batches differ in their number of rows,
/// and allocating megabytes for each costs more than filling them. Values are indeterminate after `resize`.
template <class T>
class Matrix {
 public:
  Matrix() = default;
  Matrix(std::size_t rows, std::size_t columns) { resize(rows, columns); }

  void resize(std::size_t rows, std::size_t columns) {
    rows_ = rows;
    columns_ = columns;
    if (values_.size() < rows * columns) values_.resize(rows * columns);
  }
  void fill(T value) { std::fill_n(values_.data(), size(), value); }

  [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::size_t columns() const noexcept { return columns_; }
  [[nodiscard]] std::size_t size() const noexcept { return rows_ * columns_; }
  [[nodiscard]] T* data() noexcept { return values_.data(); }
  [[nodiscard]] const T* data() const noexcept { return values_.data(); }
  [[nodiscard]] T* row(std::size_t r) noexcept { return values_.data() + r * columns_; }
  [[nodiscard]] const T* row(std::size_t r) const noexcept { return values_.data() + r * columns_; }
  [[nodiscard]] View<T> view() noexcept { return {values_.data(), rows_, columns_, columns_}; }
  [[nodiscard]] View<const T> view() const noexcept { return {values_.data(), rows_, columns_, columns_}; }
  operator View<T>() noexcept { return view(); }
  operator View<const T>() const noexcept { return view(); }

 private:
  std::size_t rows_ = 0, columns_ = 0;
  Numbers<T> values_;
};

/// Rows are padded to a multiple of this. Matrix product kernels round differently in their remainder loops, so without
/// padding the score of a program would depend on its position in the batch.
inline constexpr std::size_t row_block = 16;

[[nodiscard]] constexpr std::size_t padded(std::size_t rows) noexcept { return rounded_up(rows, row_block); }

template <class T>
using ArrayMap = Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>>;
template <class T>
using ConstArrayMap = Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>;

/// n numbers as an Eigen array for element-wise arithmetic.
template <class T>
[[nodiscard]] ArrayMap<T> array(T* data, std::size_t n) {
  return {data, static_cast<Eigen::Index>(n)};
}
template <class T>
[[nodiscard]] ConstArrayMap<T> array(const T* data, std::size_t n) {
  return {data, static_cast<Eigen::Index>(n)};
}

namespace matrix_detail {

template <class T>
auto map(View<T> view) {
  using Plain = Eigen::Matrix<std::remove_const_t<T>, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using Shape = std::conditional_t<std::is_const_v<T>, const Plain, Plain>;
  return Eigen::Map<Shape, 0, Eigen::OuterStride<>>(view.data, static_cast<Eigen::Index>(view.rows),
                                                    static_cast<Eigen::Index>(view.columns),
                                                    Eigen::OuterStride<>(static_cast<Eigen::Index>(view.stride)));
}

}  // namespace matrix_detail

// The products of layers. All matrix products of the networks call these functions, which keeps the instantiations of
// Eigen, and thus compile times, few. Floats use the processor's widest vectors if `vector_product` has them. Small
// products and products with vectors are written out here, because Eigen handles these separately and rounds them
// depending on their addresses.

namespace matrix_detail {

inline bool small(std::size_t m, std::size_t n, std::size_t k) { return m == 1 || n == 1 || m + n + k < 20; }

template <class T>
[[nodiscard]] T dot(const T* a, const T* b, std::size_t n) {
  return (array(a, n) * array(b, n)).sum();
}

/// Returns false if `vector_product` cannot be used.
template <class T>
[[nodiscard]] bool multiply_vectors(View<const T> a, bool transpose_a, View<const T> b, bool transpose_b, View<T> out,
                                    bool add) {
  if constexpr (std::is_same_v<T, float>) {
    if (!vector_product::available()) return false;
    const auto operand = [](View<const float> x, bool transposed) {
      return transposed ? vector_product::Operand{x.data, 1, x.stride} : vector_product::Operand{x.data, x.stride, 1};
    };
    vector_product::multiply(operand(a, transpose_a), operand(b, transpose_b), out.data, out.stride, out.rows,
                             out.columns, transpose_a ? a.rows : a.columns, add);
    return true;
  } else {
    return false;
  }
}

}  // namespace matrix_detail

/// out = a b, (M, K) (K, N).
template <class T>
void multiply(std::type_identity_t<View<const T>> a, std::type_identity_t<View<const T>> b, View<T> out) {
  if (matrix_detail::small(out.rows, out.columns, a.columns)) {
    for (std::size_t i = 0; i < out.rows; ++i) {
      std::fill_n(out.row(i), out.columns, T{0});
      for (std::size_t k = 0; k < a.columns; ++k)
        for (std::size_t j = 0; j < out.columns; ++j) out.row(i)[j] += a.row(i)[k] * b.row(k)[j];
    }
    return;
  }
  if (matrix_detail::multiply_vectors<T>(a, false, b, false, out, false)) return;
  matrix_detail::map(out).noalias() = matrix_detail::map(a) * matrix_detail::map(b);
}

/// out = a b^T, or out += a b^T if `add`, (M, K) (N, K).
template <class T>
void multiply_transposed(std::type_identity_t<View<const T>> a, std::type_identity_t<View<const T>> b, View<T> out,
                         bool add = false) {
  const bool small = matrix_detail::small(out.rows, out.columns, a.columns);
  if (!small && matrix_detail::multiply_vectors<T>(a, false, b, true, out, add)) return;
  if (!add) {
    for (std::size_t i = 0; i < out.rows; ++i) std::fill_n(out.row(i), out.columns, T{0});
  }
  if (small) {
    for (std::size_t i = 0; i < out.rows; ++i)
      for (std::size_t j = 0; j < out.columns; ++j) out.row(i)[j] += matrix_detail::dot(a.row(i), b.row(j), a.columns);
    return;
  }
  matrix_detail::map(out).noalias() += matrix_detail::map(a) * matrix_detail::map(b).transpose();
}

/// out += a^T b, (K, M) (K, N): the gradient of a weight for a batch of K rows.
template <class T>
void add_transposed_multiply(std::type_identity_t<View<const T>> a, std::type_identity_t<View<const T>> b,
                             View<T> out) {
  if (matrix_detail::small(out.rows, out.columns, a.rows)) {
    for (std::size_t k = 0; k < a.rows; ++k)
      for (std::size_t i = 0; i < out.rows; ++i)
        for (std::size_t j = 0; j < out.columns; ++j) out.row(i)[j] += a.row(k)[i] * b.row(k)[j];
    return;
  }
  if (matrix_detail::multiply_vectors<T>(a, true, b, false, out, true)) return;
  matrix_detail::map(out).noalias() += matrix_detail::map(a).transpose() * matrix_detail::map(b);
}

}  // namespace tunewright::nn
