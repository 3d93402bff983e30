// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "tunewright/measurers/simulated/accesses.hpp"

namespace tunewright::measurers::simulated {

/// Prices of a core with two vector pipes, two loads and one store a cycle.
struct Prices {
  Ticks cycle = 16;
  Ticks arithmetic = 8;  ///< of a vector; multiply-add is one
  Ticks division = 128;  ///< square roots too
  Ticks function = 320;  ///< exp, tanh, ..
  Ticks load = 8;
  Ticks store = 16;
  Ticks add_latency = 64;        ///< of a chain of updates
  Ticks loop_step = 8;           ///< of a loop that is not unrolled, beside what else a core does
  Ticks condition = 8;           ///< of a branch on guards, foreseen
  Ticks fork = 16 * 8000;        ///< starting and joining the threads of a parallel loop
  Ticks tile_row = 16;           ///< of a product of tile registers
  Ticks tile_latency = 52 * 16;  ///< from one product to the next of the same accumulator
  Ticks line_load = 8;           ///< into a tile register, a row of 64 bytes
  Ticks line_store = 16;
  Ticks byte_product = 8;   ///< a vector of 16 sums of four products
  Ticks bf16_product = 32;  ///< a vector of 16 sums of two products
  Ticks shuffle = 16;
  std::int64_t code_copies = 512;  ///< unrolled copies of a statement that the instruction cache holds
  /// Bytes a tick moves, as a fraction, into L1 from L2, into L2 from L3, and from memory (shared by all
  /// threads).
  std::array<std::pair<std::int64_t, std::int64_t>, 3> bytes_per_tick{{{2, 1}, {1, 1}, {1, 2}}};
};

}  // namespace tunewright::measurers::simulated
