// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/program/graph.hpp"
#include "tunewright/program/operators/checks.hpp"
#include "tunewright/program/scalar_type.hpp"

namespace tunewright::program::operators {

struct DepthwiseConv2dOptions {
  PerDimension<2> stride = 1;
  PerDimension<2> padding = 0;  ///< zeros on both sides
  PerDimension<2> dilation = 1;
  Layout layout = Layout::ChannelsLast;
  std::string name = "depthwise_conv2d";
  std::optional<ScalarType> accumulator{};  ///< of products, sums and the result; by default the type of the input
};

/// Depthwise convolution: output channel c reads only input channel c div m, with m = co / ci filters each.
///
///   out[n, h, w, c] = sum over rh, rw of padded[n, h*stride + rh*dilation, w*stride + rw*dilation, c div m]
///   * weight[rh, rw, c]
///
/// Shapes: channels last x [n, h, w, ci], weight [kh, kw, co], result [n, h', w', co]; channels first x [n,
/// ci, h, w], weight [co, kh, kw], result [n, co, h', w']. Throws `std::invalid_argument` unless ci divides
/// co, the window fits, the operands have one type, and the accumulator holds their values.
Tensor depthwise_conv2d(ComputeGraph& graph, const Tensor& x, const Tensor& weight,
                        const DepthwiseConv2dOptions& options = {});

struct DepthwiseConv2dShape {
  std::int64_t batch = 1;
  std::int64_t height = 1;
  std::int64_t width = 1;
  std::int64_t channels = 1;
  std::int64_t multiplier = 1;  ///< output channels per input channel
  PerDimension<2> kernel = 3;
  PerDimension<2> stride = 1;
  PerDimension<2> padding = 0;
  PerDimension<2> dilation = 1;
  Layout layout = Layout::ChannelsLast;
  ScalarType type = ScalarType::Float32;
};

/// A depthwise convolution as a complete graph with input "data" and constant "weight".
[[nodiscard]] std::shared_ptr<const ComputeGraph> depthwise_conv2d_graph(const DepthwiseConv2dShape& s);

}  // namespace tunewright::program::operators

#if TUNEWRIGHT_DEFINES(program)

#include "tunewright/program/operators/window.hpp"

namespace tunewright::program::operators {

TUNEWRIGHT_INLINE Tensor depthwise_conv2d(ComputeGraph& graph, const Tensor& x, const Tensor& weight,
                                          const DepthwiseConv2dOptions& options) {
  const detail::ImageDimensions<2> dims{options.layout};
  const bool last = options.layout == Layout::ChannelsLast;
  detail::require_rank(options.name, "input", x, 4, dims.text());
  detail::require_rank(options.name, "weight", weight, 3, last ? "[kh, kw, co]" : "[co, kh, kw]");
  detail::require_same_type(options.name, x, weight);
  const ScalarType accumulator = detail::accumulator_for(options.name, x, weight, options.accumulator.value_or(x.type));
  const std::int64_t ci = x.shape[dims.channel()];
  const std::int64_t co = weight.shape[last ? 2 : 0];
  if (co % ci != 0) {
    detail::refuse(options.name, "weight has " + std::to_string(co) + " channels, not a multiple of the " +
                                     std::to_string(ci) + " input channels; give each input channel as many filters");
  }
  const std::vector<std::string> names = detail::image_names<2>();
  std::array<detail::Window, 2> windows;
  std::vector<Axis> image;
  std::vector<Axis> taps;
  for (std::size_t d = 0; d < 2; ++d) {
    windows[d] = {weight.shape[last ? d : d + 1], options.stride[d], options.padding[d], options.dilation[d]};
    image.push_back({names[d], windows[d].positions(options.name, names[d], x.shape[dims.image(d)])});
    taps.push_back({"r" + names[d], windows[d].kernel});
  }
  const Tensor padded = detail::pad_image(graph, x, dims, windows, 0.0, options.name);
  std::vector<Axis> spatial = dims.arrange<Axis>({"n", x.shape[0]}, image, {"c", co});
  return graph.reduce(options.name, std::move(spatial), std::move(taps), Combiner::Sum, [&](auto i, auto r) {
    const IndexExpr& c = i[dims.channel()];
    const IndexExpr channel = IndexExpr::quotient(c, co / ci, [&](Var) { return Range{0, co - 1}; });
    std::vector<IndexExpr> positions;
    for (std::size_t d = 0; d < 2; ++d) {
      positions.push_back(i[dims.image(d)] * options.stride[d] + r[d] * options.dilation[d]);
    }
    return detail::product_in(accumulator, padded.at(dims.arrange<IndexExpr>(i[0], positions, channel)),
                              last ? weight(r[0], r[1], c) : weight(c, r[0], r[1]));
  });
}

TUNEWRIGHT_INLINE std::shared_ptr<const ComputeGraph> depthwise_conv2d_graph(const DepthwiseConv2dShape& s) {
  detail::require_extents("depthwise_conv2d", {{"batch", s.batch},
                                               {"height", s.height},
                                               {"width", s.width},
                                               {"channels", s.channels},
                                               {"multiplier", s.multiplier},
                                               {"kernel height", s.kernel[0]},
                                               {"kernel width", s.kernel[1]}});
  auto graph = std::make_shared<ComputeGraph>();
  const detail::ImageDimensions<2> dims{s.layout};
  const std::int64_t co = s.channels * s.multiplier;
  using Shape = std::vector<std::int64_t>;
  const Tensor x = graph->input("data", dims.arrange<std::int64_t>(s.batch, {s.height, s.width}, s.channels), s.type);
  const Tensor weight = graph->constant(
      "weight",
      s.layout == Layout::ChannelsLast ? Shape{s.kernel[0], s.kernel[1], co} : Shape{co, s.kernel[0], s.kernel[1]},
      s.type);
  depthwise_conv2d(*graph, x, weight,
                   {.stride = s.stride, .padding = s.padding, .dilation = s.dilation, .layout = s.layout});
  return graph;
}

}  // namespace tunewright::program::operators

#endif
