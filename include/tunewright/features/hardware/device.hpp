// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "tunewright/core/gpu_targets.hpp"
#include "tunewright/core/target.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright::features::hardware {

/// The properties of a device for `features::Hardware`. Zero means absent or unknown.
///
/// TVM's auto_scheduler records the first eight with every measurement, and the transfer paper uses them. It does not
/// count the cores of GPUs, and GPUs of one vendor often agree in the other seven, so the two peaks follow.
struct Device {
  std::string_view name;
  double cores = 0;              ///< of a CPU; multiprocessors or compute units of a GPU
  double vector_unit_bytes = 0;  ///< of one vector register; on GPUs the widest access of a thread
  double cache_line_bytes = 0;
  double max_shared_memory_per_block_bytes = 0;
  double max_local_memory_per_block_bytes = 0;
  double max_threads_per_block = 0;
  double max_vthread_extent = 0;
  double warp_size = 0;
  double peak_gflops = 0;    ///< single precision, without tensor units, at the boost clock of a GPU
  double peak_gb_per_s = 0;  ///< of device memory
  bool operator==(const Device&) const = default;
};

namespace detail {

/// A GPU with CUDA's common limits (48 KiB of shared memory without a request for more).
[[nodiscard]] constexpr Device cuda(std::string_view name) {
  const GpuModel& model = *find_gpu_model(name);
  return {name,
          static_cast<double>(model.multiprocessors),
          16,
          64,
          49152,
          2147483647,
          1024,
          8,
          32,
          model.peak_fp32_gflops,
          model.peak_gb_per_s};
}
[[nodiscard]] constexpr Device hip(std::string_view name, double units, double wavefront, double gflops,
                                   double gb_per_s) {
  return {name, units, 16, 64, 65536, 2147483647, 1024, wavefront / 4, wavefront, gflops, gb_per_s};
}
[[nodiscard]] constexpr Device cpu(std::string_view name, double cores, double vector_bytes, double gflops,
                                   double gb_per_s) {
  return {name, cores, vector_bytes, 64, 0, 0, 0, 0, 0, gflops, gb_per_s};
}

}  // namespace detail

/// Devices by name, with rounded values of the makers' data sheets; those of NVIDIA are in `gpu_models`. MI250X: one of
/// the two dies, as programs see it. Peaks of CPUs: cores * base clock * operations per cycle (Zen 2: two 256-bit fused
/// multiply-adds; Ivy Bridge: one 256-bit addition and one multiplication; Cortex-A72, as in a Raspberry Pi 4: one
/// 128-bit fused multiply-add).
inline constexpr std::array devices{
    detail::cuda("K80"),
    detail::cuda("V100"),
    detail::cuda("T4"),
    detail::cuda("A100"),
    detail::cuda("A4000"),
    detail::cuda("RTX 2080 Ti"),
    detail::cuda("RTX 3090"),
    detail::cuda("GTX 1650"),
    detail::cuda("Titan V"),
    detail::cuda("Orin"),
    detail::cuda("A100 80GB"),
    detail::cuda("H100"),
    detail::cuda("H200"),
    detail::hip("MI250X", 110, 64, 23900, 1638),
    detail::hip("W6600", 28, 32, 10400, 224),
    detail::cpu("Ryzen 7 3700X", 8, 32, 921.6, 51.2),
    detail::cpu("Core i7-3770", 4, 32, 217.6, 25.6),
    detail::cpu("Cortex-A72", 4, 16, 48, 12.8),
};

/// The device of `devices` with this name; null if there is none.
[[nodiscard]] constexpr const Device* find(std::string_view name) noexcept {
  for (const Device& device : devices) {
    if (device.name == name) return &device;
  }
  return nullptr;
}

/// The same for literal names. Throws `std::invalid_argument` with all names.
[[nodiscard]] const Device& device(std::string_view name);

/// The eight numbers of an auto_scheduler log, in its order: number of cores (negative if unknown), bytes of a vector
/// unit and of a cache line, shared and local memory per block, threads per block, virtual threads, warp size.
[[nodiscard]] constexpr Device from_log(std::string_view name, std::span<const double, 8> numbers) noexcept {
  Device device{name, numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5], numbers[6], numbers[7]};
  if (device.cores < 0) device.cores = 0;
  return device;
}

/// The device described by a target.
[[nodiscard]] Device from_target(const Target& target);

}  // namespace tunewright::features::hardware

#if TUNEWRIGHT_DEFINES(features)

namespace tunewright::features::hardware {

TUNEWRIGHT_INLINE const Device& device(std::string_view name) {
  if (const Device* found = find(name)) return *found;
  std::string message = "no data of a device '" + std::string(name) + "'; known are";
  for (const Device& known : devices)
    message += (&known == devices.data() ? " '" : ", '") + std::string(known.name) + "'";
  throw std::invalid_argument(message + "; fill in a hardware::Device for others");
}

TUNEWRIGHT_INLINE Device from_target(const Target& target) {
  const bool gpu = target.kind == DeviceKind::Gpu;
  return {target.name,
          static_cast<double>(gpu ? target.multiprocessors : target.threads),
          gpu ? 16.0 : static_cast<double>(target.vector_bytes()),
          static_cast<double>(target.cache_line_bytes),
          static_cast<double>(target.shared_memory_per_block_bytes),
          gpu ? 2147483647.0 : 0.0,
          static_cast<double>(target.max_threads_per_block),
          static_cast<double>(target.max_vthread_extent),
          static_cast<double>(target.warp_size),
          target.peak_fp32_gflops,
          target.peak_gb_per_s};
}

}  // namespace tunewright::features::hardware

#endif
