// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>

#include "tunewright/core/require.hpp"
#include "tunewright/core/target.hpp"
#include "tunewright/drafts/symbol_analyzer/machine_numbers.hpp"
#include "tunewright/loops/operations.hpp"

namespace tunewright::drafts {

/// Assumed rates of the matrix units of a CPU core.
struct CpuTensorUnits {
  double tile_rows_per_cycle = 1;     ///< rows of products of tile registers
  double tile_latency_cycles = 52;    ///< between dependent products with the same accumulator
  double lines_loaded_per_cycle = 2;  ///< rows of 64 bytes into tile registers
  double lines_stored_per_cycle = 1;
  double byte_products_per_cycle = 2;    ///< vectors of 16 sums of four products
  double bf16_products_per_cycle = 0.5;  ///< vectors of 16 sums of two products
  double shuffles_per_cycle = 1;         ///< vectors
};

/// Assumed rates of a CPU core; caches, vector width and threads come from the target. The same for all machines,
/// because the draft only ranks, except for those whose units are narrower than their registers: see `on`.
struct CpuCore {
  double frequency_hz = 2.5e9;
  double vectors_per_cycle = 2;      ///< arithmetic; a multiply-add is one
  double division_cycles = 8;        ///< per vector
  double function_cycles = 20;       ///< exp, tanh, ...
  double condition_cycles = 0.125;   ///< per operation of a condition that all lanes share; many leave inner loops
  double loads_per_cycle = 2;        ///< vectors
  double stores_per_cycle = 1;       ///< vectors
  double update_latency_cycles = 4;  ///< between dependent updates of one accumulator
  double loop_step_cycles = 0.5;     ///< per iteration, in addition to the body
  double fork_cycles = 8000;         ///< starting and joining the threads of a parallel loop
  double unrolled_statements = 512;  ///< that fit the instruction cache
  /// Bytes per cycle from L2, from the last level and from memory, the last shared by all threads.
  std::array<double, 3> bytes_per_cycle{32, 16, 8};
  double late_share = 2;  ///< further time of bytes that were not fetched ahead, relative to that of others
  double overlap = 0.85;  ///< share of the other costs of a tile or a statement that the largest hides, in [0, 1]
  CpuTensorUnits tensor_units{};

  /// The core of `target`: arithmetic, loads and stores of vectors are slower where its units process a share of a
  /// register at a time. Bytes and scalar work take as long as on others, so such a core gains less from moving fewer
  /// of them. Tiles, and products of bfloat16, of which Zen 4 was measured to compute as many, keep their rates.
  [[nodiscard]] CpuCore on(const Target& target) const noexcept {
    CpuCore core = *this;
    const double share = target.vector_datapath_share();
    core.vectors_per_cycle *= share;
    core.division_cycles /= share;
    core.function_cycles /= share;
    core.loads_per_cycle *= share;
    core.stores_per_cycle *= share;
    core.tensor_units.byte_products_per_cycle *= share;
    core.tensor_units.shuffles_per_cycle *= share;
    return core;
  }

  /// Cycles of arithmetic per vector: `simple` simple operations, and the other operations of a body.
  [[nodiscard]] double cycles(double simple, const loops::BodyOperations& body) const noexcept {
    return simple / vectors_per_cycle + body.divisions * division_cycles + body.functions * function_cycles;
  }
};

/// Throws `std::invalid_argument`, which names `who`, for rates that are not above 0, cycles that are not 0 or more,
/// and an overlap outside [0, 1].
inline void check(const CpuCore& core, const char* who) {
  require(std::isfinite(core.frequency_hz) && core.frequency_hz > 0, who, "core.frequency_hz", core.frequency_hz,
          "a finite frequency above 0");
  const auto rate = [who](const char* what, double value) { require_rate(value, who, what); };
  const auto cost = [who](const char* what, double value) { require_cost(value, who, what); };
  rate("core.vectors_per_cycle", core.vectors_per_cycle);
  rate("core.loads_per_cycle", core.loads_per_cycle);
  rate("core.stores_per_cycle", core.stores_per_cycle);
  for (const double bytes : core.bytes_per_cycle) rate("core.bytes_per_cycle", bytes);
  cost("core.division_cycles", core.division_cycles);
  cost("core.function_cycles", core.function_cycles);
  cost("core.condition_cycles", core.condition_cycles);
  cost("core.update_latency_cycles", core.update_latency_cycles);
  cost("core.loop_step_cycles", core.loop_step_cycles);
  cost("core.fork_cycles", core.fork_cycles);
  cost("core.late_share", core.late_share);
  cost("core.unrolled_statements", core.unrolled_statements);
  require(core.overlap >= 0 && core.overlap <= 1, who, "core.overlap", core.overlap, "a share, 0 to 1");
  const CpuTensorUnits& units = core.tensor_units;
  rate("core.tensor_units.tile_rows_per_cycle", units.tile_rows_per_cycle);
  rate("core.tensor_units.lines_loaded_per_cycle", units.lines_loaded_per_cycle);
  rate("core.tensor_units.lines_stored_per_cycle", units.lines_stored_per_cycle);
  rate("core.tensor_units.byte_products_per_cycle", units.byte_products_per_cycle);
  rate("core.tensor_units.bf16_products_per_cycle", units.bf16_products_per_cycle);
  rate("core.tensor_units.shuffles_per_cycle", units.shuffles_per_cycle);
  cost("core.tensor_units.tile_latency_cycles", units.tile_latency_cycles);
}

}  // namespace tunewright::drafts
