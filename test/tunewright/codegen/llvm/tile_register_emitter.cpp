// SPDX-License-Identifier: Apache-2.0
// Matrix products in the tile registers of AMX: the instructions in the assembly, and what they compute, with functions
// of this program in their place where the machine has none.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "support/count.hpp"
#include "support/emulated_tiles.hpp"
#include "support/loops_around.hpp"
#include "support/nest_arguments.hpp"
#include "support/run_kernel.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/loops/prepare_for_codegen.hpp"
#include "tunewright/loops/print.hpp"
#include "tunewright/program/operators/matmul.hpp"

namespace {

using namespace tunewright;
using program::ScalarType;

constexpr ScalarType s8 = ScalarType::Int8;
constexpr ScalarType u8 = ScalarType::UInt8;
constexpr ScalarType bf16 = ScalarType::BFloat16;

struct Case {
  program::operators::MatmulShape shape;
  std::int64_t tiles_down = 1;
  std::int64_t tiles_across = 1;
  bool packed = true;
  bool copied = false;  ///< packed on the way, not ahead of time
};

/// Blocks of tiles, one row of blocks a thread.
schedule::Schedule tensorized(const Case& c) {
  using namespace schedule;
  const bool pairs = c.shape.type == bf16;
  Schedule config{program::operators::matmul_graph(c.shape), {}};
  if (c.copied) config.steps = {CacheRead{1, 2, Scope::Local}, Annotate{3, 0, LoopKind::Parallel}};
  const program::TensorId copy = c.copied ? 3 : 1;
  const program::TensorId stage = 2;
  for (const Step& step :
       std::vector<Step>{Split{stage, 0, {c.tiles_down, 16}}, Split{stage, 1, {c.tiles_across, 16}},
                         Split{stage, 2, {16, pairs ? 2 : 4}}, Reorder{stage, {3, 6, 9, 4, 7, 5, 10, 8, 11}},
                         Annotate{stage, 3, LoopKind::Parallel}, Annotate{stage, 4, LoopKind::Unrolled},
                         Annotate{stage, 7, LoopKind::Unrolled}})
    config.steps.push_back(step);
  if (c.packed) config.steps.push_back(Pack{copy, stage});
  config.steps.push_back(Tensorize{stage, 5, pairs ? "amx_bf16" : "amx_int8"});
  return config;
}

Target with_units() {
  Target target;
  target.isa = Isa::Avx512;
  target.threads = 2;
  return target.with_tensor_unit(TensorUnit::AmxInt8).with_tensor_unit(TensorUnit::AmxBf16);
}

std::string assembly(const Case& c, const Target& target = with_units()) {
  return codegen::LlvmCompiler(target, {.verify = true}).to_assembly(loops::lower(tensorized(c)));
}

/// Largest difference from the same loops interpreted, relative to 1 + magnitude. Sums are of at most 200 terms.
double error_of(const codegen::Kernel& kernel, std::vector<std::vector<double>> arguments,
                const std::vector<std::vector<double>>& expected) {
  if (!test::run_kernel(kernel, arguments)) return std::numeric_limits<double>::infinity();
  double worst = 0;
  for (std::size_t i = 0; i < expected.back().size(); ++i) {
    const double want = expected.back()[i];
    worst = std::max(worst, std::fabs(arguments.back()[i] - want) / (1 + std::fabs(want)));
  }
  return worst;
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all{{{.m = 16, .n = 16, .k = 64, .constant_b = true, .type = u8, .type_b = s8}},
                                     {{.m = 64, .n = 32, .k = 128, .constant_b = true, .type = s8}, 2, 2},
                                     {{.m = 40, .n = 32, .k = 128, .constant_b = true, .type = u8}, 1, 2},
                                     {{.m = 32, .n = 40, .k = 128, .constant_b = true, .type = s8, .type_b = u8}, 2, 1},
                                     {{.m = 64, .n = 32, .k = 64, .type = u8, .type_b = s8}, 2, 2, true, true},
                                     {{.m = 16, .n = 32, .k = 128, .type = u8, .type_b = s8}, 1, 2, true, true},
                                     {{.m = 16, .n = 16, .k = 32, .constant_b = true, .type = bf16}},
                                     {{.m = 64, .n = 32, .k = 96, .constant_b = true, .type = bf16}, 2, 2},
                                     {{.m = 33, .n = 64, .k = 96, .constant_b = true, .type = bf16}, 1, 4},
                                     {{.m = 32, .n = 32, .k = 100, .constant_b = true, .type = bf16}, 1, 1},
                                     {{.m = 14, .n = 32, .k = 64, .constant_b = true, .type = bf16}, 1, 2},
                                     {{.m = 7, .n = 16, .k = 20, .constant_b = true, .type = s8}}};
  return all;
}

}  // namespace

TEST_CASE("blocks of two by two tiles accumulate in four registers and load each factor once a step") {
  const Case bytes{{.m = 64, .n = 64, .k = 256, .constant_b = true, .type = u8, .type_b = s8}, 2, 2};
  const std::string text = assembly(bytes);
  CHECK_MESSAGE(test::count(text, "tdpbusd\t") == 4, text);
  CHECK(test::count(text, "tilezero") == 4);
  CHECK(test::count(text, "tileloadd") == 4);  // two factors from each side
  CHECK(test::count(text, "tilestored") == 4);
  CHECK(test::count(text, "ldtilecfg") == 1);
  CHECK(test::count(text, "tilerelease") == 1);

  Case pairs = bytes;
  pairs.shape.type = bf16;
  pairs.shape.type_b.reset();
  CHECK(test::count(assembly(pairs), "tdpbf16ps") == 4);
  pairs.tiles_down = pairs.tiles_across = 1;
  CHECK(test::count(assembly(pairs), "tdpbf16ps") == 1);
  CHECK(test::count(assembly(pairs), "tileloadd") == 2);
}

TEST_CASE("registers are shaped again after other threads may have released them") {
  // The copy is made by a parallel loop, then the only block runs on the calling thread.
  const std::string text = assembly({{.m = 16, .n = 32, .k = 128, .type = bf16}, 1, 2, true, true});
  CHECK_MESSAGE(test::count(text, "ldtilecfg") == 2, text);
  CHECK(test::count(text, "tilerelease") == 1);
}

TEST_CASE("each combination of signs has its instruction, and another unit does not help") {
  Case c{{.m = 16, .n = 16, .k = 64, .constant_b = true, .type = s8}};
  CHECK(test::count(assembly(c), "tdpbssd") == 1);
  c.shape.type_b = u8;
  CHECK(test::count(assembly(c), "tdpbsud") == 1);
  c.shape.type = u8;
  CHECK(test::count(assembly(c), "tdpbuud") == 1);
  Target other;
  other.isa = Isa::Avx512;
  CHECK(test::count(assembly(c, other.with_tensor_unit(TensorUnit::AmxBf16)), "tdpb") == 0);
  CHECK(test::count(assembly(c, other), "tile") == 0);
}

TEST_CASE("operands that do not lie in tiles, and tiles cut by an edge, run as loops") {
  Case c{{.m = 32, .n = 32, .k = 64, .constant_b = true, .type = bf16}};
  c.packed = false;
  CHECK(test::count(assembly(c), "tile") == 0);  // rows of b are not interleaved
  c.packed = true;
  c.shape.n = 15;  // the loop of 16 columns shrinks, and is no longer what the instruction computes
  CHECK_THROWS_AS((void)loops::lower(tensorized(c)), schedule::ScheduleError);
  c.shape.n = 32;
  c.shape.m = 15;  // as does that of rows, of which there may be fewer
  CHECK(test::count(assembly(c), "tdpbf16ps") == 1);
  c.shape.m = 40;  // two tiles are whole, one is not
  const std::string text = assembly(c);
  CHECK_MESSAGE(test::count(text, "tdpbf16ps") == 1, text);
  CHECK(test::count(text, "vfmadd") > 0);
}

TEST_CASE("kernels with tile registers compute what their loops do") {
  const Target host = host_target();
  for (const Case& c : cases()) {
    const loops::LoopNest nest = loops::lower(tensorized(c));
    const double most = c.shape.type == bf16 ? 1e-5 : 0;
    const auto arguments = test::arguments_of_all_magnitudes(nest);
    const auto expected = test::interpreted(nest, arguments);
    codegen::LlvmCompiler plain(host.with_isa(Isa::Sse42));
    const codegen::Kernel without = plain.compile(nest);
    CHECK_FALSE(without.uses_tile_registers);
    CHECK_MESSAGE(error_of(without, arguments, expected) <= most, loops::to_string(nest));
    CHECK(codegen::LlvmCompiler(with_units()).compile(nest).uses_tile_registers);
    if (host.isa != Isa::Avx512) continue;
    test::registers = {};
    CHECK_MESSAGE(error_of(test::with_emulated_tiles(nest, with_units()), arguments, expected) <= most,
                  loops::to_string(nest));
    CHECK_MESSAGE(test::registers.products > 0, loops::to_string(nest));
    CHECK(test::registers.misuses == 0);
    CHECK_FALSE(test::registers.configured);  // released
  }
  if (host.isa != Isa::Avx512) MESSAGE("skipped: no AVX-512");
}

TEST_CASE("products in tiles of different shapes have registers of their shapes") {
  if (host_target().isa != Isa::Avx512) {
    MESSAGE("skipped: no AVX-512");
    return;
  }
  auto graph = std::make_shared<program::ComputeGraph>();
  using namespace schedule;
  Schedule config;
  for (const std::int64_t rows : {8, 16}) {
    const auto a = graph->input("A", {32, 128}, u8);
    const auto b = graph->constant("B", {128, 16}, s8);
    const program::TensorId stage = program::operators::matmul(*graph, a, b).id;
    for (const Step& step : std::vector<Step>{Split{stage, 0, {1, rows}}, Split{stage, 1, {1, 16}},
                                              Split{stage, 2, {16, 4}}, Reorder{stage, {3, 6, 9, 4, 7, 5, 10, 8, 11}},
                                              Pack{b.id, stage}, Tensorize{stage, 5, "amx_int8"}})
      config.steps.push_back(step);
  }
  config.graph = graph;
  const loops::LoopNest nest = loops::lower(config);
  const auto arguments = test::arguments_of_all_magnitudes(nest);
  test::registers = {};
  CHECK(error_of(test::with_emulated_tiles(nest, with_units()), arguments, test::interpreted(nest, arguments)) == 0);
  CHECK(test::registers.products == 12);  // four blocks of 8 rows and two of 16, two steps each
  CHECK(test::registers.misuses == 0);
}

TEST_CASE("what is foretold of tile registers is what kernels do") {
  if (host_target().isa != Isa::Avx512) {
    MESSAGE("skipped: no AVX-512");
    return;
  }
  std::vector<Case> all = cases();
  // The third tile of rows is whole, but in one block with the fourth, which is not; blocks of a single column of
  // tiles, of four, and of more than stay in registers.
  all.push_back({{.m = 56, .n = 32, .k = 128, .constant_b = true, .type = s8}, 2, 2});
  all.push_back({{.m = 56, .n = 40, .k = 100, .constant_b = true, .type = bf16}, 2, 2});
  all.push_back({{.m = 64, .n = 16, .k = 128, .constant_b = true, .type = s8}, 4, 1});
  all.push_back({{.m = 64, .n = 64, .k = 128, .constant_b = true, .type = s8}, 4, 4});
  for (const Case& c : all) {
    const loops::LoopNest lowered = loops::lower(tensorized(c));
    auto arguments = test::arguments_of_all_magnitudes(lowered);
    test::registers = {};
    REQUIRE(test::run_kernel(test::with_emulated_tiles(lowered, with_units()), arguments));
    const loops::LoopNest nest = loops::prepare_for_codegen(lowered, 64);
    std::vector<loops::TensorStatement> found;
    loops::TensorStatements().find(nest, found);
    double products = 0, loaded = 0, stored = 0;
    for (const loops::TensorStatement& tensor : found) {
      if (tensor.kind != loops::TensorStatement::Kind::Product) continue;
      const loops::TensorWork work = test::work_of(nest, tensor);
      const double share = static_cast<double>(tensor.share) / static_cast<double>(loops::whole_share);
      products += share * work.products;
      loaded += share * (work.lines_loaded + work.sums_loaded);
      stored += share * work.sums_stored;
    }
    CHECK_MESSAGE(std::lround(products) == test::registers.products, loops::to_string(nest));
    CHECK_MESSAGE(std::lround(loaded) == test::registers.lines_loaded, loops::to_string(nest));
    CHECK_MESSAGE(std::lround(stored) == test::registers.lines_stored, loops::to_string(nest));
  }
}

TEST_CASE("a machine with AMX runs them, and computes bit by bit what the functions in their place do") {
  const Target host = host_target();
  if (!host.has(TensorUnit::AmxInt8) || !host.has(TensorUnit::AmxBf16)) {
    MESSAGE("skipped: no AMX");
    return;
  }
  codegen::LlvmCompiler compiler(host);
  for (const Case& c : cases()) {
    const loops::LoopNest nest = loops::lower(tensorized(c));
    const auto arguments = test::arguments_of_all_magnitudes(nest);
    const codegen::Kernel kernel = compiler.compile(nest);
    const double error = error_of(kernel, arguments, test::interpreted(nest, arguments));
    CHECK_MESSAGE(error <= (c.shape.type == bf16 ? 1e-5 : 0), loops::to_string(nest));
    auto emulated = arguments;
    REQUIRE(test::run_kernel(test::with_emulated_tiles(nest, with_units()), emulated));
    CHECK_MESSAGE(error_of(kernel, arguments, emulated) == 0, loops::to_string(nest));
  }
}
