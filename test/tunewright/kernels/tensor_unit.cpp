// SPDX-License-Identifier: Apache-2.0
// Sketches with tensor instructions: which products get them, and what their random schedules compute.
#include "tunewright/spaces/tiling/tensor_unit.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "support/emulated_tiles.hpp"
#include "support/mutated.hpp"
#include "support/reference_arguments.hpp"
#include "support/run_kernel.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/loops/print.hpp"
#include "tunewright/program/operators/batch_matmul.hpp"
#include "tunewright/program/operators/conv.hpp"
#include "tunewright/program/operators/dense.hpp"
#include "tunewright/program/operators/elementwise.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/print.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/reference/compare.hpp"
#include "tunewright/reference/random_inputs.hpp"
#include "tunewright/spaces/rule_sketches.hpp"
#include "tunewright/spaces/sketch_space.hpp"
#include "tunewright/spaces/tiling_rules.hpp"

namespace {

using namespace tunewright;
using program::ScalarType;
using Graph = std::shared_ptr<const program::ComputeGraph>;
namespace op = program::operators;

using Space = spaces::SketchSpace<spaces::RuleSketches<
    spaces::tiling::SkipSource, spaces::tiling::SkipScheduled, spaces::tiling::AlwaysInline, spaces::tiling::MayInline,
    spaces::tiling::MayInlinePadding, spaces::tiling::TensorizeProducts, spaces::tiling::AddCacheWrite,
    spaces::tiling::MultiLevelTilingWithFusion, spaces::tiling::MultiLevelTiling, spaces::tiling::ScheduleSimply>>;

/// A machine with all units, whether this one has them or not.
Target equipped() {
  Target target;
  target.isa = Isa::Avx512;
  target.threads = 2;
  return target.with_tensor_unit(TensorUnit::Avx512Vnni).with_tensor_unit(TensorUnit::Avx512Bf16);
}

bool is_tensorized(const schedule::Schedule& config) {
  return std::any_of(config.steps.begin(), config.steps.end(),
                     [](const schedule::Step& step) { return std::holds_alternative<schedule::Tensorize>(step); });
}

/// How many sketches there are, and how many of them use a tensor instruction.
std::pair<std::size_t, std::size_t> sketches(const Graph& graph, const Target& target) {
  const Space space;
  const Task task = program::make_task("test", graph, target);
  const auto& all = space.sketches(task);
  return {all.size(), static_cast<std::size_t>(std::count_if(all.begin(), all.end(), is_tensorized))};
}

/// Whether the input of a program is bytes.
bool takes_bytes(const program::ComputeGraph& graph) { return program::size_in_bytes(graph.op(0).type) == 1; }

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

/// Convolutions of padded images whose sums instructions for one row compute, in tiles that divide and that do not.
std::vector<Graph> padded_convolutions() {
  op::Conv2dShape bytes{.height = 7, .width = 9, .in_channels = 8, .out_channels = 32, .kernel = 3, .padding = 1};
  bytes.type = ScalarType::UInt8;
  bytes.weight_type = ScalarType::Int8;
  op::Conv2dShape strided = bytes;
  strided.stride = 2;
  strided.padding = 2;
  strided.type = ScalarType::Int8;
  op::Conv2dShape pairs = bytes;
  pairs.type = ScalarType::BFloat16;
  pairs.weight_type.reset();
  op::Conv2dShape dilated = pairs;
  dilated.out_channels = 40;
  dilated.in_channels = 5;
  dilated.padding = 3;
  dilated.dilation = 2;
  return {op::conv2d_graph(bytes), op::conv2d_graph(strided), op::conv2d_graph(pairs), op::conv2d_graph(dilated),
          quantised_layer()};
}

/// Whether the stage of a padded image disappears into what reads it.
bool leaves_padding_out(const schedule::Schedule& config) {
  return std::any_of(config.steps.begin(), config.steps.end(), [&](const schedule::Step& step) {
    const auto* location = std::get_if<schedule::ComputeLocation>(&step);
    return location != nullptr && location->stage < config.graph->size() &&
           location->choices[location->selected].kind == schedule::Location::Kind::Inline &&
           config.graph->op(location->stage).body->op == program::Op::Select;
  });
}

/// A machine with tile registers, whether this one has them or not.
Target with_tiles() { return equipped().with_tensor_unit(TensorUnit::AmxInt8).with_tensor_unit(TensorUnit::AmxBf16); }

bool uses(const schedule::Schedule& config, std::string_view intrinsic) {
  return std::any_of(config.steps.begin(), config.steps.end(), [&](const schedule::Step& step) {
    const auto* given = std::get_if<schedule::Tensorize>(&step);
    return given != nullptr && given->intrinsic == intrinsic;
  });
}

/// Most tiles down and across that sketches hold in registers, in order, each block once.
std::vector<std::pair<std::int64_t, std::int64_t>> blocks(const Graph& graph) {
  const Space space;
  std::vector<std::pair<std::int64_t, std::int64_t>> found;
  for (const schedule::Schedule& sketch : space.sketches(program::make_task("test", graph, with_tiles()))) {
    if (!uses(sketch, "amx_int8") && !uses(sketch, "amx_bf16")) continue;
    std::pair<std::int64_t, std::int64_t> block{1, 1};
    for (const schedule::Step& step : sketch.steps) {
      const auto* split = std::get_if<schedule::Split>(&step);
      if (split == nullptr || split->inner != schedule::LoopKind::Unrolled) continue;
      block = {block.first * block.second, split->max_innermost};  // columns come last
    }
    if (std::find(found.begin(), found.end(), block) == found.end()) found.push_back(block);
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// Products whose tiles are whole, of fewer rows or of fewer terms, or are cut.
std::vector<Graph> tile_products() {
  op::Conv2dShape convolution{
      .height = 14, .width = 14, .in_channels = 32, .out_channels = 32, .kernel = 3, .padding = 1};
  convolution.type = ScalarType::BFloat16;
  op::Conv2dShape strided = convolution;
  strided.stride = 2;
  strided.kernel = 1;
  strided.padding = 0;
  strided.type = ScalarType::Int8;
  strided.in_channels = 64;
  return {op::matmul_graph({.m = 64, .n = 64, .k = 128, .type = ScalarType::UInt8, .type_b = ScalarType::Int8}),
          op::matmul_graph({.m = 37, .n = 48, .k = 72, .constant_b = true, .type = ScalarType::BFloat16}),
          op::matmul_graph({.m = 23, .n = 40, .k = 50, .type = ScalarType::BFloat16}),
          op::batch_matmul_graph({.batch = 3, .m = 12, .n = 32, .k = 64, .type = ScalarType::BFloat16}),
          op::dense_graph({.batch = 32, .in = 64, .out = 32, .type = ScalarType::Int8}),
          op::conv2d_graph(convolution),
          op::conv2d_graph(strided),
          quantised_layer()};
}

/// Products that no tile divides in at least one direction.
std::vector<Graph> odd_tile_products() {
  op::Conv2dShape convolution{
      .height = 7, .width = 7, .in_channels = 20, .out_channels = 24, .kernel = 3, .padding = 1};
  convolution.type = ScalarType::BFloat16;
  return {op::matmul_graph({.m = 37, .n = 40, .k = 50, .type = ScalarType::BFloat16}),
          op::matmul_graph({.m = 5, .n = 10, .k = 7, .type = ScalarType::Int8}),
          op::matmul_graph({.m = 64, .n = 100, .k = 64, .constant_b = true, .type = ScalarType::UInt8}),
          op::batch_matmul_graph({.batch = 2, .m = 19, .n = 33, .k = 35, .type = ScalarType::BFloat16}),
          op::conv2d_graph(convolution),
          rounded_product()};
}

/// The host with the tile registers alone, which it need not have.
Target emulating_tiles(const Target& host) {
  Target runs = host.with_threads(1);
  runs.tensor_units = with_tiles().tensor_units & ~std::uint32_t{3};
  return runs;
}

bool is_padded(const schedule::Schedule& config) {
  return std::any_of(config.steps.begin(), config.steps.end(),
                     [](const schedule::Step& step) { return std::holds_alternative<schedule::Pad>(step); });
}

/// Two threads of the host; of a unit it lacks, the loops are what is checked.
Target running() {
  const Target host = host_target().with_threads(2);
  return host.isa == Isa::Avx512 ? host : host.with_isa(Isa::Sse42);
}

bool has_tiles(const Target& target) { return target.has(TensorUnit::AmxInt8) && target.has(TensorUnit::AmxBf16); }

/// Random inputs of a graph and what the reference makes of them.
struct Expected {
  Expected(const program::ComputeGraph& of, Rng& rng)
      : graph(of), inputs(reference::random_inputs(of, rng)), tensors(reference::evaluate(of, inputs)) {}

  /// Runs the kernel and compares every output with the reference. Returns how many there were.
  std::size_t check(const codegen::Kernel& kernel, const loops::LoopNest& nest) const {
    std::vector<std::vector<double>> arguments = test::arguments_for(kernel, inputs);
    REQUIRE(test::run_kernel(kernel, arguments));
    std::size_t checked = 0;
    for (std::size_t b = 0; b < kernel.buffers.size(); ++b) {
      const loops::Buffer& layout = kernel.buffers[b].layout;
      if (layout.role != loops::BufferRole::Output) continue;
      reference::Array actual(layout.type, tensors[layout.tensor].shape());
      for (std::size_t i = 0; i < actual.size(); ++i) actual.set(i, arguments[b][i]);
      const auto result =
          reference::compare(actual, tensors[layout.tensor], reference::tolerance_for(graph, layout.tensor));
      CHECK_MESSAGE(result.passed, result.text(), "\n", loops::to_string(nest));
      ++checked;
    }
    return checked;
  }

  const program::ComputeGraph& graph;
  reference::Tensors inputs;
  reference::Tensors tensors;
};

/// Checks so many random schedules of a program, mutated, by `check(expected, schedule, nest)`; returns the sum of what
/// that returns.
template <class Check>
std::size_t check_draws(const Graph& graph, const Target& target, std::uint64_t seed, int draws, const Check& check) {
  const Space space;
  const Task task = program::make_task("test", graph, target);
  Rng rng(seed);
  const Expected expected(*graph, rng);
  std::size_t checked = 0;
  for (int draw = 0; draw < draws; ++draw) {
    auto config = space.sample(task, rng);
    REQUIRE(config);
    config = test::mutated(space, task, *config, rng);
    checked += check(expected, *config, loops::lower(*config));
  }
  return checked;
}

/// Whether tile registers can be emulated here; tells where not.
bool emulates_tiles() {
  const bool does = host_target().isa == Isa::Avx512;
  if (!does) MESSAGE("skipped: no AVX-512");
  return does;
}

/// Checks `nest` by emulated tile registers, and by the host's where it has some; returns what checking by the former
/// does.
std::size_t check_with_tiles(const Expected& expected, const loops::LoopNest& nest) {
  const Target host = host_target();
  const std::size_t checked = expected.check(test::with_emulated_tiles(nest, emulating_tiles(host)), nest);
  if (has_tiles(host)) expected.check(codegen::LlvmCompiler(running()).compile(nest), nest);
  return checked;
}

}  // namespace

TEST_CASE("products of types the target's units multiply get sketches with its instruction") {
  for (const Graph& graph : products()) {
    CHECK_MESSAGE(sketches(graph, equipped()).second > 0, program::to_text(*graph));
    CHECK(sketches(graph, equipped().with_isa(Isa::Sse42)).second == 0);
    CHECK((sketches(graph, equipped().with_isa(Isa::Avx2)).second > 0) == takes_bytes(*graph));
    Target arm = equipped();
    arm.isa = Isa::Neon;
    CHECK(sketches(graph, arm).second == 0);
  }
  // Where 16 columns and 4 terms divide the product, nothing else is tried.
  const auto [all, tensorized] = sketches(products()[0], equipped());
  CHECK(all == tensorized);
  const auto [all_of_avx2, of_pairs] = sketches(products()[0], equipped().with_isa(Isa::Avx2));
  CHECK(all_of_avx2 == of_pairs);
}

TEST_CASE("where there are tile registers, blocks of up to four tiles come first") {
  using Blocks = std::vector<std::pair<std::int64_t, std::int64_t>>;
  for (const Graph& graph : tile_products()) CHECK_MESSAGE(!blocks(graph).empty(), program::to_text(*graph));
  const auto product = [](std::int64_t m, std::int64_t n) {
    return op::matmul_graph({.m = m, .n = n, .k = 128, .type = ScalarType::Int8});
  };
  CHECK(blocks(product(64, 64)) == Blocks{{2, 2}});
  CHECK(blocks(product(64, 48)) == Blocks{{2, 2}, {4, 1}});  // three tiles across
  CHECK(blocks(product(80, 64)) == Blocks{{1, 4}, {2, 2}});  // five tiles down
  CHECK(blocks(product(16, 64)) == Blocks{{1, 2}, {1, 4}});
  // Other columns are read in each product of a batch: tiles of two products share none.
  CHECK(blocks(op::batch_matmul_graph({.batch = 12, .m = 16, .n = 64, .k = 64, .type = ScalarType::BFloat16})) ==
        Blocks{{1, 2}, {1, 4}});
  op::Conv2dShape convolution{
      .height = 28, .width = 28, .in_channels = 64, .out_channels = 64, .kernel = 3, .padding = 1};
  convolution.type = ScalarType::Int8;
  CHECK(blocks(op::conv2d_graph(convolution)) == Blocks{{2, 2}, {4, 1}});
  convolution.height = convolution.width = 14;  // 14 rows of one tile are not divided by four
  CHECK(blocks(op::conv2d_graph(convolution)) == Blocks{{2, 2}});
  convolution.height = convolution.width = 28;
  convolution.kernel = 1;
  convolution.padding = 0;
  CHECK(blocks(op::conv2d_graph(convolution)) == Blocks{{2, 2}});  // no windows that overlap

  // Whole tiles leave nothing else to try; 40 columns do not make whole ones.
  const auto only_tiles = [&](std::int64_t n) {
    const Space space;
    const auto& all = space.sketches(program::make_task("test", product(64, n), with_tiles()));
    return std::all_of(all.begin(), all.end(), [](const auto& sketch) { return uses(sketch, "amx_int8"); });
  };
  CHECK(only_tiles(64));
  CHECK_FALSE(only_tiles(40));
}

TEST_CASE("blocks of tiles reach over the axes around that of the rows where this has too few") {
  op::Conv2dShape shape{.height = 28, .width = 28, .in_channels = 64, .out_channels = 64, .kernel = 3, .padding = 1};
  shape.type = ScalarType::Int8;
  const Graph graph = op::conv2d_graph(shape);
  const program::Operator& sum = graph->op(static_cast<program::TensorId>(graph->size() - 1));
  const auto* intrinsic = schedule::find_intrinsic("amx_int8");
  const auto axes = spaces::tiling::product_axes(sum, *intrinsic);
  REQUIRE(axes);
  const auto most = [&](std::int64_t down, std::int64_t across) {
    return spaces::tiling::parts_in_registers(sum, {intrinsic, *axes, down, across});
  };
  using Parts = std::vector<std::int64_t>;
  // 28 places of a line are two tiles of 14: batch, lines, places, channels.
  CHECK(spaces::tiling::tiles_down(sum, *axes, 2) == 2);
  CHECK(spaces::tiling::tiles_down(sum, *axes, 1) == 28);
  CHECK(most(4, 1) == Parts{1, 2, 2, 1});
  CHECK(most(2, 2) == Parts{1, 1, 2, 2});
  CHECK(most(1, 4) == Parts{1, 1, 1, 4});
}

TEST_CASE("threads share out columns, which are always copied into the order of an instruction for several rows") {
  const Space space;
  const Graph graph = op::matmul_graph({.m = 64, .n = 96, .k = 128, .type = ScalarType::Int8});
  const auto may_read_as_it_is = [&](const Target& target) {
    const auto& all = space.sketches(program::make_task("test", graph, target));
    return std::any_of(all.begin(), all.end(), [](const schedule::Schedule& sketch) {
      return std::any_of(sketch.steps.begin(), sketch.steps.end(), [](const schedule::Step& step) {
        const auto* location = std::get_if<schedule::ComputeLocation>(&step);
        return location != nullptr && location->choices[0].kind == schedule::Location::Kind::Inline;
      });
    });
  };
  CHECK(may_read_as_it_is(equipped()));
  CHECK_FALSE(may_read_as_it_is(with_tiles()));
  // The outermost loop of a sketch whose tiles are all of one part: six tiles of columns.
  const auto& sketch = space.sketches(program::make_task("test", graph, with_tiles())).front();
  const std::string text = loops::to_string(loops::lower(sketch));
  CHECK_MESSAGE(text.find("for j.0.0 in 0..6 parallel") != std::string::npos, text);
}

TEST_CASE("an instruction takes as many rows at once as leave few over") {
  CHECK(spaces::tiling::share_of(64, 16) == 16);
  CHECK(spaces::tiling::share_of(56, 16) == 14);
  CHECK(spaces::tiling::share_of(7, 16) == 7);
  CHECK(spaces::tiling::share_of(37, 16) == 12);    // three times 12 and one: 3 + 2; 9 with one left is 4 + 2
  CHECK(spaces::tiling::share_of(1000, 16) == 16);  // 62 + 2 * 8 is less than the 100 of tens
  CHECK(spaces::tiling::share_of(1, 16) == 1);
}

TEST_CASE("what instructions leave over is padded: few of them, of few rows and terms, where a quarter is of use") {
  CHECK(spaces::tiling::padded_share_of(64, 16) == 16);
  CHECK(spaces::tiling::padded_share_of(17, 16) == 9);   // 18 rows rather than 32
  CHECK(spaces::tiling::padded_share_of(37, 16) == 13);  // three of 13 are 39
  CHECK(spaces::tiling::padded_share_of(1000, 16) == 16);
  CHECK(spaces::tiling::padded_share_of(1, 16) == 1);
  const auto multiples = [](const op::MatmulShape& shape) -> std::vector<std::int64_t> {
    const Graph graph = op::matmul_graph(shape);
    const program::Operator& product = graph->op(static_cast<program::TensorId>(graph->size() - 1));
    const auto* intrinsic = schedule::find_intrinsic(shape.type == ScalarType::BFloat16 ? "amx_bf16" : "amx_int8");
    const auto axes = spaces::tiling::product_axes(product, *intrinsic, spaces::tiling::LeftOver::Padded);
    return axes ? spaces::tiling::padded_multiples(product, *intrinsic, *axes) : std::vector<std::int64_t>{};
  };
  using Multiples = std::vector<std::int64_t>;
  // 50 terms are 25 pairs: two instructions of 13.
  CHECK(multiples({.m = 37, .n = 40, .k = 50, .type = ScalarType::BFloat16}) == Multiples{13, 16, 26});
  CHECK(multiples({.m = 5, .n = 10, .k = 7, .type = ScalarType::Int8}) == Multiples{5, 16, 8});
  CHECK(multiples({.m = 16, .n = 4, .k = 64, .type = ScalarType::Int8}) == Multiples{16, 16, 64});
  CHECK(multiples({.m = 16, .n = 3, .k = 64, .type = ScalarType::Int8}).empty());  // 3 of 16
  CHECK(multiples({.m = 1, .n = 64, .k = 64, .type = ScalarType::Int8}).empty());  // one row
  CHECK(multiples({.m = 16, .n = 64, .k = 4, .type = ScalarType::Int8}).empty());  // one sum of four terms
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
  for (const TensorUnit unit : {TensorUnit::Avx512Vnni, TensorUnit::Avx512Bf16}) {
    if (!host_target().has(unit)) MESSAGE("this machine has no " << name(unit) << ": its loops run instead");
  }
  codegen::LlvmCompiler compiler(running());
  std::size_t checked = 0;
  for (const Graph& graph : products()) {
    std::size_t with_instruction = 0;
    checked += check_draws(graph, equipped(), 11, 16, [&](const auto& expected, const auto& config, const auto& nest) {
      with_instruction += is_tensorized(config);
      return expected.check(compiler.compile(nest), nest);
    });
    CHECK_MESSAGE(with_instruction > 0, program::to_text(*graph));
  }
  CHECK(checked == 7 * 16);
}

TEST_CASE("random schedules of products of bytes for AVX2 compute what the reference does") {
  const Target host = host_target().with_threads(2);
  Target target;
  target.isa = Isa::Avx2;
  target.threads = 2;
  const bool runs = contains(host.isa, Isa::Avx2);
  if (!runs) MESSAGE("this machine has no AVX2: loops run instead");
  codegen::LlvmCompiler compiler(runs ? host.with_isa(Isa::Avx2) : host);
  codegen::LlvmCompiler to_text(target);
  std::vector<Graph> graphs = padded_convolutions();
  for (const Graph& graph : products()) graphs.push_back(graph);
  std::erase_if(graphs, [](const Graph& graph) { return !takes_bytes(*graph); });
  std::size_t checked = 0;
  for (const Graph& graph : graphs) {
    std::size_t with_instruction = 0;
    bool emitted = false;
    checked += check_draws(graph, target, 13, 16, [&](const auto& expected, const auto& config, const auto& nest) {
      with_instruction += is_tensorized(config);
      emitted = emitted || to_text.to_assembly(nest).find("vpmaddwd") != std::string::npos;
      return expected.check(compiler.compile(nest), nest);
    });
    CHECK_MESSAGE(with_instruction > 0, program::to_text(*graph));
    CHECK_MESSAGE(emitted, program::to_text(*graph));
  }
  CHECK(graphs.size() >= 6);
  CHECK(checked == graphs.size() * 16);
}

TEST_CASE("padding is left out of the sums of an instruction for one row, not of those for several") {
  const Space space;
  for (const Graph& graph : padded_convolutions()) {
    std::size_t without = 0;
    for (const schedule::Schedule& sketch : space.sketches(program::make_task("test", graph, equipped())))
      without += is_tensorized(sketch) && leaves_padding_out(sketch);
    CHECK_MESSAGE(without > 0, program::to_text(*graph));
  }
  const Graph tiles = tile_products()[5];
  const auto& sketches = space.sketches(program::make_task("test", tiles, with_tiles()));
  REQUIRE(std::any_of(sketches.begin(), sketches.end(), [](const auto& s) { return uses(s, "amx_bf16"); }));
  for (const schedule::Schedule& sketch : sketches)
    CHECK_FALSE((uses(sketch, "amx_bf16") && leaves_padding_out(sketch)));
}

TEST_CASE("random schedules that leave padding out of an instruction's sums compute what the reference does") {
  const Space space;
  codegen::LlvmCompiler compiler(running());
  codegen::LlvmCompiler to_text(equipped());
  const std::vector<std::int64_t> odd_weights{3, 3, 5, 40};
  std::size_t checked = 0;
  for (const Graph& graph : padded_convolutions()) {
    const Task task = program::make_task("test", graph, equipped());
    Rng rng(29);
    const Expected expected(*graph, rng);
    std::size_t found = 0;
    for (int draw = 0; draw < 500 && found < 12; ++draw) {
      auto config = space.sample(task, rng);
      REQUIRE(config);
      if (!is_tensorized(*config) || !leaves_padding_out(*config)) continue;
      config = test::mutated(space, task, *config, rng);
      const loops::LoopNest nest = loops::lower(*config);
      checked += expected.check(compiler.compile(nest), nest);
      const std::string assembly = to_text.to_assembly(nest);
      const auto has = [&](const char* instruction) { return assembly.find(instruction) != std::string::npos; };
      // Loops, which convert and multiply elements, are left only where channels do not fill instructions.
      const bool whole = (has("vpdpbusd") || has("vdpbf16ps")) && !has("vpmovsxb") && !has("vfmadd");
      CHECK_MESSAGE((whole || graph->op(1).shape() == odd_weights), loops::to_string(nest));
      ++found;
    }
    CHECK_MESSAGE(found == 12, program::to_text(*graph));
  }
  CHECK(checked == 5 * 12);
}

TEST_CASE("random schedules with tile registers compute what the reference does") {
  if (!emulates_tiles()) return;
  std::size_t checked = 0;
  for (const Graph& graph : tile_products()) {
    test::registers = {};
    checked += check_draws(
        graph, with_tiles().with_threads(1), 17, 5,
        [](const auto& expected, const auto&, const auto& nest) { return check_with_tiles(expected, nest); });
    CHECK_MESSAGE(test::registers.products > 0, program::to_text(*graph));
    CHECK_MESSAGE(test::registers.misuses == 0, program::to_text(*graph));
  }
  CHECK(checked == 8 * 5);
}

TEST_CASE("random schedules that pad what tile registers leave over compute what the reference does") {
  if (!emulates_tiles()) return;
  const Space space;
  std::size_t checked = 0;
  for (const Graph& graph : odd_tile_products()) {
    const Task task = program::make_task("test", graph, with_tiles().with_threads(1));
    Rng rng(23);
    const Expected expected(*graph, rng);
    std::size_t found = 0;
    for (int draw = 0; draw < 200 && found < 4; ++draw) {
      auto config = space.sample(task, rng);
      REQUIRE(config);
      if (!is_padded(*config)) continue;
      config = test::mutated(space, task, *config, rng);
      const loops::LoopNest nest = loops::lower(*config);
      test::registers = {};
      checked += check_with_tiles(expected, nest);
      CHECK_MESSAGE(test::registers.products > 0, program::to_text(*graph), loops::to_string(nest));
      CHECK(test::registers.misuses == 0);
      ++found;
    }
    CHECK_MESSAGE(found == 4, program::to_text(*graph));
  }
  CHECK(checked == 6 * 4);
}
