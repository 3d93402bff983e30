// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/codegen/llvm.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/core/outcome.hpp"
#include "tunewright/core/task.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/loops/nest.hpp"
#include "tunewright/measurers/concept.hpp"
#include "tunewright/measurers/protocol.hpp"
#include "tunewright/measurers/reference_data.hpp"

namespace tunewright::measurers {

class Sandbox;
struct WorkerParts;

/// Parts of a worker that loads object files with LLVM ORC and runs parallel loops on pinned threads.
[[nodiscard]] WorkerParts orc_worker_parts();

namespace orc {

struct State;  // orc_state.hpp

[[nodiscard]] std::shared_ptr<Sandbox> new_sandbox();
[[nodiscard]] std::shared_ptr<State> new_state();

}  // namespace orc

/// Compiles loop nests with LLVM in this process and measures them in a worker process.
///
/// Compilation runs at the same time on the processors that measuring leaves free. If it leaves none, as when tuning
/// for all cores, batches are compiled and measured alternately in turns of `turn` candidates, so that compilation does
/// not disturb the timing.
///
/// Models:      StreamingMeasurerFor<loops::LoopNest>, ConfirmingMeasurerFor<loops::LoopNest>, IdentifiedMeasurer,
///              BestAwareMeasurer.
/// Units:       latencies are seconds per call; `Outcome::compile_time` is the time on one thread.
/// Cost:        a fork at construction (construct it before starting threads, see `Sandbox`); reference values once per
///              task.
/// Determinism: inputs are a function of `reference.seed`; latencies are measurements.
/// Errors:      `std::invalid_argument` for an invalid protocol, for a task without a graph, for another kind of device
///              or family of processors, without processors, or for more threads than there are processors. An error of
///              one program is its `Failure`.
/// Example:     examples/03_measuring_honestly.cpp shows the protocol and the faults.
struct OrcJit {
  Protocol protocol = {};
  codegen::CompileOptions compile = {};
  ReferenceData reference = {};
  std::vector<int> processors = host_processors();  ///< that may be used; kernels run on the first of them
  unsigned compile_threads = 0;                     ///< 0: one per processor left for compiling
  /// Candidates per turn if no processor is free. Turns are large because at the end of each all threads wait for the
  /// slowest compilation; a batch begins with a turn of `first_turn`, and each turn is twice as large as the one
  /// before, so that the first latencies, often of the most promising candidates, are known soon.
  std::size_t turn = 64;
  std::size_t first_turn = 8;
  std::size_t task_cache_bytes = std::size_t{256} << 20;  ///< limit of the cached data of tasks

  // Run-time state, shared by copies of a measurer.
  std::shared_ptr<Sandbox> sandbox = orc::new_sandbox();
  std::shared_ptr<orc::State> state = orc::new_state();

  std::vector<Outcome> measure(const Task& task, std::span<const loops::LoopNest> programs,
                               const OutcomeSink& sink = {});

  /// Sets the best latency known for `task`, e.g. from a journal.
  void note_best(const Task& task, Seconds latency);

  /// Identifies what determines latencies: compiler, processor and timing protocol.
  [[nodiscard]] std::string identity() const;

  /// Measures the best candidates again, alternately: fairer among close ones than measurements that are minutes apart.
  /// Long kernels get fewer rounds, at least three: `Protocol::budget_seconds` are enough for each.
  [[nodiscard]] std::vector<Outcome> confirm(const Task& task, std::span<const loops::LoopNest> programs,
                                             unsigned rounds = 11);

  /// Measures a compiled kernel, e.g. a library function for comparison, with the same protocol and checks.
  [[nodiscard]] Outcome measure_kernel(const Task& task, const codegen::Kernel& kernel);
  /// Measures several compiled kernels alternately: their ratios are valid even on a machine whose speed drifts.
  [[nodiscard]] std::vector<Outcome> measure_interleaved(const Task& task, std::span<const codegen::Kernel> kernels,
                                                         unsigned rounds = 11);

  /// Compiles one program to machine code as `measure` does. Throws the exceptions of the code generator.
  [[nodiscard]] codegen::Kernel compile_kernel(const Task& task, const loops::LoopNest& program);

 private:
  struct Split {
    std::vector<int> run;
    std::vector<int> compile;  ///< empty if measuring uses all
  };
  [[nodiscard]] Split split_processors(const Task& task) const;

  /// Prepares the sandbox for kernels of `task`.
  void prepare(const Task& task);
};

}  // namespace tunewright::measurers

#if TUNEWRIGHT_DEFINES(orc)

#include "tunewright/codegen/llvm_jit.hpp"
#include "tunewright/core/latency.hpp"
#include "tunewright/measurers/orc_state.hpp"
#include "tunewright/measurers/sandbox.hpp"
#include "tunewright/measurers/sandbox/pinned_runtime.hpp"

namespace tunewright::measurers {

TUNEWRIGHT_INLINE std::shared_ptr<Sandbox> orc::new_sandbox() { return std::make_shared<Sandbox>(orc_worker_parts()); }
TUNEWRIGHT_INLINE std::shared_ptr<orc::State> orc::new_state() { return std::make_shared<State>(); }

TUNEWRIGHT_INLINE void OrcJit::note_best(const Task& task, Seconds latency) {
  state->best[best_key(task, protocol)] = latency;
}

TUNEWRIGHT_INLINE std::string OrcJit::identity() const { return identity_of(host_target(), compile, protocol); }

TUNEWRIGHT_INLINE codegen::Kernel OrcJit::compile_kernel(const Task& task, const loops::LoopNest& program) {
  return state->compilers.at_least(1, task.target, compile).front()->compile(program);
}

TUNEWRIGHT_INLINE WorkerParts orc_worker_parts() {
  WorkerParts parts;
  // Created with the first object file, so only in the worker: the tuner's own process never needs it.
  parts.load = [linker = std::shared_ptr<codegen::KernelLoader>()](std::span<const char> object,
                                                                   const std::string& symbol) mutable -> LoadedObject {
    if (!linker) linker = std::make_shared<codegen::KernelLoader>();
    codegen::Kernel kernel;
    kernel.symbol = symbol;
    kernel.object = std::make_shared<const std::vector<char>>(object.begin(), object.end());
    auto loaded = std::make_shared<codegen::LoadedKernel>(linker->load(kernel));
    return {loaded->function(), loaded};
  };
  parts.runtime = pinned_runtime;
  return parts;
}

TUNEWRIGHT_INLINE std::vector<Outcome> OrcJit::measure(const Task& task, std::span<const loops::LoopNest> programs,
                                                       const OutcomeSink& sink) {
  validate(protocol);
  prepare(task);
  const Split split = split_processors(task);
  const bool overlap = !split.compile.empty();
  const std::span<const int> compile_on =
      overlap ? std::span<const int>(split.compile) : std::span<const int>(processors);
  const std::size_t threads = compile_threads != 0 ? compile_threads : std::max<std::size_t>(1, compile_on.size());
  const CpuCompileTeam::Compilers& compilers = state->compilers.at_least(threads, task.target, compile);
  Seconds& best = state->best.try_emplace(best_key(task, protocol), Seconds(0)).first->second;

  std::vector<Outcome> outcomes(programs.size());
  std::size_t step = overlap ? programs.size() : std::min(first_turn, turn);
  for (std::size_t begin = 0, count = 0; begin < programs.size(); begin += count, step = std::min(2 * count, turn)) {
    count = std::clamp<std::size_t>(step, 1, programs.size() - begin);
    CpuCompileTeam team(programs.subspan(begin, count), compilers, threads, protocol.compile_timeout_seconds,
                        compile_on);
    if (!overlap) team.wait_for_all();
    for (std::size_t i = 0; i < count; ++i) {
      Compiled compiled = team.wait(i);
      Outcome& outcome = outcomes[begin + i];
      if (auto* failure = std::get_if<Failure>(&compiled.result)) {
        outcome.result = std::move(*failure);
      } else {
        outcome = sandbox->measure(std::get<codegen::Kernel>(compiled.result), protocol, best);
      }
      outcome.compile_time = compiled.time;
      best = best_with(best, outcome);
      if (sink) sink(begin + i, outcome);
    }
  }
  return outcomes;
}

TUNEWRIGHT_INLINE std::vector<Outcome> OrcJit::confirm(const Task& task, std::span<const loops::LoopNest> programs,
                                                       unsigned rounds) {
  validate(protocol);
  prepare(task);
  const std::size_t threads = compile_threads != 0 ? compile_threads : processors.size();
  const CpuCompileTeam::Compilers& compilers = state->compilers.at_least(threads, task.target, compile);
  CpuCompileTeam team(programs, compilers, threads, protocol.compile_timeout_seconds, processors);
  team.wait_for_all();
  return measure_together(team, programs.size(), [&](std::span<const codegen::Kernel> kernels) {
    return sandbox->measure_interleaved(kernels, protocol, rounds, protocol.budget_seconds);
  });
}

TUNEWRIGHT_INLINE Outcome OrcJit::measure_kernel(const Task& task, const codegen::Kernel& kernel) {
  prepare(task);
  return sandbox->measure(kernel, protocol);
}

TUNEWRIGHT_INLINE std::vector<Outcome> OrcJit::measure_interleaved(const Task& task,
                                                                   std::span<const codegen::Kernel> kernels,
                                                                   unsigned rounds) {
  validate(protocol);
  prepare(task);
  return sandbox->measure_interleaved(kernels, protocol, rounds);
}

TUNEWRIGHT_INLINE OrcJit::Split OrcJit::split_processors(const Task& task) const {
  const std::size_t running = std::min<std::size_t>(task.target.threads, processors.size());
  const auto middle = processors.begin() + static_cast<std::ptrdiff_t>(running);
  return {{processors.begin(), middle}, {middle, processors.end()}};
}

TUNEWRIGHT_INLINE void OrcJit::prepare(const Task& task) {
  if (task.target.kind != DeviceKind::Cpu) {
    throw std::invalid_argument("task '" + task.name + "' is for the GPU '" + task.target.name +
                                "', and measurers::OrcJit runs kernels on CPUs; take measurers::Nvrtc or "
                                "measurers::SimtCheck, or make the task for host_target()");
  }
  if (family_of(task.target.isa) != host_family) {
    throw std::invalid_argument(
        "task '" + task.name + "' is for '" + task.target.name + "' (" + std::string(name(family_of(task.target.isa))) +
        "), and measurers::OrcJit runs kernels on this machine (" + std::string(name(host_family)) +
        "); measure on the machine itself, or take measurers::Simulated and codegen::export_kernel");
  }
  if (processors.empty()) {
    throw std::invalid_argument(
        "measurers::OrcJit has no processors to run on; give its member `processors` at least one");
  }
  if (task.target.threads > processors.size()) {
    throw std::invalid_argument("task '" + task.name + "' is for " + std::to_string(task.target.threads) +
                                " threads, and measurers::OrcJit has " + std::to_string(processors.size()) +
                                " processors: threads that take turns are not timed; ask for at most " +
                                std::to_string(processors.size()) +
                                " by with_threads, or give its member `processors` more");
  }
  sandbox->set_task(state->tasks.data_of(task, on_threads(reference, processors.size()), task_cache_bytes),
                    task.target.threads, split_processors(task).run);
}

}  // namespace tunewright::measurers

#endif
