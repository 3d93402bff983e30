// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tunewright/data/auto_scheduler_log/record.hpp"
#include "tunewright/program/graph.hpp"
#include "tunewright/program/operators/elementwise.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/operators/pad.hpp"
#include "tunewright/program/operators/softmax.hpp"

/// Layers that TVM extracted from networks: their workload key is a hash and the shapes of inputs and output.
namespace tunewright::data::ansor::detail {

using LayerShape = std::vector<std::int64_t>;

/// Arithmetic with a few extents of at most this size does not overflow, and factors of indices stay within the 2^31 of
/// `program::graph_from_json`.
inline constexpr std::int64_t most_extent = std::int64_t{1} << 30;

/// Shapes after a hash of 32 digits; empty for other keys, and for extents that are not from 1 to `most_extent`.
[[nodiscard]] inline std::optional<std::vector<LayerShape>> layer_shapes(const Workload& workload) {
  const bool hash =
      workload.name.size() == 32 && workload.name.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!hash) return std::nullopt;
  std::vector<LayerShape> shapes;
  for (const json::Literal& argument : workload.arguments) {
    if (argument.array() == nullptr) return std::nullopt;
    LayerShape& shape = shapes.emplace_back();
    for (const json::Literal& extent : *argument.array()) {
      if (extent.integer() == nullptr || *extent.integer() < 1 || *extent.integer() > most_extent) return std::nullopt;
      shape.push_back(*extent.integer());
    }
  }
  return shapes;
}

/// A window over an image: stride and symmetric padding that lead from `in` to `out` positions; empty if there are
/// none.
struct LayerWindow {
  std::int64_t taps = 1, stride = 1, padding = 0;

  [[nodiscard]] static std::optional<LayerWindow> between(std::int64_t in, std::int64_t out, std::int64_t taps) {
    const LayerWindow window{taps, (in + out - 1) / out, (taps - 1) / 2};
    const std::int64_t room = in + 2 * window.padding - taps;
    if (room < 0 || room / window.stride + 1 != out) return std::nullopt;
    return window;
  }
};

/// Zeros (or `value`) around the image of [n, c, h, w, block].
inline program::Tensor padded_blocks(program::ComputeGraph& graph, const program::Tensor& x, const LayerWindow& h,
                                     const LayerWindow& w, double value) {
  const LayerShape amount{0, 0, h.padding, w.padding, 0};
  return program::operators::pad(graph, x, {.before = amount, .after = amount, .value = value, .name = "pad"});
}

/// The elementwise operations that follow: each further input is added, or multiplied if two inputs with one number per
/// channel follow; ReLU if there is a bias.
inline void add_epilogue(program::ComputeGraph& graph, program::Tensor x, const std::vector<LayerShape>& inputs) {
  const auto is_bias = [&](const LayerShape& shape) { return shape != x.shape; };
  const auto biases = std::count_if(inputs.begin(), inputs.end(), is_bias);
  bool scales = biases > 1;
  for (const LayerShape& shape : inputs) {
    const program::Tensor other = graph.input("input", shape);
    if (is_bias(shape) && scales) {
      x = program::operators::multiply(graph, x, other);
      scales = false;
    } else {
      x = program::operators::add(graph, x, other);
    }
  }
  if (biases > 0) program::operators::relu(graph, x);
}

/// Convolution of blocked channels, x [n, ci, h, w, bi] by weight [co, ci, kh, kw, bi, bo].
inline bool add_blocked_convolution(program::ComputeGraph& graph, const std::vector<LayerShape>& shapes) {
  const LayerShape &in = shapes[0], &kernel = shapes[1], &out = shapes.back();
  const auto h = LayerWindow::between(in[2], out[2], kernel[2]);
  const auto w = LayerWindow::between(in[3], out[3], kernel[3]);
  if (!h || !w || kernel[1] != in[1] || kernel[4] != in[4] || out[1] != kernel[0] || out[4] != kernel[5]) return false;
  const program::Tensor x = graph.input("data", in);
  const program::Tensor padded = padded_blocks(graph, x, *h, *w, 0);
  const program::Tensor weight = graph.constant("kernel", kernel);
  const std::int64_t block = in[4];
  const program::Tensor result = graph.reduce(
      "conv2d", {{"n", in[0]}, {"oc", out[1]}, {"h", out[2]}, {"w", out[3]}, {"ob", out[4]}},
      {{"ic", in[1] * block}, {"rh", kernel[2]}, {"rw", kernel[3]}}, program::Combiner::Sum, [&](auto i, auto r) {
        const auto range = [&](program::Var) { return program::Range{0, in[1] * block - 1}; };
        const auto outer = program::IndexExpr::quotient(r[0], block, range);
        const auto inner = program::IndexExpr::remainder(r[0], block, range);
        return padded(i[0], outer, i[2] * h->stride + r[1], i[3] * w->stride + r[2], inner) *
               weight(i[1], outer, r[1], r[2], inner, i[4]);
      });
  add_epilogue(graph, result, {shapes.begin() + 2, shapes.end() - 1});
  return true;
}

/// Pooling of blocked channels: the mean of the whole image, or a 3 x 3 maximum with its elementwise operations.
inline bool add_blocked_pooling(program::ComputeGraph& graph, const std::vector<LayerShape>& shapes) {
  const LayerShape &in = shapes[0], &out = shapes.back();
  const bool mean = shapes.size() == 2 && out[2] == 1 && out[3] == 1;
  const auto h = mean ? LayerWindow{in[2]} : LayerWindow::between(in[2], out[2], 3);
  const auto w = mean ? LayerWindow{in[3]} : LayerWindow::between(in[3], out[3], 3);
  if (!h || !w || in[1] != out[1] || in[4] != out[4]) return false;
  const std::vector<program::Axis> spatial{{"n", in[0]}, {"c", out[1]}, {"h", out[2]}, {"w", out[3]}, {"b", out[4]}};
  const program::Tensor x = graph.input("data", in);
  const program::Tensor padded = mean ? x : padded_blocks(graph, x, *h, *w, -1e30);
  const program::Tensor pooled = graph.reduce(
      "pool", spatial, {{"rh", h->taps}, {"rw", w->taps}}, mean ? program::Combiner::Sum : program::Combiner::Max,
      [&](auto i, auto r) { return padded(i[0], i[1], i[2] * h->stride + r[0], i[3] * w->stride + r[1], i[4]); });
  if (mean) {
    program::operators::scale(graph, pooled, 1.0 / static_cast<double>(in[2] * in[3]), "mean");
  } else {
    add_epilogue(graph, pooled, {shapes.begin() + 1, shapes.end() - 1});
  }
  return true;
}

/// The layer suggested by the shapes: blocked convolution or pooling with elementwise operations, a dense layer with
/// bias, or softmax; empty if they suggest nothing. The elementwise operations are a guess, because the hash hides
/// them; a wrong guess shows when steps refer to a missing stage.
[[nodiscard]] inline std::shared_ptr<const program::ComputeGraph> relay_layer(const Workload& workload) {
  const auto shapes = layer_shapes(workload);
  if (!shapes || shapes->size() < 2) return nullptr;
  const std::size_t inputs = shapes->size() - 1;
  const auto rank = [&](std::size_t i) { return (*shapes)[i].size(); };
  auto graph = std::make_shared<program::ComputeGraph>();
  bool known = false;
  if (rank(0) == 5 && rank(inputs) == 5 && inputs > 1 && rank(1) == 6) {
    known = add_blocked_convolution(*graph, *shapes);
  } else if (rank(0) == 5 && rank(inputs) == 5) {
    known = add_blocked_pooling(*graph, *shapes);
  } else if (rank(0) == 2 && inputs == 3 && rank(1) == 2) {
    const program::Tensor x = graph->input("data", (*shapes)[0]);
    const program::Tensor weight = graph->constant("weight", (*shapes)[1]);
    const program::Tensor product = program::operators::matmul(*graph, x, weight, {.transpose_b = true});
    program::operators::add(*graph, product, graph->input("bias", (*shapes)[2]));
    known = true;
  } else if (rank(0) == 2 && inputs == 1 && (*shapes)[0] == (*shapes)[1]) {
    program::operators::softmax(*graph, graph->input("data", (*shapes)[0]));
    known = true;
  }
  return known ? graph : nullptr;
}

}  // namespace tunewright::data::ansor::detail
