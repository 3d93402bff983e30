// SPDX-License-Identifier: Apache-2.0
#include "tunewright/program/analysis.hpp"

#include <doctest/doctest.h>

#include <limits>
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

TEST_CASE("the widest element is one that is computed") {
  CHECK(widest_element(*op::matmul_graph({.m = 4, .n = 5, .k = 6})) == 4);
  CHECK(widest_element(*op::matmul_graph({.m = 4, .n = 5, .k = 6, .type = ScalarType::Float64})) == 8);
  ComputeGraph graph;
  const Tensor x = graph.input("x", {10}, ScalarType::Float64);
  graph.compute("y", {{"i", 10}}, [&](auto i) { return cast(x(i[0]), ScalarType::Int8); });
  CHECK(widest_element(graph) == 1);
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
  const AccessPattern shifted = access_pattern(reader, {i + 1, 0, j - 2});
  CHECK((shifted.simple && shifted.same_order && !shifted.axis_missing && !shifted.axis_duplicated));
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
    return needs_multi_level_tiling(graph->op(graph->outputs().back()));
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
  CHECK_FALSE(needs_multi_level_tiling(net.graph.op(net.biased.id)));
  ComputeGraph graph;
  const Tensor x = graph.input("x", {4, 6});
  CHECK_FALSE(needs_multi_level_tiling(graph.op(op::sum(graph, x, {1}).id)));
}

TEST_CASE("a reader is elementwise if it reads at each point the element of that point alone") {
  const DenseRelu net;
  const auto reads = [](const ComputeGraph& graph, TensorId reader, TensorId read) {
    return reads_elementwise(graph.op(reader), graph.op(read), read);
  };
  CHECK(reads(net.graph, net.activated.id, net.biased.id));
  CHECK(reads(net.graph, net.biased.id, net.product.id));
  CHECK_FALSE(reads(net.graph, net.activated.id, net.product.id));  // which it does not read
  CHECK_FALSE(reads(net.graph, net.product.id, 0));
  ComputeGraph graph;
  const Tensor x = graph.input("x", {4, 4});
  const Tensor t = op::transpose(graph, x);
  CHECK_FALSE(reads(graph, t.id, x.id));
  CHECK_FALSE(reads(graph, op::add(graph, x, t).id, t.id + 1));
  // Halves of a row that change places are points of the same shape, but others.
  const Tensor rotated = graph.compute("rotated", {{"i", 4}, {"j", 4}}, [&](auto i) {
    return select(index_value(i[1]) < index_value(IndexExpr(2)), x(i[0], i[1] + 2), x(i[0], i[1] - 2));
  });
  CHECK_FALSE(reads(graph, rotated.id, x.id));
}

TEST_CASE("outer axes that two operators can share") {
  const DenseRelu net;
  const auto shared = [](const ComputeGraph& graph, TensorId read, TensorId reader) {
    return num_common_outer_axes(graph.op(reader), graph.op(read), read);
  };
  CHECK(shared(net.graph, net.product.id, net.biased.id) == 2);
  CHECK(shared(net.graph, 0, net.product.id) == 1);
  CHECK(shared(net.graph, 1, net.product.id) == 0);
  const auto softmax = op::softmax_graph({.rows = 4, .columns = 6});
  CHECK(shared(*softmax, 1, 2) == 1);  // max -> exp
  CHECK(shared(*softmax, 4, 1) == 0);
}

TEST_CASE("outputs, and products of extents") {
  const DenseRelu net;
  CHECK(is_output(net.graph, net.activated.id));
  CHECK_FALSE(is_output(net.graph, net.product.id));
  CHECK_FALSE(is_output(net.graph, 0));
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
                       "task 't' has weight 0; give the number of its occurrences, which is positive and finite",
                       std::invalid_argument);
  for (const double weight : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()})
    CHECK_THROWS_AS((void)make_task("t", graph, {}, weight), std::invalid_argument);
  CHECK_THROWS_AS((void)make_task("t", graph, {}, -1), std::invalid_argument);
  CHECK_THROWS_WITH_AS((void)make_task("t", graph, {.name = "hand-made", .threads = 0}),
                       "task 't' is for target 'hand-made' without threads; give the target at least 1",
                       std::invalid_argument);
  CHECK(make_task("t", graph, {.kind = tunewright::DeviceKind::Gpu, .threads = 0}).flops == 240);
}
