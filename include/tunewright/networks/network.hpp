// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/program/graph.hpp"

/// Whole models (ResNet, BERT, GPT-2, ...) as compute graphs, to be tuned and run. The neural networks of cost models
/// are in `nn/` and `models/`.
namespace tunewright::networks {

using program::ComputeGraph;
using program::TensorId;

/// A table lookup: rows[t, c] = table[ids[t], c].
///
/// Index expressions are quasi-affine in the axes, so no operator can read at data-dependent addresses. A lookup is
/// therefore a copy before the graph runs: `rows` is an input of the graph.
struct Lookup {
  TensorId rows = 0;   ///< input [.., columns]: one row per index
  TensorId table = 0;  ///< constant [entries, columns]
  TensorId ids = 0;    ///< input of int32, from 0 to entries - 1
};

/// A model for inference: one compute graph whose constants are the weights.
struct Network {
  std::string name;
  std::shared_ptr<const ComputeGraph> graph;
  std::vector<TensorId> outputs;  ///< what the model returns, in its order; also others than `graph->outputs()`
  std::vector<Lookup> lookups;
  /// Number of trainable parameters: weights before batch normalisation was folded into them, without running
  /// statistics, including training-only parts.
  std::int64_t parameters = 0;
  std::vector<std::string> output_names{};  ///< in exported code, one an output; empty: those of its operators
};

/// The graph of a network. Throws `std::invalid_argument` if there is none.
[[nodiscard]] const ComputeGraph& graph_of(const Network& network);

/// Inputs that a user provides: those of the graph without the rows of lookups. Throws as `graph_of`.
[[nodiscard]] std::vector<TensorId> inputs(const Network& network);

/// Multiply-accumulates of products of two tensors, in convolutions, matrix products and attention. Publications call
/// them MACs (and sometimes FLOPs); sums in pooling and normalisation do not count.
[[nodiscard]] double multiply_accumulates(const ComputeGraph& graph);

}  // namespace tunewright::networks

#if TUNEWRIGHT_DEFINES(whole_networks)

#include <algorithm>
#include <stdexcept>

#include "tunewright/program/analysis.hpp"

namespace tunewright::networks {

TUNEWRIGHT_INLINE const ComputeGraph& graph_of(const Network& network) {
  if (network.graph) return *network.graph;
  throw std::invalid_argument("network '" + network.name +
                              "' has no graph; build one with a LayerBuilder, or set its member `graph`");
}

TUNEWRIGHT_INLINE std::vector<TensorId> inputs(const Network& network) {
  const ComputeGraph& graph = graph_of(network);
  std::vector<TensorId> found;
  for (TensorId id = 0; id < graph.size(); ++id) {
    if (graph.op(id).role != program::Role::Input) continue;
    const bool filled = std::any_of(network.lookups.begin(), network.lookups.end(),
                                    [id](const Lookup& lookup) { return lookup.rows == id; });
    if (!filled) found.push_back(id);
  }
  return found;
}

TUNEWRIGHT_INLINE double multiply_accumulates(const ComputeGraph& graph) {
  double sum = 0;
  for (TensorId id = 0; id < graph.size(); ++id) {
    const program::Operator& op = graph.op(id);
    if (op.combiner != program::Combiner::Sum || op.body->op != program::Op::Multiply) continue;
    const bool of_elements = std::all_of(op.body->args.begin(), op.body->args.end(),
                                         [](const program::Expr& arg) { return arg->op == program::Op::Load; });
    if (of_elements) sum += program::spatial_points(op) * program::reduction_points(op);
  }
  return sum;
}

}  // namespace tunewright::networks

#endif
