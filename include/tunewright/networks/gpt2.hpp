// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tunewright/detail/config.hpp"
#include "tunewright/networks/network.hpp"
#include "tunewright/networks/transformer.hpp"

namespace tunewright::networks {

struct Gpt2Options {
  std::int64_t batch = 1;
  std::int64_t tokens = 128;  ///< tokens per sequence to compute; 1 in a decoding step
  std::int64_t past = 0;      ///< tokens per sequence with given keys and values
  TransformerShape shape = {};
  std::int64_t vocabulary = 50257;
  std::int64_t positions = 1024;  ///< at least past + tokens
  std::string name = "gpt2";
};

/// GPT-2 with its language model head, whose weights are the token embeddings.
///
/// Inputs: "input_ids" [batch * tokens] of int32, and with a past, for each layer l, "past.l.key" and "past.l.value"
/// [batch, past, hidden], heads side by side. Outputs: logits [batch * tokens, vocabulary], then for each layer keys
/// and values [batch, past + tokens, hidden], which are the past of the next step.
///
/// Paper: Radford et al., Language Models are Unsupervised Multitask Learners, 2019. Errors: `std::invalid_argument`
///        for members that are not positive, more tokens than positions, and a hidden size that is not a multiple of
///        the heads.
/// Deviates: the caches are copied when they grow; released runtimes do so or write in place.
[[nodiscard]] Network gpt2(const Gpt2Options& options);

/// GPT-2 small for whole prompts.
[[nodiscard]] Network gpt2_prefill(std::int64_t batch = 1, std::int64_t tokens = 128);
/// GPT-2 small for one token after `past` others.
[[nodiscard]] Network gpt2_decode(std::int64_t batch = 1, std::int64_t past = 128);

}  // namespace tunewright::networks

#if TUNEWRIGHT_DEFINES(whole_networks)

#include <vector>

#include "tunewright/program/operators/attention.hpp"
#include "tunewright/program/operators/elementwise.hpp"
#include "tunewright/program/operators/layout.hpp"
#include "tunewright/program/operators/matmul.hpp"

namespace tunewright::networks::detail {

/// One attention layer; its keys and values are appended to `caches`.
TUNEWRIGHT_INLINE Tensor gpt2_attention(LayerBuilder& layers, const Tensor& x, std::int64_t l,
                                        const Gpt2Options& options, std::vector<Tensor>& caches) {
  namespace op = program::operators;
  ComputeGraph& graph = layers.graph();
  const std::int64_t hidden = options.shape.hidden;
  const op::AttentionHeads heads{options.shape.heads, hidden / options.shape.heads};
  const std::string layer = "h." + std::to_string(l) + ".attn";
  const Tensor qkv = op::reshape(graph, layers.dense(x, layer + ".c_attn", 3 * hidden),
                                 {options.batch, options.tokens, 3 * hidden}, "qkv");
  const auto cache = [&](const std::string& name, std::int64_t begin) {
    Tensor present = op::slice(graph, qkv, {.dimension = 2, .begin = begin, .extent = hidden},
                               options.past == 0 ? name : "new_" + name);
    if (options.past == 0) return present;
    const Tensor past = graph.input("past." + std::to_string(l) + "." + name, {options.batch, options.past, hidden});
    return op::concat(graph, {past, present}, 1, name);
  };
  const Tensor keys = cache("key", hidden);
  const Tensor values = cache("value", 2 * hidden);
  caches.insert(caches.end(), {keys, values});
  const Tensor scores = op::attention_scores(graph, qkv, heads, keys, heads);
  // A single token may attend to all others.
  const Tensor weights = attention_weights(graph, scores, heads.head_size, options.tokens > 1);
  const Tensor mixed = op::attention_values(graph, weights, values, heads);
  return layers.dense(op::reshape(graph, mixed, x.shape, "heads"), layer + ".c_proj", hidden);
}

}  // namespace tunewright::networks::detail

namespace tunewright::networks {

TUNEWRIGHT_INLINE Network gpt2(const Gpt2Options& options) {
  namespace op = program::operators;
  options.shape.check(options.name);
  check_numbers(options.name, {{"batch", options.batch},
                               {"tokens", options.tokens},
                               {"past", options.past},
                               {"vocabulary", options.vocabulary},
                               {"positions", options.positions}});
  op::detail::require_extents(options.name, {{"batch", options.batch},
                                             {"tokens", options.tokens},
                                             {"past plus 1", options.past + 1},
                                             {"vocabulary", options.vocabulary},
                                             {"positions minus past minus tokens plus 1",
                                              options.positions - options.past - options.tokens + 1}});
  constexpr double epsilon = 1e-5;
  LayerBuilder layers;
  ComputeGraph& graph = layers.graph();
  const std::int64_t rows = options.batch * options.tokens;
  const auto words = layers.embedding("wte", "input_ids", rows, options.vocabulary, options.shape.hidden);
  const Tensor positions = layers.weight("wpe.weight", {options.positions, options.shape.hidden});
  Tensor x = add_positions(graph, words.rows, positions, options.tokens, options.past);
  std::vector<Tensor> caches;
  for (std::int64_t l = 0; l < options.shape.layers; ++l) {
    const std::string layer = "h." + std::to_string(l);
    const Tensor normed = layers.layer_norm(x, layer + ".ln_1", epsilon);
    x = op::add(graph, detail::gpt2_attention(layers, normed, l, options, caches), x);
    const Tensor fed = feed_forward(layers, layers.layer_norm(x, layer + ".ln_2", epsilon), layer + ".mlp",
                                    options.shape, Activation::GeluTanh);
    x = op::add(graph, fed, x);
  }
  x = layers.layer_norm(x, "ln_f", epsilon);
  std::vector<Tensor> outputs{op::matmul(graph, x, words.table, {.transpose_b = true, .name = "lm_head"})};
  outputs.insert(outputs.end(), caches.begin(), caches.end());
  return layers.finish(options.name, outputs);
}

TUNEWRIGHT_INLINE Network gpt2_prefill(std::int64_t batch, std::int64_t tokens) {
  return gpt2({.batch = batch, .tokens = tokens, .name = "gpt2_prefill"});
}

TUNEWRIGHT_INLINE Network gpt2_decode(std::int64_t batch, std::int64_t past) {
  return gpt2({.batch = batch, .tokens = 1, .past = past, .name = "gpt2_decode"});
}

}  // namespace tunewright::networks

#endif
