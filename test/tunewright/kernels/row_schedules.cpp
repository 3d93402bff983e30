// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "support/mutated.hpp"
#include "support/program_tally.hpp"
#include "support/reference_arguments.hpp"
#include "support/run_kernel.hpp"
#include "tunewright/codegen/llvm.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/loops/print.hpp"
#include "tunewright/program/operators/batch_matmul.hpp"
#include "tunewright/program/operators/conv.hpp"
#include "tunewright/program/operators/elementwise.hpp"
#include "tunewright/program/operators/layout.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/operators/normalization.hpp"
#include "tunewright/program/operators/reduce.hpp"
#include "tunewright/program/operators/softmax.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/reference/random_inputs.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"

namespace {

using namespace tunewright;
namespace ops = program::operators;
using Graph = std::shared_ptr<const program::ComputeGraph>;

template <class Fill>
Graph graph_of(const Fill& fill) {
  auto g = std::make_shared<program::ComputeGraph>();
  fill(*g);
  return g;
}

Graph layer_norm(std::vector<std::int64_t> shape) {
  return graph_of([&](auto& g) {
    const std::int64_t c = shape.back();
    ops::layer_norm(g, g.input("x", shape), g.constant("gamma", {c}), g.constant("beta", {c}));
  });
}
Graph softmax(std::vector<std::int64_t> shape) {
  return graph_of([&](auto& g) { ops::softmax(g, g.input("x", shape)); });
}
Graph sum(std::vector<std::int64_t> shape, int axis) {
  return graph_of([&](auto& g) { ops::sum(g, g.input("x", shape), {axis}); });
}

/// Counts draws and mutants of `graph`'s space on every instruction set of this machine; returns how many are wrong. The
/// first two caches are so small that short rows and small tensors exceed them.
std::size_t wrong_schedules(const Graph& graph, std::size_t draws, test::ProgramTally& tally) {
  const spaces::MultiLevelTiling space;
  const std::size_t wrong_before = tally.wrong();
  for (const Isa isa : all_isas) {
    Target target = host_target().with_threads(2);
    if (!contains(target.isa, isa)) continue;
    target = target.with_isa(isa);
    target.l1_bytes = 256;
    target.l2_bytes = 4096;
    const Task task = program::make_task("rows", graph, target);
    Rng rng(17);
    const reference::Tensors inputs = reference::random_inputs(*graph, rng);
    const reference::Tensors expected = reference::evaluate(*graph, inputs);
    codegen::LlvmCompiler compiler(target);
    std::size_t checked = 0;
    for (std::size_t i = 0; i < draws; ++i) {
      const auto drawn = space.sample(task, rng);
      if (!drawn) continue;
      const loops::LoopNest nest = loops::lower(test::mutated(space, task, *drawn, rng));
      const codegen::Kernel kernel = compiler.compile(nest);
      std::vector<std::vector<double>> arguments = test::arguments_for(kernel, inputs);
      ++checked;
      const bool right =
          test::run_kernel(kernel, arguments) && test::outputs_are_right(kernel, *graph, arguments, expected);
      tally.count(name(isa), right);
      if (!right) MESSAGE("wrong on " << name(isa) << ":\n" << loops::to_string(nest));
    }
    CHECK(checked >= draws / 2);
  }
  return tally.wrong() - wrong_before;
}

TEST_CASE("rows that one thread reduces and uses: layer norms and softmaxes of lengths with and without a rest") {
  test::ProgramTally tally;
  for (const std::int64_t length : {3, 16, 31, 64, 129, 512, 1021}) {
    CAPTURE(length);
    CHECK(wrong_schedules(layer_norm({17, length}), 5, tally) == 0);
    CHECK(wrong_schedules(softmax({17, length}), 5, tally) == 0);
  }
  CHECK(wrong_schedules(layer_norm({2, 3, 5, 67}), 5, tally) == 0);
  CHECK(wrong_schedules(softmax({3, 7, 130}), 5, tally) == 0);
  CHECK(wrong_schedules(softmax({3, 77}), 8, tally) == 0);  // too few rows for the threads
  MESSAGE(tally.to_string());
}

TEST_CASE("products with rows in vectors: any operand transposed, sizes with and without a rest, with a reader") {
  struct Case {
    std::int64_t m, n, k;
    bool transpose_a, transpose_b;
  };
  test::ProgramTally tally;
  for (const auto& [m, n, k, transpose_a, transpose_b] :
       {Case{16, 96, 24, false, true}, Case{19, 131, 13, false, true}, Case{32, 51, 96, true, true},
        Case{41, 33, 70, true, true}, Case{64, 10, 40, true, false}, Case{67, 3, 17, true, false}}) {
    for (const bool with_reader : {false, true}) {
      CAPTURE(m);
      CAPTURE(n);
      CAPTURE(with_reader);
      const Graph graph = graph_of([&](auto& g) {
        const auto a = g.input("A", transpose_a ? std::vector{k, m} : std::vector{m, k});
        const auto b = g.input("B", transpose_b ? std::vector{n, k} : std::vector{k, n});
        const auto c = ops::matmul(g, a, b, {.transpose_a = transpose_a, .transpose_b = transpose_b});
        if (with_reader) ops::relu(g, ops::bias_add(g, c, g.constant("bias", {n})));
      });
      CHECK(wrong_schedules(graph, 12, tally) == 0);
    }
  }
  MESSAGE(tally.to_string());
}

TEST_CASE("other sums with another axis in vectors: batches, narrow images with channels first, several readers") {
  const auto batch = graph_of([](auto& g) {
    ops::batch_matmul(g, g.input("A", {3, 17, 40}), g.input("B", {3, 150, 40}), {.transpose_b = true});
  });
  // Gates of one product, of which each half is read by itself, added to another product.
  const auto gated = graph_of([](auto& g) {
    const auto other = ops::matmul(g, g.input("X", {16, 9}), g.input("Y", {9, 24}), {.name = "other"});
    const auto both = ops::matmul(g, g.input("A", {16, 40}), g.input("B", {48, 40}), {.transpose_b = true});
    const auto half = [&](std::int64_t begin, const char* name) {
      return ops::slice(g, both, {.dimension = 1, .begin = begin, .extent = 24}, name);
    };
    ops::add(g, other, ops::multiply(g, half(0, "values"), ops::sigmoid(g, half(24, "gates"))));
  });
  const auto half = graph_of([](auto& g) {
    const auto other = ops::matmul(g, g.input("X", {16, 9}), g.input("Y", {9, 24}), {.name = "other"});
    const auto whole = ops::matmul(g, g.input("A", {16, 40}), g.input("B", {48, 40}), {.transpose_b = true});
    ops::relu(g, whole);
    ops::add(g, other, ops::slice(g, whole, {.dimension = 1, .extent = 24}));
  });
  const auto transposed = graph_of([](auto& g) {
    const auto c = ops::matmul(g, g.input("A", {16, 40}), g.input("B", {96, 40}), {.transpose_b = true});
    ops::transpose(g, c);
  });
  const auto image = [](std::int64_t stride) {
    return ops::conv2d_graph({.height = 7,
                              .width = 7,
                              .in_channels = 5,
                              .out_channels = 35,
                              .kernel = 3,
                              .stride = stride,
                              .padding = 1,
                              .layout = ops::Layout::ChannelsFirst});
  };
  test::ProgramTally tally;
  for (const Graph& graph : {batch, gated, half, transposed, image(1), image(2)})
    CHECK(wrong_schedules(graph, 16, tally) == 0);
  MESSAGE(tally.to_string());
}

TEST_CASE("reductions in long streams: first and middle axes, columns and terms with and without a rest") {
  test::ProgramTally tally;
  CHECK(wrong_schedules(sum({64, 96}, 0), 12, tally) == 0);
  CHECK(wrong_schedules(sum({61, 131}, 0), 12, tally) == 0);
  CHECK(wrong_schedules(sum({3, 29, 67}, 1), 12, tally) == 0);
  CHECK(wrong_schedules(sum({5, 8, 256}, 1), 12, tally) == 0);
  CHECK(wrong_schedules(sum({13, 5, 49}, 0), 12, tally) == 0);
  CHECK(wrong_schedules(sum({1300, 3}, 0), 12, tally) == 0);
  CHECK(wrong_schedules(sum({601, 13}, 0), 12, tally) == 0);
  MESSAGE(tally.to_string());
}

}  // namespace
