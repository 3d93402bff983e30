// SPDX-License-Identifier: Apache-2.0
#include "tunewright/core/gpu_targets.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string>

#include "support/refusal.hpp"

using namespace tunewright;

TEST_CASE("an A100 as its data sheet has it") {
  const Target a100 = gpu_target("A100");
  CHECK(a100.kind == DeviceKind::Gpu);
  CHECK(a100.architecture == "sm_80");
  CHECK(a100.multiprocessors == 108);
  CHECK(a100.warp_size == 32);
  CHECK(a100.max_threads_per_block == 1024);
  CHECK(a100.shared_memory_per_block_bytes == 49152);
  CHECK(a100.shared_memory_limit_bytes() == 163 * 1024);
  CHECK(a100.shared_memory_per_multiprocessor_bytes == 164 * 1024);
  CHECK(a100.l2_bytes == 40 * 1024 * 1024);
  CHECK(a100.peak_fp32_gflops == 19500);
  CHECK(a100.peak_gb_per_s == 1555);
  CHECK(a100.peak_tensor_gflops == 312000);
  CHECK(a100.has(TensorUnit::TensorCoreBf16));
}

TEST_CASE("every model is a whole target, and no two share journals") {
  std::set<std::uint64_t> keys;
  for (const GpuModel& model : gpu_models) {
    const Target target = gpu_target(model.name);
    CHECK_MESSAGE(target.shared_memory_limit_bytes() >= target.shared_memory_per_block_bytes, model.name);
    CHECK(target.shared_memory_limit_bytes() <= target.shared_memory_per_multiprocessor_bytes);
    CHECK(target.registers_per_block <= target.registers_per_multiprocessor);
    CHECK(target.max_threads_per_block <= target.max_threads_per_multiprocessor);
    keys.insert(stable_hash(target));
  }
  CHECK(keys.size() == gpu_models.size());  // A100s of 40 and 80 GB differ in bandwidth alone
}

TEST_CASE("the key of a target follows what changes code or speed, not the name") {
  const Target gpu = gpu_target("H100");
  const auto changed = [&](auto member, auto value) {
    Target other = gpu;
    other.*member = value;
    return stable_hash(other) != stable_hash(gpu);
  };
  CHECK(changed(&Target::registers_per_multiprocessor, 1U));
  CHECK(changed(&Target::max_shared_memory_per_block_bytes, std::uint64_t{1}));
  CHECK(changed(&Target::max_blocks_per_multiprocessor, 1U));
  CHECK(changed(&Target::peak_gb_per_s, 1.0));
  CHECK(!changed(&Target::name, std::string("another H100")));
}

TEST_CASE("peaks of tensor units are about what a cycle of a multiprocessor does") {
  // 108 multiprocessors at 1.41 GHz, 2048 operations a cycle: 312 TFLOP/s. 40 at 1.59 GHz, 1024: 65.
  CHECK(108 * 1.41 * tensor_operations_per_cycle(80) == doctest::Approx(312000).epsilon(0.01));
  CHECK(40 * 1.59 * tensor_operations_per_cycle(75) == doctest::Approx(65000).epsilon(0.01));
  CHECK(tensor_operations_per_cycle(37) == 0);
  CHECK(gpu_target("K80").tensor_units == 0);
  CHECK(tensor_cores_of(70) == static_cast<std::uint32_t>(TensorUnit::TensorCoreFp16));
}

TEST_CASE("a GPU that is not listed") {
  const std::string message = test::refusal([] { (void)gpu_target("K90"); });
  CHECK(message.find("no data of a GPU 'K90'; known are 'K80', 'V100'") == 0);
  CHECK(message.find("fill in a Target") != std::string::npos);
  CHECK(find_compute_capability(30) == nullptr);
}
