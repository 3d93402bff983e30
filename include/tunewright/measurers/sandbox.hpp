// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bitset>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/codegen/kernel.hpp"
#include "tunewright/core/outcome.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/measurers/protocol.hpp"
#include "tunewright/measurers/sandbox/shared_task.hpp"
#include "tunewright/measurers/sandbox/task_data.hpp"
#include "tunewright/measurers/sandbox/zygote.hpp"

namespace tunewright::measurers {

/// Runs, checks and times kernels in a child process, so that a kernel that crashes, hangs or writes out of bounds
/// affects only itself.
///
/// | what the kernel does                    | outcome                                                  |
/// | --------------------------------------- | -------------------------------------------------------- |
/// | reads or writes next to a buffer        | `OutOfBounds`: guard pages trap, red zones are compared  |
/// | writes to an input                      | `OutOfBounds`: inputs are read-only                      |
/// | dies of another signal, exits, throws   | `RunError`                                               |
/// | leaves elements unwritten or wrong      | `WrongResult`                                            |
/// | exceeds `run_timeout_seconds`           | `RunTimeout`                                             |
/// | damages what its process answers        | `RunError`                                               |
/// | vanishes without a message              | `Unknown`                                                |
///
/// The worker is reused until one of these faults breaks it; then it is replaced. So is one that ended between two
/// kernels, as for want of memory; the kernel that it should have got next fails only if its replacement ends, too,
/// before it gets it. All kernels see the same inputs, because none can change them; outputs and workspace are poisoned
/// before the checked call.
///
/// Construct it early, before the process has threads (see `sandbox::Zygote`); native kernels see the program's globals
/// as they were then. Not thread-safe. Throws `std::runtime_error` or `std::system_error` if nothing can be measured.
/// Cost: a fork at construction; per kernel about 0.2 ms, one call, one pass over the outputs, and the repeats.
class Sandbox {
 public:
  explicit Sandbox(WorkerParts parts = {}) : zygote_(std::make_shared<sandbox::Zygote>(std::move(parts))) {}
  /// Forks workers from `zygote`, which may be shared; calls `introduce` with the socket of each new worker first.
  Sandbox(std::shared_ptr<sandbox::Zygote> zygote, std::function<void(int socket)> introduce)
      : zygote_(std::move(zygote)), introduce_(std::move(introduce)) {}
  ~Sandbox();
  Sandbox(const Sandbox&) = delete;
  Sandbox& operator=(const Sandbox&) = delete;

  /// Sets the task of all later kernels; parallel loops run on `threads` threads, on `processors` unless that is empty.
  /// Throws `std::invalid_argument` for an impossible processor number.
  void set_task(std::shared_ptr<const SharedTask> task, unsigned threads = 1, std::span<const int> processors = {});
  void set_task(const TaskData& data, unsigned threads = 1, std::span<const int> processors = {}) {
    set_task(std::make_shared<const SharedTask>(data), threads, processors);
  }

  /// Starts the process and makes it ready for the task, if no process runs; otherwise the first kernel does. Throws
  /// `std::runtime_error` with the reason if the process cannot have the task's data, threads or processors.
  void start() {
    if (!worker_) start_worker();
  }
  /// Whether the process from which others are started is running; without it, nothing more is measured.
  [[nodiscard]] bool can_start() const noexcept { return zygote_->alive(); }

  /// Checks and times one kernel. `best` is the best latency so far, or zero.
  [[nodiscard]] Outcome measure(const codegen::Kernel& kernel, const Protocol& protocol, Seconds best = Seconds(0));

  /// Times several kernels alternately, `rounds` repeats each, so that changes of the machine's speed affect all alike:
  /// for confirming the best candidates and for ratios against a baseline. Each round starts with another kernel.
  /// Rounds end after the third or a later one when they took `seconds_per_kernel` for each kernel on average.
  [[nodiscard]] std::vector<Outcome> measure_interleaved(
      std::span<const codegen::Kernel> kernels, const Protocol& protocol, unsigned rounds,
      double seconds_per_kernel = std::numeric_limits<double>::infinity());

  /// What a device's worker reports about the device: the bytes of `Reply::detail`, or a failure.
  [[nodiscard]] std::variant<sandbox::Reply, Failure> describe(double timeout_seconds = 60);

  struct Statistics {
    std::size_t workers_started = 0;
    std::size_t kernels_run = 0;
    int worker_process = 0;  ///< id of the current one, 0 if there is none
    int zygote_process = 0;
  };
  [[nodiscard]] Statistics statistics() const {
    return {workers_started_, kernels_run_, worker_ ? worker_->pid : 0, zygote_->pid()};
  }

 private:
  using SteadyClock = std::chrono::steady_clock;
  struct Answer {
    std::optional<Failure> failure;
    sandbox::Reply reply;
    bool sent = true;  ///< false: the worker had ended before it got the request
  };
  struct Entry {
    std::optional<Failure> failure;
    bool was_interrupted = false;
    std::uint32_t number = 0;
    std::uint32_t calls = 0;
    std::vector<double> repeats;

    /// Notes a failure, if there is one. Only the second worker that did not get the request is the kernel's failure.
    void note(const Answer& answer) {
      if (answer.sent || std::exchange(was_interrupted, true)) failure = answer.failure;
    }
  };

  [[nodiscard]] static std::span<const double> repeats_of(const sandbox::Reply& reply);

  /// Sends a kernel with `request`, to a new worker if there is none.
  [[nodiscard]] Answer run(const codegen::Kernel& kernel, const sandbox::Request& request);

  [[nodiscard]] Answer ask(const sandbox::Request& request, int fd);

  /// The failure if the worker closed its socket without an answer.
  [[nodiscard]] Failure vanished();

  void start_worker();

  [[nodiscard]] std::optional<Failure> send_task();

  int end_worker(Seconds grace);

  /// Loads, checks and keeps every kernel that has not failed; numbers start at 0.
  void keep(std::span<const codegen::Kernel> kernels, const Protocol& protocol, std::vector<Entry>& entries);

  std::shared_ptr<sandbox::Zygote> zygote_;
  std::function<void(int socket)> introduce_;
  std::optional<sandbox::Zygote::Worker> worker_;
  std::shared_ptr<const SharedTask> task_;
  unsigned threads_ = 1;
  std::bitset<1024> processors_;
  std::size_t workers_started_ = 0;
  std::size_t kernels_run_ = 0;
};

}  // namespace tunewright::measurers

#if TUNEWRIGHT_DEFINES(sandbox)

#include "tunewright/measurers/sandbox/child.hpp"
#include "tunewright/measurers/sandbox/crash_report.hpp"

namespace tunewright::measurers {

TUNEWRIGHT_INLINE Sandbox::~Sandbox() {
  try {
    if (worker_ && zygote_->is_ours()) end_worker(Seconds(0));
  } catch (const std::exception&) {  // the zygote is gone, and its workers with it
  }
}

TUNEWRIGHT_INLINE void Sandbox::set_task(std::shared_ptr<const SharedTask> task, unsigned threads,
                                         std::span<const int> processors) {
  std::bitset<1024> wanted;
  for (const int processor : processors) {
    if (processor < 0 || processor >= static_cast<int>(wanted.size())) {
      throw std::invalid_argument("processor " + std::to_string(processor) + " was asked for; give 0 to 1023");
    }
    wanted.set(static_cast<std::size_t>(processor));
  }
  if (task == task_ && threads == threads_ && wanted == processors_) return;
  task_ = std::move(task);
  threads_ = threads;
  processors_ = wanted;
  // A worker that cannot receive it is replaced with the next kernel.
  if (worker_ && send_task() && worker_) end_worker(Seconds(0));
}

TUNEWRIGHT_INLINE Outcome Sandbox::measure(const codegen::Kernel& kernel, const Protocol& protocol, Seconds best) {
  const auto start = SteadyClock::now();
  Outcome outcome;
  sandbox::Request request;
  request.kind = sandbox::Request::Kind::Measure;
  request.best_seconds = best.count();
  request.protocol = protocol;
  Answer answer = run(kernel, request);
  // A worker that ended while it was idle is no fault of this kernel.
  if (!answer.sent) answer = run(kernel, request);
  if (answer.failure) {
    outcome.result = *answer.failure;
  } else {
    outcome.result = sandbox::timing_of(repeats_of(answer.reply), answer.reply.calls, answer.reply.stopped);
  }
  outcome.run_time = SteadyClock::now() - start;
  return outcome;
}

TUNEWRIGHT_INLINE std::vector<Outcome> Sandbox::measure_interleaved(std::span<const codegen::Kernel> kernels,
                                                                    const Protocol& protocol, unsigned rounds,
                                                                    double seconds_per_kernel) {
  if (rounds == 0 || rounds > Protocol::repeats_limit) {
    throw std::invalid_argument(std::to_string(rounds) + " rounds of interleaved measuring; give 1 to 256");
  }
  const auto start = SteadyClock::now();
  std::vector<Entry> entries(kernels.size());
  keep(kernels, protocol, entries);
  sandbox::Request request;
  request.kind = sandbox::Request::Kind::Repeat;
  request.protocol = protocol;
  // Threads of libraries (OpenBLAS: for 27 ms) wait for more work before they sleep, and would take time from the
  // kernel that is next.
  const bool foreign_threads = threads_ > 1 && std::any_of(kernels.begin(), kernels.end(),
                                                           [](const auto& kernel) { return kernel.native != nullptr; });
  request.settle_seconds = foreign_threads ? 0.03 : 0;
  constexpr unsigned least_rounds = 3;
  const auto first_round = SteadyClock::now();
  const Seconds enough(seconds_per_kernel * static_cast<double>(kernels.size()));
  for (unsigned round = 0; round < rounds; ++round) {
    if (round >= least_rounds && SteadyClock::now() - first_round >= enough) break;
    for (std::size_t turn = 0; turn < entries.size(); ++turn) {
      Entry& entry = entries[(turn + round) % entries.size()];
      while (!entry.failure) {
        request.kernel = entry.number;
        request.calls = entry.calls;
        const Answer answer = ask(request, -1);
        if (!answer.failure) {
          entry.calls = answer.reply.calls;
          entry.repeats.push_back(answer.reply.repeats[0]);
          break;
        }
        entry.note(answer);
        keep(kernels, protocol, entries);
      }
    }
  }
  request.kind = sandbox::Request::Kind::Drop;
  if (worker_) static_cast<void>(ask(request, -1));

  std::vector<Outcome> outcomes(kernels.size());
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    if (entries[i].failure) {
      outcomes[i].result = *entries[i].failure;
    } else {
      outcomes[i].result = sandbox::timing_of(entries[i].repeats, entries[i].calls, StopReason::Budget);
    }
    outcomes[i].run_time = (SteadyClock::now() - start) / static_cast<double>(kernels.size());
  }
  return outcomes;
}

TUNEWRIGHT_INLINE std::variant<sandbox::Reply, Failure> Sandbox::describe(double timeout_seconds) {
  start();
  sandbox::Request request;
  request.kind = sandbox::Request::Kind::Describe;
  request.protocol.run_timeout_seconds = timeout_seconds;
  const Answer answer = ask(request, -1);
  if (answer.failure) return *answer.failure;
  return answer.reply;
}

TUNEWRIGHT_INLINE std::span<const double> Sandbox::repeats_of(const sandbox::Reply& reply) {
  return std::span<const double>(reply.repeats).first(std::min<std::size_t>(reply.repeat_count, reply.repeats.size()));
}

TUNEWRIGHT_INLINE Sandbox::Answer Sandbox::run(const codegen::Kernel& kernel, const sandbox::Request& request) {
  if (!task_) throw std::logic_error("no task was set; call set_task first");
  validate(request.protocol);
  if (kernel.native == nullptr && (!kernel.object || kernel.object->empty())) {
    return {Failure{Fault::CompileError, "kernel '" + kernel.symbol + "' has no machine code"}, {}};
  }
  if (const std::string objection = task_->objection(kernel); !objection.empty()) {
    return {Failure{Fault::InvalidSchedule, objection}, {}};
  }
  start();
  sandbox::Writer writer;
  sandbox::put(writer, kernel);
  const sandbox::Descriptor contents = sandbox::share(writer.bytes());
  const Answer answer = ask(request, contents.get());
  if (answer.sent) ++kernels_run_;
  return answer;
}

TUNEWRIGHT_INLINE Sandbox::Answer Sandbox::ask(const sandbox::Request& request, int fd) {
  if (!sandbox::send_record(worker_->socket.get(), request, fd)) return {vanished(), {}, false};
  Answer answer;
  const Seconds timeout(request.protocol.run_timeout_seconds);
  switch (sandbox::receive_record(worker_->socket.get(), answer.reply, nullptr, timeout)) {
    case sandbox::Received::TimedOut: {
      end_worker(Seconds(0));
      char limit[32];
      std::snprintf(limit, sizeof limit, "%g", timeout.count());
      answer.failure = Failure{Fault::RunTimeout, "still running after " + std::string(limit) + " s"};
      break;
    }
    case sandbox::Received::Closed: answer.failure = vanished(); break;
    case sandbox::Received::Message:
      if (sandbox::is_answer(answer.reply, request.kind)) break;
      end_worker(Seconds(0));
      answer.failure =
          Failure{Fault::RunError, "its process answers what none does; the kernel wrote over memory there"};
      break;
  }
  if (answer.failure) return answer;
  switch (answer.reply.kind) {
    case sandbox::Reply::Kind::Done: break;
    case sandbox::Reply::Kind::Failed:
      answer.failure = Failure{answer.reply.fault, sandbox::text_of(answer.reply.detail)};
      // It is unknown what else such a kernel wrote to or left incomplete.
      if (answer.reply.fault == Fault::OutOfBounds || answer.reply.fault == Fault::RunError) end_worker(Seconds(0));
      break;
    case sandbox::Reply::Kind::Crashed:
    case sandbox::Reply::Kind::Exited:
      answer.failure = sandbox::failure_of(answer.reply);
      end_worker(Seconds(0));
      break;
  }
  return answer;
}

TUNEWRIGHT_INLINE Failure Sandbox::vanished() {
  const int status = end_worker(Seconds(0.5));
  if (WIFEXITED(status)) {
    return {Fault::RunError, "the kernel ended the process with status " + std::to_string(WEXITSTATUS(status))};
  }
  if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL) return sandbox::failure_without_report(WTERMSIG(status));
  return {Fault::Unknown, "the worker vanished; it was killed, perhaps for want of memory"};
}

TUNEWRIGHT_INLINE void Sandbox::start_worker() {
  worker_ = zygote_->spawn();
  ++workers_started_;
  try {
    if (introduce_) introduce_(worker_->socket.get());
  } catch (...) {  // a worker without its introduction must not get requests
    end_worker(Seconds(0));
    throw;
  }
  if (!task_) return;
  if (const auto failure = send_task()) {
    if (worker_) end_worker(Seconds(0));  // a worker without its task must not get requests
    throw std::runtime_error("the measuring process cannot be made ready for the task: " + failure->detail);
  }
}

TUNEWRIGHT_INLINE std::optional<Failure> Sandbox::send_task() {
  sandbox::Request request;
  request.kind = sandbox::Request::Kind::SetTask;
  request.threads = threads_;
  request.processors = processors_;
  request.protocol.run_timeout_seconds = 60;
  return ask(request, task_->descriptor()).failure;
}

TUNEWRIGHT_INLINE int Sandbox::end_worker(Seconds grace) {
  const int status = zygote_->end(worker_->pid, grace);
  worker_.reset();
  return status;
}

TUNEWRIGHT_INLINE void Sandbox::keep(std::span<const codegen::Kernel> kernels, const Protocol& protocol,
                                     std::vector<Entry>& entries) {
  sandbox::Request request;
  request.protocol = protocol;
  for (bool complete = false; !complete;) {
    complete = true;
    if (worker_) {
      request.kind = sandbox::Request::Kind::Drop;
      static_cast<void>(ask(request, -1));
    }
    request.kind = sandbox::Request::Kind::Keep;
    std::uint32_t number = 0;
    for (std::size_t i = 0; i < kernels.size() && complete; ++i) {
      if (entries[i].failure) continue;
      const Answer answer = run(kernels[i], request);
      entries[i].note(answer);
      entries[i].number = number;
      if (!answer.failure) ++number;
      complete = worker_.has_value();  // a worker that died has lost the kernels before this one
    }
  }
}

}  // namespace tunewright::measurers

#endif
