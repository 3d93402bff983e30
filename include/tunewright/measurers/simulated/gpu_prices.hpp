// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tunewright/measurers/simulated/accesses.hpp"

namespace tunewright::measurers::simulated {

/// Prices of a multiprocessor with four schedulers, of one instruction of a warp unless said otherwise. The
/// rates of arithmetic and of memory are the target's.
struct GpuPrices {
  Ticks cycle = 16;
  double frequency_hz = 1.5e9;  ///< nominal: peaks of the target are divided by it
  Ticks issue = 4;
  std::int64_t division = 8;  ///< instructions of a division or square root
  Ticks function = 64;        ///< exp, tanh, ..
  Ticks bank_step = 16;       ///< of 32 words in distinct banks of shared memory
  Ticks sector = 8;           ///< of 32 bytes between a multiprocessor and its second cache
  Ticks barrier = 16 * 30;    ///< of a block
  Ticks loop_step = 12;       ///< of a loop that is not unrolled
  Ticks arithmetic_latency = 16 * 4;
  Ticks shared_latency = 16 * 25;
  Ticks global_latency = 16 * 450;
  Ticks launch = 16 * 4500;                   ///< of a kernel
  std::int64_t cache_speed = 3;               ///< bandwidth of the second cache, in bandwidths of device memory
  std::int64_t unrolled = 64;                 ///< instances of innermost loops that a compiler unrolls unasked
  std::int64_t unrolled_sums = 512;           ///< of those that add to registers: `codegen::cuda` writes them out
  std::int64_t terms_at_a_time = 2;           ///< of unrolled sums, whose operands wait in registers
  std::int64_t registers_for_addresses = 24;  ///< a thread, besides accumulators and operands
};

}  // namespace tunewright::measurers::simulated
