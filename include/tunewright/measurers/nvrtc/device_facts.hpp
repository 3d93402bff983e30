// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>

#include "tunewright/core/target.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright::measurers::nvrtc {

/// The driver's facts about a device; plain data, because they come from another process.
struct DeviceFacts {
  std::array<char, 96> name{};
  std::int32_t device_count = 0;  ///< in the machine, including this one
  std::int32_t driver = 0;        ///< version it supports, 1000 * major + 10 * minor
  std::int32_t major = 0;         ///< of the compute capability
  std::int32_t minor = 0;
  std::int32_t multiprocessors = 0;
  std::int32_t warp_size = 32;
  std::int32_t max_threads_per_block = 0;
  std::int32_t max_threads_per_multiprocessor = 0;
  std::int32_t max_blocks_per_multiprocessor = 0;
  std::int32_t shared_bytes_per_block = 0;      ///< available to any kernel
  std::int32_t max_shared_bytes_per_block = 0;  ///< available on request
  std::int32_t shared_bytes_per_multiprocessor = 0;
  std::int32_t registers_per_block = 0;
  std::int32_t registers_per_multiprocessor = 0;
  std::int32_t l2_bytes = 0;
  std::int32_t clock_khz = 0;  ///< maximum
  std::int32_t memory_clock_khz = 0;
  std::int32_t memory_bus_bits = 0;
  std::uint64_t memory_bytes = 0;

  [[nodiscard]] std::string architecture() const;
  /// E.g. "NVIDIA H200, sm_90a, driver 13.0, 1980/3201 MHz"; the maximum clocks of multiprocessors and memory.
  [[nodiscard]] std::string identity() const;
};

/// Float32 lanes of a multiprocessor, by compute capability (CUDA C++ Programming Guide, "Throughput of Native
/// Arithmetic Instructions").
[[nodiscard]] constexpr int fp32_lanes(int major, int minor) noexcept {
  if (major == 3) return 192;
  return major == 7 || (minor == 0 && (major == 6 || major == 8)) ? 64 : 128;
}

/// The device as a target; its peaks are computed from the maximum clocks. `threads` stays 1, because kernels run on
/// the device.
[[nodiscard]] Target target_of(const DeviceFacts& facts);

}  // namespace tunewright::measurers::nvrtc

#if TUNEWRIGHT_DEFINES(measurers)

#include "tunewright/core/gpu_targets.hpp"

namespace tunewright::measurers::nvrtc {

TUNEWRIGHT_INLINE std::string DeviceFacts::architecture() const {
  return architecture_of(static_cast<unsigned>(major * 10 + minor));
}

TUNEWRIGHT_INLINE std::string DeviceFacts::identity() const {
  char text[256];
  std::snprintf(text, sizeof text, "%s, %s, driver %d.%d, %d/%d MHz", name.data(), architecture().c_str(),
                driver / 1000, driver % 1000 / 10, clock_khz / 1000, memory_clock_khz / 1000);
  return text;
}

TUNEWRIGHT_INLINE Target target_of(const DeviceFacts& facts) {
  const auto count = [](std::int32_t value) { return static_cast<unsigned>(value < 0 ? 0 : value); };
  Target target;
  target.name = facts.name.data();
  target.kind = DeviceKind::Gpu;
  target.cache_line_bytes = 128;
  const ComputeCapability* limits = find_compute_capability(count(facts.major) * 10 + count(facts.minor));
  target.l1_bytes = limits != nullptr ? limits->l1_bytes : count(facts.shared_bytes_per_multiprocessor);
  target.l2_bytes = count(facts.l2_bytes);
  target.shared_memory_per_block_bytes = count(facts.shared_bytes_per_block);
  target.max_shared_memory_per_block_bytes = count(facts.max_shared_bytes_per_block);
  target.shared_memory_per_multiprocessor_bytes = count(facts.shared_bytes_per_multiprocessor);
  target.registers_per_block = count(facts.registers_per_block);
  target.registers_per_multiprocessor = count(facts.registers_per_multiprocessor);
  target.max_registers_per_thread = 255;
  target.max_threads_per_block = count(facts.max_threads_per_block);
  target.max_threads_per_multiprocessor = count(facts.max_threads_per_multiprocessor);
  target.max_blocks_per_multiprocessor = count(facts.max_blocks_per_multiprocessor);
  target.max_vthread_extent = 8;
  target.warp_size = count(facts.warp_size);
  target.multiprocessors = count(facts.multiprocessors);
  const double lanes = fp32_lanes(facts.major, facts.minor) * static_cast<double>(target.multiprocessors);
  target.peak_fp32_gflops = 2 * lanes * facts.clock_khz * 1e-6;
  const unsigned capability = count(facts.major) * 10 + count(facts.minor);
  // The GTX series of compute capability 7.5 has no tensor cores.
  if (target.name.find("GTX") == std::string::npos) {
    target.tensor_units = tensor_cores_of(capability);
    target.peak_tensor_gflops = tensor_operations_per_cycle(capability, target.name) *
                                static_cast<double>(target.multiprocessors) * facts.clock_khz * 1e-6;
  }
  target.peak_gb_per_s = 2 * facts.memory_clock_khz * 1e-6 * facts.memory_bus_bits / 8;
  target.architecture = facts.architecture();
  return target;
}

}  // namespace tunewright::measurers::nvrtc

#endif
