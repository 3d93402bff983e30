// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

#include "tunewright/detail/config.hpp"
#include "tunewright/networks/layers.hpp"

/// Building blocks of transformers. Tokens of all sequences are the rows of one matrix [batch * tokens, hidden], so
/// that dense layers are plain matrix products; attention views the same memory as [batch, tokens, ..].
namespace tunewright::networks {

struct TransformerShape {
  std::int64_t layers = 12;
  std::int64_t hidden = 768;
  std::int64_t heads = 12;
  std::int64_t feed_forward = 3072;

  /// Throws `std::invalid_argument` unless the members are positive numbers of 32 bits and the hidden size is a
  /// multiple of the heads.
  void check(const std::string& network) const;
};

/// Throws `std::invalid_argument` for numbers of sequences, tokens or words beyond 32 bits, whose sums and products
/// could overflow.
void check_numbers(const std::string& network, std::initializer_list<std::pair<const char*, std::int64_t>> numbers);

/// Numbers of tokens that attend, and that are attended to.
struct Sequences {
  std::int64_t batch = 1;
  std::int64_t tokens = 1;
};

/// Multi-head self-attention of each sequence, with one dense layer for queries, keys and values ("qkv") and one for
/// the result ("output"). Shapes: x [batch * tokens, hidden], result the same.
Tensor self_attention(LayerBuilder& layers, const Tensor& x, const std::string& layer, const TransformerShape& shape,
                      const Sequences& sequences);

/// Attention weights: softmax of scores over the square root of the head size. The scores are [batch, heads, rows,
/// columns]; `causal` masks later tokens.
Tensor attention_weights(ComputeGraph& graph, const Tensor& scores, std::int64_t head_size, bool causal);

/// Two dense layers ("fc1", "fc2") with an activation in between.
Tensor feed_forward(LayerBuilder& layers, const Tensor& x, const std::string& layer, const TransformerShape& shape,
                    Activation activation);

/// x[i, c] + table[begin + i mod tokens, c] for x of [batch * tokens, hidden]: learned positions.
Tensor add_positions(ComputeGraph& graph, const Tensor& x, const Tensor& table, std::int64_t tokens,
                     std::int64_t begin = 0);

}  // namespace tunewright::networks

#if TUNEWRIGHT_DEFINES(whole_networks)

#include <cmath>
#include <limits>
#include <stdexcept>

#include "tunewright/program/operators/attention.hpp"
#include "tunewright/program/operators/elementwise.hpp"
#include "tunewright/program/operators/layout.hpp"
#include "tunewright/program/operators/softmax.hpp"

namespace tunewright::networks {

TUNEWRIGHT_INLINE void check_numbers(const std::string& network,
                                     std::initializer_list<std::pair<const char*, std::int64_t>> numbers) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  for (const auto& [what, number] : numbers) {
    if (number >= -most && number <= most) continue;
    throw std::invalid_argument(network + ": " + what + " is " + std::to_string(number) + "; give a number " +
                                (number < 0 ? "above 0" : "up to " + std::to_string(most)));
  }
}

TUNEWRIGHT_INLINE void TransformerShape::check(const std::string& network) const {
  const std::initializer_list<std::pair<const char*, std::int64_t>> members{
      {"layers", layers}, {"hidden", hidden}, {"heads", heads}, {"feed_forward", feed_forward}};
  check_numbers(network, members);
  for (const auto& [what, number] : members) {
    if (number < 1)
      throw std::invalid_argument(network + ": " + what + " is " + std::to_string(number) + "; give at least 1");
  }
  if (hidden % heads != 0) {
    throw std::invalid_argument(network + ": hidden is " + std::to_string(hidden) + " and heads is " +
                                std::to_string(heads) + "; give a multiple of the heads");
  }
}

TUNEWRIGHT_INLINE Tensor attention_weights(ComputeGraph& graph, const Tensor& scores, std::int64_t head_size,
                                           bool causal) {
  Tensor x = program::operators::scale(graph, scores, 1 / std::sqrt(static_cast<double>(head_size)));
  if (causal) x = program::operators::causal_mask(graph, x);
  return program::operators::softmax(graph, x);
}

TUNEWRIGHT_INLINE Tensor self_attention(LayerBuilder& layers, const Tensor& x, const std::string& layer,
                                        const TransformerShape& shape, const Sequences& sequences) {
  ComputeGraph& graph = layers.graph();
  const std::int64_t size = shape.hidden / shape.heads;
  const Tensor rows = layers.dense(x, layer + ".qkv", 3 * shape.hidden);
  const Tensor qkv =
      program::operators::reshape(graph, rows, {sequences.batch, sequences.tokens, 3 * shape.hidden}, "qkv");
  const Tensor scores =
      program::operators::attention_scores(graph, qkv, {shape.heads, size}, qkv, {shape.heads, size, shape.hidden});
  const Tensor mixed = program::operators::attention_values(graph, attention_weights(graph, scores, size, false), qkv,
                                                            {shape.heads, size, 2 * shape.hidden});
  const Tensor heads = program::operators::reshape(graph, mixed, x.shape, "heads");
  return layers.dense(heads, layer + ".output", shape.hidden);
}

TUNEWRIGHT_INLINE Tensor feed_forward(LayerBuilder& layers, const Tensor& x, const std::string& layer,
                                      const TransformerShape& shape, Activation activation) {
  return layers.dense(layers.dense(x, layer + ".fc1", shape.feed_forward, activation), layer + ".fc2", shape.hidden);
}

TUNEWRIGHT_INLINE Tensor add_positions(ComputeGraph& graph, const Tensor& x, const Tensor& table, std::int64_t tokens,
                                       std::int64_t begin) {
  const std::int64_t rows = x.shape[0];
  return graph.compute("add_positions", {{"i", rows}, {"c", x.shape[1]}}, [&](auto i) {
    const program::IndexExpr position =
        program::IndexExpr::remainder(i[0], tokens, [&](program::Var) { return program::Range{0, rows - 1}; });
    return x(i[0], i[1]) + table(position + begin, i[1]);
  });
}

}  // namespace tunewright::networks

#endif
