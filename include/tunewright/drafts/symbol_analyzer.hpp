// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "tunewright/core/task.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/drafts/concept.hpp"
#include "tunewright/drafts/lowered.hpp"
#include "tunewright/drafts/symbol_analyzer/cpu_latency.hpp"
#include "tunewright/drafts/symbol_analyzer/gpu_device.hpp"
#include "tunewright/drafts/symbol_analyzer/gpu_hierarchy.hpp"
#include "tunewright/drafts/symbol_analyzer/gpu_latency.hpp"
#include "tunewright/drafts/symbol_analyzer/gpu_symbols.hpp"
#include "tunewright/loops/nest.hpp"
#include "tunewright/spaces/concept.hpp"

namespace tunewright::drafts {

/// Pruner's analyser: estimates the time of a program from a few symbols of its statements and penalties for each level
/// of the machine. Has no trained parameters.
///
///   Hierarchical  issue, arithmetic, shared memory, transfers and latency of each kernel: see `GpuHierarchy`
///   Printed    L = sum over statements of (L_c + L_m)
///              L_c = S8 / (T_p * P_l0,c * P_l1,c * alpha_l1 * P_l2,c)
///              L_m = S5 / (T_m * P_l0,m * P_l1,m * P_l2,m)
///   Released   L = sum over stored buffers of max(t_c, t_m)
///              t_c = C * (1 + 1/r) / (T_p * peak * warp) * max(1, R / 128)      t_m = Q / (T_m * 2^30)
///   on a CPU   see `CpuAnalysis`, for every form
///   score      1 / L
///
/// The symbols S1 .. S8 are in `GpuSymbols`, C, r, R and Q in `ReleasedRow`.
///
/// Paper:       Qiao et al., Pruner, ASPLOS 2025, doi:10.1145/3676641.3716269, section 4.1.
/// Models:      DraftModelFor<S> for every space whose program is a loops::LoopNest.
/// Units:       score in 1/s of the modelled run; a ranking, not a prediction.
/// Cost:        some microseconds per candidate. If the space summarizes schedules, nothing is lowered, neither in
///              `score` nor in a session whose filter reads summaries, such as `filters::StaticLimits`.
/// Determinism: floating-point operations in a fixed order: equal nests have equal scores, at any number of threads.
/// Errors:      `std::invalid_argument` for a GPU target without peak rates and for options out of range. A program
///              scores -infinity if it cannot be lowered, exceeds the threads or shared memory per block of the device,
///              has an index with more than 12 terms (`FlatIndex::max_terms`), or more than 64 nested loops;
///              `latency_s` throws `NoRoom` and `std::invalid_argument` for the last two.
/// Deviates:    Hierarchical is ours: the paper's two kinds of time ignore instructions, shared memory and latency, so
///              where these decide, its ranking of programs of one task is random.
///              Printed: the paper does not print m_l0, m_l1, pu_l1 and n_l2; here they are the registers available to
///              a thread, the shared memory of a block, the four schedulers of a multiprocessor, and 32 bytes. P_l0,m
///              is that of the kernel, because products have no S5 and copies no S1. P_l1,m is 1, because programs
///              whose blocks need more than the shared memory do not run. Memory is in bytes.
///              alpha_l1, whose place the paper does not give, is where the released code has it.
///              Released: the code reads only the first buffer of a hash table; here all buffers are read.
struct SymbolAnalyzer {
  enum class Form : std::uint8_t { Hierarchical, Printed, Released };
  enum class Combine : std::uint8_t { Sum, Max };  ///< of a statement's compute and memory times

  Form form = Form::Hierarchical;     ///< for GPUs
  std::optional<Combine> combine{};   ///< for Printed and Released; empty: as in these forms
  std::optional<GpuDevice> device{};  ///< for Printed and Released; empty: the target of the task
  Multiprocessor multiprocessor{};    ///< for Hierarchical
  CpuCore core{};                     ///< for CPUs

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

  /// Modelled seconds of one run; infinity for a program that the device cannot run.
  [[nodiscard]] double latency_s(const loops::LoopNest& nest, const Target& target) const {
    return for_target(target)(nest);
  }

 private:
  struct Workspace {
    GpuDevice device{};
    GpuSymbolReader gpu{};
    GpuHierarchy levels{};
    CpuAnalysis cpu;
  };

  [[nodiscard]] Workspace prepare(const Target& target) const;

  template <class Program>
  [[nodiscard]] double latency_s(const Program& nest, const Target& target, Workspace& w) const;
};

}  // namespace tunewright::drafts

#if TUNEWRIGHT_DEFINES(drafts)

namespace tunewright::drafts {

TUNEWRIGHT_INLINE SymbolAnalyzer::Workspace SymbolAnalyzer::prepare(const Target& target) const {
  constexpr const char* who = "SymbolAnalyzer";
  check(core, who);
  check(multiprocessor, who);
  if (device) check(*device, who);
  Workspace workspace{.cpu = {target, core}};
  const bool is_given = device && form != Form::Hierarchical;
  if (target.kind == DeviceKind::Gpu) workspace.device = is_given ? *device : gpu_device(target);
  return workspace;
}

template <class Program>
double SymbolAnalyzer::latency_s(const Program& nest, const Target& target, Workspace& w) const {
  if (target.kind == DeviceKind::Cpu) return w.cpu.cycles(nest) / core.frequency_hz;
  if (form == Form::Hierarchical) {
    const double levels_s = w.levels.latency_s(nest, target, multiprocessor);
    return runs_on(w.levels.kernels(), w.device) ? levels_s : std::numeric_limits<double>::infinity();
  }
  double sum = 0;
  const auto add = [&](const StatementLatency& l, Combine usual) {
    sum += combine.value_or(usual) == Combine::Sum ? l.compute_s + l.memory_s : std::max(l.compute_s, l.memory_s);
  };
  if (form == Form::Printed) {
    const std::span<const GpuSymbols> symbols = w.gpu.symbols(nest);
    printed_latencies(symbols, w.device, [&](const StatementLatency& l) { add(l, Combine::Sum); });
  } else {
    for (const ReleasedRow& row : w.gpu.released_rows(nest)) add(released_latency(row, w.device), Combine::Max);
  }
  if (!runs_on(w.gpu.kernels(), w.device)) return std::numeric_limits<double>::infinity();
  return sum;
}

#if defined(TUNEWRIGHT_SEPARATE_COMPILATION)
template double SymbolAnalyzer::latency_s(const loops::LoopNest&, const Target&, Workspace&) const;
template double SymbolAnalyzer::latency_s(const loops::NestSummary&, const Target&, Workspace&) const;
#endif

}  // namespace tunewright::drafts

#endif
