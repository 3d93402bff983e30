// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "shapes.hpp"
#include "tunewright/program/operators/depthwise_conv2d.hpp"
#include "tunewright/program/operators/elementwise.hpp"
#include "tunewright/program/operators/layout.hpp"
#include "tunewright/program/operators/normalization.hpp"
#include "tunewright/program/operators/pool.hpp"
#include "tunewright/program/operators/reduce.hpp"
#include "tunewright/program/operators/softmax.hpp"

/// The float32 kernels that `bench_cpu_kernels` compares, as data: names, shapes and programs, without libraries.
///
/// A name is "group/extents"; Google Benchmark's filter selects groups: `--benchmark_filter=^matmul/`, `^conv2d`,
/// `^memory_`. Extents of products are [batch x] m x n x k.
namespace tunewright::bench {

/// NHWC, batch 1, 3 x 3 with a padding of 1; the kernel is a constant.
struct DepthwiseShape {
  std::int64_t size, channels, stride;
  bool operator==(const DepthwiseShape&) const = default;
};
struct SoftmaxRows {
  std::int64_t rows, columns;
  bool operator==(const SoftmaxRows&) const = default;
};
struct LayerNormRows {
  std::int64_t rows, columns;
  bool operator==(const LayerNormRows&) const = default;
};
/// Normalises `rows` vectors of channels at inference: one multiplication and one addition for each element.
struct BatchNormRows {
  std::int64_t rows, channels;
  bool operator==(const BatchNormRows&) const = default;
};
/// Sum over one axis of three.
struct AxisSum {
  std::int64_t extents[3];
  int axis;
  bool operator==(const AxisSum&) const = default;
};
/// relu(a + b) with a bias of one row, or with a second operand of the full shape.
struct AddRelu {
  std::int64_t rows, columns;
  bool bias;
  bool operator==(const AddRelu&) const = default;
};
/// NHWC, batch 1.
struct PoolShape {
  std::int64_t size, channels, kernel, stride, padding;
  bool average;
  bool operator==(const PoolShape&) const = default;
};
struct TransposeShape {
  std::int64_t rows, columns;
  bool operator==(const TransposeShape&) const = default;
};

using Shape = std::variant<Product, ConvolutionShape, DepthwiseShape, SoftmaxRows, LayerNormRows, BatchNormRows,
                           AxisSum, AddRelu, PoolShape, TransposeShape>;

struct SuiteEntry {
  std::string name;
  Shape shape;
  bool memory_bound = false;  ///< compared with the bandwidth as well
};

// ---- names --------------------------------------------------------------------------------------------------

namespace detail {

inline std::string joined(std::initializer_list<std::int64_t> extents) {
  std::string text;
  for (const std::int64_t extent : extents) text += (text.empty() ? "" : "x") + std::to_string(extent);
  return text;
}

/// Operator and extents.
struct NameParts {
  std::string group, extents;
};
inline NameParts parts_of(const Product& p) {
  const std::string operands = p.transpose_a || p.transpose_b
                                   ? std::string("_") + (p.transpose_a ? 't' : 'n') + (p.transpose_b ? 't' : 'n')
                                   : std::string();
  if (p.batch > 1) return {"batch_matmul" + operands, joined({p.batch, p.m, p.n, p.k})};
  return {"matmul" + operands, joined({p.m, p.n, p.k})};
}
inline NameParts parts_of(const ConvolutionShape& s) { return {"conv2d", extents_of(s)}; }
inline NameParts parts_of(const DepthwiseShape& s) {
  return {"depthwise", joined({s.size, s.size, s.channels}) + "_s" + std::to_string(s.stride)};
}
inline NameParts parts_of(const SoftmaxRows& s) { return {"softmax", joined({s.rows, s.columns})}; }
inline NameParts parts_of(const LayerNormRows& s) { return {"layer_norm", joined({s.rows, s.columns})}; }
inline NameParts parts_of(const BatchNormRows& s) { return {"batch_norm", joined({s.rows, s.channels})}; }
inline NameParts parts_of(const AxisSum& s) {
  return {"sum", joined({s.extents[0], s.extents[1], s.extents[2]}) + "_axis" + std::to_string(s.axis)};
}
inline NameParts parts_of(const AddRelu& s) { return {s.bias ? "bias_relu" : "add_relu", joined({s.rows, s.columns})}; }
inline NameParts parts_of(const PoolShape& s) {
  return {s.average ? "avg_pool" : "max_pool",
          joined({s.size, s.size, s.channels}) + "_k" + std::to_string(s.kernel) + "_s" + std::to_string(s.stride)};
}
inline NameParts parts_of(const TransposeShape& s) { return {"transpose", joined({s.rows, s.columns})}; }

}  // namespace detail

/// "prefix" + operator + "suffix/" + extents, such as "conv2d" + "_resnet50/" + "56x56x64_64_k3_s1".
[[nodiscard]] inline std::string name_of(const Shape& shape, std::string_view prefix = "",
                                         std::string_view suffix = "") {
  const auto parts = std::visit([](const auto& s) { return detail::parts_of(s); }, shape);
  return std::string(prefix) + parts.group + std::string(suffix) + "/" + parts.extents;
}

// ---- programs -----------------------------------------------------------------------------------------------

namespace detail {

using Graph = std::shared_ptr<const program::ComputeGraph>;

inline Graph program_of(const Product& p) { return product_graph(p); }
inline Graph program_of(const ConvolutionShape& s) { return convolution_graph(s); }
inline Graph program_of(const DepthwiseShape& s) {
  return program::operators::depthwise_conv2d_graph(
      {.height = s.size, .width = s.size, .channels = s.channels, .kernel = 3, .stride = s.stride, .padding = 1});
}
inline Graph program_of(const SoftmaxRows& s) {
  return program::operators::softmax_graph({.rows = s.rows, .columns = s.columns});
}
inline Graph program_of(const LayerNormRows& s) {
  auto graph = std::make_shared<program::ComputeGraph>();
  const auto x = graph->input("data", {s.rows, s.columns});
  const auto gamma = graph->input("gamma", {s.columns});
  program::operators::layer_norm(*graph, x, gamma, graph->input("beta", {s.columns}));
  return graph;
}
/// Mean and variance are folded into scale and shift, as they are constants.
inline Graph program_of(const BatchNormRows& s) {
  auto graph = std::make_shared<program::ComputeGraph>();
  const auto x = graph->input("data", {s.rows, s.channels});
  const auto scale = graph->input("scale", {s.channels});
  const auto shift = graph->input("shift", {s.channels});
  graph->compute("batch_norm", {{"i", s.rows}, {"c", s.channels}},
                 [&](auto i) { return x(i[0], i[1]) * scale(i[1]) + shift(i[1]); });
  return graph;
}
inline Graph program_of(const AxisSum& s) {
  auto graph = std::make_shared<program::ComputeGraph>();
  const auto x = graph->input("data", {s.extents[0], s.extents[1], s.extents[2]});
  program::operators::sum(*graph, x, {s.axis});
  return graph;
}
inline Graph program_of(const AddRelu& s) {
  namespace ops = program::operators;
  auto graph = std::make_shared<program::ComputeGraph>();
  const auto a = graph->input("A", {s.rows, s.columns});
  using Extents = std::vector<std::int64_t>;
  const auto b = graph->input("B", s.bias ? Extents{s.columns} : Extents{s.rows, s.columns});
  const auto sum = ops::map(*graph, a, b, "add", [](const auto& x, const auto& y) { return x + y; });
  ops::relu(*graph, sum);
  return graph;
}
inline Graph program_of(const PoolShape& s) {
  namespace ops = program::operators;
  auto graph = std::make_shared<program::ComputeGraph>();
  const auto x = graph->input("data", {1, s.size, s.size, s.channels});
  const ops::Pool2dOptions options{.kernel = s.kernel, .stride = s.stride, .padding = s.padding};
  s.average ? ops::avg_pool2d(*graph, x, options) : ops::max_pool2d(*graph, x, options);
  return graph;
}
inline Graph program_of(const TransposeShape& s) {
  auto graph = std::make_shared<program::ComputeGraph>();
  program::operators::transpose(*graph, graph->input("data", {s.rows, s.columns}));
  return graph;
}

}  // namespace detail

[[nodiscard]] inline std::shared_ptr<const program::ComputeGraph> program_of(const Shape& shape) {
  return std::visit([](const auto& s) { return detail::program_of(s); }, shape);
}

// ---- lists --------------------------------------------------------------------------------------------------

/// Every distinct convolution of MobileNet-V2 for one 224 x 224 image (Sandler et al., CVPR 2018, table 2): those of
/// all channels, and those of each channel on its own.
struct MobileNetV2 {
  std::vector<ConvolutionShape> convolutions;
  std::vector<DepthwiseShape> depthwise;
};
[[nodiscard]] inline MobileNetV2 mobilenet_v2() {
  MobileNetV2 net;
  const auto add_new = [](auto& list, const auto& shape) {
    if (std::find(list.begin(), list.end(), shape) == list.end()) list.push_back(shape);
  };
  const auto pointwise = [&](std::int64_t size, std::int64_t in, std::int64_t out) {
    add_new(net.convolutions, ConvolutionShape{size, size, in, out, 1, 1, 0});
  };
  add_new(net.convolutions, ConvolutionShape{224, 224, 3, 32, 3, 2, 1});
  struct Stage {
    std::int64_t expansion, channels, repeats, stride;
  };
  std::int64_t size = 112, in = 32;
  for (const Stage& stage : {Stage{1, 16, 1, 1}, Stage{6, 24, 2, 2}, Stage{6, 32, 3, 2}, Stage{6, 64, 4, 2},
                             Stage{6, 96, 3, 1}, Stage{6, 160, 3, 2}, Stage{6, 320, 1, 1}}) {
    for (std::int64_t block = 0; block < stage.repeats; ++block) {
      const std::int64_t stride = block == 0 ? stage.stride : 1;
      const std::int64_t wide = in * stage.expansion;
      if (stage.expansion > 1) pointwise(size, in, wide);
      add_new(net.depthwise, DepthwiseShape{size, wide, stride});
      size /= stride;
      pointwise(size, wide, stage.channels);
      in = stage.channels;
    }
  }
  pointwise(size, in, 1280);
  return net;
}

/// The whole suite of float32 kernels, each name once.
[[nodiscard]] inline std::vector<SuiteEntry> suite() {
  std::vector<SuiteEntry> entries;
  const auto add = [&](const Shape& shape, std::string_view suffix = "") {
    entries.push_back({name_of(shape, "", suffix), shape});
  };
  const auto add_memory_bound = [&](const Shape& shape, std::string_view suffix = "") {
    entries.push_back({name_of(shape, "memory_", suffix), shape, true});
  };

  for (const std::int64_t size : {512, 1024, 2048}) add(Product{1, size, size, size});
  for (const Product& p : {Product{1, 128, 3072, 768}, Product{1, 3136, 64, 576}, Product{1, 49, 512, 4608}}) add(p);
  for (const Product& p : {Product{1, 384, 512, 640}, Product{1, 509, 521, 503}, Product{1, 1021, 1019, 1013},
                           Product{1, 129, 257, 65}, Product{1, 1000, 10, 1000}, Product{1, 10, 1000, 1000}})
    add(p, "_odd");
  for (const auto& [a, b] : {std::pair(false, true), std::pair(true, false), std::pair(true, true)}) {
    add(Product{1, 1024, 1024, 1024, a, b});
    add(Product{1, 509, 521, 503, a, b}, "_odd");
  }
  add(Product{1, 128, 3072, 768, false, true});
  add(Product{12, 128, 64, 128});
  add(Product{12, 128, 128, 64, false, true});
  add(Product{96, 197, 197, 64, false, true});
  add(Product{64, 32, 32, 32});

  for (const ConvolutionShape& s : resnet50_convolutions()) add(s, "_resnet50");
  const MobileNetV2 mobile = mobilenet_v2();
  for (const ConvolutionShape& s : mobile.convolutions) add(s, "_mobilenet_v2");
  for (const DepthwiseShape& s : mobile.depthwise) add(s, "_mobilenet_v2");

  for (const std::int64_t m : {1, 2, 4, 8, 16}) {
    for (const auto& [n, k] :
         {std::pair(1024, 1024), std::pair(1024, 4096), std::pair(4096, 1024), std::pair(4096, 4096)}) {
      add_memory_bound(Product{1, m, n, k}, "_few_rows");
    }
    for (const std::int64_t n : {1024, 4096}) add_memory_bound(Product{1, m, n, 1024, false, true}, "_few_rows");
  }
  for (const SoftmaxRows& s : {SoftmaxRows{1024, 1024}, SoftmaxRows{1536, 128}, SoftmaxRows{64, 32000}})
    add_memory_bound(s);
  for (const LayerNormRows& s : {LayerNormRows{128, 768}, LayerNormRows{4096, 1024}}) add_memory_bound(s);
  for (const BatchNormRows& s : {BatchNormRows{3136, 256}, BatchNormRows{12544, 64}}) add_memory_bound(s);
  for (const int axis : {0, 1, 2}) {
    add_memory_bound(AxisSum{{256, 256, 64}, axis});
    add_memory_bound(AxisSum{{61, 67, 509}, axis});
  }
  for (const int axis : {1, 2}) add_memory_bound(AxisSum{{1, 4096, 4096}, axis});
  for (const bool bias : {false, true}) {
    add_memory_bound(AddRelu{3136, 256, bias});
    add_memory_bound(AddRelu{4096, 4096, bias});
  }
  add_memory_bound(PoolShape{112, 64, 3, 2, 1, false});
  add_memory_bound(PoolShape{56, 256, 2, 2, 0, true});
  add_memory_bound(PoolShape{7, 2048, 7, 1, 0, true});
  add_memory_bound(TransposeShape{1024, 1024});
  add_memory_bound(TransposeShape{3136, 256});
  add_memory_bound(TransposeShape{4096, 4096});
  return entries;
}

}  // namespace tunewright::bench
