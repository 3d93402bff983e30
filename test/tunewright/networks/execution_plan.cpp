// SPDX-License-Identifier: Apache-2.0
#include "tunewright/networks/execution_plan.hpp"

#include <doctest/doctest.h>

#include <string>
#include <tuple>
#include <vector>

#include "support/evaluated.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/networks/layers.hpp"
#include "tunewright/program/operators/elementwise.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/schedule/schedule.hpp"

namespace {

using namespace tunewright;

/// x [4, 16] times one weight [16, 16], twice.
networks::Network twice_the_same_weight() {
  networks::LayerBuilder layers;
  program::ComputeGraph& graph = layers.graph();
  const auto x = graph.input("x", {4, 16});
  const auto w = graph.constant("w", {16, 16});
  const auto product = [&](const program::Tensor& a, const char* name) {
    return graph.reduce(name, {{"i", 4}, {"j", 16}}, {{"k", 16}}, program::Combiner::Sum,
                        [&](auto i, auto r) { return a(i[0], r[0]) * w(r[0], i[1]); });
  };
  return layers.finish("twice", {product(product(x, "first"), "second")});
}

/// Kernels without code: plans look at their buffers alone.
std::vector<codegen::Kernel> kernels_of(const networks::Partition& partition,
                                        const std::vector<schedule::Step>& steps = {}) {
  std::vector<codegen::Kernel> kernels;
  for (const WeightedTask& task : partition.tasks) {
    const loops::LoopNest nest = loops::lower(schedule::Schedule{task.task.graph, steps});
    codegen::Kernel& kernel = kernels.emplace_back();
    for (const loops::BufferId id : nest.arguments) kernel.buffers.push_back({nest.buffers[id]});
  }
  return kernels;
}

}  // namespace

TEST_CASE("calls of one kernel share its weight, and what nobody needs any more makes room") {
  const networks::Network network = twice_the_same_weight();
  const networks::Partition partition = networks::partition(network, Target{});
  REQUIRE(partition.tasks.size() == 1);
  REQUIRE(partition.calls.size() == 2);
  const networks::ExecutionPlan plan = networks::plan_execution(network, partition, kernels_of(partition));
  REQUIRE(plan.constants.size() == 1);
  CHECK(network.graph->op(plan.constants[0].tensor).name == "w");
  CHECK(plan.constants[0].bytes() == 4 * 16 * 16);
  // x lives throughout, the first product until the second is there, and that to the end.
  REQUIRE(plan.lifetimes.size() == 3);
  CHECK(plan.lifetimes[0].last == 2);
  CHECK(plan.lifetimes[1].first == 0);
  CHECK(plan.lifetimes[1].last == 1);
  CHECK(plan.lifetimes[2].first == 1);
  CHECK(plan.lifetimes[2].last == 2);
  CHECK(plan.memory.bytes == 3 * 4 * 64);
  // Each call: what it reads, the weight, what it writes.
  REQUIRE(plan.buffers.size() == 2);
  for (std::size_t c = 0; c < 2; ++c) {
    REQUIRE(plan.buffers[c].size() == 3);
    CHECK_FALSE(plan.buffers[c][0].constant);
    CHECK(plan.buffers[c][0].number == c);
    CHECK(plan.buffers[c][1].constant);
    CHECK(plan.buffers[c][1].number == 0);
    CHECK(plan.buffers[c][2].number == c + 1);
  }
}

TEST_CASE("a constant that kernels want in an order of their own is there for each call that reads it") {
  const networks::Network network = twice_the_same_weight();
  const networks::Partition partition = networks::partition(network, Target{});
  const networks::ExecutionPlan plan =
      networks::plan_execution(network, partition, kernels_of(partition, {schedule::Pack{1, 2}}));
  REQUIRE(plan.constants.size() == 2);
  CHECK_FALSE(plan.constants[0].layout.packing.empty());
  CHECK(plan.buffers[1][1].number == 1);
}

TEST_CASE("packing copies what has no packing") {
  loops::Buffer layout;
  layout.shape = {3};
  reference::Array values(program::ScalarType::Float32, {3});
  for (std::size_t i = 0; i < 3; ++i) values.set(i, static_cast<double>(i) + 1);
  float packed[3] = {};
  networks::pack_constant(layout, values, reinterpret_cast<std::byte*>(packed));
  CHECK(packed[0] == 1);
  CHECK(packed[2] == 3);
}

TEST_CASE("what does not belong together is refused") {
  const networks::Network network = twice_the_same_weight();
  const networks::Partition partition = networks::partition(network, Target{});
  std::vector<codegen::Kernel> kernels = kernels_of(partition);
  CHECK_REFUSES("0 kernels were given for the 1 tasks of network 'twice'",
                (void)networks::plan_execution(network, partition, {}));
  kernels[0].buffers[0].layout.shape = {4, 15};
  CHECK_REFUSES("its buffer 'x' has another type, size or role",
                (void)networks::plan_execution(network, partition, kernels));
  networks::LayerBuilder layers;
  const auto x = layers.graph().input("x", {4});
  const networks::Network other = layers.finish("other", {program::operators::relu(layers.graph(), x)});
  CHECK_REFUSES("the partition is not one of network 'other'",
                (void)networks::plan_execution(other, partition, kernels));
  CHECK_REFUSES("the partition is not one of network 'other'", networks::check_partition(other, partition));
}

TEST_CASE("a kernel takes the constants of its task as constants, and writes its output") {
  networks::LayerBuilder layers;
  program::ComputeGraph& graph = layers.graph();
  const auto x = graph.input("x", {16, 16});
  const auto w = graph.constant("w", {16, 16});
  // The weight is the second factor of one product and the first of the other; all have one shape.
  const auto product = [&](const program::Tensor& a, const program::Tensor& b, const char* name) {
    return graph.reduce(name, {{"i", 16}, {"j", 16}}, {{"k", 16}}, program::Combiner::Sum,
                        [&](auto i, auto r) { return a(i[0], r[0]) * b(r[0], i[1]); });
  };
  const networks::Network network = layers.finish("both", {product(w, product(x, w, "right"), "left")});
  const networks::Partition partition = networks::partition(network, Target{});
  REQUIRE(partition.tasks.size() == 2);
  const std::vector<codegen::Kernel> kernels = kernels_of(partition);
  CHECK_NOTHROW((void)networks::plan_execution(network, partition, kernels));
  const auto refused = [&](const std::string& buffer, const std::vector<codegen::Kernel>& wrong) {
    CHECK_REFUSES("kernel 0 of network 'both' is not one of task '" + partition.tasks[0].task.name + "': its buffer '" +
                      buffer + "' has another type, size or role",
                  (void)networks::plan_execution(network, partition, wrong));
  };
  refused("w", {kernels[1], kernels[0]});
  using loops::BufferRole;
  for (const auto& [at, role, other] : {std::tuple(0U, BufferRole::Input, BufferRole::Constant),
                                        {0U, BufferRole::Input, BufferRole::Output},
                                        {1U, BufferRole::Constant, BufferRole::Input},
                                        {2U, BufferRole::Output, BufferRole::Input}}) {
    std::vector<codegen::Kernel> wrong = kernels;
    loops::Buffer& layout = wrong[0].buffers[at].layout;
    REQUIRE(layout.role == role);
    layout.role = other;
    refused(layout.name, wrong);
  }
}

TEST_CASE("a partition computes the outputs that it was made for") {
  networks::LayerBuilder layers;
  program::ComputeGraph& graph = layers.graph();
  const auto first = program::operators::relu(graph, graph.input("x", {4}));
  const auto second = program::operators::sigmoid(graph, first);
  networks::Network network = layers.finish("two", {second});
  const networks::Partition partition = networks::partition(network, Target{});
  REQUIRE(partition.calls.size() == 1);
  networks::check_partition(network, partition);
  network.outputs = {second.id, first.id};  // which the one call keeps to itself
  CHECK_REFUSES("the partition is one of other outputs of network 'two': no call computes tensor 1; give what",
                networks::check_partition(network, partition));
  CHECK_REFUSES("no call computes tensor 1", (void)networks::plan_execution(network, partition, kernels_of(partition)));
  network.outputs = {99};
  CHECK_REFUSES("no call computes tensor 99", networks::check_partition(network, partition));
}
