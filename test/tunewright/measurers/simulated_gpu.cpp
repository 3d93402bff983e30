// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "support/gpu_schedules.hpp"
#include "support/tensor_schedules.hpp"
#include "tunewright/core/gpu_targets.hpp"
#include "tunewright/loops/device/pass.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/measurers/simulated.hpp"
#include "tunewright/measurers/simulated/gpu_machine.hpp"
#include "tunewright/measurers/simulated/warp.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/schedule/schedule.hpp"

namespace {

using namespace tunewright;
using namespace tunewright::measurers;
using schedule::LoopKind;
using schedule::ScheduleBuilder;

std::shared_ptr<const program::ComputeGraph> copy_plus_one(std::int64_t rows, std::int64_t columns) {
  auto g = std::make_shared<program::ComputeGraph>();
  const auto x = g->input("x", {rows, columns});
  g->compute("y", {{"i", rows}, {"j", columns}}, [&](auto i) { return x(i[0], i[1]) + program::Expr(1.0); });
  return g;
}

double microseconds(const std::shared_ptr<const program::ComputeGraph>& graph,
                    const std::function<void(ScheduleBuilder&)>& steps, const Target& target) {
  ScheduleBuilder s(graph);
  steps(s);
  return 1e6 * Simulated{}.latency(loops::lower(s.schedule()), target).count();
}

simulated::Access access_with(std::int64_t row_stride, std::vector<loops::LoopVariable> variables,
                              const std::vector<std::int64_t>& coefficients, loops::LoopNest& nest) {
  loops::Buffer buffer;
  buffer.shape = {4096, row_stride};
  buffer.origin = {program::IndexExpr(0), program::IndexExpr(0)};
  nest.variables = std::move(variables);
  nest.buffers = {buffer};
  return {0, {program::IndexExpr::variable(0) * coefficients[0], program::IndexExpr::variable(0) * coefficients[1]}};
}

TEST_CASE("what a warp touches in banks and sectors") {
  using simulated::ThreadLoop;
  loops::LoopNest nest;
  const std::array<ThreadLoop, 3> threads{ThreadLoop{0, 32}, {}, {}};
  const auto words = [&](std::int64_t stride, std::int64_t row, std::int64_t column, std::int64_t together) {
    const simulated::Access a = access_with(stride, {{"t", 32}}, {row, column}, nest);
    return simulated::words_of_warp(nest, a, threads, 32, together);
  };
  CHECK(simulated::bank_steps(words(32, 0, 1, 1)) == 1);   // along a row
  CHECK(simulated::bank_steps(words(32, 1, 0, 1)) == 32);  // down a column: one bank
  CHECK(simulated::bank_steps(words(33, 1, 0, 1)) == 1);   // padded by a word
  CHECK(simulated::bank_steps(words(32, 0, 2, 1)) == 2);   // every other word
  CHECK(simulated::bank_steps(words(32, 0, 0, 1)) == 1);   // all the same word
  CHECK(simulated::bank_steps(words(32, 0, 4, 4)) == 4);   // four words a thread
  CHECK(simulated::sectors(words(32, 0, 1, 1)) == 4);      // 128 bytes
  CHECK(simulated::sectors(words(32, 0, 2, 1)) == 8);
  CHECK(simulated::sectors(words(32, 1, 0, 1)) == 32);
  CHECK(simulated::sectors(words(32, 0, 4, 4)) == 16);
}

TEST_CASE("threads along other dimensions than a loop's, or beyond its end, touch nothing else") {
  using simulated::ThreadLoop;
  loops::LoopNest nest;
  const simulated::Access a = access_with(32, {{"t", 16}}, {0, 1}, nest);
  const auto words = [&](const std::array<ThreadLoop, 3>& threads) {
    return simulated::words_of_warp(nest, a, threads, 32, 1).size();
  };
  CHECK(words({ThreadLoop{0, 32}, {}, {}}) == 16);
  CHECK(words({ThreadLoop{{}, 8}, ThreadLoop{0, 16}, {}}) == 4);  // 8 threads along x are neighbours
  CHECK(words({ThreadLoop{{}, 32}, {}, {}}) == 1);
}

TEST_CASE("each of several loops over a block's threads moves what its own index says") {
  // A row of 32 elements is copied to shared memory by one loop over threads, and read by another.
  ScheduleBuilder s(copy_plus_one(1, 32));
  const auto y = s.stage("y"), copy = s.cache_read(s.stage("x"), y, schedule::Scope::Shared);
  s.bind(y, 0, LoopKind::BlockX);
  s.bind(y, 1, LoopKind::ThreadX);
  s.compute_at(copy, y, 0);
  s.bind(copy, 1, LoopKind::ThreadX);
  const loops::LoopNest nest = loops::lower(s.schedule());
  const auto time = [&](simulated::Ticks sector) {
    return simulated::GpuMachine(nest, gpu_target("V100"), {.sector = sector}).run();
  };
  // Sectors take longest by far. Each loop touches 128 bytes of global memory: four of them.
  constexpr simulated::Ticks dear = simulated::Ticks{1} << 20;
  CHECK((time(2 * dear) - time(dear)) / dear == 4 + 4);
}

TEST_CASE("vectors divide their loop, and rows begin at whole ones") {
  const auto issued = [](const std::shared_ptr<const program::ComputeGraph>& graph) {
    ScheduleBuilder s(graph);
    s.bind(1, 0, LoopKind::ThreadX);
    s.vectorize(1, 1);
    const loops::LoopNest nest = loops::lower(s.schedule());
    const auto time = [&](simulated::Ticks issue) {
      return simulated::GpuMachine(nest, gpu_target("V100"), {.issue = issue}).run();
    };
    constexpr simulated::Ticks dear = simulated::Ticks{1} << 20;
    return (time(2 * dear) - time(dear)) / dear;
  };
  // One warp: an addition for each element, loads and stores of two elements for six, of four for eight.
  CHECK(issued(copy_plus_one(32, 6)) == 6 + 3 + 3);
  CHECK(issued(copy_plus_one(32, 8)) == 8 + 2 + 2);
  // A row of five loads its first four elements one by one; a row of four stores them together.
  auto part = std::make_shared<program::ComputeGraph>();
  const auto x = part->input("x", {32, 5});
  part->compute("y", {{"i", 32}, {"j", 4}}, [&](auto i) { return x(i[0], i[1]) + program::Expr(1.0); });
  CHECK(issued(part) == 4 + 4 + 1);
}

TEST_CASE("the threads that hold fragments together are in a block, whatever its loops bind") {
  const auto graph =
      program::operators::matmul_graph({.m = 32, .n = 32, .k = 32, .type = program::ScalarType::Float16});
  loops::LoopNest nest = loops::lower(test::tensorized_matmul(graph, "mma_fp16", {{2, 1}, {1, 1}}).schedule());
  loops::device::visit_nodes<loops::Loop>(nest.body, [](loops::Loop& loop) {
    if (loop.kind == LoopKind::ThreadX) loop.kind = LoopKind::Serial;
  });
  // Two warps: 64 threads.
  Target target = gpu_target("A100");
  target.max_threads_per_multiprocessor = 64;
  CHECK(simulated::GpuMachine(nest, target, {}).run() < simulated::GpuMachine::never);
  target.max_threads_per_multiprocessor = 63;
  CHECK(simulated::GpuMachine(nest, target, {}).run() == simulated::GpuMachine::never);
}

TEST_CASE("one elementwise kernel by hand") {
  // One multiprocessor of 64 lanes, 16 bytes a cycle of 1.5 GHz; 4 blocks of 256 threads, an element each.
  Target target = gpu_target("V100");
  target.multiprocessors = 1;
  target.peak_fp32_gflops = 2 * 64 * 1.5;
  target.peak_gb_per_s = 16 * 1.5;
  ScheduleBuilder s(copy_plus_one(1, 1024));
  const auto j = s.split(1, 1, {256});
  s.bind(1, j[0], LoopKind::BlockX);
  s.bind(1, j[1], LoopKind::ThreadX);
  // 8 warps: an addition at 8 ticks, a load and a store of 4 sectors at 8 ticks; 4 ticks to issue each.
  const std::int64_t transfers = 2 * 8 * 4 * 8, arithmetic = 8 * 8, issue = 3 * 8 * 4;
  const std::int64_t block = transfers + (arithmetic + issue) / 4;
  const std::int64_t alone = 16 * 450 + 16 * 4;  // a load and an addition
  REQUIRE(4 * block < alone);
  const std::int64_t memory = 2 * 4096 * 16 / 16, cache = memory / 3;
  const std::int64_t expected = 16 * 4500 + memory + (alone + cache) / 4;
  CHECK(simulated::GpuMachine(loops::lower(s.schedule()), target, {}).run() == expected);
}

TEST_CASE("what makes a kernel fast makes it fast here") {
  const Target v100 = gpu_target("V100");
  const auto graph = copy_plus_one(4096, 4096);
  const auto bound = [](std::uint32_t thread_axis, std::int64_t threads) {
    return [=](ScheduleBuilder& s) {
      const auto parts = s.split(1, thread_axis, {threads});
      const std::uint32_t other = 1 - thread_axis;
      s.reorder(1, {other, parts[0], parts[1]});
      s.bind(1, s.fuse(1, {other, parts[0]}), LoopKind::BlockX);
      s.bind(1, parts[1], LoopKind::ThreadX);
    };
  };
  const double along_rows = microseconds(graph, bound(1, 256), v100);
  CHECK(microseconds(graph, bound(0, 256), v100) > 2 * along_rows);  // columns: a sector for each element
  CHECK(microseconds(graph, bound(1, 4), v100) > 2 * along_rows);    // an eighth of a warp
  CHECK(microseconds(graph, bound(1, 256), gpu_target("T4")) > 2 * along_rows);
  // 2^24 elements are read and written at 900 GB/s at best.
  CHECK(along_rows > 2 * 4.0 * (1 << 24) / 900e3);
  CHECK(along_rows < 2 * 2 * 4.0 * (1 << 24) / 900e3);
}

TEST_CASE("too few blocks leave multiprocessors idle; a block that fits nowhere fails") {
  const auto graph = program::operators::matmul_graph({.m = 1024, .n = 1024, .k = 64});
  const auto tile = [](std::int64_t rows) {
    return [rows](ScheduleBuilder& s) {
      const auto i = s.split(2, 0, {rows});
      const auto j = s.split(2, 1, {256});
      s.reorder(2, {i[0], j[0], j[1], 2, i[1]});
      s.bind(2, s.fuse(2, {i[0], j[0]}), LoopKind::BlockX);
      s.bind(2, j[1], LoopKind::ThreadX);
    };
  };
  Target wide = gpu_target("H100");
  CHECK(microseconds(graph, tile(1024), wide) > 4 * microseconds(graph, tile(16), wide));

  ScheduleBuilder s(graph);
  tile(16)(s);
  Target full = wide;
  full.max_threads_per_multiprocessor = 128;  // blocks of 256
  const Task task = program::make_task("matmul", s.schedule().graph, full);
  const std::vector<loops::LoopNest> nests{loops::lower(s.schedule())};
  const auto outcomes = Simulated{}.measure(task, nests);
  REQUIRE(outcomes[0].failure() != nullptr);
  CHECK(outcomes[0].failure()->fault == Fault::InvalidSchedule);
  CHECK(outcomes[0].failure()->detail == "a multiprocessor has no room for one block");
}

TEST_CASE("copies that run ahead hide their latency from a lone warp and take more shared memory") {
  const auto graph = program::operators::matmul_graph({.m = 32, .n = 32, .k = 4096});
  const auto time = [&](schedule::Pipelining how, const Target& target) {
    ScheduleBuilder s = test::tiled_on_gpu(graph, "matmul", {{1, 8, 1, 2}, {1, 8, 1, 2}}, {{1, 16}}, {"A", "B"}, 2);
    s.pipeline(s.stage("matmul.local"), s.state().stages[s.stage("A.shared")].location.iter, how);
    return 1e6 * Simulated{}.latency(loops::lower(s.schedule()), target).count();
  };
  // Four blocks: nothing else hides what they wait for.
  const Target a100 = gpu_target("A100");
  const double plain = time({1, false}, a100), twice = time({2, false}, a100), ahead = time({4, true}, a100);
  CHECK(twice > 256 * 2 * 450 / 1.5e3);     // 256 tiles of two operands, one after the other
  CHECK(twice < plain - 256 * 30 / 1.5e3);  // what is computed, and a barrier, cost nothing more
  CHECK(time({2, true}, a100) <= twice);
  CHECK(ahead < time({2, true}, a100));
  // 2 * 16 * 16 floats a tile.
  Target small = a100;
  small.shared_memory_per_multiprocessor_bytes = 3 * 2 * 16 * 16 * 4;
  CHECK(time({3, true}, small) < 1e6);
  CHECK(time({4, true}, small) > 1e6 * time({3, true}, small));
}

TEST_CASE("what kernels hand on goes through device memory, whatever scope it has") {
  // Partial sums of 4096 rows in 64 parts are written by one kernel and read by the next: 1 MiB each way.
  auto g = std::make_shared<program::ComputeGraph>();
  const auto x = g->input("x", {4096, 4096});
  g->reduce("y", {{"i", 4096}}, {{"k", 4096}}, program::Combiner::Sum, [&](auto i, auto r) { return x(i[0], r[0]); });
  ScheduleBuilder s(g);
  const auto k = s.split(1, 1, {64});
  const auto partial = s.rfactor(1, k[1]);
  for (const auto stage : {partial, program::TensorId{1}}) {
    const auto parts = s.split(stage, 0, {128});
    s.bind(stage, parts[0], LoopKind::BlockX);
    s.bind(stage, parts[1], LoopKind::ThreadX);
  }
  loops::LoopNest nest = loops::lower(s.schedule());
  const loops::BufferId between = nest.buffer_of[partial];
  const Target v100 = gpu_target("V100");
  nest.buffers[between].scope = schedule::Scope::Local;
  const auto local = simulated::GpuMachine(nest, v100, {}).run();
  nest.buffers[between].scope = schedule::Scope::Global;
  CHECK(local == simulated::GpuMachine(nest, v100, {}).run());
}

TEST_CASE("instructions of warp groups are issued once for all of their columns, by each of four warps") {
  const auto time = [](const char* instruction, std::int64_t fragments, simulated::Ticks issue) {
    const auto graph =
        program::operators::matmul_graph({.m = 64, .n = 128, .k = 64, .type = program::ScalarType::Float16});
    const loops::LoopNest nest =
        loops::lower(test::tensorized_matmul(graph, instruction, {{1, 1}, {1, fragments}, 1}).schedule());
    return simulated::GpuMachine(nest, gpu_target("H100"), {.issue = issue}).run();
  };
  // Issuing takes longest by far: what it takes more of, the kernel takes longer.
  constexpr simulated::Ticks dear = simulated::Ticks{1} << 20;
  const auto issued = [&](const char* instruction, std::int64_t fragments) {
    return (time(instruction, fragments, 2 * dear) - time(instruction, fragments, dear)) / dear;
  };
  // One block of one group. The reduction takes four instructions, or four for each half of the columns.
  CHECK(issued("wgmma_fp16_n64", 2) - issued("wgmma_fp16_n128", 1) == 4 * 4);
}

TEST_CASE("a product as written by hand comes near the peak: vectors of shared memory, sums that are written out") {
  const loops::LoopNest nest = loops::lower(test::product_as_by_hand().schedule());
  const double taken = Simulated{}.latency(nest, gpu_target("A100")).count();
  CHECK(taken > test::least_of_product_as_by_hand_s);
  CHECK(taken < 1.5 * test::least_of_product_as_by_hand_s);
}

TEST_CASE("rows of fragments that begin in one bank are loaded one after the other") {
  const auto graph =
      program::operators::matmul_graph({.m = 64, .n = 64, .k = 256, .type = program::ScalarType::Float16});
  const auto shared = [&](std::int64_t padding, simulated::Ticks bank_step) {
    const loops::LoopNest nest =
        loops::lower(test::tensorized_matmul(graph, "mma_fp16", {{2, 2}, {2, 2}, 4, padding}).schedule());
    return simulated::GpuMachine(nest, gpu_target("A100"), {.bank_step = bank_step}).run();
  };
  // Banks take longest by far: what they take more of, the one block takes longer.
  constexpr simulated::Ticks dear = simulated::Ticks{1} << 20;
  const auto steps = [&](std::int64_t padding) { return (shared(padding, 2 * dear) - shared(padding, dear)) / dear; };
  // 4 warps, 16 products of four fragments of 512 bytes each: rows of 64 elements begin at multiples of 128 bytes.
  CHECK(steps(0) - steps(8) >= 7 * 4 * 16 * 4 * 512 / 128);
}

}  // namespace
