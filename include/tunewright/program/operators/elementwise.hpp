// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/program/operators/checks.hpp"

namespace tunewright::program::operators {

/// out[i..] = f(x[i..]) for a function of one scalar expression.
template <class F>
Tensor map(ComputeGraph& graph, const Tensor& x, std::string name, const F& f) {
  return graph.compute(std::move(name), detail::axes_over(x.shape),
                       [&](auto i) { return f(x.at({i.begin(), i.end()})); });
}

/// out[i..] = f(a[i..], b[i..]), where dimensions of extent 1, and missing leading dimensions, are broadcast to those
/// of the other operand. Throws `std::invalid_argument` for shapes that do not broadcast.
template <class F>
Tensor map(ComputeGraph& graph, const Tensor& a, const Tensor& b, std::string name, const F& f) {
  const std::size_t rank = std::max(a.shape.size(), b.shape.size());
  std::vector<std::int64_t> shape(rank, 1);
  for (const Tensor* operand : {&a, &b}) {
    const std::size_t missing = rank - operand->shape.size();
    for (std::size_t d = 0; d < operand->shape.size(); ++d) {
      std::int64_t& extent = shape[d + missing];
      if (extent == 1) extent = operand->shape[d];
      if (operand->shape[d] != 1 && operand->shape[d] != extent) {
        detail::refuse(name, "shapes " + detail::shape_text(a.shape) + " and " + detail::shape_text(b.shape) +
                                 " do not broadcast; dimensions, counted from the last, must be equal or 1");
      }
    }
  }
  const auto read = [&](const Tensor& operand, auto i) {
    std::vector<IndexExpr> indices;
    const std::size_t missing = rank - operand.shape.size();
    for (std::size_t d = 0; d < operand.shape.size(); ++d) {
      indices.push_back(operand.shape[d] == shape[d + missing] ? i[d + missing] : IndexExpr(0));
    }
    return operand.at(std::move(indices));
  };
  return graph.compute(std::move(name), detail::axes_over(shape), [&](auto i) { return f(read(a, i), read(b, i)); });
}

/// max(x, 0)
inline Tensor relu(ComputeGraph& graph, const Tensor& x, std::string name = "relu") {
  return map(graph, x, std::move(name), [](const Expr& v) { return max(v, Expr(0.0)); });
}
/// min(max(x, low), high), such as ReLU6 with 0 and 6. Bounds saturate to the range of an integer type. Throws
/// `std::invalid_argument` if low > high, and for a fractional bound of an integer type.
Tensor clip(ComputeGraph& graph, const Tensor& x, double low, double high, std::string name = "clip");
// Functions below with fractions in their formula throw `std::invalid_argument` unless the tensor has floating-point
// elements.

/// x * Phi(x) = x/2 * (1 + erf(x / sqrt 2)). Paper: Hendrycks and Gimpel, arXiv 1606.08415 (the exact form).
Tensor gelu(ComputeGraph& graph, const Tensor& x, std::string name = "gelu");
/// x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))), the approximation of `gelu` used to train GPT-2. Paper: the same.
Tensor gelu_tanh(ComputeGraph& graph, const Tensor& x, std::string name = "gelu_tanh");
/// 1 / (1 + exp(-x))
Tensor sigmoid(ComputeGraph& graph, const Tensor& x, std::string name = "sigmoid");
/// x * sigmoid(x), also called swish.
Tensor silu(ComputeGraph& graph, const Tensor& x, std::string name = "silu");
Tensor tanh(ComputeGraph& graph, const Tensor& x, std::string name = "tanh");
Tensor exp(ComputeGraph& graph, const Tensor& x, std::string name = "exp");
Tensor sqrt(ComputeGraph& graph, const Tensor& x, std::string name = "sqrt");
/// x * factor. Throws `std::invalid_argument` for a factor that is not a number of the type of x.
Tensor scale(ComputeGraph& graph, const Tensor& x, double factor, std::string name = "scale");
inline Tensor cast(ComputeGraph& graph, const Tensor& x, ScalarType type, std::string name = "cast") {
  return map(graph, x, std::move(name), [&](const Expr& v) { return program::cast(v, type); });
}

/// a + b, broadcasting.
inline Tensor add(ComputeGraph& graph, const Tensor& a, const Tensor& b, std::string name = "add") {
  return map(graph, a, b, std::move(name), [](const Expr& x, const Expr& y) { return x + y; });
}
/// a - b, broadcasting.
inline Tensor subtract(ComputeGraph& graph, const Tensor& a, const Tensor& b, std::string name = "subtract") {
  return map(graph, a, b, std::move(name), [](const Expr& x, const Expr& y) { return x - y; });
}
/// a * b, broadcasting.
inline Tensor multiply(ComputeGraph& graph, const Tensor& a, const Tensor& b, std::string name = "multiply") {
  return map(graph, a, b, std::move(name), [](const Expr& x, const Expr& y) { return x * y; });
}
/// a / b, broadcasting.
inline Tensor divide(ComputeGraph& graph, const Tensor& a, const Tensor& b, std::string name = "divide") {
  return map(graph, a, b, std::move(name), [](const Expr& x, const Expr& y) { return x / y; });
}
/// max(a, b), broadcasting.
inline Tensor maximum(ComputeGraph& graph, const Tensor& a, const Tensor& b, std::string name = "maximum") {
  return map(graph, a, b, std::move(name), [](const Expr& x, const Expr& y) { return max(x, y); });
}
/// min(a, b), broadcasting.
inline Tensor minimum(ComputeGraph& graph, const Tensor& a, const Tensor& b, std::string name = "minimum") {
  return map(graph, a, b, std::move(name), [](const Expr& x, const Expr& y) { return min(x, y); });
}

/// Adds one number per channel: bias [c] along dimension `axis` of x (the last by default). Throws
/// `std::invalid_argument` if the bias does not have the channels of x.
Tensor bias_add(ComputeGraph& graph, const Tensor& x, const Tensor& bias, int axis = -1, std::string name = "bias_add");

}  // namespace tunewright::program::operators

#if TUNEWRIGHT_DEFINES(program)

#include "tunewright/core/number_text.hpp"

namespace tunewright::program::operators {

TUNEWRIGHT_INLINE Tensor clip(ComputeGraph& graph, const Tensor& x, double low, double high, std::string name) {
  if (!(low <= high)) {
    detail::refuse(name, "bounds " + number_text(low) + " and " + number_text(high) +
                             " are in the wrong order; give the lower one first");
  }
  low = detail::within_range_of(low, x.type);
  high = detail::within_range_of(high, x.type);
  detail::require_number_of(name, "the lower bound", low, x);
  detail::require_number_of(name, "the upper bound", high, x);
  return map(graph, x, std::move(name), [&](const Expr& v) { return min(max(v, Expr(low)), Expr(high)); });
}

TUNEWRIGHT_INLINE Tensor gelu(ComputeGraph& graph, const Tensor& x, std::string name) {
  detail::require_floating_point(name, "the input", x);
  return map(graph, x, std::move(name),
             [](const Expr& v) { return v * 0.5 * (erf(v * 0.70710678118654752440) + 1.0); });
}

TUNEWRIGHT_INLINE Tensor gelu_tanh(ComputeGraph& graph, const Tensor& x, std::string name) {
  detail::require_floating_point(name, "the input", x);
  return map(graph, x, std::move(name), [](const Expr& v) {
    return v * 0.5 * (program::tanh((v + v * v * v * 0.044715) * 0.79788456080286535588) + 1.0);
  });
}

TUNEWRIGHT_INLINE Tensor sigmoid(ComputeGraph& graph, const Tensor& x, std::string name) {
  detail::require_floating_point(name, "the input", x);
  return map(graph, x, std::move(name), [](const Expr& v) { return Expr(1.0) / (exp(-v) + 1.0); });
}

TUNEWRIGHT_INLINE Tensor silu(ComputeGraph& graph, const Tensor& x, std::string name) {
  detail::require_floating_point(name, "the input", x);
  return map(graph, x, std::move(name), [](const Expr& v) { return v / (exp(-v) + 1.0); });
}

TUNEWRIGHT_INLINE Tensor tanh(ComputeGraph& graph, const Tensor& x, std::string name) {
  detail::require_floating_point(name, "the input", x);
  return map(graph, x, std::move(name), [](const Expr& v) { return program::tanh(v); });
}

TUNEWRIGHT_INLINE Tensor exp(ComputeGraph& graph, const Tensor& x, std::string name) {
  detail::require_floating_point(name, "the input", x);
  return map(graph, x, std::move(name), [](const Expr& v) { return program::exp(v); });
}

TUNEWRIGHT_INLINE Tensor sqrt(ComputeGraph& graph, const Tensor& x, std::string name) {
  detail::require_floating_point(name, "the input", x);
  return map(graph, x, std::move(name), [](const Expr& v) { return program::sqrt(v); });
}

TUNEWRIGHT_INLINE Tensor scale(ComputeGraph& graph, const Tensor& x, double factor, std::string name) {
  detail::require_number_of(name, "the factor", factor, x);
  return map(graph, x, std::move(name), [&](const Expr& v) { return v * factor; });
}

TUNEWRIGHT_INLINE Tensor bias_add(ComputeGraph& graph, const Tensor& x, const Tensor& bias, int axis,
                                  std::string name) {
  const std::size_t channel = detail::dimension(name, axis, x.shape.size());
  detail::require_rank(name, "bias", bias, 1, "[channels]");
  detail::require_extent(name, "length of the bias", bias.shape[0], x.shape[channel], "give one number a channel");
  return graph.compute(std::move(name), detail::axes_over(x.shape),
                       [&](auto i) { return x.at({i.begin(), i.end()}) + bias(i[channel]); });
}

}  // namespace tunewright::program::operators

#endif
