// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/detail/config.hpp"
#include "tunewright/networks/layers.hpp"

namespace tunewright::networks {

/// MobileNet-V2: blocks that expand channels, apply a depthwise convolution, and project without an activation.
///
/// Paper: Sandler et al., arXiv 1801.04381, as in torchvision. Shapes: image [n, 224, 224, 3]; result [n, 1000].
/// Errors: as `resnet18`.
/// Deviates for other widths: channels are not rounded to multiples of 8.
[[nodiscard]] Network mobilenet_v2(const ImageClassifier& options = {});

}  // namespace tunewright::networks

#if TUNEWRIGHT_DEFINES(whole_networks)

#include <string>

#include "tunewright/program/operators/elementwise.hpp"

namespace tunewright::networks {

TUNEWRIGHT_INLINE Network mobilenet_v2(const ImageClassifier& options) {
  options.check("mobilenet_v2", 32);
  LayerBuilder layers;
  Tensor x = image_input(layers, options);
  x = layers.conv(
      x, "features.0",
      {.channels = options.scaled(32), .kernel = 3, .stride = 2, .padding = 1, .activation = Activation::Relu6});
  struct Stage {
    std::int64_t expansion, channels, blocks, stride;
  };
  constexpr Stage stages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                              {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  int feature = 1;
  for (const Stage& stage : stages) {
    for (std::int64_t block = 0; block < stage.blocks; ++block) {
      const std::string layer = "features." + std::to_string(feature++);
      const std::int64_t stride = block == 0 ? stage.stride : 1;
      const std::int64_t out = options.scaled(stage.channels);
      Tensor y = x;
      if (stage.expansion != 1) {
        y = layers.conv(y, layer + ".expand",
                        {.channels = x.shape.back() * stage.expansion, .activation = Activation::Relu6});
      }
      y = layers.depthwise_conv(y, layer + ".depthwise",
                                {.kernel = 3, .stride = stride, .padding = 1, .activation = Activation::Relu6});
      y = layers.conv(y, layer + ".project", {.channels = out, .activation = Activation::None});
      x = stride == 1 && x.shape.back() == out ? program::operators::add(layers.graph(), x, y) : y;
    }
  }
  x = layers.conv(x, "features." + std::to_string(feature),
                  {.channels = options.scaled(1280), .activation = Activation::Relu6});
  const Tensor logits = pooled_classifier(layers, x, "classifier.1", options.classes);
  return layers.finish("mobilenet_v2", {logits});
}

}  // namespace tunewright::networks

#endif
