// SPDX-License-Identifier: Apache-2.0
#include "tunewright/measurers/simulated/gpu_kernel_time.hpp"

#include <doctest/doctest.h>

#include "tunewright/loops/nest.hpp"

namespace {

using namespace tunewright;
using namespace tunewright::measurers::simulated;

/// Two multiprocessors of 1024 threads and 64 Ki registers; memory moves 1000 bytes a cycle.
Target device() {
  Target target;
  target.multiprocessors = 2;
  target.max_blocks_per_multiprocessor = 4;
  target.max_threads_per_multiprocessor = 1024;
  target.registers_per_multiprocessor = 65536;
  target.max_registers_per_thread = 255;
  target.shared_memory_per_multiprocessor_bytes = 48 << 10;
  target.peak_gb_per_s = 1500;
  return target;
}

/// A kernel of blocks of 512 threads, of which a multiprocessor runs two at a time; each issues 1600 ticks.
KernelWork work(std::int64_t blocks) {
  KernelWork kernel;
  kernel.blocks = blocks;
  kernel.block[0] = 512;
  kernel.issue = 1600;
  return kernel;
}

const GpuPrices prices;

/// What a kernel takes without its launch.
Ticks busy(const KernelWork& kernel, const Target& target = device(), const loops::LoopNest& nest = {}) {
  return GpuKernelTime(nest, target, prices, kernel).duration() - prices.launch;
}

TEST_CASE("blocks run in waves of as many as fit, the last of which may be smaller") {
  CHECK(busy(work(4)) == 2 * 1600);
  CHECK(busy(work(5)) == 2 * 1600 + 1600);
  CHECK(busy(work(8)) == 2 * 2 * 1600);
}

TEST_CASE("blocks that are too few to hide latency wait for it; what runs at once overlaps") {
  KernelWork kernel = work(4);
  kernel.latency = 10000;
  CHECK(busy(kernel) == 10000);
  kernel.latency = 100;
  kernel.banks = 400;  // a quarter of it is seen
  CHECK(busy(kernel) == 2 * (1600 + 100));
}

TEST_CASE("registers that a thread cannot have are spilled") {
  KernelWork kernel = work(2);
  kernel.accumulators = 136;  // 160 with those for addresses; a block of 512 leaves 128: 32 are spilled
  CHECK(busy(kernel) == 1600 + 1600 * 4 * 32 / 128);
}

TEST_CASE("all registers of a multiprocessor may be more than those of a block") {
  Target k80 = device();
  k80.registers_per_block = 65536;
  k80.registers_per_multiprocessor = 131072;
  KernelWork kernel = work(2);
  kernel.block[0] = 1024;
  kernel.accumulators = 40;  // 64 with those for addresses, as many as 1024 threads have of a block's
  CHECK(busy(kernel, k80) == 1600);
  kernel.accumulators += 16;
  CHECK(busy(kernel, k80) == 1600 + 1600 * 4 * 16 / 64);
}

TEST_CASE("unknown limits hold nothing back, except for 16 blocks and 255 registers") {
  Target unknown;
  unknown.multiprocessors = 2;
  unknown.peak_gb_per_s = 1500;
  KernelWork kernel = work(2 * 16);
  kernel.shared_bytes = 1 << 20;
  kernel.accumulators = 231;  // 255 with those for addresses
  CHECK(busy(kernel, unknown) == 16 * 1600);
  kernel.blocks += 1;
  CHECK(busy(kernel, unknown) == 16 * 1600 + 1600);
  kernel.blocks = 2;
  kernel.accumulators += 51;
  CHECK(busy(kernel, unknown) == 1600 + 1600 * 4 * 51 / 255);
}

TEST_CASE("a block that does not fit never ends") {
  KernelWork kernel = work(1);
  kernel.shared_bytes = 48 << 10;
  CHECK(busy(kernel) == 1600);
  ++kernel.shared_bytes;
  CHECK(busy(kernel) == GpuKernelTime::never - prices.launch);
}

TEST_CASE("what the second cache does not keep comes from memory again, in part") {
  loops::LoopNest nest;
  nest.buffers.emplace_back().shape = {256};  // floats
  KernelWork kernel = work(4);
  kernel.requested = {4096};
  Target target = device();
  // 1024 bytes from memory, and 4096 from the cache, which is three times as fast: 16 and 21 ticks, a quarter seen.
  target.l2_bytes = 1024;
  CHECK(busy(kernel, target, nest) == 3200 + (16 + 21) / 4);
  // A quarter of the other 3072 bytes as well: 28 ticks.
  target.l2_bytes = 1023;
  CHECK(busy(kernel, target, nest) == 3200 + (28 + 21) / 4);
}

}  // namespace
