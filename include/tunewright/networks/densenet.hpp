// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/detail/config.hpp"
#include "tunewright/networks/layers.hpp"

namespace tunewright::networks {

/// DenseNet-121: each layer reads the results of all earlier layers of its block.
///
/// Normalisations before a convolution have inputs with other readers, so they stay separate operators; the others are
/// folded.
///
/// Paper: Huang et al., arXiv 1608.06993, as in torchvision. Shapes: image [n, 224, 224, 3]; result [n, 1000].
/// Errors: as `resnet18`.
[[nodiscard]] Network densenet121(const ImageClassifier& options = {});

}  // namespace tunewright::networks

#if TUNEWRIGHT_DEFINES(whole_networks)

#include <array>
#include <string>

#include "tunewright/program/operators/layout.hpp"
#include "tunewright/program/operators/pool.hpp"

namespace tunewright::networks {

TUNEWRIGHT_INLINE Network densenet121(const ImageClassifier& options) {
  options.check("densenet121", 32);
  LayerBuilder layers;
  const std::int64_t growth = options.scaled(32);
  Tensor x = image_input(layers, options);
  x = layers.conv(x, "features.conv0", {.channels = options.scaled(64), .kernel = 7, .stride = 2, .padding = 3});
  x = program::operators::max_pool2d(layers.graph(), x, {.kernel = 3, .stride = 2, .padding = 1, .name = "max_pool2d"});
  constexpr std::array<int, 4> blocks{6, 12, 24, 16};
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const std::string block = "features.denseblock" + std::to_string(b + 1);
    for (int l = 0; l < blocks[b]; ++l) {
      const std::string layer = block + ".denselayer" + std::to_string(l + 1);
      Tensor y = layers.batch_norm(x, layer + ".norm1", Activation::Relu);
      y = layers.conv(y, layer + ".conv1", {.channels = 4 * growth});
      y = layers.conv(
          y, layer + ".conv2",
          {.channels = growth, .kernel = 3, .padding = 1, .after = After::Nothing, .activation = Activation::None});
      x = program::operators::concat(layers.graph(), {x, y});
    }
    const std::string transition = "features.transition" + std::to_string(b + 1);
    if (b + 1 == blocks.size()) break;
    x = layers.batch_norm(x, transition + ".norm", Activation::Relu);
    x = layers.conv(x, transition + ".conv",
                    {.channels = x.shape.back() / 2, .after = After::Nothing, .activation = Activation::None});
    x = program::operators::avg_pool2d(layers.graph(), x, {.name = "avg_pool2d"});
  }
  x = layers.batch_norm(x, "features.norm5", Activation::Relu);
  const Tensor logits = pooled_classifier(layers, x, "classifier", options.classes);
  return layers.finish("densenet121", {logits});
}

}  // namespace tunewright::networks

#endif
