// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tunewright/core/clock.hpp"
#include "tunewright/core/outcome.hpp"
#include "tunewright/core/task.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/loops/limits.hpp"
#include "tunewright/loops/nest.hpp"
#include "tunewright/measurers/concept.hpp"
#include "tunewright/measurers/simulated/cpu_prices.hpp"
#include "tunewright/measurers/simulated/gpu_prices.hpp"

namespace tunewright::measurers {

/// An analytic machine: computes the latency of a loop nest without compiling or running it, for studies of search
/// policies that must be exact, repeatable and quick. Tasks for a GPU target use an analytic GPU, others an analytic
/// CPU.
///
///   measurers::Simulated machine;
///   Tuner<recipes::Ansor<spaces::MultiLevelTiling, measurers::Simulated>> tuner{
///       {.measurer = machine, .clock = machine.clock}};
///
/// On the CPU, each statement costs its slowest resource plus a quarter of the others:
///   pipes     arithmetic, loads and stores of the innermost unrolled and vectorized loops (the tile): operands are
///             loaded once per tile, accumulators stay in registers while they fit, chains of updates wait;
///   tensors   instructions of the target's tensor units, in place of the pipes of the loops that they replace:
///             products of tile registers and of rows, loads of factors and sums, copies into the order that they read;
///   branches  at a boundary: one condition each time the loops that decide it are entered, unless straight-line code
///             decides it;
///   caches    for L1, L2 and the last level: the lines that the first loop whose footprint does not fit touches, each
///             time it is entered; none for a cache that holds all buffers, because programs run repeatedly.
/// Loops cost one step per iteration unless they are unrolled; parallel loops cost a fork and the longest share of
/// their iterations. The machine evaluates the nest for which code is generated, `loops::prepare_for_codegen`: zeros
/// that are inlined into sums are skipped where the lanes of a vector share them, with one condition per tile in the
/// interior and one per term on the boundary, each weighted by its share of the iterations.
///
/// On the GPU, each kernel adds up, per block, the load that its statements put on the pipes of a multiprocessor:
///   issue       every instruction of every warp, arithmetic at the rate of the target's peak;
///   banks       shared memory: the words of a warp that fall into the busiest of 32 banks;
///   transfers   global memory: the sectors of 32 bytes that a warp touches.
/// Operands are loaded once per tile of unrolled loops; accumulators, operands and shared memory determine the
/// occupancy. Copies to shared memory that run d tiles ahead add to these; the latency of a lone warp is then the
/// maximum of its computation and 1/d of its fetches, with one barrier per tile instead of two. Blocks run in waves: a
/// wave takes the slowest pipe of its blocks plus a quarter of the others, or the latency of a lone warp if there are
/// too few to hide it. Meanwhile memory moves what all blocks request from the L2 cache, and reads a buffer that fits
/// L2 only once from device memory.
///
/// Not modelled: real latencies of any real machine; conflicts between cache sets, prefetching, TLBs; reuse between
/// statements (a producer computed near its consumer saves memory, but not the traffic between the two); what a cache
/// that does not hold all buffers has since the last run; guards of tiles that do not divide (a tile that reaches
/// beyond the end is computed in full, one that lies beyond it is skipped); the share of a boundary that one thread
/// has; the quality of generated code; on GPUs also what L2 has since the last run, divergence of warps, replays of L1,
/// and clocks that depend on power. Results are assumed to be correct.
///
/// Models:      StreamingMeasurerFor<loops::LoopNest>, IdentifiedMeasurer.
/// Errors:      a nest that exceeds the static limits of its target is a `Fault::InvalidSchedule`;
///              `std::invalid_argument` for options out of range and for a GPU target without peak rates.
/// Cost:        tens of microseconds per program, up to a hundred with padding; each advances the virtual clock by
///              `trial`.
/// Determinism: integer arithmetic on the nest only: bit-identical on any machine and at any number of threads.
struct Simulated {
  double frequency_hz = 2.5e9;  ///< of the CPU, above 0
  Seconds trial{0.1};           ///< simulated time of one measurement
  simulated::Prices prices{};
  simulated::GpuPrices gpu_prices{};
  loops::CpuLimits limits{};
  VirtualClock clock{};

  /// Names the model, and machines other than the default one by what determines their latencies.
  [[nodiscard]] std::string identity() const;

  /// Seconds of one run of a nest within the limits; infinity if no block of it fits the GPU.
  [[nodiscard]] Seconds latency(const loops::LoopNest& nest, const Target& target) const;

  [[nodiscard]] std::vector<Outcome> measure(const Task& task, std::span<const loops::LoopNest> programs,
                                             const OutcomeSink& sink = {}) const;

  /// The outcome of measuring one nest.
  [[nodiscard]] Outcome outcome(const Target& target, const loops::LoopNest& nest) const;

 private:
  void check(const Target& target) const;
};

}  // namespace tunewright::measurers

#if TUNEWRIGHT_DEFINES(simulated)

#include "tunewright/core/latency.hpp"
#include "tunewright/core/require.hpp"
#include "tunewright/measurers/simulated/gpu_machine.hpp"
#include "tunewright/measurers/simulated/machine.hpp"

namespace tunewright::measurers {

TUNEWRIGHT_INLINE std::string Simulated::identity() const {
  const auto hash_of = [](const Simulated& machine) {
    StableHash h;
    h.add(machine.frequency_hz);
    machine.prices.add_to_hash(h);
    machine.gpu_prices.add_to_hash(h);
    for (const std::int64_t limit : {machine.limits.max_local_bytes, machine.limits.max_workspace_bytes,
                                     machine.limits.max_unrolled_statements, machine.limits.max_vector_extent})
      h.add(limit);
    return h.value();
  };
  const std::uint64_t hash = hash_of(*this);
  return "simulated cpu 4, gpu 3" + (hash == hash_of({}) ? "" : ", options " + to_hex(hash));
}

TUNEWRIGHT_INLINE void Simulated::check(const Target& target) const {
  constexpr const char* who = "measurers::Simulated";
  const auto frequency = [](const char* what, double value) {
    require(std::isfinite(value) && value > 0, who, what, value, "a finite frequency above 0");
  };
  const auto rate = [](const char* what, std::int64_t value) {
    require(value > 0, who, what, static_cast<double>(value), "at least 1");
  };
  require(is_duration(trial), who, "trial", trial.count(), "a finite number of seconds, 0 or more");
  if (target.kind != DeviceKind::Gpu) {
    frequency("frequency_hz", frequency_hz);
    rate("prices.cycle", prices.cycle);
    for (const auto& [bytes, ticks] : prices.bytes_per_tick) {
      rate("bytes in prices.bytes_per_tick", bytes);
      rate("ticks in prices.bytes_per_tick", ticks);
    }
    return;
  }
  frequency("gpu_prices.frequency_hz", gpu_prices.frequency_hz);
  rate("gpu_prices.cycle", gpu_prices.cycle);
  rate("gpu_prices.cache_speed", gpu_prices.cache_speed);
  if (!(target.peak_fp32_gflops > 0) || !(target.peak_gb_per_s > 0) || target.multiprocessors == 0) {
    throw std::invalid_argument(std::string(who) + ": target '" + target.name +
                                "' does not say its peak_fp32_gflops, peak_gb_per_s and multiprocessors; take "
                                "gpu_target(name), or fill them in");
  }
}

TUNEWRIGHT_INLINE Seconds Simulated::latency(const loops::LoopNest& nest, const Target& target) const {
  check(target);
  if (target.kind == DeviceKind::Gpu) {
    const simulated::Ticks ticks = simulated::GpuMachine(nest, target, gpu_prices).run();
    if (ticks == simulated::GpuMachine::never) return Seconds(std::numeric_limits<double>::infinity());
    return Seconds(static_cast<double>(ticks) / static_cast<double>(gpu_prices.cycle) / gpu_prices.frequency_hz);
  }
  const auto ticks = static_cast<double>(simulated::Machine(nest, target, prices).run());
  return Seconds(ticks / static_cast<double>(prices.cycle) / frequency_hz);
}

TUNEWRIGHT_INLINE std::vector<Outcome> Simulated::measure(const Task& task, std::span<const loops::LoopNest> programs,
                                                          const OutcomeSink& sink) const {
  check(task.target);
  std::vector<Outcome> outcomes;
  outcomes.reserve(programs.size());
  for (const loops::LoopNest& nest : programs) {
    outcomes.push_back(outcome(task.target, nest));
    clock.advance(trial);
    if (sink) sink(outcomes.size() - 1, outcomes.back());
  }
  return outcomes;
}

TUNEWRIGHT_INLINE Outcome Simulated::outcome(const Target& target, const loops::LoopNest& nest) const {
  Outcome result;
  result.run_time = trial;
  const std::string_view exceeded = loops::exceeded_limit(nest, target, limits);
  if (!exceeded.empty()) {
    result.result = Failure{Fault::InvalidSchedule, std::string(exceeded)};
    return result;
  }
  Timing timing;
  timing.median = latency(nest, target);
  if (std::isinf(timing.median.count())) {
    result.result = Failure{Fault::InvalidSchedule, "a multiprocessor has no room for one block"};
    return result;
  }
  timing.repeats = {timing.median};
  timing.stopped = StopReason::Precise;
  result.result = std::move(timing);
  return result;
}

}  // namespace tunewright::measurers

#endif
