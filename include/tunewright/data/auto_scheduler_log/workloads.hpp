// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tunewright/data/auto_scheduler_log/record.hpp"
#include "tunewright/data/auto_scheduler_log/relay_layers.hpp"
#include "tunewright/program/graph.hpp"
#include "tunewright/program/operators/conv.hpp"
#include "tunewright/program/operators/elementwise.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/operators/pad.hpp"
#include "tunewright/program/operators/pool.hpp"
#include "tunewright/program/operators/reduce.hpp"
#include "tunewright/program/operators/window.hpp"

/// The computations of logged workloads. A workload key has the name of a user's function and shapes, but not what the
/// function computes. The functions of two published collections are known here; for others build the graph yourself,
/// with tensors numbered like TVM's stages: a tensor after its operands, operands in the order of reading, padding as a
/// separate operator.
namespace tunewright::data::ansor {

namespace detail {

using program::ComputeGraph;
using program::IndexExpr;
using program::Tensor;
using Shape = std::vector<std::int64_t>;

/// Reads the arguments of a workload key one by one. Its numbers are extents, taps and strides from 1 to
/// `most_extent`, so that arithmetic with a few of them does not overflow.
class Arguments {
 public:
  explicit Arguments(const Workload& workload) : workload_(workload) {}

  std::int64_t integer() { return extent(next(), "a number"); }
  std::string text() {
    const std::string* value = next().text();
    return value != nullptr ? *value : refuse<std::string>("a text");
  }
  /// A list of numbers, or one number.
  Shape integers() {
    Shape shape;
    for (const json::Literal* element : elements()) shape.push_back(extent(*element, "numbers"));
    return shape;
  }
  /// A list of dimensions of a tensor of rank `rank`, or one dimension; negative ones count from the end.
  std::vector<int> dimensions(std::size_t rank) {
    std::vector<int> found;
    const auto most = static_cast<std::int64_t>(rank);
    for (const json::Literal* element : elements()) {
      const std::int64_t* value = element->integer();
      const bool is_one = value != nullptr && *value >= -most && *value < most;
      found.push_back(is_one ? static_cast<int>(*value)
                             : refuse<int>("dimensions of a tensor of rank " + std::to_string(rank)));
    }
    return found;
  }
  Shape shape(std::size_t rank) {
    Shape found = integers();
    return found.size() == rank ? found : refuse<Shape>("a shape of rank " + std::to_string(rank));
  }

 private:
  const json::Literal& next() {
    if (next_ == workload_.arguments.size()) refuse<int>("more arguments");
    return workload_.arguments[next_++];
  }
  std::vector<const json::Literal*> elements() {
    const json::Literal& literal = next();
    if (literal.array() == nullptr) return {&literal};
    std::vector<const json::Literal*> found;
    for (const json::Literal& element : *literal.array()) found.push_back(&element);
    return found;
  }
  std::int64_t extent(const json::Literal& literal, const std::string& wanted) const {
    const std::int64_t* value = literal.integer();
    if (value == nullptr) return refuse<std::int64_t>(wanted);
    if (*value < 1 || *value > most_extent)
      return refuse<std::int64_t>("from 1 to 2^30, but is " + std::to_string(*value));
    return *value;
  }
  template <class T>
  T refuse(const std::string& wanted) const {
    throw FormatError("workload '" + workload_.name + "': argument " + std::to_string(next_) + " should be " + wanted);
  }

  const Workload& workload_;
  std::size_t next_ = 0;
};

/// Zeros (or `value`) around the image of [n, c, h, w] as in TVM: an operator even if nothing is added; "SAME" adds
/// kernel - 1, the larger half before.
inline Tensor padded_image(ComputeGraph& graph, const Tensor& x, const Shape& kernel, const std::string& padding,
                           double value = 0) {
  if (padding != "SAME" && padding != "VALID") {
    throw FormatError("padding '" + padding + "' is neither SAME nor VALID");
  }
  Shape before(4, 0), after(4, 0);
  for (std::size_t d = 0; d < 2 && padding == "SAME"; ++d) {
    before[d + 2] = kernel[d] / 2;
    after[d + 2] = kernel[d] - 1 - kernel[d] / 2;
  }
  const Tensor padded =
      program::operators::pad(graph, x, {.before = before, .after = after, .value = value, .name = "pad"});
  if (padded.id != x.id) return padded;
  return graph.compute("pad", program::operators::detail::axes_over(x.shape),
                       [&](auto i) { return x.at({i.begin(), i.end()}); });
}

inline void conv2d_layer(ComputeGraph& graph, Arguments in) {
  const std::int64_t n = in.integer(), c = in.integer(), h = in.integer(), w = in.integer(), k = in.integer();
  const std::int64_t r = in.integer(), s = in.integer(), stride = in.integer();
  const Tensor x = graph.input("data", {n, c, h, w});
  // The weight has a number after the padded image.
  const Tensor padded = padded_image(graph, x, {r, s}, in.text());
  const Tensor weight = graph.input("kernel", {k, c, r, s});
  program::operators::conv2d(graph, padded, weight,
                             {.stride = stride, .layout = program::operators::Layout::ChannelsFirst});
}

inline void conv2d_same(ComputeGraph& graph, Arguments in) {
  const Shape image = in.shape(4), kernel = in.shape(4);
  const Tensor x = graph.input("data", image);
  const Tensor padded = padded_image(graph, x, {kernel[2], kernel[3]}, "SAME");
  const Tensor weight = graph.input("kernel", kernel);
  program::operators::conv2d(graph, padded, weight, {.layout = program::operators::Layout::ChannelsFirst});
}

inline void depthwise_layer(ComputeGraph& graph, Arguments in) {
  const std::int64_t n = in.integer(), c = in.integer(), h = in.integer(), w = in.integer();
  const std::int64_t r = in.integer(), s = in.integer(), stride = in.integer();
  const Tensor x = graph.input("data", {n, c, h, w});
  const Tensor padded = padded_image(graph, x, {r, s}, in.text());
  const Tensor weight = graph.input("kernel", {c, 1, r, s});
  const auto image = [&](const char* dimension, std::int64_t extent, std::int64_t taps) {
    const program::operators::detail::Window window{taps, stride};
    return program::Axis{dimension, window.positions("depthwise", dimension, extent)};
  };
  graph.reduce("depthwise", {{"n", n}, {"c", c}, image("h", padded.shape[2], r), image("w", padded.shape[3], s)},
               {{"rh", r}, {"rw", s}}, program::Combiner::Sum, [&](auto i, auto t) {
                 return padded(i[0], i[1], i[2] * stride + t[0], i[3] * stride + t[1]) *
                        weight(i[1], IndexExpr(0), t[0], t[1]);
               });
}

inline void pool_layer(ComputeGraph& graph, Arguments in) {
  namespace op = program::operators;
  const std::string kind = in.text();
  if (kind != "avg" && kind != "max") throw FormatError("pooling '" + kind + "' is neither avg nor max");
  const Shape image{in.integer(), in.integer(), in.integer(), in.integer()};
  const std::int64_t r = in.integer(), s = in.integer(), stride = in.integer();
  const Tensor x = graph.input("data", image);
  const std::string padding = in.text();
  const bool pads = padding == "SAME" && (r > 1 || s > 1);
  const double border = kind == "max" ? -std::numeric_limits<double>::infinity() : 0.0;
  const Tensor padded = pads ? padded_image(graph, x, {r, s}, padding, border) : x;
  const op::Pool2dOptions options{
      .kernel = {r, s}, .stride = stride, .count_padding = true, .layout = op::Layout::ChannelsFirst};
  kind == "max" ? op::max_pool2d(graph, padded, options) : op::avg_pool2d(graph, padded, options);
}

inline void reduction_layer(ComputeGraph& graph, Arguments in) {
  const Tensor x = graph.input("data", in.integers());
  program::operators::sum(graph, x, in.dimensions(x.shape.size()));
}

inline void relu_layer(ComputeGraph& graph, Arguments in) {
  const Shape shape{in.integer(), in.integer(), in.integer(), in.integer()};
  program::operators::relu(graph, graph.input("data", shape));
}

inline void matmul_layer(ComputeGraph& graph, Arguments in) {  // [m, k] by [k, n]
  const std::int64_t m = in.integer(), k = in.integer(), n = in.integer();
  const Tensor a = graph.input("A", {m, k});
  const Tensor b = graph.input("B", {k, n});
  program::operators::matmul(graph, a, b);
}

}  // namespace detail

/// The computation of a workload key, with TVM's stage numbers; null for an unknown function. Throws `FormatError` for
/// a malformed key or arguments that do not match the function, and `std::invalid_argument` for shapes that do not fit
/// together.
///
/// Known: matmul_layer, ansor_mm [m, k, n]; conv2d_layer [n, c, h, w, k, r, s, stride, padding], conv2d_ansor [image,
/// weight] with stride 1 and same padding; depthwise_conv2d_layer [n, c, h, w, r, s, stride, padding]; pool_layer
/// [kind, n, c, h, w, r, s, stride, padding]; reduction_layer [shape, axes]; relu_layer [n, c, h, w]. Images are
/// channels first. Layers that TVM extracted from a network have a hash as their name; `detail::relay_layer` identifies
/// some of them by their shapes.
[[nodiscard]] inline std::shared_ptr<const program::ComputeGraph> workload_graph(std::string_view key) {
  using Builder = void (*)(program::ComputeGraph&, detail::Arguments);
  constexpr std::pair<std::string_view, Builder> known[] = {
      {"matmul_layer", detail::matmul_layer},
      {"ansor_mm", detail::matmul_layer},
      {"conv2d_layer", detail::conv2d_layer},
      {"conv2d_ansor", detail::conv2d_same},
      {"depthwise_conv2d_layer", detail::depthwise_layer},
      {"pool_layer", detail::pool_layer},
      {"reduction_layer", detail::reduction_layer},
      {"relu_layer", detail::relu_layer},
  };
  const Workload workload = parse_workload(key);
  for (const auto& [name, build] : known) {
    if (name != workload.name) continue;
    auto graph = std::make_shared<program::ComputeGraph>();
    build(*graph, detail::Arguments(workload));
    return graph;
  }
  return detail::relay_layer(workload);
}

}  // namespace tunewright::data::ansor
