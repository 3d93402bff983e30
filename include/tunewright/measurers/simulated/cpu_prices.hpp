// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "tunewright/core/hash.hpp"
#include "tunewright/measurers/simulated/accesses.hpp"

namespace tunewright::measurers::simulated {

/// Prices of a core with two vector pipes, two loads and one store per cycle.
struct Prices {
  Ticks cycle = 16;
  Ticks arithmetic = 8;  ///< per vector; a multiply-add is one operation
  Ticks division = 128;  ///< also square roots
  Ticks function = 320;  ///< exp, tanh, ...
  Ticks load = 8;
  Ticks store = 16;
  Ticks add_latency = 64;        ///< between dependent updates
  Ticks loop_step = 8;           ///< per iteration of a loop that is not unrolled, in addition to other work
  Ticks condition = 8;           ///< a correctly predicted branch on guards
  Ticks fork = 16 * 8000;        ///< starting and joining the threads of a parallel loop
  Ticks tile_row = 16;           ///< per row of a product of tile registers
  Ticks tile_latency = 52 * 16;  ///< between dependent products with the same accumulator
  Ticks line_load = 8;           ///< a row of 64 bytes into a tile register
  Ticks line_store = 16;
  Ticks byte_product = 8;   ///< per vector of 16 sums of four products
  Ticks bf16_product = 32;  ///< per vector of 16 sums of two products
  Ticks shuffle = 16;
  std::int64_t code_copies = 512;  ///< unrolled copies of a statement that fit the instruction cache
  /// Bytes per tick, as a fraction: L2 to L1, L3 to L2, and memory to L3 (shared by all threads).
  std::array<std::pair<std::int64_t, std::int64_t>, 3> bytes_per_tick{{{2, 1}, {1, 1}, {1, 2}}};

  void add_to_hash(StableHash& h) const {
    for (const Ticks price : {cycle, arithmetic, division, function, load, store, add_latency, loop_step, condition,
                              fork, tile_row, tile_latency, line_load, line_store, byte_product, bf16_product, shuffle})
      h.add(price);
    h.add(code_copies);
    for (const auto& [bytes, ticks] : bytes_per_tick) h.add(bytes).add(ticks);
  }
};

}  // namespace tunewright::measurers::simulated
