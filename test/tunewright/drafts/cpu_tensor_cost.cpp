// SPDX-License-Identifier: Apache-2.0
#include "tunewright/drafts/symbol_analyzer/cpu_tensor_cost.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <span>
#include <vector>

#include "support/cpu_tensor_schedules.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/drafts/symbol_analyzer.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"

using namespace tunewright;
using namespace tunewright::drafts;
using program::ScalarType;
using test::Columns, test::row_product, test::tile_product;

namespace {

/// One core, 32 KB and 1 MB of cache.
Target core() {
  Target target;
  target.isa = Isa::Avx512;
  return target;
}
Target with_tiles() { return core().with_tensor_unit(TensorUnit::AmxBf16); }
Target with_rows() { return core().with_tensor_unit(TensorUnit::Avx512Vnni); }

double cycles(const loops::LoopNest& nest, const Target& target) { return CpuAnalysis(target, {}).cycles(nest); }

// Four times a block of four products of 16 cycles, which hides all but 0.15 of loading two tiles of each factor;
// four tiles, which start at zero, are stored, and the reduction takes four steps.
constexpr double block_cycles = 4 * (4 * 16 + 0.15 * 4 * 8) + 4 * 16 + 4 * CpuCore{}.loop_step_cycles;

}  // namespace

TEST_CASE("a block of tile registers by hand") {
  CHECK(cycles(tile_product(32, Columns::PackedAhead), with_tiles()) == doctest::Approx(block_cycles));
}

TEST_CASE("columns that are copied for the instruction are written as vectors") {
  // 128 vectors of two loads, one shuffle and one store, 128 + 64 steps.
  CHECK(cycles(tile_product(32, Columns::Copied), with_tiles()) ==
        doctest::Approx(block_cycles + 128 * (2 * 0.5 + 1 + 1) + (128 + 64) * CpuCore{}.loop_step_cycles));
}

TEST_CASE("products of tile registers wait for blocks of columns that are copied") {
  Target small = with_tiles();
  small.l1_bytes = 1 << 10;
  small.l2_bytes = 6 << 10;  // less than the matrix, 8 KB, and three times a block
  const auto cycles_at = [&](double bytes_per_cycle) {
    constexpr double free = 1e30;
    const CpuCore rates{.bytes_per_cycle = {free, bytes_per_cycle, free}, .overlap = 1};
    return CpuAnalysis(small, rates).cycles(tile_product(32, Columns::CopiedInBlocks));
  };
  // What else they read comes while they compute.
  // The matrix and its block.
  CHECK(cycles_at(64) - cycles_at(1e30) == doctest::Approx((8192 + 2048) / 64));
}

TEST_CASE("plain loops run where columns do not lie as the instruction reads them, and without its unit") {
  const loops::LoopNest unpacked = tile_product(32, Columns::AsTheyAre),
                        packed = tile_product(32, Columns::PackedAhead);
  CHECK(loops::NestSummarizer().summary(unpacked).tensors.empty());
  CHECK(cycles(unpacked, with_tiles()) == cycles(unpacked, core()));
  CHECK(cycles(unpacked, with_tiles()) > 10 * block_cycles);
  CHECK(cycles(packed, core()) > 10 * block_cycles);
}

TEST_CASE("guards cut the last tile of rows, which plain loops run") {
  const loops::LoopNest cut = tile_product(40, Columns::PackedAhead);  // 16 + 16 and 8 + 0
  loops::NestSummarizer summarizer;
  REQUIRE(summarizer.summary(cut).tensors.size() == 1);
  CHECK(summarizer.summary(cut).tensors[0].share == loops::whole_share * 2 / 4);
  CHECK(cycles(cut, with_tiles()) > 0.4 * cycles(cut, core()));
  CHECK(cycles(cut, with_tiles()) < 0.6 * cycles(cut, core()));
}

TEST_CASE("rows of products of bytes by hand") {
  // 16 times eight products, eight broadcasts and one vector of columns, two a cycle each; eight sums loaded and stored
  // once.
  const double expected = 16 * (8 / 2.0 + 9 / 2.0) + 8 * 1.5 + 16 * CpuCore{}.loop_step_cycles;
  CHECK(cycles(row_product(ScalarType::UInt8), with_rows()) == doctest::Approx(expected));
  // Where both have signs: a flip for each row, a product for each vector of columns, and at the end a subtraction from
  // each sum.
  CHECK(cycles(row_product(ScalarType::Int8), with_rows()) ==
        doctest::Approx(expected + 16 * (8 / 2.0 + 1 / 2.0) + 8 / 2.0));
  CHECK(cycles(row_product(ScalarType::UInt8), core()) > 4 * expected);
}

TEST_CASE("rows of products of bytes with AVX2 by hand") {
  Target target;
  target.isa = Isa::Avx2;
  // 16 times eight products, one a cycle; eight broadcasts and one vector of columns, two a cycle, each of which takes
  // three shifts, two a cycle; eight sums loaded and stored once.
  const double expected = 16 * (8 + 9 / 2.0 + 3 * 9 / 2.0) + 8 * 1.5 + 16 * CpuCore{}.loop_step_cycles;
  CHECK(cycles(row_product(ScalarType::Int8, 8, 8, "avx2_int8"), target) == doctest::Approx(expected));
  // A row without signs takes a mask and a shift.
  CHECK(cycles(row_product(ScalarType::UInt8, 8, 8, "avx2_int8"), target) == doctest::Approx(expected - 16 * 8 / 2.0));
  CHECK(cycles(row_product(ScalarType::Int8, 8, 8, "avx2_int8"), core()) > expected);
}

TEST_CASE("a roofline knows the peak of the units") {
  const auto peak_cycles = [](const loops::LoopNest& nest, const Target& target) {
    return CpuAnalysis(target, {}).roof(nest).peak_cycles;
  };
  // 16 products of 16 rows, a row a cycle; without the unit two vectors of 16 multiply-adds a cycle would take 32 x 2 x
  // 128 / 2.
  CHECK(peak_cycles(tile_product(32, Columns::PackedAhead), with_tiles()) == 16 * 16);
  CHECK(peak_cycles(tile_product(32, Columns::PackedAhead), core()) > 10 * 16 * 16);
  // Half of twice as many, and half of the loops.
  const loops::LoopNest cut = tile_product(40, Columns::PackedAhead);
  CHECK(peak_cycles(cut, with_tiles()) == doctest::Approx(16 * 16 + peak_cycles(cut, core()) / 2));
  // 128 rows, two a cycle, and what makes up for signs, once a step.
  CHECK(peak_cycles(row_product(ScalarType::UInt8), with_rows()) == 128 / 2.0);
  CHECK(peak_cycles(row_product(ScalarType::Int8), with_rows()) == (128 + 16) / 2.0);
}

TEST_CASE("schedules with tile registers score as their programs do") {
  const Task task = program::make_task(
      "t", program::operators::matmul_graph({.m = 96, .n = 128, .k = 192, .type = ScalarType::BFloat16}),
      with_tiles().with_threads(2));
  const spaces::MultiLevelTiling space;
  std::vector<schedule::Schedule> configs;
  for (Rng rng(3); configs.size() < 40;)
    if (auto config = space.sample(task, rng)) configs.push_back(*std::move(config));
  std::vector<float> score(configs.size());
  const SymbolAnalyzer draft;
  draft.score(space, task, std::span<const schedule::Schedule>(configs), score);
  auto latency_s = draft.for_target(task.target);
  std::size_t by_instruction = 0;
  for (std::size_t i = 0; i < configs.size(); ++i) {
    const loops::LoopNest nest = loops::lower(configs[i]);
    by_instruction += loops::NestSummarizer().summary(nest).tensors.empty() ? 0U : 1U;
    CHECK(score[i] == static_cast<float>(1 / latency_s(nest)));
  }
  CHECK(by_instruction > 5);
}
