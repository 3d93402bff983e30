// SPDX-License-Identifier: Apache-2.0
#include "tunewright/program/analysis.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tunewright/program/operators/batch_matmul.hpp"
#include "tunewright/program/operators/conv.hpp"
#include "tunewright/program/operators/dense.hpp"
#include "tunewright/program/operators/depthwise_conv2d.hpp"
#include "tunewright/program/operators/elementwise.hpp"
#include "tunewright/program/operators/layout.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/operators/reduce.hpp"
#include "tunewright/program/operators/softmax.hpp"
#include "tunewright/program/task.hpp"

using namespace tunewright::program;
namespace op = tunewright::program::operators;

namespace {

/// matmul -> bias -> relu
struct DenseRelu {
  ComputeGraph graph;
  Tensor product;
  Tensor biased;
  Tensor activated;
  DenseRelu() {
    const Tensor x = graph.input("x", {8, 4});
    const Tensor w = graph.constant("w", {4, 6});
    const Tensor b = graph.constant("b", {6});
    product = op::matmul(graph, x, w);
    biased = op::bias_add(graph, product, b);
    activated = op::relu(graph, biased);
  }
};

}  // namespace

TEST_CASE("operations are counted as Ansor counts them") {
  CHECK(flops(*op::matmul_graph({.m = 4, .n = 5, .k = 6})) == 2 * 4 * 5 * 6);
  CHECK(flops(*op::batch_matmul_graph({.batch = 3, .m = 4, .n = 5, .k = 6})) == 3 * 2 * 4 * 5 * 6);
  const DenseRelu net;
  CHECK(flops(net.graph.op(net.biased.id)) == 48);
  CHECK(flops(net.graph.op(net.activated.id)) == 48);
  CHECK(flops(net.graph) == 2 * 8 * 4 * 6 + 48 + 48);
  // ResNet-50's 3x3 convolution at 28x28: 2 * 28 * 28 * 128 * 9 * 128; selecting the padding costs nothing.
  const auto conv =
      op::conv2d_graph({.height = 28, .width = 28, .in_channels = 128, .out_channels = 128, .kernel = 3, .padding = 1});
  CHECK(flops(*conv) == 231211008.0);
  // A row of n: n maxima, n differences (exp is free), n additions, n divisions.
  CHECK(flops(*op::softmax_graph({.rows = 2, .columns = 10})) == 2 * (10 + 10 + 10 + 10));
}

TEST_CASE("a select costs its condition and its dearer branch") {
  ComputeGraph graph;
  const Tensor x = graph.input("x", {10});
  graph.compute("y", {{"i", 10}}, [&](auto i) { return select(x(i[0]) + 1 < 0.0, x(i[0]) * 2 + 1, x(i[0]) * 3); });
  CHECK(flops(graph) == 10 * (1 + 2));
}

TEST_CASE("bytes are those of inputs, constants and outputs") {
  CHECK(bytes(*op::matmul_graph({.m = 4, .n = 5, .k = 6})) == 4 * (4 * 6 + 6 * 5 + 4 * 5));
  CHECK(bytes(*op::matmul_graph({.m = 4, .n = 5, .k = 6, .type = ScalarType::Float64})) == 8 * (24 + 30 + 20));
  CHECK(bytes(DenseRelu().graph) == 4 * (8 * 4 + 4 * 6 + 6 + 8 * 6));
}

TEST_CASE("reads are grouped by tensor, equal ones once") {
  ComputeGraph graph;
  const Tensor x = graph.input("x", {10});
  const Tensor y = graph.input("y", {10});
  const Tensor z = graph.compute("z", {{"i", 8}}, [&](auto i) { return y(i[0]) + x(i[0]) * x(i[0] + 1) * x(i[0]); });
  const std::vector<Reads> reads = reads_of(graph.op(z.id));
  REQUIRE(reads.size() == 2);
  CHECK(reads[0].tensor == y.id);
  CHECK(reads[1].tensor == x.id);
  CHECK(reads[1].accesses.size() == 2);
}

TEST_CASE("access patterns") {
  Operator reader{.axes = {{"i", 4}, {"j", 4}, {"k", 4, AxisKind::Reduction}}};
  const IndexExpr i = IndexExpr::variable(0);
  const IndexExpr j = IndexExpr::variable(1);
  const IndexExpr k = IndexExpr::variable(2);
  CHECK(access_pattern(reader, {i, j}).elementwise());
  CHECK(access_pattern(reader, {i + 1, 0, j - 2}).elementwise());
  CHECK(access_pattern(reader, {j, i}).simple);
  CHECK_FALSE(access_pattern(reader, {j, i}).same_order);
  CHECK(access_pattern(reader, {i}).axis_missing);
  CHECK(access_pattern(reader, {i, i, j}).axis_duplicated);
  CHECK_FALSE(access_pattern(reader, {i * 2, j}).simple);
  CHECK_FALSE(access_pattern(reader, {i, k}).simple);
}

TEST_CASE("what is inlined without a second thought") {
  const DenseRelu net;
  CHECK(strictly_inlineable(net.graph.op(net.biased.id)));
  CHECK(strictly_inlineable(net.graph.op(net.activated.id)));
  CHECK_FALSE(strictly_inlineable(net.graph.op(net.product.id)));
  CHECK_FALSE(strictly_inlineable(net.graph.op(0)));
  ComputeGraph graph;
  const Tensor x = graph.input("x", {4, 6});
  const auto inlineable = [&](const Tensor& t) { return strictly_inlineable(graph.op(t.id)); };
  CHECK_FALSE(inlineable(op::exp(graph, x)));
  CHECK_FALSE(inlineable(op::gelu(graph, x)));
  CHECK_FALSE(inlineable(op::pad(graph, x, {.before = {1, 0}, .after = {1, 0}})));
  CHECK_FALSE(inlineable(op::transpose(graph, x)));
  CHECK_FALSE(inlineable(op::reshape(graph, x, {3, 8})));
}

TEST_CASE("what is worth tiling on several levels") {
  const auto last = [](const std::shared_ptr<const ComputeGraph>& graph) {
    return needs_multi_level_tiling(*graph, graph->outputs().back());
  };
  CHECK(last(op::matmul_graph({.m = 4, .n = 5, .k = 6})));
  CHECK(last(op::matmul_graph({.m = 4, .n = 5, .k = 6, .transpose_a = true})));
  CHECK(last(op::conv2d_graph({.height = 8, .width = 8, .in_channels = 4, .out_channels = 4, .kernel = 3})));
  CHECK(last(op::depthwise_conv2d_graph({.height = 8, .width = 8, .channels = 4})));
  // A single row or column reuses one operand only, which a reduction makes enough; a dot product reuses
  // none.
  CHECK(last(op::matmul_graph({.m = 1, .n = 5, .k = 6})));
  CHECK_FALSE(last(op::matmul_graph({.m = 1, .n = 1, .k = 6})));
  CHECK_FALSE(last(op::softmax_graph({.rows = 4, .columns = 4})));
  const DenseRelu net;
  CHECK_FALSE(needs_multi_level_tiling(net.graph, net.biased.id));
  ComputeGraph graph;
  const Tensor x = graph.input("x", {4, 6});
  CHECK_FALSE(needs_multi_level_tiling(graph, op::sum(graph, x, {1}).id));
}

TEST_CASE("elementwise chains match, anything else in between does not") {
  const DenseRelu net;
  CHECK(elementwise_match(net.graph, net.product.id, net.activated.id));
  CHECK(elementwise_match(net.graph, net.product.id, net.biased.id));
  CHECK_FALSE(elementwise_match(net.graph, 0, net.activated.id));
  ComputeGraph graph;
  const Tensor x = graph.input("x", {4, 4});
  const Tensor a = op::relu(graph, x);
  const Tensor t = op::transpose(graph, a);
  const Tensor b = op::relu(graph, x);
  op::relu(graph, b);
  op::relu(graph, b);
  CHECK_FALSE(elementwise_match(graph, a.id, t.id));
  CHECK_FALSE(elementwise_match(graph, b.id, b.id + 1));  // two readers
}

TEST_CASE("outer axes that a chain can share") {
  const DenseRelu net;
  CHECK(num_common_outer_axes(net.graph, net.product.id, net.activated.id) == 2);
  CHECK(num_common_outer_axes(net.graph, 0, net.product.id) == 1);
  CHECK(num_common_outer_axes(net.graph, 1, net.product.id) == 0);
  const auto softmax = op::softmax_graph({.rows = 4, .columns = 6});
  CHECK(num_common_outer_axes(*softmax, 1, 2) == 1);  // max -> exp
  CHECK(num_common_outer_axes(*softmax, 2, 4) == 1);  // exp -> divide, also by way of the sum
  CHECK(num_common_outer_axes(*softmax, 4, 1) == 0);
}

TEST_CASE("outputs, and products of extents") {
  const DenseRelu net;
  CHECK(is_output(net.graph, net.activated.id));
  CHECK_FALSE(is_output(net.graph, net.product.id));
  CHECK_FALSE(is_output(net.graph, 0));
  CHECK(has_reduction(net.graph.op(net.product.id)));
  CHECK(spatial_points(net.graph.op(net.product.id)) == 48);
  CHECK(reduction_points(net.graph.op(net.product.id)) == 4);
}

TEST_CASE("a task takes hash and operation count from its graph") {
  const auto graph = op::matmul_graph({.m = 4, .n = 5, .k = 6});
  const tunewright::Task task = make_task("matmul 4x5x6", graph, {.threads = 2}, 3);
  CHECK(task.flops == 240);
  CHECK(task.workload_hash == stable_hash(*graph));
  CHECK(task.weight == 3);
  CHECK(task.target.threads == 2);
  CHECK(task.graph == graph);
  CHECK(stable_hash(task) != stable_hash(make_task("matmul 4x5x6", graph, {.threads = 1})));
}

TEST_CASE("tasks that compute nothing or count for nothing are refused") {
  const auto graph = op::matmul_graph({.m = 4, .n = 5, .k = 6});
  CHECK_THROWS_WITH_AS((void)make_task("t", nullptr, {}),
                       "task 't' computes nothing; give it a graph with at least one operator", std::invalid_argument);
  CHECK_THROWS_AS((void)make_task("t", std::make_shared<ComputeGraph>(), {}), std::invalid_argument);
  CHECK_THROWS_WITH_AS((void)make_task("t", graph, {}, 0),
                       "task 't' has weight 0; give the number of its occurrences, which is positive",
                       std::invalid_argument);
  CHECK_THROWS_AS((void)make_task("t", graph, {}, -1), std::invalid_argument);
}
