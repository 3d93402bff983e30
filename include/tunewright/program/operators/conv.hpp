// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/program/operators/window.hpp"

namespace tunewright::program::operators {

template <std::size_t D>
struct ConvOptions {
  PerDimension<D> stride = 1;
  PerDimension<D> padding = 0;  ///< zeros on both sides; for unequal sides call `pad` first
  PerDimension<D> dilation = 1;
  std::int64_t groups = 1;  ///< input and output channels are split into this many independent groups
  Layout layout = Layout::ChannelsLast;
  std::string name = D == 1 ? "conv1d" : D == 2 ? "conv2d" : "conv3d";
  std::optional<ScalarType> accumulator{};  ///< of products, sums and the result; by default `accumulator_type`
};

/// Convolution (without flipping the kernel) over D image dimensions. For D = 2, channels last:
///
///   out[n, h, w, c] = sum over rh, rw, rc of
///                     padded[n, h*stride + rh*dilation, w*stride + rw*dilation, group(c)*ci/groups + rc] *
///                     weight[rh, rw, rc, c]
///
/// Shapes, D = 2: channels last x [n, h, w, ci], weight [kh, kw, ci/groups, co], result [n, h', w', co]; channels first
/// x [n, ci, h, w], weight [co, ci/groups, kh, kw], result [n, co, h', w']; h' = (h + 2*padding - dilation*(kh-1) - 1)
/// / stride + 1. Padding, if any, is a separate operator. The operands have one type, or are int8 and uint8. Throws
/// `std::invalid_argument` for inconsistent shapes or types.
template <std::size_t D>
Tensor conv(ComputeGraph& graph, const Tensor& x, const Tensor& weight, const ConvOptions<D>& options = {}) {
  const detail::ImageDimensions<D> dims{options.layout};
  const bool last = options.layout == Layout::ChannelsLast;
  detail::require_rank(options.name, "input", x, D + 2, dims.text());
  detail::require_rank(options.name, "weight", weight, D + 2, last ? "[k.., ci/groups, co]" : "[co, ci/groups, k..]");
  const ScalarType accumulator = detail::accumulator_for(options.name, x, weight, options.accumulator);
  detail::require_number(options.name, "groups", options.groups, 1);
  const std::int64_t ci = x.shape[dims.channel()];
  const std::int64_t co = weight.shape[last ? D + 1 : 0];
  if (ci % options.groups != 0 || co % options.groups != 0) {
    detail::refuse(options.name, std::to_string(options.groups) + " groups do not divide " + std::to_string(ci) +
                                     " input and " + std::to_string(co) + " output channels; choose a common divisor");
  }
  const std::int64_t ci_group = ci / options.groups;
  detail::require_extent(options.name, "input channels of weight", weight.shape[last ? D : 1], ci_group,
                         "make it the channels of the input divided by groups");

  const std::vector<std::string> names = detail::image_names<D>();
  std::array<detail::Window, D> windows;
  std::vector<Axis> image;
  std::vector<Axis> taps;
  for (std::size_t d = 0; d < D; ++d) {
    windows[d] = {weight.shape[last ? d : d + 2], options.stride[d], options.padding[d], options.dilation[d]};
    image.push_back({names[d], windows[d].positions(options.name, names[d], x.shape[dims.image(d)])});
    taps.push_back({"r" + names[d], windows[d].kernel});
  }
  const Tensor padded = detail::pad_image(graph, x, dims, windows, 0.0, options.name);
  const std::size_t rc = last ? D : 0;
  taps.insert(taps.begin() + static_cast<std::ptrdiff_t>(rc), {"rc", ci_group});
  std::vector<Axis> spatial = dims.template arrange<Axis>({"n", x.shape[0]}, image, {"c", co});

  return graph.reduce(options.name, std::move(spatial), std::move(taps), Combiner::Sum, [&](auto i, auto r) {
    const IndexExpr& c = i[dims.channel()];
    IndexExpr channel = r[rc];
    if (options.groups > 1) {
      channel += IndexExpr::quotient(c, co / options.groups, [&](Var) { return Range{0, co - 1}; }) * ci_group;
    }
    std::vector<IndexExpr> positions;
    std::vector<IndexExpr> weight_index;
    if (!last) weight_index = {c, r[rc]};
    for (std::size_t d = 0; d < D; ++d) {
      const IndexExpr& tap = r[last ? d : d + 1];
      positions.push_back(i[dims.image(d)] * options.stride[d] + tap * options.dilation[d]);
      weight_index.push_back(tap);
    }
    if (last) weight_index.insert(weight_index.end(), {r[rc], c});
    return detail::product_in(accumulator, padded.at(dims.template arrange<IndexExpr>(i[0], positions, channel)),
                              weight.at(std::move(weight_index)));
  });
}

using Conv1dOptions = ConvOptions<1>;
using Conv2dOptions = ConvOptions<2>;
using Conv3dOptions = ConvOptions<3>;

/// Convolution over [n, w, c] or [n, c, w]; see `conv`.
inline Tensor conv1d(ComputeGraph& graph, const Tensor& x, const Tensor& weight, const Conv1dOptions& options = {}) {
  return conv<1>(graph, x, weight, options);
}
/// Convolution over [n, h, w, c] or [n, c, h, w]; see `conv`.
inline Tensor conv2d(ComputeGraph& graph, const Tensor& x, const Tensor& weight, const Conv2dOptions& options = {}) {
  return conv<2>(graph, x, weight, options);
}
/// Convolution over [n, d, h, w, c] or [n, c, d, h, w]; see `conv`.
inline Tensor conv3d(ComputeGraph& graph, const Tensor& x, const Tensor& weight, const Conv3dOptions& options = {}) {
  return conv<3>(graph, x, weight, options);
}

struct Conv2dShape {
  std::int64_t batch = 1;
  std::int64_t height = 1;
  std::int64_t width = 1;
  std::int64_t in_channels = 1;
  std::int64_t out_channels = 1;
  PerDimension<2> kernel = 1;
  PerDimension<2> stride = 1;
  PerDimension<2> padding = 0;
  PerDimension<2> dilation = 1;
  std::int64_t groups = 1;
  Layout layout = Layout::ChannelsLast;
  ScalarType type = ScalarType::Float32;
  std::optional<ScalarType> weight_type{};  ///< where it differs from `type`: uint8 times int8
  std::optional<ScalarType> accumulator{};
};

/// A 2-D convolution as a complete graph with input "data" and constant "weight".
[[nodiscard]] std::shared_ptr<const ComputeGraph> conv2d_graph(const Conv2dShape& s);

}  // namespace tunewright::program::operators

#if TUNEWRIGHT_DEFINES(program)

namespace tunewright::program::operators {

TUNEWRIGHT_INLINE std::shared_ptr<const ComputeGraph> conv2d_graph(const Conv2dShape& s) {
  detail::require_extents("conv2d", {{"batch", s.batch},
                                     {"height", s.height},
                                     {"width", s.width},
                                     {"in_channels", s.in_channels},
                                     {"out_channels", s.out_channels},
                                     {"kernel height", s.kernel[0]},
                                     {"kernel width", s.kernel[1]}});
  detail::require_number("conv2d", "groups", s.groups, 1);
  auto graph = std::make_shared<ComputeGraph>();
  const detail::ImageDimensions<2> dims{s.layout};
  const std::int64_t ci_group = s.in_channels / s.groups;
  detail::require_number("conv2d", "in_channels / groups", ci_group, 1);
  using Shape = std::vector<std::int64_t>;
  const Tensor x =
      graph->input("data", dims.arrange<std::int64_t>(s.batch, {s.height, s.width}, s.in_channels), s.type);
  const Tensor weight =
      graph->constant("weight",
                      s.layout == Layout::ChannelsLast ? Shape{s.kernel[0], s.kernel[1], ci_group, s.out_channels}
                                                       : Shape{s.out_channels, ci_group, s.kernel[0], s.kernel[1]},
                      s.weight_type.value_or(s.type));
  conv2d(*graph, x, weight,
         {.stride = s.stride,
          .padding = s.padding,
          .dilation = s.dilation,
          .groups = s.groups,
          .layout = s.layout,
          .accumulator = s.accumulator});
  return graph;
}

}  // namespace tunewright::program::operators

#endif
