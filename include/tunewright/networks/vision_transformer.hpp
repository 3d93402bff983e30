// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tunewright/detail/config.hpp"
#include "tunewright/networks/network.hpp"
#include "tunewright/networks/transformer.hpp"

namespace tunewright::networks {

struct VisionTransformerOptions {
  std::int64_t batch = 1;
  std::int64_t image_size = 224;  ///< a multiple of the patch
  std::int64_t patch = 16;
  TransformerShape shape = {};
  std::int64_t classes = 1000;
  std::string name = "vit_b_16";
};

/// ViT-B/16: a transformer over patches of the image and one learned token, which the classifier reads.
///
/// Paper: Dosovitskiy et al., arXiv 2010.11929, as in torchvision. Shapes: image [n, 224, 224, 3]; result [n, 1000].
/// Errors: `std::invalid_argument` for members that are not positive, an image that is not a multiple of the patch, and
///         a hidden size that is not a multiple of the heads.
[[nodiscard]] Network vision_transformer(const VisionTransformerOptions& options = {});

}  // namespace tunewright::networks

#if TUNEWRIGHT_DEFINES(whole_networks)

#include <stdexcept>

#include "tunewright/program/operators/elementwise.hpp"
#include "tunewright/program/operators/layout.hpp"

namespace tunewright::networks {

TUNEWRIGHT_INLINE Network vision_transformer(const VisionTransformerOptions& options) {
  namespace op = program::operators;
  options.shape.check(options.name);
  op::detail::require_extents(options.name, {{"batch", options.batch},
                                             {"image_size", options.image_size},
                                             {"patch", options.patch},
                                             {"classes", options.classes}});
  check_numbers(options.name,
                {{"batch", options.batch}, {"image_size", options.image_size}, {"classes", options.classes}});
  if (options.image_size % options.patch != 0) {
    throw std::invalid_argument(options.name + ": image_size is " + std::to_string(options.image_size) +
                                " and patch is " + std::to_string(options.patch) + "; give a multiple of the patch");
  }
  constexpr double epsilon = 1e-6;
  const std::int64_t hidden = options.shape.hidden;
  const std::int64_t side = options.image_size / options.patch;
  const std::int64_t tokens = side * side + 1;
  LayerBuilder layers;
  ComputeGraph& graph = layers.graph();
  const Tensor image = graph.input("image", {options.batch, options.image_size, options.image_size, 3});
  const Tensor patches = layers.conv(image, "conv_proj",
                                     {.channels = hidden,
                                      .kernel = options.patch,
                                      .stride = options.patch,
                                      .after = After::Bias,
                                      .activation = Activation::None});
  const Tensor class_token =
      op::broadcast(graph, layers.weight("class_token", {1, hidden}), {options.batch, 1, hidden}, "class_token");
  Tensor x =
      op::concat(graph, {class_token, op::reshape(graph, patches, {options.batch, side * side, hidden}, "patches")}, 1);
  x = op::add(graph, x, layers.weight("encoder.pos_embedding", {tokens, hidden}), "add_positions");
  x = op::reshape(graph, x, {options.batch * tokens, hidden}, "tokens");
  for (std::int64_t l = 0; l < options.shape.layers; ++l) {
    const std::string layer = "encoder.layers." + std::to_string(l);
    const Tensor normed = layers.layer_norm(x, layer + ".ln_1", epsilon);
    const Tensor attended =
        self_attention(layers, normed, layer + ".self_attention", options.shape, {options.batch, tokens});
    x = op::add(graph, attended, x);
    const Tensor fed = feed_forward(layers, layers.layer_norm(x, layer + ".ln_2", epsilon), layer + ".mlp",
                                    options.shape, Activation::Gelu);
    x = op::add(graph, fed, x);
  }
  // Only the first token is used; each token is normalised separately.
  const Tensor first = op::slice(graph, x, {.extent = options.batch, .step = tokens}, "first_tokens");
  const Tensor logits = layers.dense(layers.layer_norm(first, "encoder.ln", epsilon), "heads.head", options.classes);
  return layers.finish(options.name, {logits});
}

}  // namespace tunewright::networks

#endif
