// SPDX-License-Identifier: Apache-2.0
#include "tunewright/program/merge_axes.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "support/workloads.hpp"
#include "tunewright/program/operators/batch_matmul.hpp"
#include "tunewright/program/operators/conv.hpp"
#include "tunewright/program/operators/elementwise.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/operators/softmax.hpp"
#include "tunewright/reference/evaluate.hpp"
#include "tunewright/reference/random_inputs.hpp"

namespace {

using namespace tunewright;
using namespace tunewright::program;
using Shape = std::vector<std::int64_t>;

/// The shapes of all tensors after merging; none if nothing merges.
std::vector<Shape> merged_shapes(const ComputeGraph& graph) {
  std::vector<Shape> shapes;
  if (const std::optional<ComputeGraph> merged = merge_axes(graph))
    for (TensorId id = 0; id < merged->size(); ++id) shapes.push_back(merged->op(id).shape());
  return shapes;
}

operators::Conv2dShape pointwise() {
  return {.height = 5, .width = 7, .in_channels = 4, .out_channels = 6, .kernel = 1};
}

}  // namespace

TEST_CASE("a 1x1 convolution becomes a product of all pixels") {
  auto shape = pointwise();
  const auto graph = operators::conv2d_graph(shape);
  const std::optional<ComputeGraph> merged = merge_axes(*graph);
  REQUIRE(merged);
  CHECK(merged_shapes(*graph) == std::vector<Shape>{{35, 4}, {4, 6}, {35, 6}});
  const Operator& sum = merged->op(2);
  REQUIRE(sum.axes.size() == 3);
  CHECK(sum.axes[2] == Axis{graph->op(2).axes[6].name, 4, AxisKind::Reduction});
  CHECK(sum.axes[0].name == graph->op(2).axes[1].name + '@' + graph->op(2).axes[2].name);
  CHECK(sum.combiner == Combiner::Sum);
  // Once merged, nothing is left to merge.
  CHECK_FALSE(merge_axes(*merged));

  shape.batch = 3;
  CHECK(merged_shapes(*operators::conv2d_graph(shape)) == std::vector<Shape>{{105, 4}, {4, 6}, {105, 6}});
  shape.layout = operators::Layout::ChannelsFirst;
  CHECK(merged_shapes(*operators::conv2d_graph(shape)) == std::vector<Shape>{{3, 4, 35}, {6, 4}, {3, 6, 35}});
}

TEST_CASE("rows that are skipped, shifted, transposed or used alone stay apart") {
  auto strided = pointwise();
  strided.stride = 2;
  CHECK(merged_shapes(*operators::conv2d_graph(strided)).empty());
  auto window = pointwise();
  window.kernel = 3;
  CHECK(merged_shapes(*operators::conv2d_graph(window)).empty());
  CHECK(merged_shapes(*operators::matmul_graph({.m = 4, .n = 5, .k = 6})).empty());

  ComputeGraph attention;
  const Tensor q = attention.input("q", {2, 4, 5}), k = attention.input("k", {2, 5, 3});
  operators::batch_matmul(attention, q, k);
  CHECK(merged_shapes(attention).empty());

  const auto merged_with = [](const Shape& read, std::int64_t rows, std::int64_t columns, const auto& body) {
    ComputeGraph graph;
    const Tensor x = graph.input("x", read);
    graph.compute("y", {{"i", rows}, {"j", columns}}, [&](auto i) { return body(x, i); });
    return merged_shapes(graph);
  };
  // What they have in common merges where nothing keeps it apart.
  CHECK(merged_with({4, 5}, 4, 5, [](auto x, auto i) { return x(i[0], i[1]); }) == std::vector<Shape>{{20}, {20}});
  CHECK(merged_with({4, 5}, 5, 4, [](auto x, auto i) { return x(i[1], i[0]); }).empty());
  CHECK(merged_with({4, 4}, 4, 4, [](auto x, auto i) { return x(i[0], i[1]) + x(i[0], i[0]); }).empty());
  CHECK(merged_with({4, 6}, 4, 5, [](auto x, auto i) { return x(i[0], i[1]); }).empty());  // a part of each row
  CHECK(merged_with({4, 6}, 4, 6, [](auto x, auto i) {
          return select(index_value(i[1]) < index_value(IndexExpr(3)), x(i[0], i[1]), 0.0);
        }).empty());
}

TEST_CASE("all readers decide together") {
  ComputeGraph graph;
  const Tensor x = graph.input("x", {2, 3, 5});
  const Tensor y = operators::relu(graph, x);
  CHECK(merged_shapes(graph) == std::vector<Shape>{{30}, {30}});
  // Sums over the last axis use the first two only, so these remain one.
  const Tensor sums = graph.reduce("sums", {{"i", 2}, {"j", 3}}, {{"k", 5}}, Combiner::Sum,
                                   [&](auto i, auto r) { return y(i[0], i[1], r[0]); });
  CHECK(merged_shapes(graph) == std::vector<Shape>{{6, 5}, {6, 5}, {6}});
  // A reader of the sums that takes them apart takes everything apart.
  graph.compute("turned", {{"j", 3}, {"i", 2}}, [&](auto i) { return sums(i[1], i[0]); });
  CHECK(merged_shapes(graph).empty());
}

TEST_CASE("softmax has rows, and sums over neighbouring axes have one axis") {
  ComputeGraph rows;
  operators::softmax(rows, rows.input("x", {2, 3, 5}));
  const std::vector<Shape> shapes = merged_shapes(rows);
  REQUIRE(shapes.size() > 2);
  CHECK(shapes.front() == Shape{6, 5});
  CHECK(shapes.back() == Shape{6, 5});
  CHECK(shapes[1] == Shape{6});

  ComputeGraph pixels;
  const Tensor image = pixels.input("image", {1, 7, 7, 8});
  pixels.reduce("mean", {{"n", 1}, {"c", 8}}, {{"h", 7}, {"w", 7}}, Combiner::Sum,
                [&](auto i, auto r) { return image(i[0], r[0], r[1], i[1]); });
  CHECK(merged_shapes(pixels) == std::vector<Shape>{{49, 8}, {8}});
  CHECK(merge_axes(pixels)->op(1).axes.size() == 2);

  ComputeGraph number;
  const Tensor v = number.input("v", {4, 6});
  number.reduce("all", {{"one", 1}}, {{"i", 4}, {"j", 6}}, Combiner::Max, [&](auto, auto r) { return v(r[0], r[1]); });
  CHECK(merged_shapes(number) == std::vector<Shape>{{24}, {1}});
}

TEST_CASE("a read that no row is selected for stays one where its axis of extent 1 is left out") {
  ComputeGraph graph;
  const Tensor x = graph.input("x", {4, 4, 5});
  const auto shifted = [&](const IndexExpr& by) {
    return graph.compute("y", {{"i", 1}, {"j", 4}, {"k", 5}}, [&](auto i) {
      const IndexExpr row = 2 * i[0] + by;
      return select(in_bounds(row, 4), x(row, i[1], i[2]), -1.0);
    });
  };
  const Tensor above = shifted(-1), inside = shifted(1);
  const std::optional<ComputeGraph> merged = merge_axes(graph);
  REQUIRE(merged);
  CHECK(merged_shapes(graph) == std::vector<Shape>{{4, 20}, {20}, {20}});
  reference::Tensors inputs(graph.size());
  inputs[x.id] = reference::Array(ScalarType::Float32, {4, 20});
  for (std::size_t e = 0; e < 80; ++e) inputs[x.id].set(e, static_cast<double>(e));
  const reference::Tensors found = reference::evaluate(*merged, inputs);
  for (std::size_t e = 0; e < 20; ++e) {
    CHECK(found[above.id].get(e) == -1);
    CHECK(found[inside.id].get(e) == static_cast<double>(20 + e));
  }
}

TEST_CASE("merged programs compute what they computed") {
  std::size_t merged_programs = 0;
  for (const test::Workload& workload : test::workloads()) {
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      Rng rng(seed + 1);
      const auto graph = workload.make(rng);
      const std::optional<ComputeGraph> merged = merge_axes(*graph);
      if (!merged) continue;
      ++merged_programs;
      REQUIRE(merged->size() == graph->size());
      const reference::Tensors inputs = reference::random_inputs(*graph, rng);
      reference::Tensors reshaped(inputs.size());
      for (TensorId id = 0; id < merged->size(); ++id) {
        const Operator& op = merged->op(id);
        CHECK(op.elements() == graph->op(id).elements());
        if (op.role == Role::Computed) continue;
        reshaped[id] = reference::Array(op.type, op.shape());
        for (std::size_t i = 0; i < inputs[id].size(); ++i) reshaped[id].set(i, inputs[id].get(i));
      }
      const reference::Tensors expected = reference::evaluate(*graph, inputs);
      const reference::Tensors found = reference::evaluate(*merged, reshaped);
      for (TensorId id = 0; id < merged->size(); ++id) {
        if (merged->op(id).role != Role::Computed) continue;
        std::size_t different = 0;
        for (std::size_t i = 0; i < expected[id].size(); ++i)
          different += found[id].get(i) == expected[id].get(i) ? 0 : 1;
        CHECK_MESSAGE(different == 0, workload.name, " ", seed, ": tensor ", id);
      }
    }
  }
  CHECK(merged_programs >= 30);
}
