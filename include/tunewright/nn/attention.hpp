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

#include "tunewright/detail/config.hpp"
#include "tunewright/nn/linear.hpp"
#include "tunewright/nn/matrix.hpp"
#include "tunewright/nn/parameters.hpp"

namespace tunewright::nn {

/// x[0..n) <- exp(x) / sum exp(x). The n numbers must start at an address of `Numbers`, and padded(n) of them may be
/// overwritten: whole vectors round the same wherever a row is stored.
template <class T>
void softmax(T* x, std::size_t n) {
  T most = x[0];
  for (std::size_t i = 1; i < n; ++i) most = std::max(most, x[i]);
  std::fill(x + n, x + padded(n), most);
  auto all = array(x, padded(n));
  all = (all - most).exp();
  T sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += x[i];
  all *= 1 / sum;
}

/// d <- dL/dx of softmax, for its output `y` and d = dL/dy.
template <class T>
void softmax_backward(const T* y, T* d, std::size_t n) {
  T mean = 0;
  for (std::size_t i = 0; i < n; ++i) mean += y[i] * d[i];
  for (std::size_t i = 0; i < n; ++i) d[i] = y[i] * (d[i] - mean);
}

/// Multi-head self-attention among the rows of each program, without mask and positional encoding.
///
///   [Q K V] = x W_in + b_in;  per head h of width d / heads:  A_h = softmax(Q_h K_h^T / sqrt(d / heads))
///   y = [A_1 V_1 ... ] W_out + b_out
///
/// Paper:  Vaswani et al., Attention is all you need, NeurIPS 2017.
/// Shapes: x, y (R, d). 4 (d^2 + d) parameters. Initial W_in uniform within sqrt(6 / 4d), W_out within
///         1 / sqrt(d), biases 0.
/// Cost:   O(R d^2 + sum over programs of rows^2 d).
struct SelfAttention {
  std::size_t width = 0, heads = 0;
  Linear in, out;

  template <class T>
  struct Trace {
    Matrix<T> projected;              // (R, 3 d): Q, K, V
    Matrix<T> mixed;                  // (R, d)
    Numbers<T> shares;                // A of every program and head, with padded rows
    std::vector<std::size_t> starts;  // start of each program's first A
    Matrix<T> d_mixed, d_projected;
    Numbers<T> d_shares;
  };

  SelfAttention() = default;
  /// Throws `std::invalid_argument` if `heads` does not divide `width`.
  SelfAttention(ParameterLayout& layout, const std::string& name, std::size_t d, std::size_t number_of_heads);

  template <class T>
  void forward(const T* w, const Matrix<T>& x, std::span<const std::uint32_t> offsets, Trace<T>& t,
               Matrix<T>& y) const {
    in.forward(w, x, t.projected);
    t.mixed.resize(x.rows(), width);
    t.mixed.fill(T{0});
    t.starts.assign(1, 0);
    for (std::size_t p = 0; p + 1 < offsets.size(); ++p) {
      const std::size_t n = offsets[p + 1] - offsets[p];
      t.starts.push_back(t.starts.back() + heads * n * padded(n));
    }
    if (t.shares.size() < t.starts.back()) t.shares.resize(t.starts.back());
    const T scale = 1 / std::sqrt(static_cast<T>(width / heads));
    each_head(offsets, t, [&](std::size_t first, std::size_t n, std::size_t h, std::size_t start) {
      const View<T> shares{t.shares.data() + start, n, n, padded(n)};
      multiply_transposed<T>(part(t.projected, first, n, 0, h), part(t.projected, first, n, 1, h), shares);
      for (std::size_t i = 0; i < n; ++i) {
        array(shares.row(i), n) *= scale;
        softmax(shares.row(i), n);
      }
      multiply<T>(shares, part(t.projected, first, n, 2, h), part(t.mixed, first, n, 0, h));
    });
    out.forward(w, t.mixed, y);
  }

  template <class T>
  void backward(const T* w, T* g, const Matrix<T>& x, std::span<const std::uint32_t> offsets, Trace<T>& t,
                const Matrix<T>& dy, Matrix<T>& dx) const {
    out.backward(w, g, t.mixed, dy, &t.d_mixed);
    t.d_projected.resize(x.rows(), 3 * width);
    t.d_projected.fill(T{0});
    const T scale = 1 / std::sqrt(static_cast<T>(width / heads));
    each_head(offsets, t, [&](std::size_t first, std::size_t n, std::size_t h, std::size_t start) {
      const View<T> shares{t.shares.data() + start, n, n, padded(n)};
      if (t.d_shares.size() < n * padded(n)) t.d_shares.resize(n * padded(n));
      const View<T> d{t.d_shares.data(), n, n, padded(n)};
      const View<T> d_mixed = part(t.d_mixed, first, n, 0, h);
      multiply_transposed<T>(d_mixed, part(t.projected, first, n, 2, h), d);
      add_transposed_multiply<T>(shares, d_mixed, part(t.d_projected, first, n, 2, h));
      for (std::size_t i = 0; i < n; ++i) {
        softmax_backward(shares.row(i), d.row(i), n);
        array(d.row(i), n) *= scale;
      }
      multiply<T>(d, part(t.projected, first, n, 1, h), part(t.d_projected, first, n, 0, h));
      add_transposed_multiply<T>(d, part(t.projected, first, n, 0, h), part(t.d_projected, first, n, 1, h));
    });
    in.backward(w, g, x, t.d_projected, &dx);
  }

 private:
  template <class T, class F>
  void each_head(std::span<const std::uint32_t> offsets, const Trace<T>& t, F&& f) const {
    for (std::size_t p = 0; p + 1 < offsets.size(); ++p) {
      const std::size_t n = offsets[p + 1] - offsets[p];
      for (std::size_t h = 0; h < heads && n > 0; ++h) f(offsets[p], n, h, t.starts[p] + h * n * padded(n));
    }
  }
  // The rows of a program, and the columns of head h in block `which` of `width` columns.
  template <class T>
  View<T> part(Matrix<T>& m, std::size_t first, std::size_t n, std::size_t which, std::size_t h) const {
    return m.view().block(first, n, which * width + h * (width / heads), width / heads);
  }
};

}  // namespace tunewright::nn

#if TUNEWRIGHT_DEFINES(networks)

namespace tunewright::nn {

TUNEWRIGHT_INLINE SelfAttention::SelfAttention(ParameterLayout& layout, const std::string& name, std::size_t d,
                                               std::size_t number_of_heads)
    : width(d), heads(number_of_heads) {
  if (heads == 0 || width % heads != 0) {
    throw std::invalid_argument("nn::SelfAttention: " + std::to_string(heads) + " heads do not divide a width of " +
                                std::to_string(width) + "; give a divisor");
  }
  const float bound = std::sqrt(6.0F / static_cast<float>(4 * d));
  in.in = d;
  in.out = 3 * d;
  in.weight = layout.add(name + ".in.weight", d, 3 * d, -bound, bound);
  in.bias = layout.add(name + ".in.bias", 1, 3 * d, 0, 0);
  const float last = 1 / std::sqrt(static_cast<float>(d));
  out.in = out.out = d;
  out.weight = layout.add(name + ".out.weight", d, d, -last, last);
  out.bias = layout.add(name + ".out.bias", 1, d, 0, 0);
}

}  // namespace tunewright::nn

#endif
