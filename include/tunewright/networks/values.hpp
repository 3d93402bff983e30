// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/core/rng.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/networks/network.hpp"
#include "tunewright/reference/evaluate.hpp"

/// Weights and inputs of networks, and their reference evaluation.
namespace tunewright::networks {

/// Values for all inputs and constants of a network, by tensor, that keep activations in the range of trained networks:
/// factors of sums are scaled by 1 over the square root of the number of terms (twice that variance, He et al., arXiv
/// 1502.01852, because about half of the operands after ReLU are zeros), lookup indices are uniform among the rows, and
/// all others are as `program::random_number` draws them.
///
/// Determinism: a function of the network and of `rng`, which is not advanced; each tensor has its own stream.
[[nodiscard]] reference::Tensors random_values(const Network& network, const Rng& rng);

/// Throws `std::invalid_argument` unless `tensors` has one array per tensor of the network, and that of tensor `id` has
/// its type and shape.
void check_array(const Network& network, TensorId id, const reference::Tensors& tensors);

/// The rows of `table` selected by `ids`. Throws `std::invalid_argument` for indices outside the table.
[[nodiscard]] reference::Array looked_up(const Network& network, const Lookup& lookup, const reference::Array& table,
                                         const reference::Array& ids);

/// Performs the lookups: `tensors` has the inputs of `inputs(network)` and the constants. Throws as `check_array` and
/// `looked_up`.
void fill_lookups(const Network& network, reference::Tensors& tensors);

/// Every tensor of the network by `reference::evaluate`, including lookups.
[[nodiscard]] reference::Tensors evaluate(const Network& network, reference::Tensors tensors,
                                          const reference::EvaluateOptions& options = {});

}  // namespace tunewright::networks

#if TUNEWRIGHT_DEFINES(whole_networks)

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/program/analysis.hpp"
#include "tunewright/program/random_number.hpp"

namespace tunewright::networks {

TUNEWRIGHT_INLINE reference::Tensors random_values(const Network& network, const Rng& rng) {
  const ComputeGraph& graph = graph_of(network);
  std::vector<double> bound(graph.size(), 1);
  for (TensorId id = 0; id < graph.size(); ++id) {
    const program::Operator& op = graph.op(id);
    if (op.combiner != program::Combiner::Sum || op.body->op != program::Op::Multiply) continue;
    for (const program::Expr& factor : op.body->args) {
      const program::ExprNode* read = detail::read_behind_casts(factor);
      if (read == nullptr || graph.op(read->tensor).role != program::Role::Constant) continue;
      bound[read->tensor] = std::sqrt(6 / program::reduction_points(op));  // a uniform distribution's bound
    }
  }
  std::vector<std::int64_t> rows(graph.size(), 0);
  for (const Lookup& lookup : network.lookups) {
    const std::int64_t entries = graph.op(lookup.table).axes[0].extent;
    std::int64_t& fewest = rows[lookup.ids];  // of all tables that the same numbers pick from
    fewest = fewest == 0 ? entries : std::min(fewest, entries);
  }
  reference::Tensors tensors(graph.size());
  for (TensorId id = 0; id < graph.size(); ++id) {
    const program::Operator& op = graph.op(id);
    if (op.role == program::Role::Computed) continue;
    tensors[id] = reference::Array(op.type, op.shape());
    Rng stream = rng.split(id);
    tensors[id].visit([&](const auto& elements) {
      using T = typename std::decay_t<decltype(elements)>::value_type;
      for (T& element : elements) {
        double number = 0;
        if (rows[id] > 0) {
          number = static_cast<double>(stream.below(static_cast<std::uint64_t>(rows[id])));
        } else {
          number = program::random_number(op.type, stream);
          if (is_float(op.type)) number *= bound[id];
        }
        element = static_cast<T>(number);
      }
    });
  }
  fill_lookups(network, tensors);
  return tensors;
}

TUNEWRIGHT_INLINE void check_array(const Network& network, TensorId id, const reference::Tensors& tensors) {
  const program::Operator& op = graph_of(network).op(id);
  if (tensors.size() == network.graph->size() && tensors[id].type() == op.type && tensors[id].shape() == op.shape())
    return;
  throw std::invalid_argument("network '" + network.name + "': no array, or one of another type or shape, was given " +
                              "for tensor " + std::to_string(id) + " ('" + op.name +
                              "'); give one array a tensor, as random_values does");
}

TUNEWRIGHT_INLINE reference::Array looked_up(const Network& network, const Lookup& lookup,
                                             const reference::Array& table, const reference::Array& ids) {
  const program::Operator& op = network.graph->op(lookup.rows);
  reference::Array rows(op.type, op.shape());
  const std::span<const std::int32_t> numbers = ids.elements<std::int32_t>();
  const std::size_t row_bytes = rows.size_in_bytes() / numbers.size();
  const auto entries = static_cast<std::int64_t>(table.size_in_bytes() / row_bytes);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] < 0 || numbers[i] >= entries) {
      throw std::invalid_argument("network '" + network.name + "': element " + std::to_string(i) + " of input '" +
                                  network.graph->op(lookup.ids).name + "' is " + std::to_string(numbers[i]) +
                                  "; give numbers from 0 to " + std::to_string(entries - 1));
    }
    std::memcpy(static_cast<std::byte*>(rows.data()) + i * row_bytes,
                static_cast<const std::byte*>(table.data()) + static_cast<std::size_t>(numbers[i]) * row_bytes,
                row_bytes);
  }
  return rows;
}

TUNEWRIGHT_INLINE void fill_lookups(const Network& network, reference::Tensors& tensors) {
  static_cast<void>(graph_of(network));
  for (const Lookup& lookup : network.lookups) {
    for (const TensorId id : {lookup.table, lookup.ids}) check_array(network, id, tensors);
    tensors[lookup.rows] = looked_up(network, lookup, tensors[lookup.table], tensors[lookup.ids]);
  }
}

TUNEWRIGHT_INLINE reference::Tensors evaluate(const Network& network, reference::Tensors tensors,
                                              const reference::EvaluateOptions& options) {
  const ComputeGraph& graph = graph_of(network);
  fill_lookups(network, tensors);
  return reference::evaluate(graph, std::move(tensors), options);
}

}  // namespace tunewright::networks

#endif
