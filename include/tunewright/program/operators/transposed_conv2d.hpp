// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/program/graph.hpp"
#include "tunewright/program/operators/checks.hpp"

namespace tunewright::program::operators {

struct TransposedConv2dOptions {
  PerDimension<2> stride = 1;
  PerDimension<2> padding = 0;         ///< of the convolution whose transpose this is
  PerDimension<2> output_padding = 0;  ///< extra rows and columns at the far ends, below the stride
  Layout layout = Layout::ChannelsLast;
  std::string name = "transposed_conv2d";
};

/// The gradient of a convolution with respect to its input, also called deconvolution: each input element adds a scaled
/// copy of the kernel to the output, at distances of `stride`. Two operators: the input is dilated and padded with
/// zeros, then convolved with the flipped kernel at stride 1.
///
/// Shapes: channels last x [n, h, w, ci], weight [kh, kw, ci, co], result [n, h', w', co]; channels first x [n, ci, h,
///         w], weight [ci, co, kh, kw], result [n, co, h', w']; h' = (h - 1)*stride - 2*padding + kh + output_padding.
///         Throws `std::invalid_argument` for inconsistent shapes, padding of at least the kernel's extent, or output
///         padding of at least the stride.
Tensor transposed_conv2d(ComputeGraph& graph, const Tensor& x, const Tensor& weight,
                         const TransposedConv2dOptions& options = {});

}  // namespace tunewright::program::operators

#if TUNEWRIGHT_DEFINES(program)

#include "tunewright/program/operators/window.hpp"

namespace tunewright::program::operators {

TUNEWRIGHT_INLINE Tensor transposed_conv2d(ComputeGraph& graph, const Tensor& x, const Tensor& weight,
                                           const TransposedConv2dOptions& options) {
  const detail::ImageDimensions<2> dims{options.layout};
  const bool last = options.layout == Layout::ChannelsLast;
  detail::require_rank(options.name, "input", x, 4, dims.text());
  detail::require_rank(options.name, "weight", weight, 4, last ? "[kh, kw, ci, co]" : "[ci, co, kh, kw]");
  detail::require_same_type(options.name, x, weight);
  const std::int64_t ci = x.shape[dims.channel()];
  const std::int64_t co = weight.shape[last ? 3 : 1];
  detail::require_extent(options.name, "input channels of weight", weight.shape[last ? 2 : 0], ci,
                         "make it the channels of the input");

  const std::vector<std::string> names = detail::image_names<2>();
  std::vector<Axis> spread_image;
  std::vector<Axis> image;
  std::vector<Axis> taps;
  std::array<std::int64_t, 2> before{};
  for (std::size_t d = 0; d < 2; ++d) {
    const std::int64_t kernel = weight.shape[last ? d : d + 2];
    const std::int64_t extent = x.shape[dims.image(d)];
    const std::string where = " of dimension " + names[d];
    detail::require_number(options.name, "extent" + where, extent, 1);
    detail::require_number(options.name, "stride" + where, options.stride[d], 1);
    detail::require_number(options.name, "padding" + where, options.padding[d], 0);
    detail::require_number(options.name, "kernel minus padding" + where, kernel - options.padding[d], 1);
    detail::require_number(options.name, "output padding" + where, options.output_padding[d], 0);
    detail::require_number(options.name, "stride minus output padding" + where,
                           options.stride[d] - options.output_padding[d], 1);
    const std::int64_t result =
        (extent - 1) * options.stride[d] - 2 * options.padding[d] + kernel + options.output_padding[d];
    detail::require_number(options.name, "extent of the result" + where, result, 1);
    before[d] = kernel - 1 - options.padding[d];
    spread_image.push_back({names[d], result + kernel - 1});
    image.push_back({names[d], result});
    taps.push_back({"r" + names[d], kernel});
  }
  const std::size_t rc = last ? 2 : 0;
  taps.insert(taps.begin() + static_cast<std::ptrdiff_t>(rc), {"rc", ci});

  const std::vector<Axis> spread_axes = spread_image;
  const Tensor spread = graph.compute(
      options.name + "_spread", dims.arrange<Axis>({"n", x.shape[0]}, spread_image, {"c", ci}), [&](auto i) {
        Expr inside;
        std::vector<IndexExpr> source;
        const auto require = [&](const Expr& condition) { inside = inside ? inside && condition : condition; };
        for (std::size_t d = 0; d < 2; ++d) {
          const IndexExpr offset = i[dims.image(d)] - before[d];
          const Range range{-before[d], spread_axes[d].extent - 1 - before[d]};
          const std::int64_t stride = options.stride[d];
          const std::int64_t most = (x.shape[dims.image(d)] - 1) * stride;
          const auto range_of = [&](Var) { return Range{0, spread_axes[d].extent - 1}; };
          if (const Expr here = detail::guard(offset, range, 0, most)) require(here);
          if (stride > 1) require(equal(index_value(IndexExpr::remainder(offset, stride, range_of)), index_value(0)));
          source.push_back(IndexExpr::quotient(offset, stride, range_of));
        }
        const Expr value = x.at(dims.arrange<IndexExpr>(i[0], source, i[dims.channel()]));
        return inside ? select(inside, value, constant(0, x.type)) : value;
      });
  return graph.reduce(
      options.name, dims.arrange<Axis>({"n", x.shape[0]}, image, {"c", co}), std::move(taps), Combiner::Sum,
      [&](auto i, auto r) {
        const IndexExpr& c = i[dims.channel()];
        const auto tap = [&](std::size_t d) -> const IndexExpr& { return r[last ? d : d + 1]; };
        const auto flipped = [&](std::size_t d) { return weight.shape[last ? d : d + 2] - 1 - tap(d); };
        const Expr value =
            spread.at(dims.arrange<IndexExpr>(i[0], {i[dims.image(0)] + tap(0), i[dims.image(1)] + tap(1)}, r[rc]));
        return value * (last ? weight(flipped(0), flipped(1), r[rc], c) : weight(r[rc], c, flipped(0), flipped(1)));
      });
}

}  // namespace tunewright::program::operators

#endif
