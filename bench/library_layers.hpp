// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "library_kernels.hpp"
#include "suite.hpp"
#include "tunewright/core/weighted_task.hpp"
#include "tunewright/program/analysis.hpp"
#include "tunewright/program/operators/dense.hpp"
#include "tunewright/program/task.hpp"

#ifdef TUNEWRIGHT_BENCH_HAS_DNNL
#include "dnnl_kernels.hpp"
#endif

/// The layers of a network as a library has them: convolutions and products alone, without the bias, residual and
/// activation that a task computes with them.
namespace tunewright::bench {

/// A convolution or product, and which tensor of its program is a constant that a library may reorder ahead of time.
struct Layer {
  Shape shape;
  bool constant_operand = true;
};

namespace detail {

/// The two factors of a sum of products; nothing for other operators.
struct Factors {
  const program::ExprNode *left, *right;
};
inline std::optional<Factors> factors_of(const program::Operator& op) {
  using program::Op;
  if (op.combiner != program::Combiner::Sum || op.type != program::ScalarType::Float32) return std::nullopt;
  const program::ExprNode& product = *op.body;
  if (product.op != Op::Multiply || product.args[0]->op != Op::Load || product.args[1]->op != Op::Load)
    return std::nullopt;
  return Factors{product.args[0].get(), product.args[1].get()};
}

/// The image that a window moves over, before it is padded.
inline std::vector<std::int64_t> image_of(const program::ComputeGraph& graph, program::TensorId read) {
  while (graph.op(read).role == program::Role::Computed && graph.producers(read).size() == 1)
    read = graph.producers(read).front();
  return graph.op(read).shape();
}

/// Channels last, batch 1, one stride and the same padding on all sides.
inline std::optional<Shape> convolution_of(const program::ComputeGraph& graph, const program::Operator& op,
                                           const Factors& factors) {
  const bool depthwise = op.axes.size() == 6;  // n, h, w, c, rows and columns of the window; else channels as well
  const std::vector<std::int64_t> image = image_of(graph, factors.left->tensor);
  if (op.rank() != 4 || (!depthwise && op.axes.size() != 7) || image.size() != 4) return std::nullopt;
  const std::int64_t kernel = op.axes[4].extent, stride = factors.left->indices[1].coefficient(1);
  const std::int64_t padding = (graph.op(factors.left->tensor).shape()[1] - image[1]) / 2;
  const std::int64_t channels = op.axes[3].extent;
  if (depthwise) {
    if (kernel != 3 || padding != 1 || image[1] != image[2] || image[3] != channels) return std::nullopt;
    return DepthwiseShape{image[1], channels, stride};
  }
  if (op.axes[6].extent != image[3] || op.axes[5].extent != kernel) return std::nullopt;  // groups, long windows
  return ConvolutionShape{image[1], image[2], image[3], channels, kernel, stride, padding};
}

/// One product, or a batch of them.
inline std::optional<Shape> product_of(const program::Operator& op, const Factors& factors) {
  const std::size_t rank = op.rank();
  if ((rank != 2 && rank != 3) || op.axes.size() != rank + 1) return std::nullopt;
  const auto columns = static_cast<program::Var>(rank - 1), terms = static_cast<program::Var>(rank);
  return Product{.batch = rank == 3 ? op.axes[0].extent : 1,
                 .m = op.axes[rank - 2].extent,
                 .n = op.axes[columns].extent,
                 .k = op.axes[terms].extent,
                 .transpose_a = !factors.left->indices.back().uses(terms),
                 .transpose_b = !factors.right->indices.back().uses(columns)};
}

/// The program of a layer alone; a product with a constant has the weight of a dense layer.
inline std::shared_ptr<const program::ComputeGraph> program_of(const Layer& layer) {
  const auto* p = std::get_if<Product>(&layer.shape);
  if (p == nullptr || !layer.constant_operand) return bench::program_of(layer.shape);
  return program::operators::dense_graph({.batch = p->m, .in = p->k, .out = p->n, .bias = false});
}

}  // namespace detail

/// The convolution or product of a task; nothing if it has none, or one that `Shape` does not describe, such as a
/// window that is not square. Cost: linear in the operators.
[[nodiscard]] inline std::optional<Layer> layer_of(const program::ComputeGraph& graph) {
  for (program::TensorId id = 0; id < graph.size(); ++id) {
    const program::Operator& op = graph.op(id);
    if (op.role != program::Role::Computed) continue;
    const auto factors = detail::factors_of(op);
    if (!factors) continue;
    const bool constant = graph.op(factors->right->tensor).role == program::Role::Constant;
    const auto shape =
        constant && op.rank() == 4 ? detail::convolution_of(graph, op, *factors) : detail::product_of(op, *factors);
    if (!shape) continue;
    const auto* product = std::get_if<Product>(&*shape);
    if (constant && product != nullptr && (product->batch > 1 || product->transpose_a || product->transpose_b))
      continue;
    const Layer layer{*shape, constant};
    if (program::flops(*detail::program_of(layer)) == program::flops(op)) return layer;
  }
  return std::nullopt;
}

/// A layer of a network in a library.
struct LibraryLayer {
  std::size_t task;  ///< whose layer it is
  Task alone;        ///< the layer without what the network's task fuses with it
  codegen::Kernel kernel;
};

/// The layers of `tasks` that oneDNN has; none in a program that is built without it. Call it before the measurer that
/// times them is made, see library_kernels.hpp.
[[nodiscard]] inline std::vector<LibraryLayer> onednn_layers([[maybe_unused]] std::span<const WeightedTask> tasks) {
  std::vector<LibraryLayer> layers;
#ifdef TUNEWRIGHT_BENCH_HAS_DNNL
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    const Task& task = tasks[t].task;
    const auto layer = layer_of(*task.graph);
    if (!layer) continue;
    const auto graph = detail::program_of(*layer);
    LibraryCall call;
    if (const auto* p = std::get_if<Product>(&layer->shape))
      call = dnnl_kernel(*p, layer->constant_operand);
    else
      call = std::visit([](const auto& s) { return dnnl_kernel(s); }, layer->shape);
    layers.push_back({t, program::make_task(name_of(layer->shape), graph, task.target),
                      library_kernel("oneDNN", graph, std::move(call)).kernel});
  }
#endif
  return layers;
}

}  // namespace tunewright::bench
