// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/nn/linear.hpp"
#include "tunewright/nn/matrix.hpp"
#include "tunewright/nn/parameters.hpp"

namespace tunewright::nn {

/// The rows of several programs ordered by time step: first the first row of every program, then the second of those
/// that have two, ... Programs with more rows come first, so the programs active in step t are the first `active(t)` of
/// every earlier step.
struct TimeOrder {
  std::vector<std::uint32_t> starts;  ///< place of the first row of each step; [steps + 1]
  std::vector<std::uint32_t> row;     ///< row at each place; [R]

  [[nodiscard]] std::size_t steps() const noexcept { return starts.size() - 1; }
  [[nodiscard]] std::size_t active(std::size_t t) const noexcept { return starts[t + 1] - starts[t]; }

  /// Derives the order from the offsets of ragged rows.
  void set(std::span<const std::uint32_t> offsets);
  /// out[place] = rows[row at that place]; padding becomes zero.
  template <class T>
  void sort(const Matrix<T>& rows, Matrix<T>& out) const {
    out.resize(rows.rows(), rows.columns());
    for (std::size_t i = 0; i < row.size(); ++i) std::copy_n(rows.row(row[i]), rows.columns(), out.row(i));
    std::fill(out.row(row.size()), out.row(out.rows()), T{0});
  }
  /// The inverse permutation; padding becomes zero.
  template <class T>
  void unsort(const Matrix<T>& sorted, Matrix<T>& out) const {
    out.resize(sorted.rows(), sorted.columns());
    for (std::size_t i = 0; i < row.size(); ++i) std::copy_n(sorted.row(i), out.columns(), out.row(row[i]));
    std::fill(out.row(row.size()), out.row(out.rows()), T{0});
  }
};

/// One step of a long short-term memory (LSTM) with n cells.
///
///   [i f o] = sigmoid(gates), g = tanh(gates);   c <- f c + i g;   h = o tanh(c)
///
/// `gates` [4 n], in the order i f o g, holds the sums on entry and the activations on return; `tanh_c` [n] is stored
/// for `lstm_cell_backward`. Paper: Hochreiter and Schmidhuber, 1997, with forget gates (Gers et al., 2000).
template <class T>
void lstm_cell(T* gates, T* c, T* h, T* tanh_c, std::size_t n) {
  auto open = array(gates, 3 * n);
  open = (open * T(0.5)).tanh() * T(0.5) + T(0.5);
  auto fresh = array(gates + 3 * n, n);
  fresh = fresh.tanh();
  array(c, n) = array(gates + n, n) * array(c, n) + array(gates, n) * fresh;
  array(tanh_c, n) = array(c, n).tanh();
  array(h, n) = array(gates + 2 * n, n) * array(tanh_c, n);
}

/// `dh` is dL/dh; `dc` is dL/dc of the later step on entry and of the earlier step, whose c was `c_before`, on return.
/// `d_gates` [4 n] becomes the gradient of the sums.
template <class T>
void lstm_cell_backward(const T* gates, const T* c_before, const T* tanh_c, const T* dh, T* dc, T* d_gates,
                        std::size_t n) {
  for (std::size_t j = 0; j < n; ++j) {
    const T i = gates[j], f = gates[n + j], o = gates[2 * n + j], g = gates[3 * n + j], tc = tanh_c[j];
    const T d = dc[j] + dh[j] * o * (1 - tc * tc);
    d_gates[j] = d * g * i * (1 - i);
    d_gates[n + j] = d * c_before[j] * f * (1 - f);
    d_gates[2 * n + j] = dh[j] * tc * o * (1 - o);
    d_gates[3 * n + j] = d * i * (1 - g * g);
    dc[j] = d * f;
  }
}

/// An LSTM along the rows of each program, forwards or backwards.
///
/// Shapes: x (R, in) in time order, y (R, hidden). Parameters: input (in, 4 hidden) with one bias, recurrent (hidden, 4
/// hidden), all initially uniform within 1 / sqrt(hidden).
/// Cost:   one matrix product for all inputs, and one per step, over the active programs, for the recurrent part.
struct Lstm {
  Linear input;
  std::size_t hidden = 0, recurrent = 0;
  bool reverse = false;

  template <class T>
  struct Trace {
    Matrix<T> gates;                         // (R, 4 hidden), activations
    Matrix<T> h_before, c_before, tanh_c;    // (R, hidden)
    Matrix<T> h, c, projected, d_gates, dh;  // states (P, ...), gradients
  };

  Lstm() = default;
  Lstm(ParameterLayout& layout, const std::string& name, std::size_t in, std::size_t cells, bool backwards);

  /// Writes the states into `y`, (R, hidden), which may be part of a wider matrix.
  template <class T>
  void forward(const T* w, const Matrix<T>& x, const TimeOrder& order, Trace<T>& t,
               std::type_identity_t<View<T>> y) const {
    const std::size_t programs = padded(order.active(0));
    input.forward(w, x, t.gates);
    for (Matrix<T>* m : {&t.h_before, &t.c_before, &t.tanh_c}) m->resize(x.rows(), hidden);
    for (Matrix<T>* m : {&t.h, &t.c}) {
      m->resize(programs, hidden);
      m->fill(T{0});
    }
    t.projected.resize(programs, 4 * hidden);
    for (std::size_t i = 0; i < order.steps(); ++i) {
      const std::size_t step = reverse ? order.steps() - 1 - i : i;
      const std::size_t first = order.starts[step], n = order.active(step);
      if (i > 0) {
        multiply<T>(t.h.view().block(0, padded(n), 0, hidden), recurrent_of(w),
                    t.projected.view().block(0, padded(n), 0, 4 * hidden));
      }
      for (std::size_t j = 0; j < n; ++j) {
        const std::size_t r = first + j;
        if (i > 0) array(t.gates.row(r), 4 * hidden) += array(t.projected.row(j), 4 * hidden);
        std::copy_n(t.h.row(j), hidden, t.h_before.row(r));
        std::copy_n(t.c.row(j), hidden, t.c_before.row(r));
        lstm_cell(t.gates.row(r), t.c.row(j), t.h.row(j), t.tanh_c.row(r), hidden);
        std::copy_n(t.h.row(j), hidden, y.row(r));
      }
    }
  }

  /// Adds dL/dx to `dx` unless `dx` is null.
  template <class T>
  void backward(const T* w, T* g, const Matrix<T>& x, const TimeOrder& order, Trace<T>& t,
                std::type_identity_t<View<const T>> dy, Matrix<T>* dx) const {
    const std::size_t rows = order.row.size(), programs = order.active(0);
    t.d_gates.resize(x.rows(), 4 * hidden);
    std::fill(t.d_gates.row(rows), t.d_gates.row(x.rows()), T{0});
    t.dh.resize(programs, hidden);
    t.dh.fill(T{0});
    t.c.fill(T{0});  // from here on, t.c is dL/dc
    for (std::size_t i = order.steps(); i-- > 0;) {
      const std::size_t step = reverse ? order.steps() - 1 - i : i;
      const std::size_t first = order.starts[step], n = order.active(step);
      for (std::size_t j = 0; j < n; ++j) {
        const std::size_t r = first + j;
        array(t.dh.row(j), hidden) += array(dy.row(r), hidden);
        lstm_cell_backward(t.gates.row(r), t.c_before.row(r), t.tanh_c.row(r), t.dh.row(j), t.c.row(j),
                           t.d_gates.row(r), hidden);
      }
      if (i == 0) break;
      multiply_transposed<T>(t.d_gates.view().block(first, n, 0, 4 * hidden), recurrent_of(w),
                             t.dh.view().block(0, n, 0, hidden));
    }
    add_transposed_multiply<T>(t.h_before.view().block(0, rows, 0, hidden),
                               t.d_gates.view().block(0, rows, 0, 4 * hidden),
                               View<T>{g + recurrent, hidden, 4 * hidden, 4 * hidden});
    input.backward<T>(w, g, x, t.d_gates, nullptr);
    if (dx == nullptr) return;
    multiply_transposed<T>(t.d_gates.view(), View<const T>{w + input.weight, input.in, input.out, input.out},
                           dx->view(), true);
  }

 private:
  template <class T>
  View<const T> recurrent_of(const T* w) const {
    return {w + recurrent, hidden, 4 * hidden, 4 * hidden};
  }
};

/// Two LSTMs, one per direction: y (R, 2 hidden) = [forward, backward].
struct BidirectionalLstm {
  std::array<Lstm, 2> way;

  template <class T>
  using Trace = std::array<Lstm::Trace<T>, 2>;

  BidirectionalLstm() = default;
  BidirectionalLstm(ParameterLayout& layout, const std::string& name, std::size_t in, std::size_t cells)
      : way{Lstm(layout, name + ".forward", in, cells, false), Lstm(layout, name + ".backward", in, cells, true)} {}

  template <class T>
  void forward(const T* w, const Matrix<T>& x, const TimeOrder& order, Trace<T>& t, Matrix<T>& y) const {
    const std::size_t cells = way[0].hidden;
    y.resize(x.rows(), 2 * cells);
    std::fill(y.row(order.row.size()), y.row(y.rows()), T{0});
    for (std::size_t i = 0; i < 2; ++i)
      way[i].forward(w, x, order, t[i], y.view().block(0, x.rows(), i * cells, cells));
  }
  template <class T>
  void backward(const T* w, T* g, const Matrix<T>& x, const TimeOrder& order, Trace<T>& t, const Matrix<T>& dy,
                Matrix<T>& dx) const {
    const std::size_t cells = way[0].hidden;
    dx.resize(x.rows(), x.columns());
    dx.fill(T{0});
    for (std::size_t i = 0; i < 2; ++i)
      way[i].backward<T>(w, g, x, order, t[i], dy.view().block(0, x.rows(), i * cells, cells), &dx);
  }
};

}  // namespace tunewright::nn

#if TUNEWRIGHT_DEFINES(networks)

namespace tunewright::nn {

TUNEWRIGHT_INLINE void TimeOrder::set(std::span<const std::uint32_t> offsets) {
  std::vector<std::uint32_t> program(offsets.size() - 1);
  std::iota(program.begin(), program.end(), 0U);
  const auto length = [&](std::uint32_t p) { return offsets[p + 1] - offsets[p]; };
  std::sort(program.begin(), program.end(),
            [&](std::uint32_t a, std::uint32_t b) { return length(a) != length(b) ? length(a) > length(b) : a < b; });
  starts.assign(1, 0);
  row.clear();
  for (std::uint32_t t = 0; row.size() < offsets.back(); ++t) {
    for (const std::uint32_t p : program) {
      if (length(p) <= t) break;
      row.push_back(offsets[p] + t);
    }
    starts.push_back(static_cast<std::uint32_t>(row.size()));
  }
}

TUNEWRIGHT_INLINE Lstm::Lstm(ParameterLayout& layout, const std::string& name, std::size_t in, std::size_t cells,
                             bool backwards)
    : hidden(cells), reverse(backwards) {
  const float bound = 1 / std::sqrt(static_cast<float>(cells));
  input.in = in;
  input.out = 4 * cells;
  input.weight = layout.add(name + ".input.weight", in, 4 * cells, -bound, bound);
  input.bias = layout.add(name + ".input.bias", 1, 4 * cells, -bound, bound);
  recurrent = layout.add(name + ".recurrent.weight", cells, 4 * cells, -bound, bound);
}

}  // namespace tunewright::nn

#endif
