// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/codegen/cuda.hpp"
#include "tunewright/core/hash.hpp"
#include "tunewright/core/outcome.hpp"
#include "tunewright/core/task.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/loops/nest.hpp"
#include "tunewright/measurers/compile_team.hpp"
#include "tunewright/measurers/concept.hpp"
#include "tunewright/measurers/nvrtc/compiler.hpp"
#include "tunewright/measurers/nvrtc/device_facts.hpp"
#include "tunewright/measurers/nvrtc/driver.hpp"
#include "tunewright/measurers/nvrtc/workers.hpp"
#include "tunewright/measurers/protocol.hpp"
#include "tunewright/measurers/reference_data.hpp"
#include "tunewright/measurers/sandbox/shared_task.hpp"
#include "tunewright/measurers/task_cache.hpp"

namespace tunewright::measurers {

namespace nvrtc {

using CompileTeam = measurers::CompileTeam<Compiler>;

/// What a measurer keeps between batches.
struct State {
  TaskCache<SharedTask> tasks;
  std::map<std::uint64_t, Seconds> best;
};

}  // namespace nvrtc

/// Compiles loop nests with NVRTC in this process and measures them on NVIDIA GPUs, in one worker process per device.
///
/// | what the kernel does                   | outcome                                                     |
/// | -------------------------------------- | ----------------------------------------------------------- |
/// | exceeds a limit of the device          | `InvalidSchedule`, before compiling where it is known then  |
/// | does not compile, or for another device | `DeviceCompileError`                                       |
/// | accesses memory outside its buffers    | `OutOfBounds`: the device traps, red zones are compared     |
/// | fails otherwise, or lacks memory       | `RunError`                                                  |
/// | leaves elements unwritten or wrong     | `WrongResult`                                               |
/// | exceeds `run_timeout_seconds`          | `RunTimeout`; the process is killed                         |
///
/// The worker loads the driver when something is measured: constructing a measurer needs no device and does not tell
/// whether there is one. A worker that a kernel broke is replaced together with its context. Times are taken on the
/// device, between events; `Evict::Everything` overwrites twice the size of the L2 cache before each call.
/// A device evicts nothing by address, so `Evict::Constants` is refused (`std::invalid_argument`).
///
/// Models:      StreamingMeasurerFor<loops::LoopNest>, IdentifiedMeasurer, BestAwareMeasurer, ConfirmingMeasurerFor.
/// Units:       latencies are seconds per run of all kernels of a program; `Outcome::compile_time` is the time on one
///              thread.
/// Cost:        the first measurer forks (construct it before starting threads and before using CUDA in this process,
///              which NVRTC does when it compiles; later ones may be constructed at any time); 50 to 500 ms of
///              compilation per candidate, on threads.
/// Determinism: inputs are a function of `reference.seed`; latencies are measurements. Outcomes are in order with
///              several devices, too.
/// Errors:      `std::invalid_argument` for a task for a CPU; `nvrtc::NoDevice` when measuring without a driver or
///              device, or with a driver for an older major version of CUDA than the compiler's, which cannot load its
///              code; the message says what to do.
struct Nvrtc {
  Protocol protocol = {};
  codegen::CudaOptions code = {};
  std::vector<std::string> compile_flags = {};  ///< for NVRTC
  ReferenceData reference = {};
  std::vector<int> devices = {0};                      ///< driver's numbers; all of one kind. Read by the constructor
  std::string driver = nvrtc::Driver::system_library;  ///< read by the constructor
  unsigned compile_threads = 0;                        ///< 0: one per processor, less one per device
  std::size_t task_cache_bytes = std::size_t{256} << 20;  ///< limit of the cached data of tasks

  // Run-time state, shared by copies of a measurer.
  std::shared_ptr<nvrtc::Workers> workers = std::make_shared<nvrtc::Workers>(devices, driver);
  std::shared_ptr<nvrtc::State> state = std::make_shared<nvrtc::State>();

  /// Whether there is a device to measure on; `why_unavailable` gives the reason if not.
  [[nodiscard]] bool available() const { return why_unavailable().empty(); }
  [[nodiscard]] std::string why_unavailable() const;
  /// The device as a target for tasks. Throws `nvrtc::NoDevice`.
  [[nodiscard]] Target target() const { return nvrtc::target_of(common_facts()); }
  [[nodiscard]] nvrtc::DeviceFacts device_facts() const { return common_facts(); }

  std::vector<Outcome> measure(const Task& task, std::span<const loops::LoopNest> programs,
                               const OutcomeSink& sink = {});

  /// Sets the best latency known for `task`, e.g. from a journal.
  void note_best(const Task& task, Seconds latency) { state->best[best_key(task, protocol)] = latency; }

  /// Identifies what determines latencies: compiler and its options, device, driver, clocks and timing protocol.
  [[nodiscard]] std::string identity() const;

  /// Measures the best candidates again, alternately, on the first device, so that drifting clocks affect all of them
  /// alike. Long kernels get fewer rounds, at least three: `Protocol::budget_seconds` are enough for each.
  [[nodiscard]] std::vector<Outcome> confirm(const Task& task, std::span<const loops::LoopNest> programs,
                                             unsigned rounds = 11);

  /// Measures a compiled program, e.g. a hand-written one, with the same protocol and checks.
  [[nodiscard]] Outcome measure_code(const Task& task, const codegen::DeviceCode& program);

  /// Compiles one program to machine code as `measure` does, or returns the reason of the failure.
  [[nodiscard]] std::variant<codegen::DeviceCode, Failure> compile_program(const Task& task,
                                                                           const loops::LoopNest& program) const {
    return compiler_for(task).code(program);
  }

 private:
  /// A compile team and its compilers.
  class Team {
   public:
    Team(const Nvrtc& measurer, const Task& task, std::span<const loops::LoopNest> programs, std::size_t threads);
    nvrtc::CompileTeam* operator->() const noexcept { return team_.get(); }
    nvrtc::CompileTeam& operator*() const noexcept { return *team_; }

   private:
    nvrtc::CompileTeam::Compilers compilers_;
    std::unique_ptr<nvrtc::CompileTeam> team_;
  };

  [[nodiscard]] const nvrtc::DeviceFacts& common_facts() const;

  /// Throws `std::invalid_argument` for a protocol that no device can follow.
  void check_protocol() const;

  [[nodiscard]] std::size_t team_size() const;

  /// The compiler for the architecture of the task, or of the device if the task names none.
  [[nodiscard]] nvrtc::Compiler compiler_for(const Task& task) const;

  /// Prepares the workers for programs of `task`.
  void prepare(const Task& task);
};

}  // namespace tunewright::measurers

#if TUNEWRIGHT_DEFINES(nvrtc)

#include "tunewright/codegen/cuda_compile.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/core/latency.hpp"
#include "tunewright/core/thread_team.hpp"
#include "tunewright/measurers/nvrtc/code_wire.hpp"

namespace tunewright::measurers {

TUNEWRIGHT_INLINE std::string Nvrtc::why_unavailable() const {
  try {
    static_cast<void>(common_facts());
    return {};
  } catch (const nvrtc::NoDevice& missing) {
    return missing.what();
  }
}

TUNEWRIGHT_INLINE void Nvrtc::check_protocol() const {
  validate(protocol);
  if (protocol.evict == Evict::Constants) {
    throw std::invalid_argument(
        "protocol: evict is Constants, but a GPU evicts nothing by address; use Evict::Everything or Evict::Nothing");
  }
}

TUNEWRIGHT_INLINE std::vector<Outcome> Nvrtc::measure(const Task& task, std::span<const loops::LoopNest> programs,
                                                      const OutcomeSink& sink) {
  check_protocol();
  prepare(task);
  Seconds& best = state->best.try_emplace(best_key(task, protocol), Seconds(0)).first->second;
  const Team team(*this, task, programs, team_size());
  std::vector<Outcome> outcomes(programs.size());
  std::mutex mutex;  // guards `best` and `sink`
  std::atomic<std::size_t> next{0};
  parallel_for(workers->size(), static_cast<unsigned>(workers->size()), [&](std::size_t device) {
    for (std::size_t i = next++; i < programs.size(); i = next++) {
      Compiled compiled = team->wait(i);
      Outcome& outcome = outcomes[i];
      if (auto* failure = std::get_if<Failure>(&compiled.result)) {
        outcome.result = std::move(*failure);
      } else {
        std::unique_lock lock(mutex);
        const Seconds so_far = best;
        lock.unlock();
        outcome = workers->sandbox(device).measure(std::get<codegen::Kernel>(compiled.result), protocol, so_far);
      }
      outcome.compile_time = compiled.time;
      const std::lock_guard lock(mutex);
      best = best_with(best, outcome);
      if (sink) sink(i, outcome);
    }
  });
  return outcomes;
}

TUNEWRIGHT_INLINE std::string Nvrtc::identity() const {
  std::string text = codegen::nvrtc_identity() + ", ";
  try {
    text += common_facts().identity();
  } catch (const nvrtc::NoDevice&) {
    text += "no device";
  }
  for (const std::string& flag : compile_flags) text += ", " + flag;
  if (const std::uint64_t hash = stable_hash(code); hash != stable_hash(codegen::CudaOptions()))
    text += ", options " + to_hex(hash);
  return text + identity_suffix(protocol.evict);
}

TUNEWRIGHT_INLINE std::vector<Outcome> Nvrtc::confirm(const Task& task, std::span<const loops::LoopNest> programs,
                                                      unsigned rounds) {
  check_protocol();
  prepare(task);
  const Team team(*this, task, programs, team_size());
  return measure_together(*team, programs.size(), [&](std::span<const codegen::Kernel> kernels) {
    return workers->sandbox(0).measure_interleaved(kernels, protocol, rounds, protocol.budget_seconds);
  });
}

TUNEWRIGHT_INLINE Outcome Nvrtc::measure_code(const Task& task, const codegen::DeviceCode& program) {
  check_protocol();
  prepare(task);
  return workers->sandbox(0).measure(nvrtc::as_kernel(program), protocol);
}

TUNEWRIGHT_INLINE Nvrtc::Team::Team(const Nvrtc& measurer, const Task& task, std::span<const loops::LoopNest> programs,
                                    std::size_t threads) {
  for (std::size_t t = 0; t < threads; ++t)
    compilers_.push_back(std::make_unique<nvrtc::Compiler>(measurer.compiler_for(task)));
  team_ = std::make_unique<nvrtc::CompileTeam>(programs, compilers_, threads, measurer.protocol.compile_timeout_seconds,
                                               std::span<const int>());
}

TUNEWRIGHT_INLINE const nvrtc::DeviceFacts& Nvrtc::common_facts() const {
  if (workers->devices() != devices)
    throw std::invalid_argument(
        "measurers::Nvrtc: `devices` was changed after the measurer was made; give it when making one");
  if (devices.empty())
    throw std::invalid_argument("measurers::Nvrtc has no devices; give its member `devices` at least one, such as 0");
  const nvrtc::DeviceFacts& facts = workers->common_facts();
  if (const std::string why = nvrtc::too_old(facts.driver, codegen::nvrtc_version()); !why.empty())
    throw nvrtc::NoDevice(why);
  return facts;
}

TUNEWRIGHT_INLINE std::size_t Nvrtc::team_size() const {
  if (compile_threads != 0) return compile_threads;
  const std::size_t processors = host_processors().size();
  return processors > devices.size() ? processors - devices.size() : 1;
}

TUNEWRIGHT_INLINE nvrtc::Compiler Nvrtc::compiler_for(const Task& task) const {
  Target target = task.target;
  if (target.architecture.empty()) target.architecture = common_facts().architecture();
  codegen::check_architecture(target.architecture);
  return {std::move(target), code, compile_flags};
}

TUNEWRIGHT_INLINE void Nvrtc::prepare(const Task& task) {
  if (task.target.kind != DeviceKind::Gpu) {
    throw std::invalid_argument("task '" + task.name + "' is for the CPU '" + task.target.name +
                                "', and measurers::Nvrtc runs kernels on GPUs; take measurers::OrcJit, or make the "
                                "task for the target() of this measurer or for gpu_target(\"A100\")");
  }
  static_cast<void>(common_facts());
  const std::shared_ptr<const SharedTask> data =
      state->tasks.data_of(task, on_threads(reference, hardware_threads()), task_cache_bytes);
  for (std::size_t d = 0; d < workers->size(); ++d) workers->sandbox(d).set_task(data);
}

}  // namespace tunewright::measurers

#endif
