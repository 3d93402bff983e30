// SPDX-License-Identifier: Apache-2.0
#include "tunewright/measurers/simulated.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "tunewright/loops/lower.hpp"
#include "tunewright/program/operators/matmul.hpp"
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
  // y[i] = x[i] + 1, 1000 floats: an addition (8), a load (8), a store (16) and a step of the loop (32) each; memory
  // moves 8064 bytes in whole lines at 2, 1 and 1/2 bytes a tick, of which the pipes hide most.
  auto g = std::make_shared<program::ComputeGraph>();
  const auto x = g->input("x", {1000});
  g->compute("y", {{"i", 1000}}, [&](auto i) { return x(i[0]) + program::Expr(1.0); });
  Target target = machine();
  const auto nest = loops::lower(ScheduleBuilder(g).schedule());
  const std::int64_t bytes = 2 * 63 * 64;
  const std::int64_t expected = 32 * 1000 + 32 * 1000 + (bytes / 2 + bytes + 2 * bytes) / 4;
  CHECK(measurers::simulated::Machine(nest, target, {}).run() == expected);
}

TEST_CASE("illegal nests fail as such") {
  ScheduleBuilder s(program::operators::matmul_graph({.m = 8, .n = 8, .k = 8}));
  s.vectorize(2, 0);
  const Task task = program::make_task("matmul", s.schedule().graph, machine());
  const std::vector<loops::LoopNest> nests{loops::lower(s.schedule())};
  std::size_t reported = 0;
  const auto outcomes =
      measurers::Simulated{}.measure(task, nests, [&](std::size_t, const Outcome&) { ++reported; });
  REQUIRE(outcomes[0].failure() != nullptr);
  CHECK(outcomes[0].failure()->fault == Fault::InvalidSchedule);
  CHECK(outcomes[0].failure()->detail == "vectorized loop is not innermost");
  CHECK(reported == 1);
}

}  // namespace
