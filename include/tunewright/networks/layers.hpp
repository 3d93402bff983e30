// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/networks/network.hpp"
#include "tunewright/program/graph.hpp"
#include "tunewright/program/operators/window.hpp"

namespace tunewright::networks {

using program::Tensor;
using program::operators::PerDimension;

enum class Activation : std::uint8_t { None, Relu, Relu6, Gelu, GeluTanh };

/// What follows a convolution.
enum class After : std::uint8_t {
  BatchNorm,  ///< batch normalisation, folded: a weight and a bias remain, while the scale and the shift are counted
  Bias,
  Nothing,
};

struct ConvLayer {
  std::int64_t channels = 1;
  PerDimension<2> kernel = 1;
  PerDimension<2> stride = 1;
  PerDimension<2> padding = 0;
  After after = After::BatchNorm;
  Activation activation = Activation::Relu;
};

/// Builds a network layer by layer: adds the operators of each layer and its constants, named `<layer>.<constant>`, and
/// counts trainable parameters. Images are channels last. Layers throw `std::invalid_argument` as their operators do.
class LayerBuilder {
 public:
  /// The graph so far, for operators without a layer.
  [[nodiscard]] ComputeGraph& graph() noexcept { return *graph_; }

  /// A trainable constant.
  Tensor weight(std::string name, const std::vector<std::int64_t>& shape);

  /// Counts trainable numbers that are not part of the graph: scales of folded normalisations, auxiliary heads.
  void count_parameters(std::int64_t count) noexcept { parameters_ += count; }

  /// Convolution, what follows it, and an activation.
  Tensor conv(const Tensor& x, const std::string& layer, const ConvLayer& options);
  /// The same for each channel separately; `options.channels` is ignored.
  Tensor depthwise_conv(const Tensor& x, const std::string& layer, const ConvLayer& options);

  /// x * scale + shift per channel: a batch normalisation that cannot be folded into a preceding convolution.
  Tensor batch_norm(const Tensor& x, const std::string& layer, Activation activation);

  /// x [rows, in] times weight [in, out], plus bias [out], and an activation.
  Tensor dense(const Tensor& x, const std::string& layer, std::int64_t out, Activation activation = Activation::None);

  Tensor layer_norm(const Tensor& x, const std::string& layer, double epsilon);

  /// Rows of a table of weights, selected by the input `ids`, whose shape gives their number; see `Lookup`.
  struct Embedding {
    Tensor rows;   ///< [count, columns]
    Tensor table;  ///< [entries, columns]
  };
  Embedding embedding(const std::string& layer, const std::string& ids, std::int64_t count, std::int64_t entries,
                      std::int64_t columns);

  Tensor activate(const Tensor& x, Activation activation);

  /// The network built so far, with its outputs in the order of `outputs`. The builder then starts another one.
  [[nodiscard]] Network finish(std::string name, const std::vector<Tensor>& outputs);

 private:
  Tensor follow(const Tensor& products, const std::string& layer, const ConvLayer& options);

  std::shared_ptr<ComputeGraph> graph_ = std::make_shared<ComputeGraph>();
  std::vector<Lookup> lookups_;
  std::int64_t parameters_ = 0;
};

/// Common options of image classifiers. Other values than the published ones give small networks of the same structure.
struct ImageClassifier {
  std::int64_t batch = 1;
  std::optional<std::int64_t> image_size{};  ///< height and width of the input; empty: as published
  std::int64_t classes = 1000;
  double width = 1;  ///< factor for the numbers of channels, which stay at least 1; above 0, up to 1e6

  [[nodiscard]] std::int64_t scaled(std::int64_t channels) const;
  /// Throws `std::invalid_argument` unless the members are positive and the image is at least `least_image`.
  void check(const std::string& network, std::int64_t least_image) const;
};

/// The input "image" [batch, size, size, 3], where `published_size` is that of the publication.
Tensor image_input(LayerBuilder& layers, const ImageClassifier& options, std::int64_t published_size = 224);

/// Averages each channel, [n, h, w, c] to [n, c], and applies a dense layer to the classes.
Tensor pooled_classifier(LayerBuilder& layers, const Tensor& x, const std::string& layer, std::int64_t classes);

}  // namespace tunewright::networks

#if TUNEWRIGHT_DEFINES(whole_networks)

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "tunewright/core/number_text.hpp"
#include "tunewright/program/operators/conv.hpp"
#include "tunewright/program/operators/dense.hpp"
#include "tunewright/program/operators/depthwise_conv2d.hpp"
#include "tunewright/program/operators/elementwise.hpp"
#include "tunewright/program/operators/normalization.hpp"
#include "tunewright/program/operators/pool.hpp"

namespace tunewright::networks {

TUNEWRIGHT_INLINE Tensor LayerBuilder::weight(std::string name, const std::vector<std::int64_t>& shape) {
  const Tensor constant = graph_->constant(std::move(name), shape);
  parameters_ += graph_->op(constant.id).elements();
  return constant;
}

TUNEWRIGHT_INLINE Tensor LayerBuilder::conv(const Tensor& x, const std::string& layer, const ConvLayer& options) {
  const Tensor kernel =
      weight(layer + ".weight", {options.kernel[0], options.kernel[1], x.shape.back(), options.channels});
  return follow(program::operators::conv2d(*graph_, x, kernel, {.stride = options.stride, .padding = options.padding}),
                layer, options);
}

TUNEWRIGHT_INLINE Tensor LayerBuilder::depthwise_conv(const Tensor& x, const std::string& layer,
                                                      const ConvLayer& options) {
  const Tensor kernel = weight(layer + ".weight", {options.kernel[0], options.kernel[1], x.shape.back()});
  return follow(
      program::operators::depthwise_conv2d(*graph_, x, kernel, {.stride = options.stride, .padding = options.padding}),
      layer, options);
}

TUNEWRIGHT_INLINE Tensor LayerBuilder::follow(const Tensor& products, const std::string& layer,
                                              const ConvLayer& options) {
  Tensor x = products;
  if (options.after != After::Nothing) {
    x = program::operators::bias_add(*graph_, x, weight(layer + ".bias", {x.shape.back()}));
    if (options.after == After::BatchNorm) count_parameters(x.shape.back());  // scales, folded into the weights
  }
  return activate(x, options.activation);
}

TUNEWRIGHT_INLINE Tensor LayerBuilder::batch_norm(const Tensor& x, const std::string& layer, Activation activation) {
  const std::int64_t channels = x.shape.back();
  const Tensor scaled = program::operators::multiply(*graph_, x, weight(layer + ".weight", {channels}), "scale");
  return activate(program::operators::bias_add(*graph_, scaled, weight(layer + ".bias", {channels}), -1, "shift"),
                  activation);
}

TUNEWRIGHT_INLINE Tensor LayerBuilder::dense(const Tensor& x, const std::string& layer, std::int64_t out,
                                             Activation activation) {
  const Tensor kernel = weight(layer + ".weight", {x.shape.back(), out});
  const Tensor products = program::operators::dense(*graph_, x, kernel);
  return activate(program::operators::bias_add(*graph_, products, weight(layer + ".bias", {out})), activation);
}

TUNEWRIGHT_INLINE Tensor LayerBuilder::layer_norm(const Tensor& x, const std::string& layer, double epsilon) {
  const Tensor gamma = weight(layer + ".weight", {x.shape.back()});
  const Tensor beta = weight(layer + ".bias", {x.shape.back()});
  return program::operators::layer_norm(*graph_, x, gamma, beta, {.epsilon = epsilon});
}

TUNEWRIGHT_INLINE LayerBuilder::Embedding LayerBuilder::embedding(const std::string& layer, const std::string& ids,
                                                                  std::int64_t count, std::int64_t entries,
                                                                  std::int64_t columns) {
  const Tensor numbers = graph_->input(ids, {count}, program::ScalarType::Int32);
  const Tensor table = weight(layer + ".weight", {entries, columns});
  const Tensor rows = graph_->input(layer + ".rows", {count, columns});
  lookups_.push_back({rows.id, table.id, numbers.id});
  return {rows, table};
}

TUNEWRIGHT_INLINE Tensor LayerBuilder::activate(const Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::Relu: return program::operators::relu(*graph_, x);
    case Activation::Relu6: return program::operators::clip(*graph_, x, 0, 6, "relu6");
    case Activation::Gelu: return program::operators::gelu(*graph_, x);
    case Activation::GeluTanh: return program::operators::gelu_tanh(*graph_, x);
    case Activation::None: break;
  }
  return x;
}

TUNEWRIGHT_INLINE Network LayerBuilder::finish(std::string name, const std::vector<Tensor>& outputs) {
  Network network{std::move(name), std::move(graph_), {}, std::move(lookups_), parameters_};
  *this = LayerBuilder();
  for (const Tensor& output : outputs) network.outputs.push_back(output.id);
  return network;
}

TUNEWRIGHT_INLINE std::int64_t ImageClassifier::scaled(std::int64_t channels) const {
  return std::max<std::int64_t>(1, std::llround(static_cast<double>(channels) * width));
}

TUNEWRIGHT_INLINE void ImageClassifier::check(const std::string& network, std::int64_t least_image) const {
  const auto refuse = [&](const std::string& what) { throw std::invalid_argument(network + ": " + what); };
  constexpr std::int64_t most =
      std::numeric_limits<std::int32_t>::max();  // sums and products of these fit into 64 bits
  for (const auto& [what, number] : {std::pair("batch", batch), std::pair("classes", classes)}) {
    if (number < 1 || number > most)
      refuse(what + (" is " + std::to_string(number)) + "; give 1 to " + std::to_string(most));
  }
  if (!(width > 0 && width <= 1e6))
    refuse("width is " + number_text(width) + "; give a factor above 0 and up to 1e6, 1 as published");
  if (image_size && *image_size < least_image) {
    refuse("image_size is " + std::to_string(*image_size) + ", which leaves nothing of the image; give at least " +
           std::to_string(least_image));
  }
  if (image_size && *image_size > most)
    refuse("image_size is " + std::to_string(*image_size) + "; give at most " + std::to_string(most));
}

TUNEWRIGHT_INLINE Tensor image_input(LayerBuilder& layers, const ImageClassifier& options,
                                     std::int64_t published_size) {
  const std::int64_t size = options.image_size.value_or(published_size);
  return layers.graph().input("image", {options.batch, size, size, 3});
}

TUNEWRIGHT_INLINE Tensor pooled_classifier(LayerBuilder& layers, const Tensor& x, const std::string& layer,
                                           std::int64_t classes) {
  return layers.dense(program::operators::global_avg_pool2d(layers.graph(), x), layer, classes);
}

}  // namespace tunewright::networks

#endif
