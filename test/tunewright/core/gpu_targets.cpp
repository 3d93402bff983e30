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

TEST_CASE("an Orin has the shared memory of an A100, and 192 KiB of it and the data cache together") {
  CHECK(gpu_target("Orin").shared_memory_per_multiprocessor_bytes == 164 * 1024);
  CHECK(gpu_target("Orin").l1_bytes == 192 * 1024);
}

TEST_CASE("every model is a whole target, and no two share journals") {
  std::set<std::uint64_t> keys;
  for (const GpuModel& model : gpu_models) {
    const Target target = gpu_target(model.name);
    CHECK_MESSAGE(target.shared_memory_limit_bytes() >= target.shared_memory_per_block_bytes, model.name);
    CHECK(target.shared_memory_limit_bytes() <= target.shared_memory_per_multiprocessor_bytes);
    CHECK(target.l1_bytes >= target.shared_memory_per_multiprocessor_bytes);
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

TEST_CASE("devices of compute capability 9.0 alone multiply by warp groups, in code for them") {
  for (const GpuModel& model : gpu_models) {
    const Target target = gpu_target(model.name);
    CHECK(target.compute_capability() == model.compute_capability);
    CHECK(target.multiplies_by_warp_groups() == (model.compute_capability == 90));
  }
  CHECK(gpu_target("H200").architecture == "sm_90a");
  CHECK(architecture_of(90) == "sm_90a");
  CHECK(architecture_of(100) == "sm_100");
  Target plain = gpu_target("H100");
  plain.architecture = "sm_90";
  CHECK_FALSE(plain.multiplies_by_warp_groups());
}

TEST_CASE("peaks of tensor units are about what a cycle of a multiprocessor does") {
  // 108 multiprocessors at 1.41 GHz, 2048 operations a cycle: 312 TFLOP/s. 40 at 1.59 GHz, 1024: 65.
  CHECK(108 * 1.41 * tensor_operations_per_cycle(80) == doctest::Approx(312000).epsilon(0.01));
  CHECK(40 * 1.59 * tensor_operations_per_cycle(75) == doctest::Approx(65000).epsilon(0.01));
  CHECK(tensor_operations_per_cycle(37) == 0);
  CHECK(gpu_target("K80").tensor_units == 0);
  CHECK(tensor_cores_of(70) == static_cast<std::uint32_t>(TensorUnit::TensorCoreFp16));
}

TEST_CASE("warps reach the peak of tensor units but where it is that of warp groups") {
  CHECK(gpu_target("A100").tensor_peak_share_of_warps() == 1);
  CHECK(gpu_target("H100").tensor_peak_share_of_warps() == 0.63);
  Target plain = gpu_target("H100");
  plain.architecture = "sm_90";  // the same device
  CHECK(plain.tensor_peak_share_of_warps() == 0.63);
}

TEST_CASE("GeForce cards sum 32 bits at half rate") {
  // A GeForce RTX 2080 Ti has 68 multiprocessors at 1.545 GHz: 53.8 TFLOP/s, where 107.6 are those of sums of 16 bits.
  // A GeForce RTX 3090 has 82 at 1.695: 71, while an A4000, the same generation, does 48 * 1.56 * 1024 = 76.7.
  CHECK(tensor_operations_per_cycle(75, "NVIDIA GeForce RTX 2080 Ti") == 512);
  CHECK(tensor_operations_per_cycle(75, "Tesla T4") == 1024);
  CHECK(68 * 1.545 * 512 == doctest::Approx(gpu_target("RTX 2080 Ti").peak_tensor_gflops).epsilon(0.01));
  CHECK(82 * 1.695 * tensor_operations_per_cycle(86, "NVIDIA GeForce RTX 3090") ==
        doctest::Approx(gpu_target("RTX 3090").peak_tensor_gflops).epsilon(0.01));
  CHECK(48 * 1.56 * tensor_operations_per_cycle(86, "NVIDIA RTX A4000") ==
        doctest::Approx(gpu_target("A4000").peak_tensor_gflops).epsilon(0.01));
  // A GeForce RTX 5090: 170 at 2.407 GHz, 209.5 TFLOP/s.
  CHECK(170 * 2.407 * tensor_operations_per_cycle(120, "NVIDIA GeForce RTX 5090") ==
        doctest::Approx(209500).epsilon(0.01));
}

TEST_CASE("a GPU that is not listed") {
  const std::string message = test::refusal([] { (void)gpu_target("K90"); });
  CHECK(message.find("no data of a GPU 'K90'; known are 'K80', 'V100'") == 0);
  CHECK(message.find("fill in a Target") != std::string::npos);
  CHECK(find_compute_capability(30) == nullptr);
}
