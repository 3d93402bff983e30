// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <stdexcept>
#include <string>
#include <string_view>

#include "tunewright/core/require.hpp"
#include "tunewright/core/target.hpp"

namespace tunewright::drafts {

/// The properties of a GPU that the analyser uses.
struct GpuDevice {
  double peak_gflops = 0;           ///< T_p, single precision
  double peak_gb_per_s = 0;         ///< T_m
  double multiprocessors = 0;       ///< pu_l2: blocks that run concurrently, with `active_blocks`
  double active_blocks = 1;         ///< concurrent blocks per multiprocessor
  double sub_partitions = 4;        ///< pu_l1: warps of one multiprocessor that issue concurrently
  double warp_size = 32;            ///< n_l1
  double transaction_bytes = 32;    ///< n_l2: the smallest memory transaction
  double registers_per_thread = 0;  ///< m_l0: maximum, 32 bits each
  double registers_per_block = 0;
  double shared_memory_bytes = 0;  ///< m_l1: maximum per block
  double threads_per_block = 0;    ///< maximum
};

/// Throws `std::invalid_argument`, which names `who`, for rates and sizes that are not above 0.
inline void check(const GpuDevice& device, const char* who) {
  const auto rate = [who](const char* what, double value) { require(value > 0, who, what, value, "a number above 0"); };
  rate("device.peak_gflops", device.peak_gflops);
  rate("device.peak_gb_per_s", device.peak_gb_per_s);
  rate("device.multiprocessors", device.multiprocessors);
  rate("device.active_blocks", device.active_blocks);
  rate("device.sub_partitions", device.sub_partitions);
  rate("device.warp_size", device.warp_size);
  rate("device.transaction_bytes", device.transaction_bytes);
}

/// The properties of a target. Throws `std::invalid_argument` for one without peak rates.
[[nodiscard]] inline GpuDevice gpu_device(const Target& target) {
  if (!(target.peak_fp32_gflops > 0) || !(target.peak_gb_per_s > 0) || target.multiprocessors == 0) {
    throw std::invalid_argument("drafts: target '" + target.name +
                                "' does not say its peak_fp32_gflops, peak_gb_per_s and multiprocessors; take "
                                "gpu_target(name), or fill them in");
  }
  GpuDevice device;
  device.peak_gflops = target.peak_fp32_gflops;
  device.peak_gb_per_s = target.peak_gb_per_s;
  device.multiprocessors = target.multiprocessors;
  if (target.warp_size > 0) device.warp_size = target.warp_size;
  device.registers_per_thread = target.max_registers_per_thread;
  device.registers_per_block = target.registers_per_block;
  device.shared_memory_bytes = static_cast<double>(target.shared_memory_limit_bytes());
  device.threads_per_block = target.max_threads_per_block;
  return device;
}

/// The values of the released analyser for its devices. They differ from data sheets where the authors' values do: K80
/// is both dies, Orin half of what a multiprocessor does.
struct ReleasedDevice {
  std::string_view name;
  double peak_gflops = 0;
  double peak_gb_per_s = 0;
  double multiprocessors = 0;
};
inline constexpr std::array released_devices{
    ReleasedDevice{"k80", 8226, 480, 26},     ReleasedDevice{"t4", 8141, 320, 40},
    ReleasedDevice{"titanv", 14900, 651, 80}, ReleasedDevice{"orin", 2660, 204, 16},
    ReleasedDevice{"a100", 19490, 1935, 108}, ReleasedDevice{"a100_40", 19490, 1555, 108},
};

/// The device with this name. Throws `std::invalid_argument` that lists all names.
[[nodiscard]] inline GpuDevice released_device(std::string_view name) {
  std::string message = "drafts: the released analyser has no device '" + std::string(name) + "'; it has";
  for (const ReleasedDevice& known : released_devices) {
    if (known.name == name) {
      GpuDevice device;
      device.peak_gflops = known.peak_gflops;
      device.peak_gb_per_s = known.peak_gb_per_s;
      device.multiprocessors = known.multiprocessors;
      return device;
    }
    message += (&known == released_devices.data() ? " '" : ", '") + std::string(known.name) + "'";
  }
  throw std::invalid_argument(message + "; use gpu_device(gpu_target(name)) for others");
}

}  // namespace tunewright::drafts
