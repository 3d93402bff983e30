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
#include "tunewright/nn/attention.hpp"
#include "tunewright/nn/linear.hpp"
#include "tunewright/nn/lstm.hpp"
#include "tunewright/nn/matrix.hpp"
#include "tunewright/nn/parameters.hpp"

namespace tunewright::nn {

/// Attention over the rows s of a program, repeated several times; each query depends on the results of the previous
/// ones.
///
///   z = mean of the program's rows;  h = c = 0;  `steps` times:
///     q = h + z;  per head: a = softmax over rows of q . s;  r = sum of a s
///     h, c <- lstm_cell(z W + (q + r) U + b, c)
///   y = h + z
///
/// Paper:  Vinyals et al., Matching networks, NeurIPS 2016 (full context embeddings).
/// Shapes: s (R, d), y (P padded, d). 8 d^2 + 4 d parameters, initially uniform within 1 / sqrt(d).
struct ReadOut {
  std::size_t width = 0, heads = 0, steps = 0;
  Linear input;
  std::size_t recurrent = 0;

  template <class T>
  struct Step {
    Matrix<T> query, sum;                  // q and q + r
    Numbers<T> shares;                     // a of every program and head, padded
    Matrix<T> gates, c_before, tanh_c, h;  // of the LSTM cells
  };
  template <class T>
  struct Trace {
    Matrix<T> mean;
    std::vector<std::size_t> starts;  // start of each program's attention weights
    std::vector<Step<T>> steps;
    Matrix<T> c, projected, d_gates, d_sum, dh, dc, d_query, d_mean;
    Numbers<T> d_shares;
  };

  ReadOut() = default;
  /// Throws `std::invalid_argument` if `number_of_heads` does not divide `d`.
  ReadOut(ParameterLayout& layout, const std::string& name, std::size_t d, std::size_t number_of_heads,
          std::size_t times);

  template <class T>
  void forward(const T* w, const Matrix<T>& rows, std::span<const std::uint32_t> offsets, Trace<T>& t,
               Matrix<T>& y) const {
    const std::size_t programs = offsets.size() - 1;
    average(rows, offsets, t);
    t.starts.assign(1, 0);
    for (std::size_t p = 0; p < programs; ++p)
      t.starts.push_back(t.starts.back() + heads * padded(offsets[p + 1] - offsets[p]));
    t.steps.resize(steps);
    t.c.resize(t.mean.rows(), width);
    t.c.fill(T{0});
    y.resize(t.mean.rows(), width);
    std::copy_n(t.mean.data(), t.mean.size(), y.data());
    for (Step<T>& step : t.steps) {
      step.query = y;
      step.sum = y;
      if (step.shares.size() < t.starts.back()) step.shares.resize(t.starts.back());
      each_head(offsets, t, [&](std::size_t p, std::size_t n, std::size_t column, std::size_t start) {
        T* a = step.shares.data() + start;
        for (std::size_t i = 0; i < n; ++i)
          a[i] = matrix_detail::dot(step.query.row(p) + column, rows.row(offsets[p] + i) + column, head_width());
        softmax(a, n);
        auto sum = array(step.sum.row(p) + column, head_width());
        for (std::size_t i = 0; i < n; ++i) sum += a[i] * array(rows.row(offsets[p] + i) + column, head_width());
      });
      input.forward(w, t.mean, step.gates);
      t.projected.resize(t.mean.rows(), 4 * width);
      multiply<T>(step.sum.view(), recurrent_of(w), t.projected.view());
      array(step.gates.data(), step.gates.size()) += array(t.projected.data(), t.projected.size());
      step.c_before = t.c;
      step.tanh_c.resize(t.mean.rows(), width);
      step.h.resize(t.mean.rows(), width);
      for (std::size_t p = 0; p < t.mean.rows(); ++p)
        lstm_cell(step.gates.row(p), t.c.row(p), step.h.row(p), step.tanh_c.row(p), width);
      array(y.data(), y.size()) = array(step.h.data(), y.size()) + array(t.mean.data(), y.size());
    }
  }

  template <class T>
  void backward(const T* w, T* g, const Matrix<T>& rows, std::span<const std::uint32_t> offsets, Trace<T>& t,
                const Matrix<T>& dy, Matrix<T>& d_rows) const {
    d_rows.resize(rows.rows(), width);
    d_rows.fill(T{0});
    t.dh = dy;
    t.d_mean = dy;
    t.dc.resize(dy.rows(), width);
    t.dc.fill(T{0});
    t.d_gates.resize(dy.rows(), 4 * width);
    t.d_sum.resize(dy.rows(), width);
    for (std::size_t k = steps; k-- > 0;) {
      Step<T>& step = t.steps[k];
      for (std::size_t p = 0; p < dy.rows(); ++p)
        lstm_cell_backward(step.gates.row(p), step.c_before.row(p), step.tanh_c.row(p), t.dh.row(p), t.dc.row(p),
                           t.d_gates.row(p), width);
      add_transposed_multiply<T>(step.sum.view(), t.d_gates.view(),
                                 View<T>{g + recurrent, width, 4 * width, 4 * width});
      input.backward<T>(w, g, t.mean, t.d_gates, nullptr);
      multiply_transposed<T>(t.d_gates.view(), View<const T>{w + input.weight, width, 4 * width, 4 * width},
                             t.d_mean.view(), true);
      multiply_transposed<T>(t.d_gates.view(), recurrent_of(w), t.d_sum.view());
      t.dh = t.d_sum;  // dL/dq: directly, then through the attention weights
      each_head(offsets, t, [&](std::size_t p, std::size_t n, std::size_t column, std::size_t start) {
        const T* a = step.shares.data() + start;
        if (t.d_shares.size() < n) t.d_shares.resize(n);
        const auto d_sum = array(t.d_sum.row(p) + column, head_width());
        for (std::size_t i = 0; i < n; ++i) {
          const std::size_t r = offsets[p] + i;
          t.d_shares[i] = matrix_detail::dot(t.d_sum.row(p) + column, rows.row(r) + column, head_width());
          array(d_rows.row(r) + column, head_width()) += a[i] * d_sum;
        }
        softmax_backward(a, t.d_shares.data(), n);
        for (std::size_t i = 0; i < n; ++i) {
          const std::size_t r = offsets[p] + i;
          array(t.dh.row(p) + column, head_width()) += t.d_shares[i] * array(rows.row(r) + column, head_width());
          array(d_rows.row(r) + column, head_width()) +=
              t.d_shares[i] * array(step.query.row(p) + column, head_width());
        }
      });
      array(t.d_mean.data(), t.d_mean.size()) += array(t.dh.data(), t.dh.size());
    }
    for (std::size_t p = 0; p + 1 < offsets.size(); ++p) {
      const T share = 1 / static_cast<T>(std::max(offsets[p + 1] - offsets[p], 1U));
      for (std::uint32_t r = offsets[p]; r < offsets[p + 1]; ++r)
        array(d_rows.row(r), width) += share * array(t.d_mean.row(p), width);
    }
  }

 private:
  [[nodiscard]] std::size_t head_width() const noexcept { return width / heads; }

  template <class T>
  void average(const Matrix<T>& rows, std::span<const std::uint32_t> offsets, Trace<T>& t) const {
    t.mean.resize(padded(offsets.size() - 1), width);
    t.mean.fill(T{0});
    for (std::size_t p = 0; p + 1 < offsets.size(); ++p) {
      auto mean = array(t.mean.row(p), width);
      for (std::uint32_t r = offsets[p]; r < offsets[p + 1]; ++r) mean += array(rows.row(r), width);
      mean *= 1 / static_cast<T>(std::max(offsets[p + 1] - offsets[p], 1U));
    }
  }
  template <class T, class F>
  void each_head(std::span<const std::uint32_t> offsets, const Trace<T>& t, F&& f) const {
    for (std::size_t p = 0; p + 1 < offsets.size(); ++p) {
      const std::size_t n = offsets[p + 1] - offsets[p];
      for (std::size_t h = 0; h < heads && n > 0; ++h) f(p, n, h * head_width(), t.starts[p] + h * padded(n));
    }
  }
  template <class T>
  View<const T> recurrent_of(const T* w) const {
    return {w + recurrent, width, 4 * width, 4 * width};
  }
};

}  // namespace tunewright::nn

#if TUNEWRIGHT_DEFINES(networks)

namespace tunewright::nn {

TUNEWRIGHT_INLINE ReadOut::ReadOut(ParameterLayout& layout, const std::string& name, std::size_t d,
                                   std::size_t number_of_heads, std::size_t times)
    : width(d), heads(number_of_heads), steps(times) {
  if (heads == 0 || width % heads != 0) {
    throw std::invalid_argument("nn::ReadOut: " + std::to_string(heads) + " heads do not divide a width of " +
                                std::to_string(width) + "; give a divisor");
  }
  const float bound = 1 / std::sqrt(static_cast<float>(d));
  input.in = d;
  input.out = 4 * d;
  input.weight = layout.add(name + ".input.weight", d, 4 * d, -bound, bound);
  input.bias = layout.add(name + ".input.bias", 1, 4 * d, -bound, bound);
  recurrent = layout.add(name + ".recurrent.weight", d, 4 * d, -bound, bound);
}

}  // namespace tunewright::nn

#endif
