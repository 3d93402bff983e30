// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/program/expr.hpp"
#include "tunewright/program/graph.hpp"
#include "tunewright/program/index_expr.hpp"
#include "tunewright/program/operators/checks.hpp"
#include "tunewright/program/operators/window.hpp"

namespace tunewright::program::operators {

struct Pool2dOptions {
  PerDimension<2> kernel = 2;
  PerDimension<2> stride = 2;
  PerDimension<2> padding = 0;  ///< on both sides; smaller than the kernel
  bool count_padding = false;   ///< average: divide by the whole window even where it overlaps the border
  Layout layout = Layout::ChannelsLast;
  std::string name = "pool2d";
};

namespace detail {

struct PoolWindows {
  std::array<Window, 2> windows;
  std::vector<Axis> spatial;
  std::vector<Axis> taps;
};

PoolWindows pool_windows(const Tensor& x, const Pool2dOptions& options);

/// The element at tap (r[0], r[1]) of the window at (h, w).
template <class I, class R>
Expr under_window(const Tensor& padded, const Pool2dOptions& options, I i, R r) {
  const ImageDimensions<2> dims{options.layout};
  std::vector<IndexExpr> positions;
  for (std::size_t d = 0; d < 2; ++d) positions.push_back(i[dims.image(d)] * options.stride[d] + r[d]);
  return padded.at(dims.arrange<IndexExpr>(i[0], positions, i[dims.channel()]));
}

}  // namespace detail

/// Maximum over a moving window; padding is ignored.
///
/// Shapes: x [n, h, w, c], result [n, h', w', c] (or channels first), h' = (h + 2*padding - kernel) / stride + 1.
///         Throws `std::invalid_argument` for a window that does not fit or is entirely in the padding.
Tensor max_pool2d(ComputeGraph& graph, const Tensor& x, const Pool2dOptions& options = {});

/// Mean over a moving window, as two operators: sum, in float32 where elements have 16 bits, and divide. Shapes and
/// errors as `max_pool2d`; also throws unless the elements are floating-point numbers.
Tensor avg_pool2d(ComputeGraph& graph, const Tensor& x, const Pool2dOptions& options = {});

/// Mean over the whole image per channel, as two operators: sum, in float32 where elements have 16 bits, and scale.
///
/// Shapes: x [n, h, w, c] or [n, c, h, w]; result [n, c]. Throws `std::invalid_argument` for other ranks and unless the
///         tensor has floating-point elements.
Tensor global_avg_pool2d(ComputeGraph& graph, const Tensor& x, Layout layout = Layout::ChannelsLast,
                         const std::string& name = "global_avg_pool2d");

/// Maximum per channel. Shapes: x [n, h, w, c] or [n, c, h, w]; result [n, c].
Tensor global_max_pool2d(ComputeGraph& graph, const Tensor& x, Layout layout = Layout::ChannelsLast,
                         const std::string& name = "global_max_pool2d");

}  // namespace tunewright::program::operators

#if TUNEWRIGHT_DEFINES(program)

namespace tunewright::program::operators::detail {

TUNEWRIGHT_INLINE PoolWindows pool_windows(const Tensor& x, const Pool2dOptions& options) {
  const ImageDimensions<2> dims{options.layout};
  require_rank(options.name, "input", x, 4, dims.text());
  const std::vector<std::string> names = image_names<2>();
  PoolWindows plan;
  std::vector<Axis> image;
  for (std::size_t d = 0; d < 2; ++d) {
    plan.windows[d] = {options.kernel[d], options.stride[d], options.padding[d], 1};
    image.push_back({names[d], plan.windows[d].positions(options.name, names[d], x.shape[dims.image(d)])});
    require_number(options.name, "kernel minus padding of dimension " + names[d],
                   options.kernel[d] - options.padding[d], 1);
    plan.taps.push_back({"r" + names[d], options.kernel[d]});
  }
  plan.spatial = dims.arrange<Axis>({"n", x.shape[0]}, image, {"c", x.shape[dims.channel()]});
  return plan;
}

}  // namespace tunewright::program::operators::detail

namespace tunewright::program::operators {

TUNEWRIGHT_INLINE Tensor max_pool2d(ComputeGraph& graph, const Tensor& x, const Pool2dOptions& options) {
  detail::PoolWindows plan = detail::pool_windows(x, options);
  const detail::ImageDimensions<2> dims{options.layout};
  const Tensor padded =
      detail::pad_image(graph, x, dims, plan.windows, -std::numeric_limits<double>::infinity(), options.name);
  return graph.reduce(options.name, std::move(plan.spatial), std::move(plan.taps), Combiner::Max,
                      [&](auto i, auto r) { return detail::under_window(padded, options, i, r); });
}

TUNEWRIGHT_INLINE Tensor avg_pool2d(ComputeGraph& graph, const Tensor& x, const Pool2dOptions& options) {
  detail::require_floating_point(options.name, "the input", x);
  detail::PoolWindows plan = detail::pool_windows(x, options);
  const detail::ImageDimensions<2> dims{options.layout};
  const Tensor padded = detail::pad_image(graph, x, dims, plan.windows, 0.0, options.name);
  const std::vector<Axis> spatial = plan.spatial;
  const Tensor sum = graph.reduce(options.name + "_sum", std::move(plan.spatial), std::move(plan.taps), Combiner::Sum,
                                  [&](auto i, auto r) { return widened(detail::under_window(padded, options, i, r)); });
  return graph.compute(options.name, spatial, [&](auto i) {
    Expr count;
    std::int64_t whole = 1;
    for (std::size_t d = 0; d < 2; ++d) {
      if (options.count_padding || options.padding[d] == 0) {
        whole *= options.kernel[d];
        continue;
      }
      const IndexExpr begin = i[dims.image(d)] * options.stride[d] - options.padding[d];
      const Expr inside = min(index_value(begin + options.kernel[d]), index_value(x.shape[dims.image(d)])) -
                          max(index_value(begin), index_value(0));
      count = count ? count * cast(inside, sum.type) : cast(inside, sum.type);
    }
    const Expr total = sum.at({i.begin(), i.end()});
    const Expr mean = count ? total / (whole == 1 ? count : count * whole) : total * (1.0 / static_cast<double>(whole));
    return cast(mean, x.type);
  });
}

TUNEWRIGHT_INLINE Tensor global_avg_pool2d(ComputeGraph& graph, const Tensor& x, Layout layout,
                                           const std::string& name) {
  const detail::ImageDimensions<2> dims{layout};
  detail::require_floating_point(name, "the input", x);
  detail::require_rank(name, "input", x, 4, dims.text());
  const std::int64_t h = x.shape[dims.image(0)];
  const std::int64_t w = x.shape[dims.image(1)];
  const std::vector<Axis> spatial{{"n", x.shape[0]}, {"c", x.shape[dims.channel()]}};
  const Tensor sum = graph.reduce(name + "_sum", spatial, {{"rh", h}, {"rw", w}}, Combiner::Sum, [&](auto i, auto r) {
    return widened(x.at(dims.arrange<IndexExpr>(i[0], {r[0], r[1]}, i[1])));
  });
  return graph.compute(name, spatial,
                       [&](auto i) { return cast(sum(i[0], i[1]) * (1.0 / static_cast<double>(h * w)), x.type); });
}

TUNEWRIGHT_INLINE Tensor global_max_pool2d(ComputeGraph& graph, const Tensor& x, Layout layout,
                                           const std::string& name) {
  const detail::ImageDimensions<2> dims{layout};
  detail::require_rank(name, "input", x, 4, dims.text());
  return graph.reduce(name, {{"n", x.shape[0]}, {"c", x.shape[dims.channel()]}},
                      {{"rh", x.shape[dims.image(0)]}, {"rw", x.shape[dims.image(1)]}}, Combiner::Max,
                      [&](auto i, auto r) { return x.at(dims.arrange<IndexExpr>(i[0], {r[0], r[1]}, i[1])); });
}

}  // namespace tunewright::program::operators

#endif
