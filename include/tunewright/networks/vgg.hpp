// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/detail/config.hpp"
#include "tunewright/networks/layers.hpp"

namespace tunewright::networks {

/// VGG-16 (configuration D, without batch normalisation).
///
/// Paper: Simonyan and Zisserman, arXiv 1409.1556, as in torchvision. Shapes: image [n, 224, 224, 3]; result [n, 1000].
/// Errors: as `resnet18`.
/// Deviates for other image sizes: the first dense layer takes the output of the convolutions, while torchvision
/// resamples it to 7x7.
[[nodiscard]] Network vgg16(const ImageClassifier& options = {});

}  // namespace tunewright::networks

#if TUNEWRIGHT_DEFINES(whole_networks)

#include <string>

#include "tunewright/program/operators/layout.hpp"
#include "tunewright/program/operators/pool.hpp"

namespace tunewright::networks {

TUNEWRIGHT_INLINE Network vgg16(const ImageClassifier& options) {
  options.check("vgg16", 32);
  LayerBuilder layers;
  Tensor x = image_input(layers, options);
  int feature = 0;
  struct Stage {
    std::int64_t channels;
    int convolutions;
  };
  for (const Stage& stage : {Stage{64, 2}, Stage{128, 2}, Stage{256, 3}, Stage{512, 3}, Stage{512, 3}}) {
    for (int c = 0; c < stage.convolutions; ++c) {
      x = layers.conv(x, "features." + std::to_string(feature++),
                      {.channels = options.scaled(stage.channels), .kernel = 3, .padding = 1, .after = After::Bias});
    }
    x = program::operators::max_pool2d(layers.graph(), x, {.name = "max_pool2d"});
  }
  const std::int64_t flat = x.shape[1] * x.shape[2] * x.shape[3];
  x = program::operators::reshape(layers.graph(), x, {options.batch, flat}, "flatten");
  x = layers.dense(x, "classifier.0", options.scaled(4096), Activation::Relu);
  x = layers.dense(x, "classifier.3", options.scaled(4096), Activation::Relu);
  const Tensor logits = layers.dense(x, "classifier.6", options.classes);
  return layers.finish("vgg16", {logits});
}

}  // namespace tunewright::networks

#endif
