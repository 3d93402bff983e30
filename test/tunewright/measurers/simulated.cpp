// SPDX-License-Identifier: Apache-2.0
#include "tunewright/measurers/simulated.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/cpu_tensor_schedules.hpp"
#include "support/refusal.hpp"
#include "tunewright/core/gpu_targets.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/measurers/simulated/machine.hpp"
#include "tunewright/program/operators/conv.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/operators/pad.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/schedule/schedule.hpp"

namespace {

using namespace tunewright;
using schedule::ScheduleBuilder;

Target machine(unsigned threads = 1) {
  Target t;
  t.isa = Isa::Avx2;
  t.threads = threads;
  t.l3_bytes = 8 << 20;
  return t;
}

double seconds(const std::function<void(ScheduleBuilder&)>& steps, const Target& target = machine(),
               std::int64_t n = 512) {
  ScheduleBuilder s(program::operators::matmul_graph({.m = n, .n = n, .k = n}));
  steps(s);
  return measurers::Simulated{}.latency(loops::lower(s.schedule()), target).count();
}

void naive(ScheduleBuilder&) {}

void vectorized(ScheduleBuilder& s) {
  const auto j = s.split(2, 1, {8});
  s.reorder(2, {0, j[0], 2, j[1]});
  s.vectorize(2, j[1]);
}

void tiled(ScheduleBuilder& s) {
  const auto i = s.split(2, 0, {8, 4});
  const auto j = s.split(2, 1, {4, 16});
  const auto k = s.split(2, 2, {64});
  s.reorder(2, {i[0], j[0], k[0], i[1], j[1], k[1], i[2], j[2]});
  s.unroll(2, i[2]);
  s.vectorize(2, j[2]);
}

TEST_CASE("machines with other prices, limits or frequencies have other identities") {
  using measurers::Simulated;
  const std::string usual = Simulated{}.identity();
  CHECK(usual == "simulated cpu 4, gpu 3");
  CHECK(Simulated{.trial = Seconds(1)}.identity() == usual);
  std::vector<std::string> all{usual, Simulated{.frequency_hz = 5e9}.identity()};
  Simulated changed;
  changed.prices.bytes_per_tick[2].second = 3;
  all.push_back(changed.identity());
  changed = {};
  changed.gpu_prices.launch = 1;
  all.push_back(changed.identity());
  changed = {};
  changed.limits.max_vector_extent = 512;
  all.push_back(changed.identity());
  std::sort(all.begin(), all.end());
  CHECK(std::adjacent_find(all.begin(), all.end()) == all.end());
}

TEST_CASE("what makes a matmul fast makes it fast here") {
  CHECK(seconds(vectorized) < seconds(naive) / 2);
  CHECK(seconds(tiled) < seconds(vectorized) / 2);
  // 2 n^3 operations, 8 lanes, two fused multiply-adds a cycle of 0.4 ns: nothing is faster than 32 a cycle.
  CHECK(seconds(tiled) > 2.0 * 512 * 512 * 512 / (32 * 2.5e9));
}

TEST_CASE("two threads are faster than one, but not when the shares differ much") {
  const auto parallel = [](ScheduleBuilder& s) {
    tiled(s);
    s.parallel(2, s.loops(2)[0]);
  };
  const double one = seconds(parallel, machine(1));
  const double two = seconds(parallel, machine(2));
  CHECK(two < 0.6 * one);
  CHECK(two > 0.49 * one);
  const auto three_parts = [](ScheduleBuilder& s) {
    s.split(2, 0, {64});
    s.parallel(2, s.loops(2)[0]);
  };
  // 192 rows in three parts on two threads: one of them runs two parts.
  CHECK(seconds(three_parts, machine(2), 192) > 0.6 * seconds(three_parts, machine(1), 192));
}

TEST_CASE("wider vectors are faster, gathering is not") {
  const auto wide = [](ScheduleBuilder& s) {
    const auto j = s.split(2, 1, {64});
    s.reorder(2, {0, j[0], 2, j[1]});
    s.vectorize(2, j[1]);
  };
  Target avx512 = machine();
  avx512.isa = Isa::Avx512;
  CHECK(seconds(wide, avx512) < seconds(wide, machine()));
  Target arm = machine();
  arm.isa = Isa::Neon;
  CHECK(seconds(wide, arm) > seconds(wide, machine()));
  const auto gathering = [](ScheduleBuilder& s) {  // down the columns of A and C
    const auto i = s.split(2, 0, {8});
    s.reorder(2, {i[0], 1, 2, i[1]});
    s.vectorize(2, i[1]);
  };
  CHECK(seconds(gathering) > seconds(vectorized));
}

TEST_CASE("accumulators beyond the register file spill") {
  const auto tile_of = [](std::int64_t rows) {
    return [rows](ScheduleBuilder& s) {
      const auto i = s.split(2, 0, {rows});
      const auto j = s.split(2, 1, {16});
      s.reorder(2, {i[0], j[0], 2, i[1], j[1]});
      s.unroll(2, i[1]);
      s.vectorize(2, j[1]);
    };
  };
  CHECK(seconds(tile_of(4)) < seconds(tile_of(1)));   // 8 vectors: each load is used four times
  CHECK(seconds(tile_of(4)) < seconds(tile_of(16)));  // 32 vectors of 16
}

TEST_CASE("the same nest, the same latency, on any thread; the clock is charged") {
  ScheduleBuilder s(program::operators::matmul_graph({.m = 37, .n = 64, .k = 19}));
  tiled(s);
  const Task task = program::make_task("matmul", s.schedule().graph, machine());
  const std::vector<loops::LoopNest> nests(3, loops::lower(s.schedule()));
  const measurers::Simulated simulated{.trial = Seconds(0.25)};
  const std::vector<Outcome> here = simulated.measure(task, nests);
  std::vector<Outcome> there;
  std::thread([&] { there = measurers::Simulated{.trial = Seconds(0.25)}.measure(task, nests); }).join();
  REQUIRE(here.size() == 3);
  CHECK(here == there);
  CHECK(here[0] == here[2]);
  REQUIRE(here[0].valid());
  CHECK(here[0].timing()->median.count() > 0);
  CHECK(simulated.clock() == Seconds(0.75));
}

TEST_CASE("one scalar loop by hand") {
  // y[i] = x[i] + 1, 1000 floats: an addition (8) that hides all but a quarter of a load (8), a store (16) and a step
  // of the loop (8) each.
  auto g = std::make_shared<program::ComputeGraph>();
  const auto x = g->input("x", {1000});
  g->compute("y", {{"i", 1000}}, [&](auto i) { return x(i[0]) + program::Expr(1.0); });
  const auto nest = loops::lower(ScheduleBuilder(g).schedule());
  const std::int64_t in_core = (8 + 8 / 4 + 16 + 8) * 1000;
  // All of it is in the first cache since the run before.
  CHECK(measurers::simulated::Machine(nest, machine(), {}).run() == in_core);
  // No cache holds it: 8064 bytes in whole lines move at 2, 1 and 1/2 bytes a tick, of which the pipes hide most.
  Target small = machine();
  small.l1_bytes = small.l2_bytes = small.l3_bytes = 1024;
  const std::int64_t bytes = 2 * 63 * 64;
  CHECK(measurers::simulated::Machine(nest, small, {}).run() == in_core + (bytes / 2 + bytes + 2 * bytes) / 4);
}

TEST_CASE("what a body names twice is loaded and computed once") {
  // exp(x) exp(x) of 1000 floats: a function (320) and a product (8) that hide all but a quarter of a load (8), a store
  // (16) and a step of the loop (8) each.
  auto g = std::make_shared<program::ComputeGraph>();
  const auto x = g->input("x", {1000});
  g->compute("y", {{"i", 1000}}, [&](auto i) { return exp(x(i[0])) * exp(x(i[0])); });
  const auto nest = loops::lower(ScheduleBuilder(g).schedule());
  CHECK(measurers::simulated::Machine(nest, machine(), {}).run() == (320 + 8 + 8 / 4 + 16 + 8) * 1000);
}

/// y[i, c] = sum over four r of x[i + r - 3] * w[r, c], 64 places and 8 channels, with zeros before x that are inlined.
loops::LoopNest filtered(const std::function<void(ScheduleBuilder&)>& steps) {
  auto g = std::make_shared<program::ComputeGraph>();
  const auto x = g->input("x", {64});
  const auto w = g->input("w", {4, 8});
  const auto padded = program::operators::pad(*g, x, {.before = {3}, .after = {0}, .value = 0, .name = "padded"});
  g->reduce("y", {{"i", 64}, {"c", 8}}, {{"r", 4}}, program::Combiner::Sum,
            [&](auto i, auto r) { return padded(i[0] + r[0]) * w(r[0], i[1]); });
  ScheduleBuilder s(g);
  s.compute_inline(2);
  steps(s);
  return loops::lower(s.schedule());
}

/// Ticks on one core whose caches cost nothing.
measurers::simulated::Ticks ticks(const loops::LoopNest& nest, measurers::simulated::Prices prices = {},
                                  const Target& target = machine()) {
  prices.bytes_per_tick.fill({std::int64_t{1} << 40, 1});
  return measurers::simulated::Machine(nest, target, prices).run();
}

TEST_CASE("loops with as many statements as their unroll limit cost no steps, and parallel ones always do") {
  const auto steps_of = [](std::int64_t rows, std::int64_t limit, const std::function<void(ScheduleBuilder&)>& more,
                           unsigned threads = 1) {
    auto g = std::make_shared<program::ComputeGraph>();
    const auto x = g->input("x", {rows, 4});
    g->compute("y", {{"i", rows}, {"j", 4}}, [&](auto i) { return x(i[0], i[1]) + program::Expr(1.0); });
    ScheduleBuilder s(g);
    s.unroll_limit(1, limit);
    more(s);
    const loops::LoopNest nest = loops::lower(s.schedule());
    measurers::simulated::Prices prices, free;
    free.loop_step = 0;
    return (ticks(nest, prices, machine(threads)) - ticks(nest, free, machine(threads))) / prices.loop_step;
  };
  CHECK(steps_of(4, 3, naive) == 4 + 4 * 4);
  CHECK(steps_of(4, 4, naive) == 4);  // four statements in a row, 16 in all
  CHECK(steps_of(4, 15, naive) == 4);
  CHECK(steps_of(4, 16, naive) == 0);
  CHECK(steps_of(4, 4, [](ScheduleBuilder& s) { s.vectorize(1, 1); }) == 0);  // a vector is one
  CHECK(steps_of(4, 3, [](ScheduleBuilder& s) { s.vectorize(1, 1); }) == 4);
  // More than twice as many vectors as the 16 registers are not written in straight-line code.
  CHECK(steps_of(8, 64, naive) == 0);
  CHECK(steps_of(9, 64, naive) == 9);
  CHECK(steps_of(4, 16, [](ScheduleBuilder& s) { s.parallel(1, 0); }, 2) == 2);
}

TEST_CASE("padding that lanes share by hand: a branch for the interior, terms left out on the boundary") {
  const loops::LoopNest nest = filtered([](ScheduleBuilder& s) {
    const auto i = s.split(3, 0, {8});
    s.reorder(3, {i[0], i[1], 2, 1});
    s.vectorize(3, 1);
  });
  // The 256 updates wait for each other, 64 ticks each. Of those of 61 places nothing is asked; of the 12 of the first
  // three places 6 have a zero for a factor, and all are asked, which hides behind what they wait for but for a
  // quarter.
  const std::int64_t branches = 8 * 64, steps = 8 * (8 + 64 + 256), fill = 16 * 64;
  const std::int64_t interior = 256 * 64, boundary = 256 * 64 / 2 + 256 * 8 / 4;
  CHECK(ticks(nest) == branches + steps + fill + interior * 61 / 64 + boundary * 3 / 64);
}

TEST_CASE("padding that differs between lanes is computed by hand: a comparison and a choice in each vector") {
  const auto along_places = [](bool with_zeros) {
    auto g = std::make_shared<program::ComputeGraph>();
    const auto x = g->input("x", {67});
    const auto w = g->input("w", {4});
    g->reduce("y", {{"i", 64}}, {{"r", 4}}, program::Combiner::Sum, [&](auto i, auto r) {
      const program::Expr read = x(i[0] + r[0]);
      if (!with_zeros) return read * w(r[0]);
      const auto place = program::index_value(i[0] + r[0]);
      return program::select(place >= program::index_value(3), read, program::Expr(0.0)) * w(r[0]);
    });
    ScheduleBuilder s(g);
    const auto i = s.split(2, 0, {8});
    s.reorder(2, {i[0], 1, i[1]});
    s.vectorize(2, i[1]);
    measurers::simulated::Prices patient;
    patient.add_latency = 0;
    return ticks(loops::lower(s.schedule()), patient);
  };
  // Arithmetic of 24 ticks instead of 8, beside two loads of 8 each; a quarter of the shorter is not hidden.
  CHECK(along_places(true) - along_places(false) == 8 * 4 * ((24 + 16 / 4) - (16 + 8 / 4)));
}

TEST_CASE("terms that straight-line code decides are left out without asking") {
  const auto asked = [](bool unrolled) {
    const loops::LoopNest nest = filtered([&](ScheduleBuilder& s) {
      s.reorder(3, {2, 0, 1});
      if (unrolled) s.unroll(3, 0);
      s.vectorize(3, 1);
    });
    measurers::simulated::Prices with, without;
    with.condition = 1000 * 16;
    without.condition = 0;
    return ticks(nest, with) > ticks(nest, without);
  };
  CHECK(asked(false));
  CHECK_FALSE(asked(true));
}

TEST_CASE("a convolution whose zeros are inlined is about as fast as one without zeros") {
  const auto seconds_of = [](std::int64_t padding) {
    ScheduleBuilder s(program::operators::conv2d_graph({.height = 32 - 2 * padding + 2,
                                                        .width = 32 - 2 * padding + 2,
                                                        .in_channels = 16,
                                                        .out_channels = 16,
                                                        .kernel = 3,
                                                        .padding = padding}));
    program::TensorId sum = 0;
    for (program::TensorId id = 0; id < s.schedule().graph->size(); ++id) {
      const program::Operator& op = s.schedule().graph->op(id);
      if (op.role != program::Role::Computed) continue;
      if (op.has_reduction())
        sum = id;
      else
        s.compute_inline(id);
    }
    const auto loops = s.loops(sum);
    s.reorder(sum, {loops[0], loops[1], loops[2], loops[4], loops[5], loops[6], loops[3]});
    s.vectorize(sum, loops[3]);
    return measurers::Simulated{}.latency(loops::lower(s.schedule()), machine()).count();
  };
  CHECK(seconds_of(1) < seconds_of(0));
  CHECK(seconds_of(1) > 0.9 * seconds_of(0));
}

TEST_CASE("tensor instructions by hand") {
  using test::Columns, test::row_product, test::tile_product;
  Target plain = machine();
  plain.isa = Isa::Avx512;
  const auto with = [&](TensorUnit unit) { return plain.with_tensor_unit(unit); };
  const auto tiles = [&](std::int64_t rows, Columns columns) {
    return ticks(tile_product(rows, columns), {}, with(TensorUnit::AmxBf16));
  };
  // Four steps (8) of a block of four products of 16 rows (16), which hide three quarters of loading two tiles of each
  // factor (8 a line); four tiles (16 a line) are stored.
  const std::int64_t step = 8, block = 4 * (step + 4 * 16 * 16 + 4 * 16 * 8 / 4) + 4 * 16 * 16;
  CHECK(tiles(32, Columns::PackedAhead) == block);
  // 128 vectors of columns: two loads (8), a shuffle and a store (16), and 64 + 128 steps.
  CHECK(tiles(32, Columns::Copied) == block + 128 * (2 * 8 + 16 + 16) + (64 + 128) * step);
  // Without the unit, and for columns that do not lie in tiles, loops run.
  const auto loops = ticks(tile_product(32, Columns::PackedAhead), {}, plain);
  CHECK(loops > 10 * block);
  CHECK(tiles(32, Columns::AsTheyAre) > 10 * block);
  // Of 40 rows a guard cuts the last 8, which loops compute.
  CHECK(tiles(40, Columns::PackedAhead) > block + loops / 8);
  // 8 + 8 + 4 KB, a line of packed columns for 16 of two terms, move at two bytes a tick where L1 does not hold them.
  Target small = with(TensorUnit::AmxBf16);
  small.l1_bytes = 16 << 10;
  CHECK(measurers::simulated::Machine(tile_product(32, Columns::PackedAhead), small, {}).run() ==
        (20 << 10) / 2 + (block - 4 * step) / 4 + 4 * step);
  // 16 steps of eight products (8), which hide three quarters of eight broadcasts and one vector of columns (8); eight
  // sums are loaded (8) and stored (16) once. Bytes with the same signs take a flip (8) for each row, a product
  // for each vector of columns, and once a subtraction (8) from each sum.
  const std::int64_t fill = 8 * 16;  // of the sums with zeros
  const auto rows = [&](program::ScalarType type) {
    return ticks(row_product(type), {}, with(TensorUnit::Avx512Vnni));
  };
  CHECK(rows(program::ScalarType::UInt8) == 16 * (step + 9 * 8 + 8 * 8 / 4) + 8 * 24 + fill);
  CHECK(rows(program::ScalarType::Int8) == 16 * (step + (8 + 1 + 8) * 8 + 9 * 8 / 4) + 8 * (24 + 8) + fill);
  // With AVX2 a product is two, and bytes of a vector are widened by three shifts (8), or without signs by two operations.
  Target pairs = plain;
  pairs.isa = Isa::Avx2;
  const auto widened = [&](program::ScalarType type) { return ticks(row_product(type, 8, 8, "avx2_int8"), {}, pairs); };
  CHECK(widened(program::ScalarType::Int8) - widened(program::ScalarType::UInt8) == 16 * 8 * 8);
  CHECK(widened(program::ScalarType::Int8) == 16 * (step + (8 * 2 + 9 * 3) * 8 + 9 * 8 / 4) + 8 * 24 + fill);
}

TEST_CASE("rates that are none are refused by name, and GPUs that do not say theirs") {
  ScheduleBuilder s(program::operators::matmul_graph({.m = 64, .n = 64, .k = 64}));
  const loops::LoopNest nest = loops::lower(s.schedule());
  const auto refused = [&](const measurers::Simulated& machine_of, const Target& target = machine()) {
    return test::refusal([&] { (void)machine_of.latency(nest, target); });
  };
  CHECK(refused({.frequency_hz = 0}) == "measurers::Simulated: frequency_hz is 0; give a finite frequency above 0");
  CHECK(refused({.trial = Seconds(-1)}).find("trial is -1") != std::string::npos);
  CHECK(refused({.prices = {.cycle = 0}}).find("prices.cycle is 0") != std::string::npos);
  CHECK(refused({.prices = {.bytes_per_tick = {{{2, 1}, {0, 1}, {1, 2}}}}}).find("bytes in") != std::string::npos);
  CHECK(refused({.gpu_prices = {.frequency_hz = -1}}, gpu_target("A100")).find("gpu_prices.frequency_hz is -1") !=
        std::string::npos);
  CHECK(refused({.gpu_prices = {.cache_speed = 0}}, gpu_target("A100")).find("cache_speed") != std::string::npos);
  Target unknown = gpu_target("A100");
  unknown.multiprocessors = 0;
  CHECK(refused({}, unknown).find("take gpu_target(name)") != std::string::npos);
  const Task task = program::make_task("matmul", s.schedule().graph, unknown);
  CHECK_THROWS_AS((void)measurers::Simulated{}.measure(task, std::vector<loops::LoopNest>{}), std::invalid_argument);
}

TEST_CASE("illegal nests fail as such") {
  ScheduleBuilder s(program::operators::matmul_graph({.m = 8, .n = 8, .k = 8}));
  s.vectorize(2, 0);
  const Task task = program::make_task("matmul", s.schedule().graph, machine());
  const std::vector<loops::LoopNest> nests{loops::lower(s.schedule())};
  std::size_t reported = 0;
  const auto outcomes = measurers::Simulated{}.measure(task, nests, [&](std::size_t, const Outcome&) { ++reported; });
  REQUIRE(outcomes[0].failure() != nullptr);
  CHECK(outcomes[0].failure()->fault == Fault::InvalidSchedule);
  CHECK(outcomes[0].failure()->detail == "vectorized loop is not innermost");
  CHECK(reported == 1);
}

}  // namespace
