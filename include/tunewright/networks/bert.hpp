// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tunewright/detail/config.hpp"
#include "tunewright/networks/network.hpp"
#include "tunewright/networks/transformer.hpp"

namespace tunewright::networks {

struct BertOptions {
  std::int64_t batch = 1;
  std::int64_t tokens = 128;  ///< of each sequence, at most `positions`
  TransformerShape shape = {};
  std::int64_t vocabulary = 30522;
  std::int64_t positions = 512;
  std::string name = "bert_base";
};

/// BERT: the encoder with its pooler, without task heads.
///
/// Inputs: "input_ids" and "token_type_ids" [batch * tokens] of int32. Outputs: the last hidden states [batch * tokens,
/// hidden] and the pooled ones [batch, hidden]. Sequences have no padding, so there is no attention mask.
///
/// Paper: Devlin et al., arXiv 1810.04805. Errors: `std::invalid_argument` for members that are not positive, more
///        tokens than positions, and a hidden size that is not a multiple of the heads.
[[nodiscard]] Network bert(const BertOptions& options = {});

/// Two layers of 128 with two heads. Paper: Turc et al., arXiv 1908.08962.
[[nodiscard]] Network bert_tiny(std::int64_t batch = 1, std::int64_t tokens = 128);
/// Twelve layers of 768 with twelve heads.
[[nodiscard]] Network bert_base(std::int64_t batch = 1, std::int64_t tokens = 128);

}  // namespace tunewright::networks

#if TUNEWRIGHT_DEFINES(whole_networks)

#include "tunewright/program/operators/elementwise.hpp"
#include "tunewright/program/operators/layout.hpp"

namespace tunewright::networks {

TUNEWRIGHT_INLINE Network bert(const BertOptions& options) {
  namespace op = program::operators;
  options.shape.check(options.name);
  check_numbers(options.name, {{"batch", options.batch},
                               {"tokens", options.tokens},
                               {"vocabulary", options.vocabulary},
                               {"positions", options.positions}});
  op::detail::require_extents(options.name,
                              {{"batch", options.batch},
                               {"tokens", options.tokens},
                               {"vocabulary", options.vocabulary},
                               {"positions minus tokens plus 1", options.positions - options.tokens + 1}});
  constexpr double epsilon = 1e-12;
  const std::int64_t hidden = options.shape.hidden;
  const std::int64_t rows = options.batch * options.tokens;
  LayerBuilder layers;
  ComputeGraph& graph = layers.graph();
  const Tensor words =
      layers.embedding("embeddings.word_embeddings", "input_ids", rows, options.vocabulary, hidden).rows;
  const Tensor kinds = layers.embedding("embeddings.token_type_embeddings", "token_type_ids", rows, 2, hidden).rows;
  const Tensor positions = layers.weight("embeddings.position_embeddings.weight", {options.positions, hidden});
  Tensor x = add_positions(graph, op::add(graph, words, kinds), positions, options.tokens);
  x = layers.layer_norm(x, "embeddings.LayerNorm", epsilon);
  for (std::int64_t l = 0; l < options.shape.layers; ++l) {
    const std::string layer = "encoder.layer." + std::to_string(l);
    const Tensor attended =
        self_attention(layers, x, layer + ".attention", options.shape, {options.batch, options.tokens});
    x = layers.layer_norm(op::add(graph, attended, x), layer + ".attention.LayerNorm", epsilon);
    const Tensor fed = feed_forward(layers, x, layer, options.shape, Activation::Gelu);
    x = layers.layer_norm(op::add(graph, fed, x), layer + ".LayerNorm", epsilon);
  }
  const Tensor first = op::slice(graph, x, {.extent = options.batch, .step = options.tokens}, "first_tokens");
  const Tensor pooled = op::tanh(graph, layers.dense(first, "pooler.dense", hidden));
  return layers.finish(options.name, {x, pooled});
}

TUNEWRIGHT_INLINE Network bert_tiny(std::int64_t batch, std::int64_t tokens) {
  return bert({.batch = batch,
               .tokens = tokens,
               .shape = {.layers = 2, .hidden = 128, .heads = 2, .feed_forward = 512},
               .name = "bert_tiny"});
}

TUNEWRIGHT_INLINE Network bert_base(std::int64_t batch, std::int64_t tokens) {
  return bert({.batch = batch, .tokens = tokens});
}

}  // namespace tunewright::networks

#endif
