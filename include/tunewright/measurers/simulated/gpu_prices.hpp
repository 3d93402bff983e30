// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tunewright/core/hash.hpp"
#include "tunewright/measurers/simulated/accesses.hpp"

namespace tunewright::measurers::simulated {

/// Prices of a multiprocessor with four schedulers, per instruction of a warp unless stated otherwise. The target has
/// the rates of arithmetic and memory.
struct GpuPrices {
  Ticks cycle = 16;
  double frequency_hz = 1.5e9;  ///< nominal: the target's peaks are divided by it
  Ticks issue = 4;
  std::int64_t division = 8;  ///< instructions per division or square root
  Ticks function = 64;        ///< exp, tanh, ...
  Ticks bank_step = 16;       ///< 32 words in distinct banks of shared memory
  Ticks sector = 8;           ///< 32 bytes between a multiprocessor and L2
  Ticks barrier = 16 * 30;    ///< per block
  Ticks loop_step = 12;       ///< per iteration of a loop that is not unrolled
  Ticks arithmetic_latency = 16 * 4;
  Ticks shared_latency = 16 * 25;
  Ticks global_latency = 16 * 450;
  Ticks launch = 16 * 4500;                   ///< per kernel
  std::int64_t cache_speed = 3;               ///< bandwidth of L2 relative to device memory
  std::int64_t unrolled = 64;                 ///< instances of innermost loops that a compiler unrolls by itself
  std::int64_t unrolled_sums = 1024;          ///< the same for updates of registers, which `codegen::cuda` unrolls
  std::int64_t terms_at_a_time = 2;           ///< of unrolled sums whose operands are held in registers
  std::int64_t registers_for_addresses = 24;  ///< per thread, in addition to accumulators and operands

  void add_to_hash(StableHash& h) const {
    for (const Ticks price : {cycle, issue, function, bank_step, sector, barrier, loop_step, arithmetic_latency,
                              shared_latency, global_latency, launch})
      h.add(price);
    for (const std::int64_t number :
         {division, cache_speed, unrolled, unrolled_sums, terms_at_a_time, registers_for_addresses})
      h.add(number);
    h.add(frequency_hz);
  }
};

}  // namespace tunewright::measurers::simulated
