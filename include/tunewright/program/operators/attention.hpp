// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tunewright/detail/config.hpp"
#include "tunewright/program/graph.hpp"

/// The two products of attention and its mask, for tokens with heads side by side in the last dimension, as a dense
/// layer produces them: no operator moves heads. In between: `scale`, `softmax`.
///
/// Paper: Vaswani et al., arXiv 1706.03762.
namespace tunewright::program::operators {

/// The position of one operand's heads in the last dimension of its tokens.
struct AttentionHeads {
  std::int64_t heads = 1;
  std::int64_t head_size = 1;
  std::int64_t begin = 0;  ///< offset of the first head: queries, keys and values may share a tensor
};

/// out[b, h, i, j] = sum over d of query[b, i, h*size + d] * key[b, j, h*size + d], in float32 for narrower types.
///
/// Shapes: query [batch, rows, channels], key [batch, columns, channels]; result [batch, heads, rows, columns]. Throws
/// `std::invalid_argument` for other ranks, types that differ, different batches or numbers of heads, and heads that
/// are not inside the channels.
Tensor attention_scores(ComputeGraph& graph, const Tensor& query, const AttentionHeads& query_heads, const Tensor& key,
                        const AttentionHeads& key_heads, const std::string& name = "attention_scores");

/// out[b, h, i, j] = x[b, h, i, j] if j <= i + columns - rows, else -1e30: the last row sees all columns, each earlier
/// one sees one less. Throws `std::invalid_argument` unless x has rank 4, floating-point elements and at most as many
/// rows as columns.
Tensor causal_mask(ComputeGraph& graph, const Tensor& x, const std::string& name = "causal_mask");

/// out[b, i, h, d] = sum over j of weight[b, h, i, j] * value[b, j, h*size + d].
///
/// Shapes: weight [batch, heads, rows, columns], value [batch, columns, channels]; result [batch, rows, heads,
/// head_size], which in memory is [batch, rows, channels]. Throws as `attention_scores`.
Tensor attention_values(ComputeGraph& graph, const Tensor& weight, const Tensor& value, const AttentionHeads& heads,
                        const std::string& name = "attention_values");

}  // namespace tunewright::program::operators

#if TUNEWRIGHT_DEFINES(program)

#include <optional>
#include <string_view>

#include "tunewright/program/operators/checks.hpp"

namespace tunewright::program::operators::detail {

TUNEWRIGHT_INLINE void require_heads(std::string_view who, std::string_view operand, const Tensor& tokens,
                                     const AttentionHeads& h) {
  require_rank(who, operand, tokens, 3, "[batch, tokens, channels]");
  require_extents(who, {{"number of heads", h.heads}, {"head_size", h.head_size}});
  require_number(who, "begin of the heads", h.begin, 0);
  if (h.begin + h.heads * h.head_size > tokens.shape[2]) {
    refuse(who, std::to_string(h.heads) + " heads of " + std::to_string(h.head_size) + " from channel " +
                    std::to_string(h.begin) + " reach beyond the " + std::to_string(tokens.shape[2]) +
                    " channels of the " + std::string(operand) + "; give heads inside them");
  }
}

}  // namespace tunewright::program::operators::detail

namespace tunewright::program::operators {

TUNEWRIGHT_INLINE Tensor attention_scores(ComputeGraph& graph, const Tensor& query, const AttentionHeads& query_heads,
                                          const Tensor& key, const AttentionHeads& key_heads, const std::string& name) {
  detail::require_heads(name, "query", query, query_heads);
  detail::require_heads(name, "key", key, key_heads);
  detail::require_extent(name, "number of heads of the key", key_heads.heads, query_heads.heads,
                         "make it equal to that of the query");
  detail::require_extent(name, "head_size of the key", key_heads.head_size, query_heads.head_size,
                         "make it equal to that of the query");
  detail::require_extent(name, "batch of the key", key.shape[0], query.shape[0], "make it equal to that of the query");
  const ScalarType accumulator = detail::accumulator_for(name, query, key, std::nullopt);
  const std::int64_t size = query_heads.head_size;
  return graph.reduce(
      name, {{"b", query.shape[0]}, {"h", query_heads.heads}, {"i", query.shape[1]}, {"j", key.shape[1]}},
      {{"d", size}}, Combiner::Sum, [&](auto i, auto r) {
        return detail::product_in(accumulator, query(i[0], i[2], i[1] * size + r[0] + query_heads.begin),
                                  key(i[0], i[3], i[1] * size + r[0] + key_heads.begin));
      });
}

TUNEWRIGHT_INLINE Tensor causal_mask(ComputeGraph& graph, const Tensor& x, const std::string& name) {
  detail::require_rank(name, "input", x, 4, "[batch, heads, rows, columns]");
  detail::require_floating_point(name, "the input", x);
  detail::require_number(name, "columns minus rows", x.shape[3] - x.shape[2], 0);
  return graph.compute(name, detail::axes_over(x.shape), [&](auto i) {
    return select(index_value(i[3]) <= index_value(i[2] + (x.shape[3] - x.shape[2])), x(i[0], i[1], i[2], i[3]),
                  Expr(-1e30));
  });
}

TUNEWRIGHT_INLINE Tensor attention_values(ComputeGraph& graph, const Tensor& weight, const Tensor& value,
                                          const AttentionHeads& heads, const std::string& name) {
  detail::require_rank(name, "weight", weight, 4, "[batch, heads, rows, columns]");
  detail::require_heads(name, "value", value, heads);
  detail::require_extent(name, "number of heads", heads.heads, weight.shape[1], "make it equal to that of the weights");
  detail::require_extent(name, "batch of the value", value.shape[0], weight.shape[0],
                         "make it equal to that of the weights");
  detail::require_extent(name, "tokens of the value", value.shape[1], weight.shape[3],
                         "make it equal to the columns of the weights");
  const ScalarType accumulator = detail::accumulator_for(name, weight, value, std::nullopt);
  return graph.reduce(name,
                      {{"b", weight.shape[0]}, {"i", weight.shape[2]}, {"h", heads.heads}, {"d", heads.head_size}},
                      {{"j", weight.shape[3]}}, Combiner::Sum, [&](auto i, auto r) {
                        return detail::product_in(accumulator, weight(i[0], i[2], i[1], r[0]),
                                                  value(i[0], r[0], i[2] * heads.head_size + i[3] + heads.begin));
                      });
}

}  // namespace tunewright::program::operators

#endif
