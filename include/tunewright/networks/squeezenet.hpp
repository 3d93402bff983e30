// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/detail/config.hpp"
#include "tunewright/networks/layers.hpp"

namespace tunewright::networks {

/// SqueezeNet 1.1: fire modules, which squeeze channels by a 1x1 convolution and expand them by a 1x1 and a 3x3 one.
///
/// Paper: Iandola et al., arXiv 1602.07360; 1.1 as in torchvision. Shapes: image [n, 224, 224, 3]; result [n, 1000].
/// Errors: as `resnet18`.
/// Deviates for other image sizes: poolings drop incomplete windows, while torchvision rounds up; at 224 there are
/// none.
[[nodiscard]] Network squeezenet1_1(const ImageClassifier& options = {});

}  // namespace tunewright::networks

#if TUNEWRIGHT_DEFINES(whole_networks)

#include <string>

#include "tunewright/program/operators/layout.hpp"
#include "tunewright/program/operators/pool.hpp"

namespace tunewright::networks {

TUNEWRIGHT_INLINE Network squeezenet1_1(const ImageClassifier& options) {
  options.check("squeezenet1_1", 32);
  LayerBuilder layers;
  Tensor x = image_input(layers, options);
  const auto pool = [&] {
    x = program::operators::max_pool2d(layers.graph(), x, {.kernel = 3, .stride = 2, .name = "max_pool2d"});
  };
  int feature = 3;
  const auto fire = [&](std::int64_t squeeze, std::int64_t expand) {
    const std::string layer = "features." + std::to_string(feature++);
    const Tensor squeezed =
        layers.conv(x, layer + ".squeeze", {.channels = options.scaled(squeeze), .after = After::Bias});
    const Tensor one =
        layers.conv(squeezed, layer + ".expand1x1", {.channels = options.scaled(expand), .after = After::Bias});
    const Tensor three =
        layers.conv(squeezed, layer + ".expand3x3",
                    {.channels = options.scaled(expand), .kernel = 3, .padding = 1, .after = After::Bias});
    x = program::operators::concat(layers.graph(), {one, three});
  };
  x = layers.conv(x, "features.0", {.channels = options.scaled(64), .kernel = 3, .stride = 2, .after = After::Bias});
  pool();
  fire(16, 64);
  fire(16, 64);
  pool();
  ++feature;
  fire(32, 128);
  fire(32, 128);
  pool();
  ++feature;
  fire(48, 192);
  fire(48, 192);
  fire(64, 256);
  fire(64, 256);
  x = layers.conv(x, "classifier.1", {.channels = options.classes, .after = After::Bias});
  const Tensor logits = program::operators::global_avg_pool2d(layers.graph(), x);
  return layers.finish("squeezenet1_1", {logits});
}

}  // namespace tunewright::networks

#endif
