// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <concepts>
#include <span>

#include "tunewright/core/task.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/drafts/concept.hpp"
#include "tunewright/drafts/lowered.hpp"
#include "tunewright/drafts/symbol_analyzer/cpu_latency.hpp"
#include "tunewright/drafts/symbol_analyzer/gpu_device.hpp"
#include "tunewright/drafts/symbol_analyzer/gpu_symbols.hpp"
#include "tunewright/loops/nest.hpp"
#include "tunewright/spaces/concept.hpp"

namespace tunewright::drafts {

/// A lower bound for the time of a program, independent of its use of registers, threads and inner caches: the time of
/// its operations at peak, or of its tiles' traffic at memory bandwidth.
///
///   L = max(operations / peak, bytes / bandwidth),   score = 1 / L
///
/// On a CPU, statements that tensor instructions compute count at the peak of these instructions. On a GPU, bytes are
/// those that blocks load and store; on a CPU, those that pass the last-level cache in a run that starts with an empty
/// cache. If all buffers stay in the cache between runs, later runs can take less.
///
/// Paper:       Williams, Waterman and Patterson, Roofline, Communications of the ACM 52(4), 2009.
/// Models:      DraftModelFor<S> for every space whose program is a loops::LoopNest.
/// Units:       score in 1/s.
/// Cost:        that of `SymbolAnalyzer`.
/// Determinism: that of `SymbolAnalyzer`.
/// Errors:      `std::invalid_argument` for a GPU target without peak rates and for options out of range; for programs
///              whose indices have more than 12 terms, or with more than 64 nested loops, as `SymbolAnalyzer`.
/// Deviates:    operations and bytes are those of the schedule, including idle parts of tiles, not those of the task: a
///              bound that is equal for all candidates would not rank them. Bytes on a CPU include what is fetched in
///              vain between pieces of rows (`GrowingFootprint`), an estimate.
struct Roofline {
  CpuCore core{};  ///< for CPUs

  /// A function that maps nests, or summaries, to modelled seconds. It owns working memory and is reused for many
  /// programs; each thread needs its own.
  [[nodiscard]] auto for_target(const Target& target) const {
    return [draft = *this, target, workspace = prepare(target)](const auto& program) mutable {
      return draft.latency_s(program, target, workspace);
    };
  }

  /// See ProgramDraftFor.
  [[nodiscard]] auto score_of(const Task& task) const {
    return [latency_s = for_target(task.target)](const auto& program) mutable {
      return drafts::score_of(latency_s, program);
    };
  }

  template <SearchSpace S>
    requires std::convertible_to<program_t<S>, loops::LoopNest>
  void score(const S& space, const Task& task, std::span<const config_t<S>> configs, std::span<float> score) const {
    score_configurations(space, task, configs, score, for_target(task.target));
  }

  /// Minimum seconds of one run.
  [[nodiscard]] double latency_s(const loops::LoopNest& nest, const Target& target) const {
    return for_target(target)(nest);
  }

 private:
  struct Workspace {
    GpuDevice device{};
    GpuSymbolReader gpu{};
    CpuAnalysis cpu;
  };

  [[nodiscard]] Workspace prepare(const Target& target) const;

  template <class Program>
  [[nodiscard]] double latency_s(const Program& nest, const Target& target, Workspace& w) const;
};

}  // namespace tunewright::drafts

#if TUNEWRIGHT_DEFINES(drafts)

namespace tunewright::drafts {

TUNEWRIGHT_INLINE Roofline::Workspace Roofline::prepare(const Target& target) const {
  check(core, "Roofline");
  Workspace workspace{.cpu = {target, core}};
  if (target.kind == DeviceKind::Gpu) workspace.device = gpu_device(target);
  return workspace;
}

template <class Program>
double Roofline::latency_s(const Program& nest, const Target& target, Workspace& w) const {
  if (target.kind == DeviceKind::Gpu) {
    double flops = 0, bytes = 0;
    for (const GpuSymbols& s : w.gpu.symbols(nest)) {
      flops += s.flops;
      bytes += s.bytes();
    }
    return std::max(flops / (w.device.peak_gflops * 1e9), bytes / (w.device.peak_gb_per_s * 1e9));
  }
  const Roof roof = w.cpu.roof(nest);
  const double moving = roof.memory_bytes / core.bytes_per_cycle.back();
  return std::max(roof.peak_cycles, moving) / core.frequency_hz;
}

#if defined(TUNEWRIGHT_SEPARATE_COMPILATION)
template double Roofline::latency_s(const loops::LoopNest&, const Target&, Workspace&) const;
template double Roofline::latency_s(const loops::NestSummary&, const Target&, Workspace&) const;
#endif

}  // namespace tunewright::drafts

#endif
