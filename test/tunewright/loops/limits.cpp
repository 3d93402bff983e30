// SPDX-License-Identifier: Apache-2.0
#include "tunewright/loops/limits.hpp"

#include <doctest/doctest.h>

#include "support/gpu_schedules.hpp"
#include "support/tensor_schedules.hpp"
#include "tunewright/loops/device.hpp"
#include "tunewright/loops/device/pass.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/loops/written_statements.hpp"
#include "tunewright/program/operators/elementwise.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/schedule/schedule.hpp"

namespace {

using namespace tunewright;
using schedule::ScheduleBuilder;

const Target sse;  // 4 floats a vector

ScheduleBuilder matmul() { return ScheduleBuilder(program::operators::matmul_graph({.m = 64, .n = 2048, .k = 8})); }

std::string_view exceeded(const ScheduleBuilder& s, const loops::CpuLimits& limits = {}) {
  return loops::exceeded_limit(loops::lower(s.schedule()), sse, limits);
}

TEST_CASE("a plain nest is within limits") { CHECK(exceeded(matmul()).empty()); }

TEST_CASE("unrolling counts the copies of a statement, vectors included") {
  ScheduleBuilder s = matmul();
  const auto j = s.split(2, 1, {64});
  s.reorder(2, {0, j[0], 2, j[1]});
  s.vectorize(2, j[1]);  // 64 / 4 = 16 copies
  CHECK(exceeded(s, {.max_unrolled_statements = 16}).empty());
  CHECK(exceeded(s, {.max_unrolled_statements = 15}) == "too much unrolling");
  s.unroll(2, 2);  // times 8
  CHECK(exceeded(s, {.max_unrolled_statements = 128}).empty());
  CHECK(exceeded(s, {.max_unrolled_statements = 127}) == "too much unrolling");
}

TEST_CASE("vectorized loops are short and innermost") {
  ScheduleBuilder longer = matmul();
  longer.reorder(2, {0, 2, 1});
  longer.vectorize(2, 1);
  CHECK(exceeded(longer) == "vectorized loop too long");
  ScheduleBuilder outer = matmul();
  outer.vectorize(2, 0);
  CHECK(exceeded(outer) == "vectorized loop is not innermost");
}

TEST_CASE("one level of parallel loops") {
  ScheduleBuilder s = matmul();
  s.parallel(2, 0);
  CHECK(exceeded(s).empty());
  s.parallel(2, 1);
  CHECK(exceeded(s) == "parallel loop inside a parallel loop");
}

TEST_CASE("buffers inside loops and outside have limits of their own") {
  ScheduleBuilder s = matmul();
  const auto cache = s.cache_write(2);
  CHECK(exceeded(s, {.max_workspace_bytes = 64 * 2048 * 4}).empty());
  CHECK(exceeded(s, {.max_workspace_bytes = 64 * 2048 * 4 - 1}) == "workspace too large");
  const auto j = s.split(2, 1, {64});
  s.compute_at(cache, 2, j[0]);  // one row of 64 floats
  CHECK(exceeded(s, {.max_local_bytes = 256}).empty());
  CHECK(exceeded(s, {.max_local_bytes = 255}) == "local buffers too large");
}

// GPUs.

/// 64 x 2048 by blocks of 2 virtual threads by 8 x 16 threads by 1 x 2: copies of 8 x 16 and 16 x 64 floats.
ScheduleBuilder tiled() {
  return test::tiled_on_gpu(program::operators::matmul_graph({.m = 64, .n = 2048, .k = 64}), "matmul",
                            {{1, 8, 1, 1}, {2, 16, 1, 2}}, {{4, 4}}, {"A", "B"}, 4);
}

std::string_view exceeded_on_gpu(const ScheduleBuilder& s, const loops::GpuLimits& limits) {
  const loops::LoopNest nest = loops::lower(s.schedule());
  const std::string_view raw = loops::exceeded_limit(nest, limits);
  CHECK(loops::exceeded_limit(loops::to_device(nest), limits) == raw);
  return raw;
}

TEST_CASE("a block has so many threads, so much shared memory, and locals for each virtual thread") {
  CHECK(exceeded_on_gpu(tiled(), loops::GpuLimits{}).empty());
  CHECK(exceeded_on_gpu(tiled(), {.max_shared_bytes = (8 * 16 + 16 * 64) * 4}).empty());
  CHECK(exceeded_on_gpu(tiled(), {.max_shared_bytes = (8 * 16 + 16 * 64) * 4 - 1}) == "too much shared memory");
  CHECK(exceeded_on_gpu(tiled(), {.max_threads = 128}).empty());
  CHECK(exceeded_on_gpu(tiled(), {.max_threads = 127}) == "too many threads");
  CHECK(exceeded_on_gpu(tiled(), {.max_local_bytes = 2 * 2 * 4}).empty());
  CHECK(exceeded_on_gpu(tiled(), {.max_local_bytes = 2 * 2 * 4 - 1}) == "local buffers too large");
  CHECK(exceeded_on_gpu(tiled(), {.max_grid = {8 * 32, 1, 1}}).empty());
  CHECK(exceeded_on_gpu(tiled(), {.max_grid = {8 * 32 - 1, 1, 1}}) == "too many blocks");
  CHECK(loops::exceeded_limit(loops::lower(tiled().schedule()), loops::GpuLimits{.max_virtual_threads = 1}) ==
        "too many virtual threads");
}

TEST_CASE("virtual threads are unrolled") {
  ScheduleBuilder s = tiled();
  const auto cache = s.stage("matmul.local");
  s.unroll(cache, s.loops(cache).back());  // 2 columns
  CHECK(exceeded_on_gpu(s, {.max_unrolled_statements = 4}).empty());
  CHECK(exceeded_on_gpu(s, {.max_unrolled_statements = 3}) == "too much unrolling");
}

TEST_CASE("a kernel comes to so many statements, written out") {
  ScheduleBuilder s = tiled();
  s.choose_unroll_limit(s.stage("matmul.local"), {64});
  const loops::LoopNest nest = loops::lower(s.schedule());
  CHECK(loops::written_statements(nest, nest.body.at(0)) == 75);
  CHECK(loops::exceeded_limit(nest, {.max_kernel_statements = 75}).empty());
  CHECK(loops::exceeded_limit(nest, {.max_kernel_statements = 74}) == "too much code");
}

TEST_CASE("threads that reduce together beyond a warp need shared memory") {
  const auto sums = [](std::int64_t threads) {
    ScheduleBuilder s(program::operators::matmul_graph({.m = 4, .n = 4, .k = 512}));
    const auto k = s.split(2, 2, {threads});
    s.bind(2, k[1], schedule::LoopKind::ThreadX);
    s.bind(2, s.fuse(2, {0, 1}), schedule::LoopKind::BlockX);
    return s;
  };
  CHECK(exceeded_on_gpu(sums(32), {.max_shared_bytes = 0}).empty());
  CHECK(exceeded_on_gpu(sums(64), {.max_shared_bytes = 64 * 4}).empty());
  CHECK(exceeded_on_gpu(sums(64), {.max_shared_bytes = 64 * 4 - 1}) == "too much shared memory");
}

TEST_CASE("a tensor instruction needs a device that has it") {
  const ScheduleBuilder s = test::tensorized_matmul(
      program::operators::matmul_graph({.m = 32, .n = 32, .k = 32, .type = program::ScalarType::Float16}), "wmma_fp16",
      {});
  const auto units = [](TensorUnit unit) { return loops::GpuLimits{.tensor_units = static_cast<std::uint32_t>(unit)}; };
  CHECK(exceeded_on_gpu(s, loops::GpuLimits{}).empty());
  CHECK(exceeded_on_gpu(s, units(TensorUnit::TensorCoreFp16)).empty());
  CHECK(exceeded_on_gpu(s, units(TensorUnit::TensorCoreInt8)) == "tensor instruction the device lacks");
  Target gpu;
  gpu.kind = DeviceKind::Gpu;
  CHECK(loops::exceeded_limit(loops::lower(s.schedule()), gpu) == "tensor instruction the device lacks");
  CHECK(loops::exceeded_limit(loops::lower(s.schedule()), gpu.with_tensor_unit(TensorUnit::TensorCoreFp16)).empty());
}

TEST_CASE("the threads that hold fragments together are in a block, whatever its loops bind") {
  const auto graph =
      program::operators::matmul_graph({.m = 32, .n = 32, .k = 32, .type = program::ScalarType::Float16});
  loops::LoopNest nest = loops::lower(test::tensorized_matmul(graph, "wmma_fp16", {{2, 1}, {1, 1}}).schedule());
  loops::device::visit_nodes<loops::Loop>(nest.body, [](loops::Loop& loop) {
    if (loop.kind == schedule::LoopKind::ThreadX) loop.kind = schedule::LoopKind::Serial;
  });
  // Two warps: 64 threads.
  for (const loops::LoopNest& form : {nest, loops::to_device(nest)}) {
    CHECK(loops::exceeded_limit(form, loops::GpuLimits{.max_threads = 64}).empty());
    CHECK(loops::exceeded_limit(form, loops::GpuLimits{.max_threads = 63}) == "too many threads");
  }
}

TEST_CASE("the target decides which limits count") {
  Target gpu;
  gpu.kind = DeviceKind::Gpu;
  CHECK(loops::exceeded_limit(loops::lower(tiled().schedule()), gpu).empty());
  gpu.max_threads_per_block = 64;
  CHECK(loops::exceeded_limit(loops::lower(tiled().schedule()), gpu) == "too many threads");
  gpu.max_threads_per_block = 1024;
  gpu.shared_memory_per_block_bytes = 4096;
  CHECK(loops::exceeded_limit(loops::lower(tiled().schedule()), gpu) == "too much shared memory");
  gpu.max_shared_memory_per_block_bytes = 8192;  // a kernel may ask for more
  CHECK(loops::exceeded_limit(loops::lower(tiled().schedule()), gpu).empty());
  gpu.max_registers_per_thread = 1;
  CHECK(loops::exceeded_limit(loops::lower(tiled().schedule()), gpu) == "local buffers too large");
  ScheduleBuilder parallel = matmul();
  parallel.parallel(2, 0);
  CHECK(loops::exceeded_limit(loops::lower(parallel.schedule()), gpu) == "parallel loop on a GPU");
}

}  // namespace
