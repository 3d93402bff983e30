// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "tunewright/nn/matrix.hpp"
#include "tunewright/nn/parameters.hpp"

namespace tunewright::nn {

/// y = x W + b.
///
/// Shapes: x (R, in), W (in, out), b [out], y (R, out). Weights and biases start uniform in
/// [-1 / sqrt(in), 1 / sqrt(in)].
///
/// All layers work alike: they hold only shapes and offsets. `forward` reads the network's parameters and writes what
/// the next layer and `backward` need; `backward` takes dL/dy, adds dL/dW at the same offsets of `gradient`, and writes
/// dL/dx. Both are templates over the number type, so that tests can compare gradients with finite differences in
/// double.
struct Linear {
  std::size_t in = 0, out = 0;
  std::size_t weight = 0, bias = 0;

  Linear() = default;
  Linear(ParameterLayout& layout, const std::string& name, std::size_t inputs, std::size_t outputs)
      : in(inputs), out(outputs) {
    const float bound = 1.0F / std::sqrt(static_cast<float>(in));
    weight = layout.add(name + ".weight", in, out, -bound, bound);
    bias = layout.add(name + ".bias", 1, out, -bound, bound);
  }

  /// The column of W and the bias of one output.
  [[nodiscard]] std::vector<ParameterRange> weights_of_output(std::size_t output) const {
    std::vector<ParameterRange> weights;
    for (std::size_t i = 0; i < in; ++i) weights.push_back({weight + i * out + output, weight + i * out + output + 1});
    weights.push_back({bias + output, bias + output + 1});
    return weights;
  }

  template <class T>
  void forward(const T* parameters, const Matrix<T>& x, Matrix<T>& y) const {
    y.resize(x.rows(), out);
    const T* w = parameters + weight;
    if (out == 1) {
      for (std::size_t r = 0; r < x.rows(); ++r) *y.row(r) = matrix_detail::dot(x.row(r), w, in) + parameters[bias];
      return;
    }
    multiply<T>(x.view(), View<const T>{w, in, out, out}, y.view());
    for (std::size_t r = 0; r < y.rows(); ++r) array(y.row(r), out) += array(parameters + bias, out);
  }

  /// y = max(x W + b, 0).
  template <class T>
  void forward_relu(const T* parameters, const Matrix<T>& x, Matrix<T>& y) const {
    y.resize(x.rows(), out);
    multiply<T>(x.view(), View<const T>{parameters + weight, in, out, out}, y.view());
    for (std::size_t r = 0; r < y.rows(); ++r)
      array(y.row(r), out) = (array(y.row(r), out) + array(parameters + bias, out)).max(T{0});
  }

  /// `dx` is null if no layer below learns.
  template <class T>
  void backward(const T* parameters, T* gradient, const Matrix<T>& x, const Matrix<T>& dy, Matrix<T>* dx) const {
    add_transposed_multiply<T>(x.view(), dy.view(), View<T>{gradient + weight, in, out, out});
    for (std::size_t r = 0; r < dy.rows(); ++r) array(gradient + bias, out) += array(dy.row(r), out);
    if (dx == nullptr) return;
    dx->resize(x.rows(), in);
    multiply_transposed<T>(dy.view(), View<const T>{parameters + weight, in, out, out}, dx->view());
  }
};

/// d = dL/dy becomes dL/dx of y = max(x, 0), where `y` is the output.
template <class T>
void relu_backward(const Matrix<T>& y, Matrix<T>& d) {
  array(d.data(), d.size()) = (array(y.data(), y.size()) > T{0}).select(array(d.data(), d.size()), T{0});
}

/// y = x + max(x W + b, 0), with W (n, n).
struct Residual {
  Linear inner;

  Residual() = default;
  Residual(ParameterLayout& layout, const std::string& name, std::size_t width) : inner(layout, name, width, width) {}

  /// `active` stores max(x W + b, 0) for `backward`.
  template <class T>
  void forward(const T* parameters, const Matrix<T>& x, Matrix<T>& active, Matrix<T>& y) const {
    inner.forward_relu(parameters, x, active);
    y.resize(x.rows(), x.columns());
    array(y.data(), y.size()) = array(active.data(), active.size()) + array(x.data(), x.size());
  }

  /// `d` is dL/dy and becomes dL/dx.
  template <class T>
  void backward(const T* parameters, T* gradient, const Matrix<T>& x, const Matrix<T>& active, Matrix<T>& d,
                Matrix<T>& scratch) const {
    scratch.resize(d.rows(), d.columns());
    array(scratch.data(), d.size()) =
        (array(active.data(), active.size()) > T{0}).select(array(d.data(), d.size()), T{0});
    add_transposed_multiply<T>(x.view(), scratch.view(),
                               View<T>{gradient + inner.weight, inner.in, inner.out, inner.out});
    for (std::size_t r = 0; r < d.rows(); ++r)
      array(gradient + inner.bias, inner.out) += array(scratch.row(r), inner.out);
    multiply_transposed<T>(scratch.view(), View<const T>{parameters + inner.weight, inner.in, inner.out, inner.out},
                           d.view(), true);
  }
};

}  // namespace tunewright::nn
