// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/detail/config.hpp"
#include "tunewright/networks/layers.hpp"

namespace tunewright::networks {

/// ResNet-18: blocks of two 3x3 convolutions.
///
/// Paper: He et al., arXiv 1512.03385, as in torchvision. Shapes: image [n, 224, 224, 3]; result [n, 1000].
/// Errors of this and the other image classifiers: `std::invalid_argument` for members that are not positive and images
/// too small for the network's downsampling.
[[nodiscard]] Network resnet18(const ImageClassifier& options = {});

/// ResNet-50: blocks of 1x1, 3x3 and 1x1 convolutions.
///
/// Deviates from the paper, as torchvision does: the stride is in the 3x3 convolution.
[[nodiscard]] Network resnet50(const ImageClassifier& options = {});

/// Wide ResNet-50-2: ResNet-50 whose 3x3 convolutions have twice the channels. Paper: Zagoruyko and Komodakis, arXiv
/// 1605.07146, as in torchvision.
[[nodiscard]] Network wide_resnet50_2(const ImageClassifier& options = {});

}  // namespace tunewright::networks

#if TUNEWRIGHT_DEFINES(whole_networks)

#include <array>
#include <string>
#include <utility>

#include "tunewright/program/operators/elementwise.hpp"
#include "tunewright/program/operators/pool.hpp"

namespace tunewright::networks::detail {

struct ResNetShape {
  std::array<int, 4> blocks;
  bool bottleneck = false;
  std::int64_t bottleneck_width = 1;  ///< factor on the channels of 3x3 convolutions
};

/// One residual block: `channels` inside, four times as many after a bottleneck.
TUNEWRIGHT_INLINE Tensor residual_block(LayerBuilder& layers, const Tensor& x, const std::string& layer,
                                        const ImageClassifier& options, const ResNetShape& shape, std::int64_t channels,
                                        std::int64_t stride) {
  const std::int64_t inner = options.scaled(channels * (shape.bottleneck ? shape.bottleneck_width : 1));
  const std::int64_t out = options.scaled(channels * (shape.bottleneck ? 4 : 1));
  Tensor y = x;
  if (shape.bottleneck) {
    y = layers.conv(y, layer + ".conv1", {.channels = inner});
    y = layers.conv(y, layer + ".conv2", {.channels = inner, .kernel = 3, .stride = stride, .padding = 1});
    y = layers.conv(y, layer + ".conv3", {.channels = out, .activation = Activation::None});
  } else {
    y = layers.conv(y, layer + ".conv1", {.channels = inner, .kernel = 3, .stride = stride, .padding = 1});
    y = layers.conv(y, layer + ".conv2", {.channels = out, .kernel = 3, .padding = 1, .activation = Activation::None});
  }
  Tensor shortcut = x;
  if (stride != 1 || x.shape.back() != out) {
    shortcut =
        layers.conv(x, layer + ".downsample", {.channels = out, .stride = stride, .activation = Activation::None});
  }
  return layers.activate(program::operators::add(layers.graph(), y, shortcut), Activation::Relu);
}

TUNEWRIGHT_INLINE Network resnet(std::string name, const ImageClassifier& options, const ResNetShape& shape) {
  options.check(name, 32);
  LayerBuilder layers;
  Tensor x = image_input(layers, options);
  x = layers.conv(x, "conv1", {.channels = options.scaled(64), .kernel = 7, .stride = 2, .padding = 3});
  x = program::operators::max_pool2d(layers.graph(), x, {.kernel = 3, .stride = 2, .padding = 1, .name = "max_pool2d"});
  for (std::size_t stage = 0; stage < 4; ++stage) {
    for (int block = 0; block < shape.blocks[stage]; ++block) {
      x = residual_block(layers, x, "layer" + std::to_string(stage + 1) + "." + std::to_string(block), options, shape,
                         std::int64_t{64} << stage, stage > 0 && block == 0 ? 2 : 1);
    }
  }
  const Tensor logits = pooled_classifier(layers, x, "fc", options.classes);
  return layers.finish(std::move(name), {logits});
}

}  // namespace tunewright::networks::detail

namespace tunewright::networks {

TUNEWRIGHT_INLINE Network resnet18(const ImageClassifier& options) {
  return detail::resnet("resnet18", options, {.blocks = {2, 2, 2, 2}});
}

TUNEWRIGHT_INLINE Network resnet50(const ImageClassifier& options) {
  return detail::resnet("resnet50", options, {.blocks = {3, 4, 6, 3}, .bottleneck = true});
}

TUNEWRIGHT_INLINE Network wide_resnet50_2(const ImageClassifier& options) {
  return detail::resnet("wide_resnet50_2", options,
                        {.blocks = {3, 4, 6, 3}, .bottleneck = true, .bottleneck_width = 2});
}

}  // namespace tunewright::networks

#endif
