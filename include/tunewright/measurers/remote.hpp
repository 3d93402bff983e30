// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tunewright/codegen/llvm.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/core/outcome.hpp"
#include "tunewright/core/task.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/loops/nest.hpp"
#include "tunewright/measurers/concept.hpp"
#include "tunewright/measurers/cpu_compilers.hpp"
#include "tunewright/measurers/protocol.hpp"
#include "tunewright/measurers/reference_data.hpp"
#include "tunewright/measurers/remote/connection.hpp"
#include "tunewright/measurers/task_cache.hpp"

namespace tunewright::measurers {

namespace remote {

/// What a measurer keeps between batches.
struct State {
  std::unique_ptr<Connection> connection;
  std::optional<Device> device;  ///< of the first worker
  std::size_t workers_started = 0;
  std::size_t workers_since_result = 0;  ///< including the one that sent it
  std::uint64_t task_key = 0;            ///< of the task that the worker is prepared for; 0: none
  TaskCache<TaskData> tasks;
  std::map<std::uint64_t, Seconds> best;
  CpuCompilers compilers;
};

/// The command starts no worker.
struct NotStarted : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Batch;

}  // namespace remote

/// Compiles loop nests with LLVM in this process and measures them on another machine. A command starts a worker there,
/// which communicates only through its standard input and output:
///
///   measurers::Remote board{.command = {"ssh", "board", "tunewright-worker"}};
///   const Task task = program::make_task("matmul", graph, board.target());
///
/// It transfers object code, and the task's data once per task; the worker checks and times kernels by the same
/// protocol in its own sandboxed process, so faults and timeouts are those of `OrcJit`. The next candidates are
/// compiled here while the worker measures.
///
/// If a worker is lost (killed, silent, or violating the protocol), it is started again, at most `max_restarts` times
/// without a result in between, and gets the kernels whose results are missing. A kernel that crashes does not end the
/// conversation: the worker's sandbox reports that as a result. A kernel that was being measured when two workers were
/// lost is `Unknown` with the reason; a loss between two batches counts against none. Where none starts again, as while
/// a machine reboots, the restarts that are left are spread over `connect_timeout_seconds`. A worker that comes back as
/// another device is refused, because latencies of two devices must not be mixed.
///
/// Models:      StreamingMeasurerFor<loops::LoopNest>, IdentifiedMeasurer, BestAwareMeasurer.
/// Units:       latencies are seconds per call; `Outcome::compile_time` is the time on one thread.
/// Cost:        starts the command once; transfers the object code of each kernel (some KiB), up to `ahead` kernels in
///              flight, which are kept until their results are in.
/// Determinism: inputs are a function of `reference.seed`; latencies are measurements.
/// Errors:      `std::invalid_argument` for invalid options, for a task without a graph, and for a task of another
///              device than the worker's (the message names both); `std::runtime_error` if the first worker cannot be
///              started, the worker was lost too often, or it was lost twice at the transfer of one task. Outcomes that
///              were known before have gone to the sink.
struct Remote {
  std::vector<std::string> command{};  ///< program and arguments; searched on the PATH
  Protocol protocol = {};
  codegen::CompileOptions compile = {};
  ReferenceData reference = {};
  std::vector<int> processors = host_processors();  ///< of this machine, for compiling
  unsigned compile_threads = 0;                     ///< 0: one per processor
  unsigned ahead = 4;                               ///< kernels in flight, 1 to 64
  unsigned max_restarts = 8;                        ///< of lost workers without a result in between
  double connect_timeout_seconds = 60;              ///< for starting the command, sending a task, and the answer to it
  double reply_grace_seconds = 20;                  ///< after `protocol.run_timeout_seconds`, until the worker is lost
  std::size_t task_cache_bytes = std::size_t{256} << 20;  ///< limit of the cached data of tasks

  // Run-time state, shared by copies of a measurer.
  std::shared_ptr<remote::State> state = std::make_shared<remote::State>();

  std::vector<Outcome> measure(const Task& task, std::span<const loops::LoopNest> programs,
                               const OutcomeSink& sink = {});

  /// Sets the best latency known for `task`, e.g. from a journal.
  void note_best(const Task& task, Seconds latency) { state->best[best_key(task, protocol)] = latency; }

  /// The device of the first worker; starts a worker if none is running. The reference lives as long as `state`.
  [[nodiscard]] const remote::Device& device() const;
  /// The worker's machine with all its processors, as a target for tasks; restrict it with `with_threads`.
  [[nodiscard]] const Target& target() const { return device().target; }

  /// Identifies what determines latencies: compiler, timing protocol and device.
  [[nodiscard]] std::string identity() const;

 private:
  friend class remote::Batch;
  [[nodiscard]] remote::Connection& connected() const;
  /// Disconnects from the worker; returns a description of how it ended.
  [[nodiscard]] std::string lose(const std::exception& reason) const;
  /// The worker, started if none is running, with the task.
  [[nodiscard]] remote::Conversation& worker_for(const Task& task);
  void check_options() const;
};

}  // namespace tunewright::measurers

#if TUNEWRIGHT_DEFINES(orc)

#include <algorithm>
#include <deque>
#include <exception>
#include <thread>
#include <utility>
#include <variant>

#include "tunewright/core/hash.hpp"
#include "tunewright/core/latency.hpp"

namespace tunewright::measurers {

TUNEWRIGHT_INLINE void Remote::check_options() const {
  if (command.empty() || command.front().empty()) {
    throw std::invalid_argument(
        "measurers::Remote: command is empty; give the program that starts a worker and its arguments, such as "
        "{\"ssh\", \"board\", \"tunewright-worker\"}");
  }
  remote::check_worker_options("measurers::Remote", *this);
}

TUNEWRIGHT_INLINE remote::Connection& Remote::connected() const {
  if (state->connection) return *state->connection;
  check_options();
  std::string words;
  for (const std::string& word : command) words += (words.empty() ? "" : " ") + word;
  if (state->workers_since_result > max_restarts) {
    throw std::runtime_error("the worker '" + words + "' was lost " + std::to_string(state->workers_since_result) +
                             " times without a result in between, and measurers::Remote starts it again " +
                             std::to_string(max_restarts) +
                             " times at most; look after the machine, or give max_restarts more");
  }
  ++state->workers_started;
  ++state->workers_since_result;
  std::unique_ptr<remote::Connection> made;
  try {
    made = std::make_unique<remote::Connection>(command, Seconds(connect_timeout_seconds));
  } catch (const std::exception& error) {
    throw remote::NotStarted("there is no worker at the end of '" + words + "': " + error.what());
  }
  if (state->device && state->device->identity() != made->device().identity()) {
    throw std::runtime_error("the worker '" + words + "' was started again and is another device: '" +
                             made->device().identity() + "' after '" + state->device->identity() +
                             "'; measure each with a measurer and a journal of its own");
  }
  if (!state->device) state->device = made->device();
  state->task_key = 0;
  state->connection = std::move(made);
  return *state->connection;
}

TUNEWRIGHT_INLINE const remote::Device& Remote::device() const {
  static_cast<void>(connected());
  return *state->device;
}

TUNEWRIGHT_INLINE std::string Remote::lose(const std::exception& reason) const {
  const std::string who = state->device ? state->device->identity() : command.front();
  state->connection.reset();
  return "the worker on '" + who + "' was lost: " + reason.what();
}

TUNEWRIGHT_INLINE std::string Remote::identity() const { return identity_of(device(), compile, protocol); }

TUNEWRIGHT_INLINE remote::Conversation& Remote::worker_for(const Task& task) {
  remote::Conversation& worker = connected().worker();
  const std::uint64_t of_data = data_key(task, reference);
  const std::uint64_t key = StableHash().add(of_data).add(task.target.threads).value();
  if (state->task_key == key) return worker;
  const std::vector<char> data =
      remote::to_bytes(*state->tasks.data_of(task, on_threads(reference, processors.size()), task_cache_bytes));
  state->task_key = 0;  // a worker that refused a task has none
  worker.set_task({of_data, data.size(), task.target.threads}, data);
  state->task_key = key;
  return worker;
}

namespace remote {

/// The state of one batch in progress.
class Batch {
 public:
  Batch(Remote& measurer, const Task& task, std::size_t count, const OutcomeSink& sink)
      : m_(measurer),
        task_(task),
        sink_(sink),
        outcomes_(count),
        best_(measurer.state->best.try_emplace(best_key(task, measurer.protocol), Seconds(0)).first->second),
        patience_(measurer.protocol.run_timeout_seconds + measurer.reply_grace_seconds),
        was_idle_(measurer.state->connection != nullptr) {}

  /// Makes a worker ready for the task unless one is.
  void prepare() {
    for (bool again = false; worker_ == nullptr;) {
      try {
        worker_ = &m_.worker_for(task_);
      } catch (const NotStarted&) {
        if (m_.state->workers_since_result > m_.max_restarts) throw;
        std::this_thread::sleep_for(Seconds(m_.connect_timeout_seconds / m_.max_restarts));
      } catch (const ConversationFailed& error) {
        const std::string lost = m_.lose(error);
        was_idle_ = false;
        if (again) {
          throw std::runtime_error(lost + "; so was the one before it, also while it was given task '" + task_.name +
                                   "'; look after the machine");
        }
        again = true;
      }
    }
  }

  std::vector<Outcome> run(CpuCompileTeam& team) {
    try {
      for (std::size_t i = 0; i < outcomes_.size(); ++i) {
        Compiled compiled = team.wait(i);
        outcomes_[i].compile_time = compiled.time;
        if (auto* failure = std::get_if<Failure>(&compiled.result)) {
          finish(i, std::move(*failure));
          continue;
        }
        while (under_way_.size() >= m_.ahead) receive_one();
        under_way_.push_back({i, std::get<codegen::Kernel>(std::move(compiled.result))});
        send_all();
      }
      while (!under_way_.empty()) receive_one();
    } catch (...) {
      // Results of this batch must not be attributed to the next.
      if (!under_way_.empty()) m_.state->connection.reset();
      throw;
    }
    return std::move(outcomes_);
  }

 private:
  struct Item {
    std::size_t number = 0;
    codegen::Kernel kernel;
    bool was_interrupted = false;
  };

  /// Sends what the present worker does not have.
  void send_all() {
    while (sent_ < under_way_.size()) {
      prepare();
      try {
        const Item& next = under_way_[sent_];
        worker_->send({next.number, next.kernel, m_.protocol, best_.count()}, patience_);
        was_idle_ = false;
        ++sent_;
      } catch (const Disconnected& error) {
        // Results that it sent before are still there, and tell which kernel it had come to.
        try {
          while (sent_ > 0) receive(Seconds(0));
        } catch (const ConversationFailed&) {
        }
        lose(error);
      }
    }
  }

  void receive_one() {
    send_all();
    if (under_way_.empty()) return;
    try {
      receive(patience_);
    } catch (const ConversationFailed& error) {
      lose(error);
    }
  }

  void receive(Seconds patience) {
    MeasureResult result = worker_->receive(patience);
    const std::size_t i = under_way_.front().number;
    if (result.number != i) {
      throw ProtocolError("it sent result " + std::to_string(result.number) + " where " + std::to_string(i) +
                          " was due");
    }
    under_way_.pop_front();
    --sent_;
    m_.state->workers_since_result = 1;
    outcomes_[i].run_time = result.outcome.run_time;
    finish(i, std::move(result.outcome.result));
  }

  /// Ends the worker. It measured the first of the kernels under way, the others are not to blame; nor is that one if
  /// the worker of an earlier batch never got it.
  void lose(const ConversationFailed& reason) {
    const std::string lost = m_.lose(reason);
    worker_ = nullptr;
    sent_ = 0;
    if (std::exchange(was_idle_, false)) return;
    Item& first = under_way_.front();
    if (!std::exchange(first.was_interrupted, true)) return;
    const std::size_t i = first.number;
    under_way_.pop_front();
    finish(i, Failure{Fault::Unknown, lost + "; so was the one before it, also at this kernel"});
  }

  void finish(std::size_t i, TimingOrFailure result) {
    outcomes_[i].result = std::move(result);
    best_ = best_with(best_, outcomes_[i]);
    if (sink_) sink_(i, outcomes_[i]);
  }

  Remote& m_;
  const Task& task_;
  const OutcomeSink& sink_;
  std::vector<Outcome> outcomes_;
  std::deque<Item> under_way_;  // in order; the worker has the first `sent_` of them
  std::size_t sent_ = 0;
  Conversation* worker_ = nullptr;  // ready for the task
  Seconds& best_;
  Seconds patience_;
  bool was_idle_;  // whether the worker was there before this batch and has got nothing of it
};

}  // namespace remote

TUNEWRIGHT_INLINE std::vector<Outcome> Remote::measure(const Task& task, std::span<const loops::LoopNest> programs,
                                                       const OutcomeSink& sink) {
  check_options();
  // A worker that was lost since is started again by the batch.
  const remote::Device& on = state->device ? *state->device : device();
  if (const std::string reason = remote::objection(task.target, on); !reason.empty())
    throw std::invalid_argument("measurers::Remote: " + reason);
  remote::Batch batch(*this, task, programs.size(), sink);
  batch.prepare();
  const std::size_t threads = compile_threads != 0 ? compile_threads : std::max<std::size_t>(1, processors.size());
  const CpuCompileTeam::Compilers& compilers =
      state->compilers.at_least(threads, remote::compiled_for(task.target, on), compile);
  CpuCompileTeam team(programs, compilers, threads, protocol.compile_timeout_seconds, processors);
  return batch.run(team);
}

}  // namespace tunewright::measurers

#endif
