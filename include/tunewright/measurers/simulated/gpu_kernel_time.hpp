// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "tunewright/core/target.hpp"
#include "tunewright/loops/fragment_instructions.hpp"
#include "tunewright/loops/nest.hpp"
#include "tunewright/measurers/simulated/accesses.hpp"
#include "tunewright/measurers/simulated/gpu_prices.hpp"
#include "tunewright/measurers/simulated/warp.hpp"

namespace tunewright::measurers::simulated {

/// Sums over the statements of a kernel, per block unless stated otherwise.
struct KernelWork {
  std::int64_t blocks = 1;
  std::array<std::int64_t, 3> block{1, 1, 1};  ///< threads along x, y, z
  loops::FragmentInstructions instructions;    ///< of tensor cores
  std::int64_t shared_bytes = 0;
  std::int64_t accumulators = 0;  ///< registers per thread
  std::int64_t operands = 0;      ///< registers per thread; the maximum over statements
  Ticks issue = 0, arithmetic = 0, banks = 0, transfers = 0;
  Ticks latency = 0;                    ///< of a lone warp
  Ticks ahead = 0;                      ///< of its prefetches, for one tile each
  std::vector<std::int64_t> requested;  ///< per buffer: bytes requested by all blocks together

  [[nodiscard]] std::int64_t block_threads() const { return block[0] * block[1] * block[2]; }
  [[nodiscard]] std::int64_t warps() const { return program::ceil_div(block_threads(), warp_size); }
};

/// Computes the time of a kernel on a device from its work and the occupancy.
class GpuKernelTime {
 public:
  GpuKernelTime(const loops::LoopNest& nest, const Target& target, const GpuPrices& prices, const KernelWork& kernel)
      : nest_(nest), target_(target), prices_(prices), kernel_(kernel) {}

  /// The time of a kernel that does not fit the device.
  static constexpr Ticks never = std::numeric_limits<Ticks>::max() / 64;

  /// Blocks run in waves. In each, a multiprocessor is busy for the instructions of its blocks or, if these are too few
  /// to hide it, for the latency of one. Memory transfers overlap with that.
  [[nodiscard]] Ticks duration() const {
    const std::int64_t resident = resident_blocks();
    if (resident < 1) return never;
    const std::int64_t spilled = std::max<std::int64_t>(wanted_registers() - registers_of_thread(), 0);
    const auto with_spills = [&](Ticks ticks) { return ticks + times(ticks, 4 * spilled) / registers_of_thread(); };
    const std::array<Ticks, 4> pipes{kernel_.issue, kernel_.arithmetic, kernel_.banks, kernel_.transfers};
    const Ticks block = with_spills(overlapped(pipes)), alone = with_spills(std::max(kernel_.latency, kernel_.ahead));
    const auto wave = [&](std::int64_t blocks) { return std::max(times(blocks, block), alone); };
    const auto width = std::max<std::int64_t>(target_.multiprocessors, 1);
    const std::int64_t full = kernel_.blocks / (width * resident), rest = kernel_.blocks % (width * resident);
    Ticks computing = times(full, wave(resident));
    if (rest > 0) computing += wave(program::ceil_div(rest, width));

    std::int64_t from_memory = 0, from_cache = 0;
    for (loops::BufferId id = 0; id < kernel_.requested.size(); ++id) {
      const std::int64_t requested = kernel_.requested[id];
      const std::int64_t distinct = std::min(requested, nest_.buffers[id].bytes());
      const bool kept = distinct <= static_cast<std::int64_t>(target_.l2_bytes);
      from_cache += requested;
      from_memory += kept ? distinct : distinct + (requested - distinct) / 4;
    }
    const double per_cycle = target_.peak_gb_per_s * 1e9 / prices_.frequency_hz;
    const auto rate = std::max<std::int64_t>(std::llround(per_cycle * 1024), 1);  // bytes per 1024 cycles
    const std::array<Ticks, 3> parts{computing, times(from_memory, 1024 * prices_.cycle) / rate,
                                     times(from_cache, 1024 * prices_.cycle) / (prices_.cache_speed * rate)};
    return prices_.launch + overlapped(parts);
  }

 private:
  /// Occupancy: blocks that one multiprocessor runs at a time; 0 if a block does not fit. Unknown limits are skipped,
  /// but for `Target::resident_blocks_limit`. Ignores the 1 KiB of shared memory that CUDA reserves per
  /// block from compute capability 8.0 on (Ampere Tuning Guide).
  [[nodiscard]] std::int64_t resident_blocks() const {
    const std::int64_t threads = kernel_.warps() * warp_size;
    std::int64_t blocks = target_.resident_blocks_limit();
    const auto at_most = [&](std::uint64_t available, std::int64_t used) {
      if (available > 0 && used > 0) blocks = std::min(blocks, static_cast<std::int64_t>(available) / used);
    };
    at_most(target_.max_threads_per_multiprocessor, threads);
    at_most(target_.registers_per_multiprocessor, threads * std::min(wanted_registers(), registers_of_thread()));
    at_most(target_.shared_memory_per_multiprocessor_bytes, kernel_.shared_bytes);
    return blocks;
  }
  [[nodiscard]] std::int64_t wanted_registers() const {
    return kernel_.accumulators + kernel_.operands + prices_.registers_for_addresses;
  }
  /// Registers available per thread if one block is to fit. Further values are spilled.
  [[nodiscard]] std::int64_t registers_of_thread() const {
    std::int64_t most = target_.thread_registers_limit();
    for (const std::int64_t available : {target_.registers_per_block, target_.registers_per_multiprocessor}) {
      if (available > 0) most = std::min(most, available / (kernel_.warps() * warp_size));
    }
    return std::max<std::int64_t>(most, 1);
  }

  [[nodiscard]] static Ticks overlapped(std::span<const Ticks> parts) {
    Ticks longest = 0, all = 0;
    for (const Ticks part : parts) {
      longest = std::max(longest, part);
      all += part;
    }
    return longest + (all - longest) / 4;
  }

  const loops::LoopNest& nest_;
  const Target& target_;
  const GpuPrices& prices_;
  const KernelWork& kernel_;
};

}  // namespace tunewright::measurers::simulated
