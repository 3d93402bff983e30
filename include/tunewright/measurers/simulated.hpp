// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
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

/// An analytic machine: tells the latency of a loop nest without compiling or running it, for studies of search
/// policies that must be exact, repeatable and quick. Tasks for a GPU target meet an analytic GPU, others an
/// analytic CPU.
///
///   measurers::Simulated machine;
///   Tuner<recipes::Ansor<spaces::MultiLevelTiling, measurers::Simulated>> tuner{
///       {.measurer = machine, .clock = machine.clock}};
///
/// On the CPU each statement costs what is longest, plus a quarter of the rest:
///   pipes     arithmetic, loads and stores of the innermost unrolled and vectorized loops; operands are
///             loaded once a tile, accumulators stay in registers while they fit, chains of updates wait;
///   tensors   instructions of the target's units, in place of the pipes of the loops they stand for: products of tile
///             registers and of rows, loads of their factors and sums, copies into the order that they read;
///   branches  of a boundary: a condition each time the loops are entered that decide it, unless code without
///             loops does;
///   caches    for L1, L2 and the last level: the lines that the first loop whose footprint does not fit
///             reaches, each time it is entered.
/// Loops cost a step unless unrolled, parallel loops a fork and their longest share of iterations. The nest is
/// the one that code is generated for, `loops::prepare_for_codegen`: zeros inlined into sums are left out where
/// the lanes of a vector share them, by one condition a tile in the interior and one by one on the boundary,
/// each for its share of the iterations.
///
/// On the GPU each kernel adds up, for a block, what its statements ask of the pipes of a multiprocessor:
///   issue       every instruction of every warp, arithmetic at the rate of the target's peak;
///   banks       shared memory: the words of a warp that fall into the busiest of 32 banks;
///   transfers   global memory: the sectors of 32 bytes that a warp touches.
/// Operands are loaded once a tile of unrolled loops; accumulators, operands and shared memory decide how many
/// blocks are resident. Copies to shared memory that run d tiles ahead add to these, and the latency of a
/// lone warp is the longer of what it computes and of 1/d of what it fetches, with one barrier a tile instead
/// of two. Blocks run in waves, a wave takes the longest pipe of its blocks plus a quarter of the rest, or
/// the latency of a lone warp where there are too few to hide it. Beside that, memory moves what all blocks
/// request from the second cache, and from device memory once where a buffer fits that cache.
///
/// What it cannot tell: real latencies of any real machine; conflicts between cache sets, prefetching, TLBs;
/// reuse between statements (a producer computed near its reader saves memory, but not the traffic between
/// the two); what is in a cache since the last run, so that small problems wait for memory as no repeated
/// measurement does; guards of tiles that do not divide: those that reach beyond the end are taken to be computed
/// in full, those that lie beyond it are left out; the share of a boundary that one thread has; the quality of
/// generated code; on GPUs also divergence of warps, replays of the first cache, clocks that depend on power.
/// Correct results are taken for granted.
///
/// Models:      StreamingMeasurerFor<loops::LoopNest>, IdentifiedMeasurer.
/// Errors:      a nest beyond the static limits of its target is a `Fault::InvalidSchedule`.
/// Cost:        tens of microseconds a program, up to a hundred with padding; each passes `trial` on the virtual clock.
/// Determinism: integer arithmetic on the nest alone: bit-identical anywhere, at any number of threads.
struct Simulated {
  double frequency_hz = 2.5e9;  ///< of the CPU
  Seconds trial{0.1};           ///< what a measurement is said to take
  simulated::Prices prices{};
  simulated::GpuPrices gpu_prices{};
  loops::CpuLimits limits{};
  VirtualClock clock{};

  [[nodiscard]] std::string identity() const { return "simulated cpu 3, gpu 1"; }

  /// Seconds of one run of a nest within limits; infinity where a GPU has no room for a block of it.
  [[nodiscard]] Seconds latency(const loops::LoopNest& nest, const Target& target) const;

  [[nodiscard]] std::vector<Outcome> measure(const Task& task, std::span<const loops::LoopNest> programs,
                                             const OutcomeSink& sink = {}) const;

  /// What measuring one nest gives.
  [[nodiscard]] Outcome outcome(const Target& target, const loops::LoopNest& nest) const;
};

}  // namespace tunewright::measurers

#if TUNEWRIGHT_DEFINES(simulated)

#include "tunewright/measurers/simulated/gpu_machine.hpp"
#include "tunewright/measurers/simulated/machine.hpp"

namespace tunewright::measurers {

TUNEWRIGHT_INLINE Seconds Simulated::latency(const loops::LoopNest& nest, const Target& target) const {
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
