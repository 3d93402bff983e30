// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/detail/config.hpp"
#include "tunewright/networks/layers.hpp"

namespace tunewright::networks {

/// Inception-V3 for inference: without the auxiliary head, which only training uses, but whose parameters are counted.
///
/// Paper: Szegedy et al., arXiv 1512.00567, as in torchvision. Shapes: image [n, 299, 299, 3]; result [n, 1000].
/// Errors: as `resnet18`; images must have at least 75 pixels.
[[nodiscard]] Network inception_v3(const ImageClassifier& options = {});

}  // namespace tunewright::networks

#if TUNEWRIGHT_DEFINES(whole_networks)

#include <string>
#include <utility>
#include <vector>

#include "tunewright/program/operators/layout.hpp"
#include "tunewright/program/operators/pool.hpp"

namespace tunewright::networks::detail {

/// The mixed blocks of Inception-V3, with torchvision's letters as names. Each reads `x` and replaces it.
class InceptionBlocks {
 public:
  InceptionBlocks(LayerBuilder& layers, const ImageClassifier& options, Tensor x)
      : layers_(layers), options_(options), x_(std::move(x)) {}

  /// A further convolution of `x`, with batch normalisation and ReLU.
  Tensor conv(const Tensor& x, const std::string& layer, std::int64_t channels, PerDimension<2> kernel = 1,
              PerDimension<2> stride = 1, PerDimension<2> padding = 0) {
    return layers_.conv(
        x, layer, {.channels = options_.scaled(channels), .kernel = kernel, .stride = stride, .padding = padding});
  }
  Tensor max_pool(const Tensor& x) {
    return program::operators::max_pool2d(layers_.graph(), x, {.kernel = 3, .stride = 2, .name = "max_pool2d"});
  }

  void a(const std::string& name, std::int64_t pooled);
  void b(const std::string& name);
  void c(const std::string& name, std::int64_t inner);
  void d(const std::string& name);
  void e(const std::string& name);
  [[nodiscard]] const Tensor& x() const noexcept { return x_; }

 private:
  void join(const std::vector<Tensor>& branches) { x_ = program::operators::concat(layers_.graph(), branches); }
  /// The mean of the neighbourhood of each pixel, and a 1x1 convolution.
  Tensor pool_branch(const std::string& name, std::int64_t channels) {
    const Tensor mean = program::operators::avg_pool2d(
        layers_.graph(), x_, {.kernel = 3, .stride = 1, .padding = 1, .count_padding = true, .name = "avg_pool2d"});
    return conv(mean, name + ".branch_pool", channels);
  }

  LayerBuilder& layers_;
  const ImageClassifier& options_;
  Tensor x_;
};

TUNEWRIGHT_INLINE void InceptionBlocks::a(const std::string& name, std::int64_t pooled) {
  const Tensor one = conv(x_, name + ".branch1x1", 64);
  const Tensor five = conv(conv(x_, name + ".branch5x5_1", 48), name + ".branch5x5_2", 64, 5, 1, 2);
  Tensor three = conv(x_, name + ".branch3x3dbl_1", 64);
  three = conv(three, name + ".branch3x3dbl_2", 96, 3, 1, 1);
  three = conv(three, name + ".branch3x3dbl_3", 96, 3, 1, 1);
  join({one, five, three, pool_branch(name, pooled)});
}

TUNEWRIGHT_INLINE void InceptionBlocks::b(const std::string& name) {
  const Tensor three = conv(x_, name + ".branch3x3", 384, 3, 2);
  Tensor twice = conv(x_, name + ".branch3x3dbl_1", 64);
  twice = conv(twice, name + ".branch3x3dbl_2", 96, 3, 1, 1);
  twice = conv(twice, name + ".branch3x3dbl_3", 96, 3, 2);
  join({three, twice, max_pool(x_)});
}

TUNEWRIGHT_INLINE void InceptionBlocks::c(const std::string& name, std::int64_t inner) {
  const Tensor one = conv(x_, name + ".branch1x1", 192);
  Tensor seven = conv(x_, name + ".branch7x7_1", inner);
  seven = conv(seven, name + ".branch7x7_2", inner, {1, 7}, 1, {0, 3});
  seven = conv(seven, name + ".branch7x7_3", 192, {7, 1}, 1, {3, 0});
  Tensor twice = conv(x_, name + ".branch7x7dbl_1", inner);
  twice = conv(twice, name + ".branch7x7dbl_2", inner, {7, 1}, 1, {3, 0});
  twice = conv(twice, name + ".branch7x7dbl_3", inner, {1, 7}, 1, {0, 3});
  twice = conv(twice, name + ".branch7x7dbl_4", inner, {7, 1}, 1, {3, 0});
  twice = conv(twice, name + ".branch7x7dbl_5", 192, {1, 7}, 1, {0, 3});
  join({one, seven, twice, pool_branch(name, 192)});
}

TUNEWRIGHT_INLINE void InceptionBlocks::d(const std::string& name) {
  const Tensor three = conv(conv(x_, name + ".branch3x3_1", 192), name + ".branch3x3_2", 320, 3, 2);
  Tensor seven = conv(x_, name + ".branch7x7x3_1", 192);
  seven = conv(seven, name + ".branch7x7x3_2", 192, {1, 7}, 1, {0, 3});
  seven = conv(seven, name + ".branch7x7x3_3", 192, {7, 1}, 1, {3, 0});
  seven = conv(seven, name + ".branch7x7x3_4", 192, 3, 2);
  join({three, seven, max_pool(x_)});
}

TUNEWRIGHT_INLINE void InceptionBlocks::e(const std::string& name) {
  const Tensor one = conv(x_, name + ".branch1x1", 320);
  const Tensor three = conv(x_, name + ".branch3x3_1", 384);
  const Tensor three_a = conv(three, name + ".branch3x3_2a", 384, {1, 3}, 1, {0, 1});
  const Tensor three_b = conv(three, name + ".branch3x3_2b", 384, {3, 1}, 1, {1, 0});
  Tensor twice = conv(x_, name + ".branch3x3dbl_1", 448);
  twice = conv(twice, name + ".branch3x3dbl_2", 384, 3, 1, 1);
  const Tensor twice_a = conv(twice, name + ".branch3x3dbl_3a", 384, {1, 3}, 1, {0, 1});
  const Tensor twice_b = conv(twice, name + ".branch3x3dbl_3b", 384, {3, 1}, 1, {1, 0});
  join({one, three_a, three_b, twice_a, twice_b, pool_branch(name, 192)});
}

}  // namespace tunewright::networks::detail

namespace tunewright::networks {

TUNEWRIGHT_INLINE Network inception_v3(const ImageClassifier& options) {
  options.check("inception_v3", 75);
  LayerBuilder layers;
  detail::InceptionBlocks stem(layers, options, image_input(layers, options, 299));
  Tensor x = stem.conv(stem.x(), "Conv2d_1a_3x3", 32, 3, 2);
  x = stem.conv(x, "Conv2d_2a_3x3", 32, 3);
  x = stem.max_pool(stem.conv(x, "Conv2d_2b_3x3", 64, 3, 1, 1));
  x = stem.conv(x, "Conv2d_3b_1x1", 80);
  x = stem.max_pool(stem.conv(x, "Conv2d_4a_3x3", 192, 3));
  detail::InceptionBlocks blocks(layers, options, x);
  blocks.a("Mixed_5b", 32);
  blocks.a("Mixed_5c", 64);
  blocks.a("Mixed_5d", 64);
  blocks.b("Mixed_6a");
  blocks.c("Mixed_6b", 128);
  blocks.c("Mixed_6c", 160);
  blocks.c("Mixed_6d", 160);
  blocks.c("Mixed_6e", 192);
  // The auxiliary head: 1x1 to 128 channels, 5x5 to 768, both normalised, and a dense layer.
  const std::int64_t in = blocks.x().shape.back();
  const std::int64_t narrow = options.scaled(128);
  const std::int64_t wide = options.scaled(768);
  layers.count_parameters(in * narrow + 2 * narrow + 25 * narrow * wide + 2 * wide + (wide + 1) * options.classes);
  blocks.d("Mixed_7a");
  blocks.e("Mixed_7b");
  blocks.e("Mixed_7c");
  const Tensor logits = pooled_classifier(layers, blocks.x(), "fc", options.classes);
  return layers.finish("inception_v3", {logits});
}

}  // namespace tunewright::networks

#endif
