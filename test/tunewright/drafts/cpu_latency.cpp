// SPDX-License-Identifier: Apache-2.0
#include "tunewright/drafts/symbol_analyzer/cpu_latency.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>

#include "support/padded_sum.hpp"
#include "tunewright/drafts/roofline.hpp"
#include "tunewright/drafts/symbol_analyzer.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/operators/pad.hpp"

using namespace tunewright;
using namespace tunewright::drafts;
using schedule::ScheduleBuilder;

namespace {

/// One core with AVX2, 32 KB and 1 MB of cache.
Target core() {
  Target target;
  target.isa = Isa::Avx2;
  return target;
}

std::shared_ptr<const program::ComputeGraph> plus_one(std::int64_t elements) {
  auto g = std::make_shared<program::ComputeGraph>();
  const auto x = g->input("x", {elements});
  g->compute("y", {{"i", elements}}, [&](auto i) { return x(i[0]) + program::Expr(1.0); });
  return g;
}

loops::LoopNest scheduled(const std::shared_ptr<const program::ComputeGraph>& graph,
                          const std::function<void(ScheduleBuilder&)>& steps) {
  ScheduleBuilder s(graph);
  steps(s);
  return loops::lower(s.schedule());
}

/// The share of a cost that counts where something longer hides it.
constexpr double exposed = 0.15;

double cycles(const loops::LoopNest& nest, const Target& target) { return CpuAnalysis(target, {}).cycles(nest); }

}  // namespace

TEST_CASE("one elementwise loop by hand") {
  const auto vectorized = [](std::int64_t elements) {
    return scheduled(plus_one(elements), [](ScheduleBuilder& s) { s.vectorize(1, s.split(1, 0, {8})[1]); });
  };
  // For each vector: addition and load at half a cycle, of which one hides most of the other, a store, a
  // step; 8 MB come from each level.
  const double vectors = 1 << 17, pipe = 0.5 + 0.5 * exposed + 1, pipes = vectors * pipe, bytes = 1 << 23;
  CHECK(cycles(vectorized(1 << 20), core()) ==
        doctest::Approx(bytes / 8 + (pipes + bytes / 32 + bytes / 16) * exposed + vectors * 0.5));
  // 8 KB are in L1 since the last run, 80 KB in L2, which takes longer than the pipes.
  CHECK(cycles(vectorized(1024), core()) == doctest::Approx(128 * pipe + 128 * 0.5));
  CHECK(cycles(vectorized(10240), core()) == doctest::Approx(81920 / 32.0 + 1280 * pipe * exposed + 1280 * 0.5));
}

TEST_CASE("units narrower than registers take a vector in parts, and caches do not slow down") {
  const auto vectorized = [](std::int64_t elements) {
    return scheduled(plus_one(elements), [](ScheduleBuilder& s) { s.vectorize(1, s.split(1, 0, {16})[1]); });
  };
  Target halves = core();
  halves.isa = Isa::Avx512;
  const double pipe = 0.5 + 0.5 * exposed + 1;  // as with AVX2, but of 16 elements
  CHECK(cycles(vectorized(1024), halves) == doctest::Approx(64 * pipe + 64 * 0.5));
  halves.vector_datapath_bytes = 32;
  CHECK(cycles(vectorized(1024), halves) == doctest::Approx(64 * 2 * pipe + 64 * 0.5));
  CHECK(cycles(vectorized(10240), halves) == doctest::Approx(81920 / 32.0 + 640 * 2 * pipe * exposed + 640 * 0.5));
  halves.isa = Isa::Avx2;
  CHECK(cycles(vectorized(1024), halves) == cycles(vectorized(1024), core()));
}

TEST_CASE("divisions and functions of narrow units, by hand") {
  Target halves = core();
  halves.vector_datapath_bytes = 16;
  const CpuCore narrow = CpuCore{}.on(halves);
  loops::BodyOperations body;
  body.divisions = 1;
  body.functions = 1;
  CHECK(CpuCore{}.on(core()).cycles(4, body) == doctest::Approx(2 + 8 + 20));
  CHECK(narrow.cycles(4, body) == doctest::Approx(2 * (2 + 8 + 20)));
  CHECK(narrow.loop_step_cycles == CpuCore{}.loop_step_cycles);
  CHECK(narrow.tensor_units.byte_products_per_cycle == 1);
  CHECK(narrow.tensor_units.shuffles_per_cycle == 0.5);
  CHECK(narrow.tensor_units.bf16_products_per_cycle == 0.5);
  CHECK(narrow.tensor_units.tile_rows_per_cycle == 1);
}

TEST_CASE("a register tile by hand") {
  const auto graph = program::operators::matmul_graph({.m = 4, .n = 16, .k = 256});
  const loops::LoopNest nest = scheduled(graph, [](ScheduleBuilder& s) {
    s.reorder(2, {2, 0, 1});
    s.unroll(2, 0);
    s.vectorize(2, 1);
  });
  // 8 accumulators: 8 multiply-adds, 4 elements of A and 2 vectors of B are loaded, and each waits 4 cycles for the
  // sum before; all 8 are loaded and stored once.
  CHECK(cycles(nest, core()) == doctest::Approx(256 * (8 / 2.0 + (6 / 2.0 + 4) * exposed) + (8 / 2.0 + 8) + 256 * 0.5));
}

TEST_CASE("tiles at the end of an axis have the rows that are left") {
  // 10 rows in tiles of 4, a vector each, with 64 terms in registers: two full tiles and one of 2 rows.
  const auto graph = program::operators::matmul_graph({.m = 10, .n = 8, .k = 64});
  const loops::LoopNest nest = scheduled(graph, [](ScheduleBuilder& s) {
    const auto rows = s.split(2, 0, {4});
    s.reorder(2, {rows[0], 2, rows[1], 1});
    s.unroll(2, rows[1]);
    s.vectorize(2, 1);
  });
  // Loads: an element of A for each row and a vector of B, which the draft lets shrink with the rows as well.
  const double full = 4 + (4 / 2.0 + 5 / 2.0) * exposed, last = 4 + (2 / 2.0 + 2.5 / 2.0) * exposed;
  const double entries = (10 / 2.0 + 10), steps = 3 + 3 * 64;
  CHECK(cycles(nest, core()) == doctest::Approx(64 * (2 * full + last) + entries + steps * 0.5));
}

TEST_CASE("accumulators are loaded and stored each time the loops that keep them are entered") {
  const auto graph = program::operators::matmul_graph({.m = 4, .n = 16, .k = 256});
  const auto nest = [&](std::int64_t inner) {
    return scheduled(graph, [&](ScheduleBuilder& s) {
      const auto columns = s.split(2, 1, {8});
      const auto k = s.split(2, 2, {inner});
      s.reorder(2, {k[0], columns[0], k[1], 0, columns[1]});
      s.unroll(2, 0);
      s.vectorize(2, columns[1]);
    });
  };
  // 4 accumulators, for two halves of the columns: 4 multiply-adds take less than loading 4 elements of A and a vector
  // of B, and both less than the 4 cycles until an accumulator is there again; filling takes 2 steps.
  const double tile = 4 + (5 / 2.0 + 4 / 2.0) * exposed, entry = 4 / 2.0 + 4, steps = 2 + 64 + 128 + 512;
  CHECK(cycles(nest(64), core()) == doctest::Approx(512 * tile + 4 * 2 * entry + (2 + 4 + 8 + 512) * 0.5));
  CHECK(cycles(nest(4), core()) == doctest::Approx(512 * tile + 64 * 2 * entry + steps * 0.5));
}

TEST_CASE("padding that all lanes share costs nothing, padding that differs between them does") {
  const auto graph = test::padded_sum_graph();
  const auto nest = [&](bool along_channels) {
    return scheduled(graph, [&](ScheduleBuilder& s) {
      s.compute_inline(2);
      const auto places = s.split(3, 0, {8});
      if (along_channels) {
        s.reorder(3, {places[0], places[1], 2, 1});
        s.vectorize(3, 1);
      } else {
        s.reorder(3, {places[0], 1, 2, places[1]});
        s.vectorize(3, places[1]);
      }
    });
  };
  // 192 vectors of multiply-adds that take 0.5 cycles and load an element of x and a vector of w, and 64 accumulators;
  // the chain of a single accumulator takes 4 cycles a vector.
  const double steps = 8 + 64 + 192;
  CHECK(cycles(nest(true), core()) == doctest::Approx(192 * (4 + (0.5 + 1) * exposed) + 64 * 1.5 + steps * 0.5));
  // Along places, two comparisons, a conjunction and a choice take 2 cycles more, and 8 elements are stored one by one.
  CpuCore patient;
  patient.update_latency_cycles = 0;
  const auto patiently = [&](bool along_channels) { return CpuAnalysis(core(), patient).cycles(nest(along_channels)); };
  CHECK(patiently(true) == doctest::Approx(192 * (1 + 0.5 * exposed) + 64 * 1.5 + steps * 0.5));
  CHECK(patiently(false) == doctest::Approx(192 * (2.5 + 1 * exposed) + 64 * 8 * 1.5 + steps * 0.5));
  CHECK(CpuAnalysis(core(), {}).roof(nest(true)).peak_cycles == 192 / 2.0);
  CHECK(CpuAnalysis(core(), {}).roof(nest(false)).peak_cycles == 192 * (1 + 4) / 2.0);
}

TEST_CASE("conditions that all lanes share take no vectors") {
  auto g = std::make_shared<program::ComputeGraph>();
  const auto x = g->input("x", {64, 8});
  (void)program::operators::pad(*g, x, {.before = {1, 0}, .after = {1, 0}, .name = "padded"});
  // A choice and a load at half a cycle, two comparisons and a conjunction at an eighth each, a store, a step.
  const loops::LoopNest nest = scheduled(g, [](ScheduleBuilder& s) { s.vectorize(1, 1); });
  CHECK(cycles(nest, core()) == doctest::Approx(66 * (0.5 + 0.5 * exposed + 3 / 8.0 + 1 + 0.5)));
}

TEST_CASE("neighbouring windows of an unrolled sum load what they share once, if registers hold it") {
  auto g = std::make_shared<program::ComputeGraph>();
  const auto x = g->input("x", {50, 8});
  const auto w = g->input("w", {3, 8});
  g->reduce("y", {{"i", 48}, {"c", 8}}, {{"r", 3}}, program::Combiner::Sum,
            [&](auto i, auto r) { return x(i[0] + r[0], i[1]) * w(r[0], i[1]); });
  CpuCore patient;
  patient.update_latency_cycles = 0;
  const auto patiently = [&](std::int64_t rows, std::int64_t unroll_limit) {
    const loops::LoopNest nest = scheduled(g, [&](ScheduleBuilder& s) {
      const auto places = s.split(2, 0, {rows});
      s.reorder(2, {places[0], 2, places[1], 1});
      s.unroll(2, places[1]);
      s.vectorize(2, 1);
      s.unroll_limit(2, unroll_limit);
    });
    return CpuAnalysis(core(), patient).cycles(nest);
  };
  const auto expected = [](double rows, double loads) {
    const double computing = rows / 2, loading = loads / 2, entry = rows / 2 + rows;
    const double tile = std::max(computing, loading) + std::min(computing, loading) * exposed;
    return 48 / rows * (3 * tile + entry + 0.5);
  };
  // Four places: four elements of x and one of w a tap, of which three taps share six and three.
  CHECK(patiently(4, 11) == doctest::Approx(expected(4, 5)));
  CHECK(patiently(4, 12) == doctest::Approx(expected(4, (6 + 3) / 3.0)));
  // Twelve accumulators leave no registers for twelve elements.
  CHECK(patiently(12, 36) == doctest::Approx(expected(12, 13)));
}

TEST_CASE("what does not fit a cache is fetched again") {
  // 64 rows of 64 KB are read whole for each of 8 columns, and pass no 32 KB; 4 MB pass no 1 MB.
  auto g = std::make_shared<program::ComputeGraph>();
  const auto a = g->input("a", {64, 16384});
  g->reduce("sum", {{"j", 8}}, {{"i", 64}, {"k", 16384}}, program::Combiner::Sum,
            [&](auto, auto r) { return a(r[0], r[1]); });
  const loops::LoopNest nest = loops::lower(ScheduleBuilder(g).schedule());
  const Roof roof = CpuAnalysis(core(), {}).roof(nest);
  CHECK(roof.memory_bytes == doctest::Approx(8.0 * 64 * 65536).epsilon(0.01));
  Target large = core();
  large.l3_bytes = 64 << 20;
  CHECK(CpuAnalysis(large, {}).roof(nest).memory_bytes == doctest::Approx(64.0 * 65536).epsilon(0.01));
}

TEST_CASE("rows that begin in the same sets of a cache crowd each other out") {
  // Four times over, one line of each row is read; the sums are in registers meanwhile, and one line holds them.
  const auto fetched_into = [](std::size_t level, std::int64_t rows, std::int64_t row_floats) {
    auto g = std::make_shared<program::ComputeGraph>();
    const auto a = g->input("a", {rows, row_floats});
    g->reduce("sum", {{"j", 4}}, {{"i", rows}, {"k", 16}}, program::Combiner::Sum,
              [&](auto, auto r) { return a(r[0], r[1]); });
    const loops::LoopNest nest = loops::lower(ScheduleBuilder(g).schedule());
    constexpr double free = 1e30;
    CpuCore by_byte{.bytes_per_cycle = {free, free, free}, .late_share = 0, .overlap = 0};
    const double without = CpuAnalysis(core(), by_byte).cycles(nest);
    by_byte.bytes_per_cycle[level] = 1;
    return CpuAnalysis(core(), by_byte).cycles(nest) - without;
  };
  // Rows of 8 KB all begin in the sets that a page begins in: 8 of them fill 32 KB of L1, which tolerates 10, and 256
  // fill 1 MB. For each line a quarter of the next one is fetched in vain.
  constexpr std::size_t l1 = 0, l2 = 1;
  constexpr double piece = 64 + 16;
  CHECK(fetched_into(l1, 10, 2048) == doctest::Approx(piece * 10 + 64));
  CHECK(fetched_into(l1, 11, 2048) == doctest::Approx(4 * (piece * 11 + 64)));
  CHECK(fetched_into(l2, 256, 2048) == doctest::Approx(piece * 256 + 64));
  CHECK(fetched_into(l2, 257, 2048) == doctest::Approx(4 * (piece * 257 + 64)));
  // A line more a row, and each begins in sets of its own; half a page more, and they begin in two places.
  CHECK(fetched_into(l1, 11, 2048 + 16) == doctest::Approx(piece * 11 + 64));
  CHECK(fetched_into(l2, 257, 2048 + 16) == doctest::Approx(piece * 257 + 64));
  CHECK(fetched_into(l2, 512, 2048 + 512) == doctest::Approx(piece * 512 + 64));
  CHECK(fetched_into(l2, 513, 2048 + 512) == doctest::Approx(4 * (piece * 513 + 64)));
}

TEST_CASE("squares that are transposed in registers load their lines once") {
  // y[i][j] = x[j][i] in tiles of 8 rows and `columns`.
  const auto transposition = [](std::int64_t rows, std::int64_t all_columns, std::int64_t columns) {
    auto g = std::make_shared<program::ComputeGraph>();
    const auto x = g->input("x", {all_columns, rows});
    g->compute("y", {{"i", rows}, {"j", all_columns}}, [&](auto i) { return x(i[1], i[0]); });
    return scheduled(g, [&](ScheduleBuilder& s) {
      const auto i = s.split(1, 0, {8}), j = s.split(1, 1, {columns});
      s.reorder(1, {i[0], j[0], i[1], j[1]});
      s.vectorize(1, j[1]);
    });
  };
  // 64x64 in L1: a tile of 8x8 has 8 vectors, of which each takes three shuffles, half a cycle each, half a cycle to
  // load and one to store.
  const double tile = 8 * (1.5 + 0.5 * exposed + 1);
  CHECK(cycles(transposition(64, 64, 8), core()) == doctest::Approx(64 * tile + 0.5 * (8 + 64 + 512)));
  // Sixteen rows of x of 8 KB begin in the same sets, which L1 does not hold: a tile of 8x16 reads 16 lines, with a
  // quarter of the next one each, and writes 8.
  constexpr double free = 1e30;
  CpuCore by_byte{.bytes_per_cycle = {free, free, free}, .late_share = 0, .overlap = 0};
  const loops::LoopNest nest = transposition(2048, 16, 16);
  const double without = CpuAnalysis(core(), by_byte).cycles(nest);
  by_byte.bytes_per_cycle[0] = 1;
  CHECK(CpuAnalysis(core(), by_byte).cycles(nest) - without == doctest::Approx(256 * (16 * (64 + 16) + 8 * 64)));
}

TEST_CASE("accumulators in registers leave L1 to what is read") {
  // 12 rows of sums, a page each, in tiles of 6 rows and 16 columns; 5 rows of a page are added up in each tile.
  auto g = std::make_shared<program::ComputeGraph>();
  const auto a = g->input("a", {5, 1024});
  const auto sum = g->reduce("sum", {{"i", 12}, {"j", 1024}}, {{"k", 5}}, program::Combiner::Sum,
                             [&](auto i, auto r) { return a(r[0], i[1]); });
  const loops::LoopNest nest = scheduled(g, [&](ScheduleBuilder& s) {
    const auto rows = s.split(sum.id, 0, {6}), columns = s.split(sum.id, 1, {16});
    s.reorder(sum.id, {columns[0], rows[0], 2, rows[1], columns[1]});
    s.unroll(sum.id, rows[1]);
    s.vectorize(sum.id, columns[1]);
  });
  constexpr double free = 1e30;
  const CpuCore by_byte{.bytes_per_cycle = {1, free, free}, .late_share = 0, .overlap = 0};
  const CpuCore none{.bytes_per_cycle = {free, free, free}, .overlap = 0};
  // Five rows occupy 20 KB while a tile is computed, and 12 rows of sums 48 KB in both tiles of 16 columns, so each
  // line of either is fetched once, and with each a quarter of the next one in vain. With the 24 KB of a tile of sums
  // beside them, more than L1 tolerates, the five would be fetched twice.
  CHECK(CpuAnalysis(core(), by_byte).cycles(nest) - CpuAnalysis(core(), none).cycles(nest) ==
        doctest::Approx((5 + 12) * 4096 * 1.25));
}

TEST_CASE("what is not fetched ahead takes longer") {
  // Each of 64 rows is read by 16 floats at a time: 64 KB of a row, 4 MB in all, which pass no cache.
  const auto read_from = [](std::size_t level, std::int64_t row_floats) {
    auto g = std::make_shared<program::ComputeGraph>();
    const auto a = g->input("a", {64, row_floats});
    const auto sum = g->reduce("sum", {{"j", row_floats}}, {{"i", 64}}, program::Combiner::Sum,
                               [&](auto i, auto r) { return a(r[0], i[0]); });
    ScheduleBuilder s(g);
    const auto block = s.split(sum.id, 0, {16});
    s.reorder(sum.id, {block[0], 1, block[1]});
    const loops::LoopNest nest = loops::lower(s.schedule());
    constexpr double free = 1e30;
    CpuCore by_byte{.bytes_per_cycle = {free, free, free}, .overlap = 0};
    const double without = CpuAnalysis(core(), by_byte).cycles(nest);
    by_byte.bytes_per_cycle[level] = 1;
    return CpuAnalysis(core(), by_byte).cycles(nest) - without;
  };
  // Rows and sums; filling the sums with zeros counts nothing. Into L1 come pieces of a line, each with a quarter of
  // the next one in vain; larger levels hold all pieces of a row until its other loops have filled the gaps.
  const double rows = 64 * 65536, sums = 65536;
  // L1 evicts rows that begin in the same sets.
  CHECK(read_from(0, 16384) == doctest::Approx(3 * 1.25 * rows + sums));
  CHECK(read_from(1, 16384) == doctest::Approx(3 * rows + sums));
  CHECK(read_from(2, 16384) == doctest::Approx(3 * rows + sums));
  // A line more a row, and nothing is evicted, but not followed from memory either.
  const double longer = 1 + 1.0 / 1024;
  CHECK(read_from(0, 16384 + 16) == doctest::Approx((rows + sums) * longer));
  CHECK(read_from(1, 16384 + 16) == doctest::Approx((rows + sums) * longer));
  CHECK(read_from(2, 16384 + 16) == doctest::Approx((3 * rows + sums) * longer));
}

TEST_CASE("threads share a parallel loop, and the longest share counts") {
  const auto graph = plus_one(1 << 20);
  const auto nest = [&](std::int64_t parts) {
    return scheduled(graph, [&](ScheduleBuilder& s) {
      const auto outer = s.split(1, 0, {(1 << 20) / parts});
      s.parallel(1, outer[0]);
      s.vectorize(1, s.split(1, outer[1], {8})[1]);
    });
  };
  Target many = core().with_threads(4);
  many.l3_bytes = 64 << 20;
  const SymbolAnalyzer analyzer;
  CHECK(analyzer.latency_s(nest(4), many) < analyzer.latency_s(nest(5), many));
  CHECK(analyzer.latency_s(nest(8), many) < analyzer.latency_s(nest(5), many));
  // A roofline knows no threads: 2^21 floats at 8 bytes a cycle of 2.5 GHz.
  CHECK(Roofline{}.latency_s(nest(4), many) == doctest::Approx(4.0 * (1 << 21) / 8 / 2.5e9).scale(0));
}

TEST_CASE("the thread with most rows counts") {
  const auto nest = [](std::int64_t rows, std::int64_t columns, bool by_columns) {
    const auto graph = program::operators::matmul_graph({.m = rows, .n = columns, .k = 64});
    return scheduled(graph, [&](ScheduleBuilder& s) {
      const auto i = s.split(2, 0, {2});
      const auto j = s.split(2, 1, {8});
      if (by_columns)
        s.reorder(2, {j[0], i[0], 2, i[1], j[1]});
      else
        s.reorder(2, {i[0], j[0], 2, i[1], j[1]});
      s.parallel(2, by_columns ? s.fuse(2, {j[0], i[0]}) : s.fuse(2, {i[0], j[0]}));
      s.unroll(2, i[1]);
      s.vectorize(2, j[1]);
    });
  };
  const Target two = core().with_threads(2);
  // Two rows with 64 terms, or one: 4 cycles until a sum is there again, and what that does not hide.
  const double full = 64 * (4 + (2 / 2.0 + 3 / 2.0) * exposed), trimmed = 64 * (4 + (1 / 2.0 + 1.5 / 2.0) * exposed);
  const auto around = [](double tiles, double rows) {
    return CpuCore{}.fork_cycles + (tiles + tiles * 64) * 0.5 + rows / 2.0 + rows;
  };
  // The first thread has 4 of 7 rows, as it has of 8; of 5 rows the second one has 3.
  CHECK(cycles(nest(7, 8, false), two) == doctest::Approx(2 * full + around(2, 4)));
  CHECK(cycles(nest(8, 8, false), two) == doctest::Approx(2 * full + around(2, 4)));
  CHECK(cycles(nest(5, 8, false), two) == doctest::Approx(full + trimmed + around(2, 3)));
  // Each thread has all rows of its half of the columns; if rows are divided first, the first thread has 4 of both.
  CHECK(cycles(nest(7, 16, true), two) == doctest::Approx(3 * full + trimmed + around(4, 7)));
  CHECK(cycles(nest(7, 16, false), two) == doctest::Approx(4 * full + around(4, 8)));
}

TEST_CASE("what is copied next comes while tiles use the present copy, if L2 holds both") {
  // 64 rows times 1024 x 1024, 4 MB of the 1 MB that L2 has. Pieces of `block` rows and columns are copied.
  const auto product = [](std::int64_t block_rows, std::int64_t block_columns) {
    auto g = std::make_shared<program::ComputeGraph>();
    const auto a = g->input("a", {64, 1024}), b = g->input("b", {1024, 1024});
    const auto c = g->reduce("c", {{"i", 64}, {"j", 1024}}, {{"k", 1024}}, program::Combiner::Sum,
                             [&](auto i, auto k) { return a(i[0], k[0]) * b(k[0], i[1]); });
    return scheduled(g, [&](ScheduleBuilder& s) {
      const auto i = s.split(c.id, 0, {4}), j = s.split(c.id, 1, {block_columns / 16, 16});
      const auto k = s.split(c.id, 2, {block_rows});
      s.reorder(c.id, {j[0], k[0], j[1], i[0], k[1], i[1], j[2]});
      s.unroll(c.id, i[1]);
      s.vectorize(c.id, j[2]);
      const program::TensorId copy = s.cache_read(b.id, c.id);
      s.compute_at(copy, c.id, k[0]);
      s.vectorize(copy, 1);
    });
  };
  const auto cycles_at = [&](const loops::LoopNest& nest, double bytes_per_cycle) {
    constexpr double free = 1e30;
    return CpuAnalysis(core(), {.bytes_per_cycle = {free, bytes_per_cycle, free}, .overlap = 1}).cycles(nest);
  };
  constexpr double free = 1e30, bytes = 4 << 20;
  // The tiles take 64 * 2^20 / 8 multiply-adds at two a cycle, more than all of the matrix takes at 8 bytes a cycle.
  const loops::LoopNest small = product(64, 64), large = product(1024, 128);
  CHECK(cycles_at(small, 8) == doctest::Approx(cycles_at(small, free)));
  // Where it takes longer, it counts instead of the tiles, and what these fetch themselves beside it.
  CHECK(cycles_at(small, 0.5) > bytes / 0.5);
  // A copy of 512 KB leaves L2 no space for the next one, so it counts beside the tiles.
  CHECK(cycles_at(large, 8) - cycles_at(large, free) > 0.5 * bytes / 8);
}
