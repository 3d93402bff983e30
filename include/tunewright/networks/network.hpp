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
  /// statistics, including training-only parts; of an imported network those in the file, see `ImportedNetwork`.
  std::int64_t parameters = 0;
  std::vector<std::string> output_names{};  ///< in exported code, one an output; empty: those of its operators
};

/// The graph of a network. Throws `std::invalid_argument` if there is none, and for lookups whose tensors it does not
/// have or whose shapes do not fit together.
[[nodiscard]] const ComputeGraph& graph_of(const Network& network);

/// Inputs that a user provides: those of the graph without the rows of lookups. Throws as `graph_of`.
[[nodiscard]] std::vector<TensorId> inputs(const Network& network);

/// Multiply-accumulates of products of two tensors, in convolutions, matrix products and attention. Publications call
/// them MACs (and sometimes FLOPs); sums in pooling and normalisation do not count.
[[nodiscard]] double multiply_accumulates(const ComputeGraph& graph);

namespace detail {

/// The read of an element of a tensor, also behind casts, since products of 16- and 8-bit numbers are computed in wider
/// types; null for any other expression.
[[nodiscard]] inline const program::ExprNode* read_behind_casts(const program::Expr& e) {
  const program::ExprNode* node = e.get();
  while (node->op == program::Op::Cast) node = node->args[0].get();
  return node->op == program::Op::Load ? node : nullptr;
}

}  // namespace detail

}  // namespace tunewright::networks

#if TUNEWRIGHT_DEFINES(whole_networks)

#include <algorithm>
#include <stdexcept>

#include "tunewright/program/analysis.hpp"

namespace tunewright::networks {

namespace detail {

inline void check_lookup(const Network& network, const Lookup& lookup) {
  const ComputeGraph& graph = *network.graph;
  const bool known = std::max({lookup.rows, lookup.table, lookup.ids}) < graph.size();
  if (known) {
    const program::Operator &rows = graph.op(lookup.rows), &table = graph.op(lookup.table), &ids = graph.op(lookup.ids);
    // Numbers come from the caller, not from another lookup.
    const bool given = rows.role == program::Role::Input && table.role == program::Role::Constant &&
                       ids.role == program::Role::Input && ids.type == program::ScalarType::Int32 &&
                       std::none_of(network.lookups.begin(), network.lookups.end(),
                                    [&](const Lookup& other) { return other.rows == lookup.ids; });
    const bool fits = rows.type == table.type && table.axes.size() == 2 &&
                      rows.elements() / table.axes[1].extent == ids.elements() &&
                      rows.elements() % table.axes[1].extent == 0;
    if (given && fits) return;
  }
  throw std::invalid_argument(
      "network '" + network.name + "' looks up rows " + std::to_string(lookup.rows) + " in table " +
      std::to_string(lookup.table) + " by numbers " + std::to_string(lookup.ids) + " of a graph of " +
      std::to_string(graph.size()) +
      " tensors; give an input of the table's type with a row a number, a constant of two "
      "dimensions, and an input of int32 that no lookup fills, as LayerBuilder::embedding does");
}

}  // namespace detail

TUNEWRIGHT_INLINE const ComputeGraph& graph_of(const Network& network) {
  if (!network.graph) {
    throw std::invalid_argument("network '" + network.name +
                                "' has no graph; build one with a LayerBuilder, or set its member `graph`");
  }
  for (const Lookup& lookup : network.lookups) detail::check_lookup(network, lookup);
  return *network.graph;
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
    const bool of_elements = std::all_of(op.body->args.begin(), op.body->args.end(), [](const program::Expr& arg) {
      return detail::read_behind_casts(arg) != nullptr;
    });
    if (of_elements) sum += program::spatial_points(op) * program::reduction_points(op);
  }
  return sum;
}

}  // namespace tunewright::networks

#endif
