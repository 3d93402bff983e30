// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

#include "tunewright/detail/config.hpp"
#include "tunewright/drafts/symbol_analyzer/gpu_device.hpp"
#include "tunewright/drafts/symbol_analyzer/gpu_symbols.hpp"

namespace tunewright::drafts {

/// Share of the time in which `units` units are busy with `parts` equal parts.
[[nodiscard]] inline double wave_utilisation(double parts, double units) {
  return parts / (std::ceil(parts / units) * units);
}

/// The penalties of one statement, relative to the peak of the device. That of tiles beyond the shared memory, P_l1,m,
/// is 1 for every program that `runs_on` the device.
struct Penalties {
  double l0_memory = 1;       ///< P_l0,m: operands beyond the registers
  double l0_compute = 1;      ///< P_l0,c: above 1; operations per operand
  double l1_compute = 1;      ///< P_l1,c: warps that issue concurrently
  double warp_occupancy = 1;  ///< alpha_l1: threads of the last warp
  double l2_compute = 1;      ///< P_l2,c: blocks in the last wave
};

/// Whether a block of every kernel fits the device. Limits of 0 are unknown.
[[nodiscard]] bool runs_on(std::span<const KernelUse> kernels, const GpuDevice& device);

/// `registers` is the maximum over the statements of the kernel.
[[nodiscard]] Penalties penalties(const GpuSymbols& s, double registers, const GpuDevice& device);

/// P_l2,m: useful share of the memory transactions.
[[nodiscard]] inline double transaction_utilisation(const DeviceTraffic& traffic, const GpuDevice& device) {
  return wave_utilisation(traffic.contiguous_bytes, device.transaction_bytes);
}

struct StatementLatency {
  double compute_s = 0;
  double memory_s = 0;
};

/// The form printed in the paper: L_c = S8 / (T_p * prod P_c), L_m = S5 / (T_m * prod P_m). Calls `f(latency)` for
/// every statement.
template <class F>
void printed_latencies(std::span<const GpuSymbols> symbols, const GpuDevice& device, const F& f) {
  for (const GpuSymbols& s : symbols) {
    double registers = 0;
    for (const GpuSymbols& other : symbols)
      if (other.kernel == s.kernel) registers = std::max(registers, other.registers_per_thread);
    const Penalties p = penalties(s, registers, device);
    StatementLatency latency;
    latency.compute_s =
        s.flops / (device.peak_gflops * 1e9 * p.l0_compute * p.l1_compute * p.warp_occupancy * p.l2_compute);
    for (const DeviceTraffic& traffic : s.traffic) {
      latency.memory_s +=
          traffic.bytes / (device.peak_gb_per_s * 1e9 * p.l0_memory * transaction_utilisation(traffic, device));
    }
    f(latency);
  }
}

/// The form of the released code.
[[nodiscard]] StatementLatency released_latency(const ReleasedRow& row, const GpuDevice& device);

}  // namespace tunewright::drafts

#if TUNEWRIGHT_DEFINES(drafts)

namespace tunewright::drafts {

TUNEWRIGHT_INLINE bool runs_on(std::span<const KernelUse> kernels, const GpuDevice& device) {
  return std::all_of(kernels.begin(), kernels.end(), [&](const KernelUse& kernel) {
    return (device.threads_per_block <= 0 || kernel.threads_per_block <= device.threads_per_block) &&
           (device.shared_memory_bytes <= 0 || kernel.shared_bytes <= device.shared_memory_bytes);
  });
}

TUNEWRIGHT_INLINE Penalties penalties(const GpuSymbols& s, double registers, const GpuDevice& device) {
  Penalties p;
  double available = device.registers_per_thread;
  if (device.registers_per_block > 0) {
    const double share = device.registers_per_block / s.threads_per_block;
    available = available > 0 ? std::min(available, share) : share;
  }
  if (available > 0 && registers > 0) p.l0_memory = std::min(available / registers, 1.0);
  if (s.registers_per_thread > 0) p.l0_compute = 1 + s.instances_per_thread / s.registers_per_thread;
  const double warps = std::ceil(s.threads_per_block / device.warp_size);
  p.l1_compute = wave_utilisation(warps, device.sub_partitions);
  p.warp_occupancy = s.threads_per_block / (warps * device.warp_size);
  p.l2_compute = wave_utilisation(s.blocks, device.multiprocessors * device.active_blocks);
  return p;
}

TUNEWRIGHT_INLINE StatementLatency released_latency(const ReleasedRow& row, const GpuDevice& device) {
  constexpr double register_cap = 128;  // for every device
  const double warps = row.threads / device.warp_size;
  const double whole_warps = std::ceil(warps);
  const double thread_factor = 1 + 1 / row.reuse();
  const double spills = std::max(1.0, row.register_usage / register_cap);
  const double at_once = device.multiprocessors * device.active_blocks;
  const bool few = row.blocks < at_once;
  const double peak = few ? wave_utilisation(row.blocks * std::min(whole_warps, device.sub_partitions),
                                             device.sub_partitions * device.multiprocessors)
                          : wave_utilisation(row.blocks, at_once);
  const double gflops = device.peak_gflops * peak * (warps / whole_warps) / spills;
  constexpr double elements_per_gb = 1024.0 * 1024 * 1024;  // elements are counted like bytes
  return {row.flops() * thread_factor / gflops / 1e9,
          row.device_memory_elements / (device.peak_gb_per_s * elements_per_gb)};
}

}  // namespace tunewright::drafts

#endif
