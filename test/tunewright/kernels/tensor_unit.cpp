// SPDX-License-Identifier: Apache-2.0
// Sketches with tensor instructions: which products get them, and what their random schedules compute.
#include "tunewright/spaces/tiling/tensor_unit.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "support/run_kernel.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/loops/print.hpp"
#include "tunewright/program/operators/batch_matmul.hpp"
#include "tunewright/program/operators/conv.hpp"
#include "tunewright/program/operators/dense.hpp"
#include "tunewright/program/operators/elementwise.hpp"
#include "tunewright/program/print.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/reference/compare.hpp"
#include "tunewright/reference/random_inputs.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"

namespace {

using namespace tunewright;
using program::ScalarType;
using Graph = std::shared_ptr<const program::ComputeGraph>;
namespace op = program::operators;

using Space = spaces::SketchSpace<spaces::RuleSketches<
    spaces::tiling::SkipSource, spaces::tiling::SkipScheduled, spaces::tiling::AlwaysInline,
    spaces::tiling::MayInline, spaces::tiling::TensorizeProducts, spaces::tiling::AddCacheWrite,
    spaces::tiling::MultiLevelTilingWithFusion, spaces::tiling::MultiLevelTiling,
    spaces::tiling::ScheduleSimply>>;

/// A machine with all units, whether this one has them or not.
Target equipped() {
  Target target;
  target.isa = Isa::Avx512;
  target.threads = 2;
  return target.with_tensor_unit(TensorUnit::Avx512Vnni).with_tensor_unit(TensorUnit::Avx512Bf16);
}

bool is_tensorized(const schedule::Schedule& config) {
  return std::any_of(config.steps.begin(), config.steps.end(), [](const schedule::Step& step) {
    return std::holds_alternative<schedule::Tensorize>(step);
  });
}

/// How many sketches there are, and how many of them use a tensor instruction.
std::pair<std::size_t, std::size_t> sketches(const Graph& graph, const Target& target) {
  const Space space;
  const Task task = program::make_task("test", graph, target);
  const auto& all = space.sketches(task);
  return {all.size(), static_cast<std::size_t>(std::count_if(all.begin(), all.end(), is_tensorized))};
}

/// A quantised layer: bytes in, padded, convolved, scaled and rounded to bytes.
Graph quantised_layer() {
  auto g = std::make_shared<program::ComputeGraph>();
  const auto x = g->input("x", {1, 6, 6, 8}, ScalarType::UInt8);
  const auto sum = op::conv2d(*g, x, g->constant("k", {3, 3, 8, 32}, ScalarType::Int8), {.padding = 1});
  const auto real = op::scale(*g, op::cast(*g, sum, ScalarType::Float32), 0.01);
  op::cast(*g, op::relu(*g, real), ScalarType::Int8);
  return g;
}

/// Numbers rounded to bfloat16 on the way into a product.
Graph rounded_product() {
  auto g = std::make_shared<program::ComputeGraph>();
  const auto a = op::cast(*g, g->input("a", {7, 20}), ScalarType::BFloat16);
  op::relu(*g, op::matmul(*g, a, g->input("b", {20, 40}, ScalarType::BFloat16)));
  return g;
}

std::vector<Graph> products() {
  return {op::matmul_graph({.m = 9, .n = 48, .k = 24, .constant_b = true, .type = ScalarType::Int8}),
          op::matmul_graph({.m = 5, .n = 33, .k = 14, .type = ScalarType::UInt8, .type_b = ScalarType::Int8}),
          op::matmul_graph({.m = 6, .n = 32, .k = 16, .transpose_b = true, .type = ScalarType::BFloat16}),
          op::batch_matmul_graph({.batch = 2, .m = 5, .n = 32, .k = 12, .type = ScalarType::BFloat16}),
          op::dense_graph({.batch = 4, .in = 16, .out = 32, .type = ScalarType::Int8}),
          quantised_layer(),
          rounded_product()};
}

}  // namespace

TEST_CASE("products of types the target's units multiply get sketches with its instruction") {
  for (const Graph& graph : products()) {
    CHECK_MESSAGE(sketches(graph, equipped()).second > 0, program::to_text(*graph));
    CHECK(sketches(graph, equipped().with_isa(Isa::Avx2)).second == 0);
  }
  // Where 16 columns and 4 terms divide the product, nothing else is tried.
  const auto [all, tensorized] = sketches(products()[0], equipped());
  CHECK(all == tensorized);
}

TEST_CASE("other products do not") {
  const auto none = [](const op::MatmulShape& shape) {
    return sketches(op::matmul_graph(shape), equipped()).second == 0;
  };
  CHECK(none({.m = 16, .n = 32, .k = 16}));                                                 // float32
  CHECK(none({.m = 16, .n = 32, .k = 16, .type = ScalarType::Float16}));                    // no unit for it
  CHECK(none({.m = 16, .n = 8, .k = 16, .type = ScalarType::Int8}));                        // too few columns
  CHECK(none({.m = 16, .n = 32, .k = 16, .transpose_a = true, .type = ScalarType::Int8}));  // rows are apart
  CHECK(none({.m = 16, .n = 32, .k = 16, .type = ScalarType::BFloat16, .accumulator = ScalarType::Float64}));
}

TEST_CASE("random schedules with tensor instructions compute what the reference does") {
  const Space space;
  const Target host = host_target().with_threads(2);
  // Where a unit is missing its loops are what is checked.
  const Target runs = host.isa == Isa::Avx512 ? host : host.with_isa(Isa::Sse42);
  for (const TensorUnit unit : {TensorUnit::Avx512Vnni, TensorUnit::Avx512Bf16}) {
    if (!host.has(unit)) MESSAGE("this machine has no " << name(unit) << ": its loops run instead");
  }
  codegen::LlvmCompiler compiler(runs);
  std::size_t checked = 0;
  for (const Graph& graph : products()) {
    const Task task = program::make_task("test", graph, equipped());
    Rng rng(11);
    const reference::Tensors inputs = reference::random_inputs(*graph, rng);
    const reference::Tensors expected = reference::evaluate(*graph, inputs);
    std::size_t with_instruction = 0;
    for (int draw = 0; draw < 16; ++draw) {
      auto config = space.sample(task, rng);
      REQUIRE(config);
      if (auto mutant = space.mutate(task, *config, rng); mutant && space.feasible(task, *mutant))
        config = mutant;
      with_instruction += is_tensorized(*config);
      const loops::LoopNest nest = loops::lower(*config);
      const codegen::Kernel kernel = compiler.compile(nest);
      std::vector<std::vector<double>> arguments;
      for (const codegen::KernelBuffer& buffer : kernel.buffers) {
        const loops::Buffer& layout = buffer.layout;
        std::vector<double>& values =
            arguments.emplace_back(static_cast<std::size_t>(layout.elements()), 0.0);
        if (layout.role == loops::BufferRole::Output || layout.role == loops::BufferRole::Temporary) continue;
        const reference::Array& array = inputs[layout.tensor];
        std::vector<double> row_major(array.size());
        for (std::size_t i = 0; i < row_major.size(); ++i) row_major[i] = array.get(i);
        codegen::pack<double>(layout, array.shape(), row_major.data(), values.data());
      }
      REQUIRE(test::run_kernel(kernel, arguments));
      for (std::size_t b = 0; b < kernel.buffers.size(); ++b) {
        const loops::Buffer& layout = kernel.buffers[b].layout;
        if (layout.role != loops::BufferRole::Output) continue;
        reference::Array actual(layout.type, layout.shape);
        for (std::size_t i = 0; i < actual.size(); ++i) actual.set(i, arguments[b][i]);
        const auto result = reference::compare(actual, expected[layout.tensor],
                                               reference::tolerance_for(*graph, layout.tensor));
        CHECK_MESSAGE(result.passed, result.text(), "\n", loops::to_string(nest));
        ++checked;
      }
    }
    CHECK_MESSAGE(with_instruction > 0, program::to_text(*graph));
  }
  CHECK(checked == 7 * 16);
}
