// SPDX-License-Identifier: Apache-2.0
#include "tunewright/networks/partition.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "support/evaluated.hpp"
#include "tunewright/networks/bert.hpp"
#include "tunewright/networks/default_schedules.hpp"
#include "tunewright/networks/densenet.hpp"
#include "tunewright/networks/gpt2.hpp"
#include "tunewright/networks/inception_v3.hpp"
#include "tunewright/networks/mobilenet_v2.hpp"
#include "tunewright/networks/resnet.hpp"
#include "tunewright/networks/vision_transformer.hpp"
#include "tunewright/program/analysis.hpp"
#include "tunewright/program/operators/conv.hpp"
#include "tunewright/program/operators/elementwise.hpp"
#include "tunewright/program/operators/layout.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/operators/normalization.hpp"
#include "tunewright/program/operators/pad.hpp"
#include "tunewright/program/operators/pool.hpp"
#include "tunewright/program/operators/softmax.hpp"

using namespace tunewright;
namespace op = program::operators;
using networks::Network;
using networks::Partition;
using program::ComputeGraph;
using program::Tensor;

namespace {

/// Operators of each call, joined by +.
std::vector<std::string> calls_of(const Partition& partition) {
  std::vector<std::string> names;
  for (const networks::TaskCall& call : partition.calls) {
    const std::string& name = partition.tasks[call.task].task.name;
    names.push_back(name.substr(0, name.find(' ')));
  }
  return names;
}

/// A network that `build` makes of its graph, and the tasks of its calls.
template <class Build>
std::vector<std::string> calls_of(const Build& build) {
  auto graph = std::make_shared<ComputeGraph>();
  Network network{"test", graph, {}, {}, 0};
  for (const Tensor& output : build(*graph)) network.outputs.push_back(output.id);
  return calls_of(networks::partition(network, Target{}));
}

using Names = std::vector<std::string>;

std::vector<std::ptrdiff_t> operators_of(const Names& calls) {
  std::vector<std::ptrdiff_t> operators;
  for (const std::string& call : calls) operators.push_back(1 + std::count(call.begin(), call.end(), '+'));
  return operators;
}

}  // namespace

TEST_CASE("what a product's result passes through point by point joins it") {
  CHECK(calls_of([](ComputeGraph& g) -> std::vector<Tensor> {
          const Tensor x = op::matmul(g, g.input("x", {4, 8}), g.constant("w", {8, 6}));
          return {op::relu(g, op::add(g, op::bias_add(g, x, g.constant("b", {6})), g.input("other", {4, 6})))};
        }) == Names{"matmul+bias_add+add+relu"});
}

TEST_CASE("a result that others see ends its task") {
  CHECK(calls_of([](ComputeGraph& g) -> std::vector<Tensor> {
          const Tensor x = op::matmul(g, g.input("x", {4, 8}), g.constant("w", {8, 6}));
          return {x, op::relu(g, x)};
        }) == Names{"matmul", "relu"});
  CHECK(calls_of([](ComputeGraph& g) -> std::vector<Tensor> {
          const Tensor x = op::matmul(g, g.input("x", {4, 8}), g.constant("w", {8, 6}));
          return {op::relu(g, x), op::tanh(g, x)};
        }) == Names{"matmul", "relu", "tanh"});
}

TEST_CASE("ways that part and meet again join together") {
  CHECK(calls_of([](ComputeGraph& g) -> std::vector<Tensor> {
          const Tensor x = op::matmul(g, g.input("x", {4, 8}), g.constant("w", {8, 6}));
          return {op::multiply(g, x, op::sigmoid(g, x))};
        }) == Names{"matmul+sigmoid+multiply"});
}

TEST_CASE("a residual addition joins the longer way to it") {
  CHECK(calls_of([](ComputeGraph& g) -> std::vector<Tensor> {
          const Tensor x = g.input("x", {4, 8});
          const Tensor far = op::matmul(g, op::matmul(g, x, g.constant("a", {8, 8})), g.constant("b", {8, 6}));
          const Tensor shortcut = op::matmul(g, x, g.constant("c", {8, 6}), {.name = "shortcut"});
          return {op::relu(g, op::add(g, far, shortcut))};
        }) == Names{"matmul", "shortcut", "matmul+add+relu"});
}

TEST_CASE("padding joins the convolution that reads it") {
  CHECK(calls_of([](ComputeGraph& g) -> std::vector<Tensor> {
          const Tensor x = op::relu(g, g.input("x", {1, 6, 6, 4}));
          return {op::conv2d(g, x, g.constant("w", {3, 3, 4, 4}), {.padding = 1})};
        }) == Names{"relu", "conv2d_pad+conv2d"});
}

TEST_CASE("rows that are reduced and used are one task") {
  CHECK(calls_of([](ComputeGraph& g) -> std::vector<Tensor> { return {op::softmax(g, g.input("x", {3, 4, 5}))}; }) ==
        Names{"softmax_max+softmax_exp+softmax_sum+softmax"});
  CHECK(calls_of([](ComputeGraph& g) -> std::vector<Tensor> {
          const Tensor x = op::layer_norm(g, g.input("x", {4, 8}), g.constant("gamma", {8}), g.constant("beta", {8}));
          return {op::matmul(g, x, g.constant("w", {8, 6}))};
        }) == Names{"layer_norm_sum+layer_norm_squares+layer_norm", "matmul"});
  CHECK(calls_of([](ComputeGraph& g) -> std::vector<Tensor> {
          return {op::avg_pool2d(g, g.input("x", {1, 6, 6, 4}), {.padding = 1})};
        }) == Names{"pool2d_pad+pool2d_sum+pool2d"});
}

TEST_CASE("a softmax over columns is no task of rows") {
  CHECK(calls_of([](ComputeGraph& g) -> std::vector<Tensor> {
          return {op::softmax(g, g.input("x", {3, 4}), {.axis = 0})};
        }).size() > 1);
}

TEST_CASE("reshapes share memory and are no task") {
  auto graph = std::make_shared<ComputeGraph>();
  const Tensor x = graph->input("x", {4, 8});
  const Tensor y = op::matmul(*graph, x, op::reshape(*graph, graph->constant("w", {48}), {8, 6}));
  const Tensor z = op::reshape(*graph, op::reshape(*graph, y, {2, 12}), {24});
  const Tensor out = op::relu(*graph, z);
  const Partition partition = networks::partition({"test", graph, {out.id}, {}, 0}, Target{});
  CHECK(calls_of(partition) == Names{"matmul", "relu"});
  CHECK(partition.storage[z.id] == y.id);
  CHECK(partition.storage[out.id] == out.id);
  // The reshaped weight is a weight.
  const ComputeGraph& product = *partition.tasks[0].task.graph;
  CHECK(product.op(1).role == program::Role::Constant);
  CHECK(product.op(1).shape() == std::vector<std::int64_t>{8, 6});
}

TEST_CASE("equal computations are one task, whatever their names, roles of operands tell them apart") {
  auto graph = std::make_shared<ComputeGraph>();
  Tensor x = graph->input("x", {8, 8});
  for (const char* name : {"a", "b", "c"}) {
    x = op::relu(*graph, op::matmul(*graph, x, graph->constant(name, {8, 8}), {.name = std::string("product") + name}));
  }
  const Tensor out = op::relu(*graph, op::matmul(*graph, x, graph->input("d", {8, 8})));
  const Partition partition = networks::partition({"test", graph, {out.id}, {}, 0}, Target{});
  REQUIRE(partition.tasks.size() == 2);
  CHECK(partition.tasks[0].weight == 3);
  CHECK(partition.tasks[0].task.weight == 3);
  CHECK(partition.tasks[0].task.flops == 2 * 512 + 64);
  CHECK(partition.tasks[1].weight == 1);
  CHECK(to_string(partition).find("     3      0.001  75.0%  producta+relu 8x8 of 8x8, 8x8\n") != std::string::npos);
}

TEST_CASE("every operator of a network is computed once, and nothing is read before it is there") {
  for (const Network& network :
       {networks::resnet50(), networks::mobilenet_v2(), networks::inception_v3(), networks::densenet121(),
        networks::bert_base(), networks::gpt2_prefill(), networks::gpt2_decode(), networks::vision_transformer()}) {
    CAPTURE(network.name);
    const ComputeGraph& graph = *network.graph;
    const Partition partition = networks::partition(network, Target{});
    std::set<networks::TensorId> known;
    for (networks::TensorId id = 0; id < graph.size(); ++id)
      if (graph.op(id).role != program::Role::Computed) known.insert(id);
    double flops = 0;
    std::set<networks::TensorId> computed;
    for (const networks::TaskCall& call : partition.calls) {
      const Task& task = partition.tasks[call.task].task;
      REQUIRE(call.tensors.size() == task.graph->size());
      for (networks::TensorId id = 0; id < task.graph->size(); ++id) {
        const networks::TensorId of = call.tensors[id];
        if (task.graph->op(id).role == program::Role::Computed) {
          CHECK(computed.insert(of).second);
        } else {
          CHECK(known.contains(partition.storage[of]));
        }
      }
      CHECK(task.graph->outputs().size() == 1);
      CHECK(call.tensors[task.graph->outputs()[0]] == call.output);
      known.insert(call.output);
      flops += task.flops;
    }
    for (networks::TensorId id = 0; id < graph.size(); ++id) {
      if (graph.op(id).role == program::Role::Computed) CHECK(computed.contains(id) == (partition.storage[id] == id));
    }
    for (const networks::TensorId output : network.outputs) CHECK(known.contains(partition.storage[output]));
    CHECK(flops == doctest::Approx(program::flops(graph)));
    double weighted = 0;
    for (const WeightedTask& task : partition.tasks) weighted += task.weight * task.task.flops;
    CHECK(weighted == doctest::Approx(flops));
  }
}

TEST_CASE("tasks of networks are as many as their distinct layers") {
  // By hand. ResNet-18: first convolution, pooling, global pooling, dense; in the first stage the two convolutions of a
  // block; in each of the other three the strided one, the shortcut, the one behind with the addition, and the first one
  // of the second block.
  CHECK(networks::partition(networks::resnet18(), Target{}).tasks.size() == 4 + 2 + 3 * 4);
  // One call a convolution: 20 with shortcuts, and three others.
  CHECK(networks::partition(networks::resnet18(), Target{}).calls.size() == 20 + 3);
  // BERT: two embeddings with positions, normalisation, qkv, scores, softmax, values, output with addition, two feed
  // forward layers, pooler.
  CHECK(networks::partition(networks::bert_base(), Target{}).tasks.size() == 10);
}

TEST_CASE("many long ways around take no time") {
  // Each of 5,000 products is read by the next one, and by a sum behind all of them, in the opposite order.
  auto graph = std::make_shared<ComputeGraph>();
  std::vector<Tensor> products{graph->input("x", {2, 2})};
  const Tensor weight = graph->constant("weight", {2, 2});
  for (int layer = 0; layer < 5'000; ++layer) products.push_back(op::matmul(*graph, products.back(), weight));
  Tensor sum = products.back();
  for (std::size_t p = products.size() - 1; p-- > 1;) sum = op::add(*graph, sum, products[p]);
  const Partition partition = networks::partition({"ladder", graph, {sum.id}, {}, 0}, Target{});
  CHECK(partition.calls.size() > 5'000);
  CHECK(partition.calls.size() < 5'100);  // sums join as long as their terms fit
}

TEST_CASE("a task ends before all that is inlined into one operator is too much for a schedule") {
  // Each power is read twice: 2^12 factors in the end.
  const Names calls = calls_of([](ComputeGraph& graph) {
    Tensor x = graph.input("x", {4});
    for (int n = 0; n < 12; ++n) x = op::multiply(graph, x, x);
    return std::vector{x};
  });
  CHECK(calls.size() == 2);
  // A long chain, of which each reads the last once.
  const Names chain = calls_of([](ComputeGraph& graph) {
    Tensor x = graph.input("x", {4});
    for (int n = 0; n < 1000; ++n) x = op::relu(graph, x);
    return std::vector{x};
  });
  CHECK(chain.size() == 16);  // 64 each
  // A task has at most 8 functions that are costly to compute twice.
  const Names costly = calls_of([](ComputeGraph& graph) {
    Tensor x = graph.input("x", {4});
    for (int n = 0; n < 20; ++n) x = graph.compute("tanh", {{"i", 4}}, [&](auto i) { return program::tanh(x(i[0])); });
    return std::vector{x};
  });
  CHECK(costly.size() == 3);
}

TEST_CASE("what moves joins its reader as long as both fit in a task, and the next ones join each other") {
  // Before a product, 90 slices, of which the last 63 are in its task.
  CHECK(operators_of(calls_of([](ComputeGraph& graph) {
          Tensor x = graph.input("x", {64 + 90, 64});
          for (int n = 1; n <= 90; ++n) x = op::slice(graph, x, {.dimension = 0, .begin = 1, .extent = 64 + 90 - n});
          return std::vector{op::matmul(graph, x, graph.constant("w", {64, 16}))};
        })) == std::vector<std::ptrdiff_t>{27, 64});
  // 100 slices that one concatenation reads.
  const auto shuffled = [](std::int64_t parts) {
    return calls_of([&](ComputeGraph& graph) {
      const Tensor x = graph.input("x", {parts, 4});
      std::vector<Tensor> slices;
      for (std::int64_t p = 0; p < parts; ++p) {
        slices.push_back(op::slice(graph, x, {.dimension = 0, .begin = p * 7 % parts, .extent = 1}));
      }
      return std::vector{op::concat(graph, slices, 0)};
    });
  };
  CHECK(shuffled(63).size() == 1);
  const std::vector<std::ptrdiff_t> operators = operators_of(shuffled(100));
  CHECK(operators.size() == 1 + 100 - 63);
  CHECK(operators.back() == 64);
}

TEST_CASE("a task has few enough paddings for schedules") {
  // Before a product, 20 paddings, a slice after each. From the product on, each task ends before the ninth padding.
  auto graph = std::make_shared<ComputeGraph>();
  Tensor x = graph->input("x", {64, 64});
  for (int n = 0; n < 20; ++n) {
    x = op::pad(*graph, x, {.before = {1, 0}, .after = {0, 0}});
    x = op::slice(*graph, x, {.dimension = 0, .begin = 0, .extent = 64});
  }
  x = op::matmul(*graph, x, graph->constant("w", {64, 16}));
  const Partition padded = networks::partition({"padded", graph, {x.id}, {}, 0}, Target{});
  CHECK(calls_of(padded)[0] == "pad+slice+pad+slice+pad+slice+pad");
  CHECK(operators_of(calls_of(padded)) == std::vector<std::ptrdiff_t>{7, 16, 18});
  CHECK(networks::default_schedules(padded.tasks, {.candidates = 1}).size() == 3);
}

TEST_CASE("what moves and pads does not join a reader that would have too many terms with it inlined") {
  // The reader reads its operand 300 times, so that a padding has 300 times its 7 terms or more there, beyond 2,048.
  const auto read_often = [](int times) {
    return calls_of([&](ComputeGraph& graph) {
      const Tensor x = op::pad(graph, graph.input("x", {8}), {.before = {1}, .after = {1}});
      return std::vector{graph.compute("sum", {{"i", 10}}, [&](auto i) {
        program::Expr total = x(i[0]);
        for (int n = 1; n < times; ++n) total = total + x(i[0]);
        return total;
      })};
    });
  };
  CHECK(read_often(2) == Names{"pad+sum"});
  CHECK(read_often(300) == Names{"pad", "sum"});
  // Here the padding joins one that fits, but not the one behind that reads this one often.
  CHECK(calls_of([](ComputeGraph& graph) {
          const Tensor x = op::pad(graph, graph.input("x", {8}), {.before = {1}, .after = {1}});
          const Tensor y = graph.compute("twice", {{"i", 10}}, [&](auto i) { return x(i[0]) + x(i[0]); });
          return std::vector{graph.compute("power", {{"i", 10}}, [&](auto i) {
            program::Expr total = y(i[0]);
            for (int n = 1; n < 120; ++n) total = total + y(i[0]);
            return total;
          })};
        }) == Names{"pad", "twice+power"});
}

TEST_CASE("a reshaped input or constant that is returned is a copy") {
  const auto reshaped = [](bool constant) {
    return calls_of([&](ComputeGraph& graph) {
      const Tensor x = constant ? graph.constant("w", {4, 2}) : graph.input("x", {4, 2});
      const Tensor inner = op::reshape(graph, x, {2, 4});
      const Tensor relu = op::relu(graph, x);
      return std::vector{op::reshape(graph, inner, {8}), op::reshape(graph, relu, {8})};
    });
  };
  CHECK(reshaped(false) == Names{"relu", "reshape"});
  CHECK(reshaped(true) == Names{"relu", "reshape"});
}

TEST_CASE("networks that compute nothing are refused") {
  auto graph = std::make_shared<ComputeGraph>();
  const Tensor x = graph->input("x", {4});
  op::relu(*graph, x);
  CHECK_REFUSES("network 'none' has no graph", (void)networks::partition({"none", nullptr, {}, {}, 0}, Target{}));
  CHECK_REFUSES("has no outputs", (void)networks::partition({"test", graph, {}, {}, 0}, Target{}));
  CHECK_REFUSES("lists tensor 0", (void)networks::partition({"test", graph, {x.id}, {}, 0}, Target{}));
  CHECK_REFUSES("has 1 names for 2 outputs",
                (void)networks::partition({"test", graph, {1, 1}, {}, 0, {"y"}}, Target{}));
  CHECK_REFUSES("lists tensor 9", (void)networks::partition({"test", graph, {9}, {}, 0}, Target{}));
}
