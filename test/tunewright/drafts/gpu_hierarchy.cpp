// SPDX-License-Identifier: Apache-2.0
#include "tunewright/drafts/symbol_analyzer/gpu_hierarchy.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>

#include "support/gpu_schedules.hpp"
#include "support/tensor_schedules.hpp"
#include "tunewright/core/gpu_targets.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/program/operators/matmul.hpp"

using namespace tunewright;
using namespace tunewright::drafts;

namespace {

double cycles(const loops::LoopNest& nest, const Target& target) {
  const Multiprocessor m;
  return GpuHierarchy().latency_s(nest, target, m) * m.frequency_hz;
}

/// One multiprocessor of 64 lanes, 16 bytes a cycle of 1.5 GHz.
Target small_gpu() {
  Target target = gpu_target("V100");
  target.multiprocessors = 1;
  target.peak_fp32_gflops = 2 * 64 * 1.5;
  target.peak_gb_per_s = 16 * 1.5;
  return target;
}

loops::LoopNest plus_one(std::int64_t elements, std::int64_t threads) {
  auto g = std::make_shared<program::ComputeGraph>();
  const auto x = g->input("x", {elements});
  g->compute("y", {{"i", elements}}, [&](auto i) { return x(i[0]) + program::Expr(1.0); });
  schedule::ScheduleBuilder s(g);
  test::bind_whole(s, 1, threads);
  return loops::lower(s.schedule());
}

loops::LoopNest product(const test::Tile& rows, const test::Tile& columns, const test::Tile& depth,
                        schedule::Pipelining how = {}) {
  const auto graph = program::operators::matmul_graph({.m = 1024, .n = 1024, .k = 1024});
  auto s = test::tiled_on_gpu(graph, "matmul", {rows, columns}, {depth}, {"A", "B"});
  s.pipeline(s.stage("matmul.local"), s.state().stages[s.stage("A.shared")].location.iter, how);
  return loops::lower(s.schedule());
}

}  // namespace

TEST_CASE("one elementwise kernel by hand") {
  // 64 blocks of 256 threads: 8 warps each issue an addition, a load and a store.
  const double issue = 8 * (1 + 1 + 1) / 4.0, arithmetic = 8 * 32 / 64.0;
  const double transfers = 2 * 1024 / 64.0;  // 1 KB read and 1 KB written by a block
  const double block = transfers + (issue + arithmetic) / 4;
  // 8 blocks of 256 threads fill 2048: eight waves, each longer than a warp that waits for its load.
  const double wave = std::max(8 * block, 450.0 + 4);
  const double bytes = 2 * 4.0 * 64 * 256, memory = bytes / 16, cache = memory / 3;
  const double parts[] = {8 * wave, memory, cache};
  const double longest = std::max({parts[0], parts[1], parts[2]});
  CHECK(cycles(plus_one(64 * 256, 256), small_gpu()) ==
        doctest::Approx(4500 + longest + (parts[0] + parts[1] + parts[2] - longest) / 4));
}

TEST_CASE("what makes a product fast makes it fast here") {
  const Target a100 = gpu_target("A100");
  const double good = cycles(product({1, 16, 1, 8}, {1, 16, 1, 8}, {8, 1}), a100);
  CHECK(good > 2.0 * 1024 * 1024 * 1024 / 19500e9 * 1.5e9);                       // no faster than the peak
  CHECK(good < cycles(product({1, 16, 1, 1}, {1, 16, 1, 1}, {8, 1}), a100) / 2);  // operands used once
  CHECK(good < cycles(product({1, 2, 1, 8}, {1, 2, 1, 8}, {8, 1}), a100) / 2);    // an eighth of a warp
  CHECK(good < cycles(product({1, 8, 1, 32}, {1, 8, 1, 16}, {8, 1}), a100));      // 512 accumulators spill
  CHECK(good < cycles(product({1, 16, 1, 8}, {1, 16, 1, 8}, {8, 1}), gpu_target("T4")));
}

TEST_CASE("fetches that run ahead go on beside what a lone warp computes, in more shared memory") {
  Target alone = gpu_target("A100");
  alone.max_blocks_per_multiprocessor = 1;
  const test::Tile tile{1, 8, 1, 2}, depth{1, 8};
  const auto time = [&](schedule::Pipelining how) { return cycles(product(tile, tile, depth, how), alone); };
  CHECK(time({2, false}) < time({1, false}));
  CHECK(time({2, true}) <= time({2, false}));
  CHECK(time({3, true}) < time({2, true}));
  GpuHierarchy levels;
  (void)levels.latency_s(product(tile, tile, depth, {3, true}), alone, Multiprocessor{});
  CHECK(levels.kernels()[0].shared_bytes == 3 * 2 * 16 * 8 * 4);
}

TEST_CASE("a block that is alone on its multiprocessor waits at its barriers") {
  const auto with_barrier = [](double barrier, std::int64_t depth, schedule::Pipelining how) {
    Multiprocessor m;
    m.barrier = barrier;
    const loops::LoopNest nest = product({1, 16, 1, 8}, {1, 16, 1, 8}, {depth, 1}, how);
    return GpuHierarchy().latency_s(nest, gpu_target("A100"), m) * m.frequency_hz;
  };
  // 64 blocks on 108 multiprocessors, 1024 / 8 steps, a barrier behind each of two copies: one of both if they run ahead.
  CHECK(with_barrier(100, 8, {}) - with_barrier(0, 8, {}) == doctest::Approx(128 * 2 * 100));
  CHECK(with_barrier(100, 8, {2, true}) - with_barrier(0, 8, {2, true}) == doctest::Approx(128 * 100));
  CHECK(with_barrier(100, 16, {2, true}) - with_barrier(0, 16, {2, true}) == doctest::Approx(64 * 100));
}

TEST_CASE("a block that a multiprocessor has no room for") {
  Target target = gpu_target("V100");
  target.shared_memory_per_multiprocessor_bytes = 1024;
  CHECK(std::isinf(cycles(product({1, 16, 4, 2}, {1, 16, 4, 2}, {2, 8}), target)));
}

TEST_CASE("instructions of warp groups are issued once for all of their columns, by each of four warps") {
  // With nothing hidden by anything else, what a rate of instructions saves is what is issued.
  const auto issued = [](const char* instruction, std::int64_t fragments) {
    const auto graph =
        program::operators::matmul_graph({.m = 64, .n = 128, .k = 64, .type = program::ScalarType::Float16});
    const loops::LoopNest nest =
        loops::lower(test::tensorized_matmul(graph, instruction, {{1, 1}, {1, fragments}, 1}).schedule());
    Multiprocessor m;
    m.overlap = 0;
    m.global_latency = m.shared_latency = m.arithmetic_latency = m.barrier = 0;
    m.instructions_per_cycle = 1;
    const double slow = GpuHierarchy().latency_s(nest, gpu_target("H100"), m);
    m.instructions_per_cycle = 2;
    return 2 * (slow - GpuHierarchy().latency_s(nest, gpu_target("H100"), m)) * m.frequency_hz;
  };
  // One block of one group. The reduction takes four instructions, or four for each half of the columns.
  CHECK(issued("wgmma_fp16_n64", 2) - issued("wgmma_fp16_n128", 1) == doctest::Approx(4 * 4));
}

TEST_CASE("a product as written by hand comes near the peak: vectors of shared memory, sums that are written out") {
  const loops::LoopNest nest = loops::lower(test::product_as_by_hand().schedule());
  const double taken = GpuHierarchy().latency_s(nest, gpu_target("A100"), {});
  CHECK(taken > test::least_of_product_as_by_hand_s);
  CHECK(taken < 1.5 * test::least_of_product_as_by_hand_s);
}

TEST_CASE("rows of fragments that begin in one bank are loaded one after the other") {
  const auto graph =
      program::operators::matmul_graph({.m = 256, .n = 256, .k = 256, .type = program::ScalarType::Float16});
  const auto shared = [&](std::int64_t padding) {
    const loops::LoopNest nest =
        loops::lower(test::tensorized_matmul(graph, "mma_fp16", {{2, 2}, {2, 2}, 4, padding}).schedule());
    Multiprocessor m;
    m.overlap = 0;
    m.global_latency = m.shared_latency = m.arithmetic_latency = m.barrier = 0;
    const double narrow = GpuHierarchy().latency_s(nest, gpu_target("A100"), m);
    m.shared_bytes_per_cycle *= 1e9;
    return (narrow - GpuHierarchy().latency_s(nest, gpu_target("A100"), m)) * m.frequency_hz;
  };
  // 4 warps a block, 16 products of four fragments of 512 bytes each time for A and B: rows of 64 elements begin at
  // multiples of 128 bytes and take eight times as long, rows of 72 do not. Copies take what they take either way.
  const double fragments = 4.0 * 16 * (2 + 2) * 512 / 128;
  CHECK(shared(0) - shared(8) == doctest::Approx(7 * fragments).epsilon(0.02));
}

TEST_CASE("tensor instructions of one warp do not reach the peak of warp groups") {
  const auto graph =
      program::operators::matmul_graph({.m = 256, .n = 256, .k = 4096, .type = program::ScalarType::Float16});
  const loops::LoopNest nest =
      loops::lower(test::tensorized_matmul(graph, "mma_fp16", {{2, 2}, {2, 2}, 4, 8}).schedule());
  Multiprocessor m;  // where nothing but products takes time
  m.overlap = 1;
  m.global_latency = m.shared_latency = m.arithmetic_latency = m.barrier = m.launch = 0;
  m.instructions_per_cycle = m.shared_bytes_per_cycle = m.transferred_bytes_per_cycle = 1e9;
  Target h100 = gpu_target("H100"), of_warps = h100;
  h100.peak_gb_per_s = of_warps.peak_gb_per_s = 1e9;
  of_warps.architecture = "sm_80";
  CHECK(GpuHierarchy().latency_s(nest, h100, m) / GpuHierarchy().latency_s(nest, of_warps, m) ==
        doctest::Approx(1 / 0.63));
}
