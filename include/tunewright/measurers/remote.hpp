// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
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
  std::uint64_t task_key = 0;  ///< of the task that the worker is prepared for; 0: none
  TaskCache<TaskData> tasks;
  std::map<std::uint64_t, Seconds> best;
  CpuCompilers compilers;
};

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
/// If a worker is lost (killed, silent, or violating the protocol), the unmeasured outcomes of its batch are `Unknown`
/// with the reason. It is started again for the next batch, at most `max_restarts` times. A worker that comes back as
/// another device is refused, because latencies of two devices must not be mixed.
///
/// Models:      StreamingMeasurerFor<loops::LoopNest>, IdentifiedMeasurer, BestAwareMeasurer.
/// Units:       latencies are seconds per call; `Outcome::compile_time` is the time on one thread.
/// Cost:        starts the command once; transfers the object code of each kernel (some KiB), up to `ahead` kernels in
///              flight.
/// Determinism: inputs are a function of `reference.seed`; latencies are measurements.
/// Errors:      `std::invalid_argument` for invalid options, for a task without a graph, and for a task of another
///              device than the worker's (the message names both); `std::runtime_error` if the worker cannot be started
///              or was lost too often.
struct Remote {
  std::vector<std::string> command{};  ///< program and arguments; searched on the PATH
  Protocol protocol = {};
  codegen::CompileOptions compile = {};
  ReferenceData reference = {};
  std::vector<int> processors = host_processors();  ///< of this machine, for compiling
  unsigned compile_threads = 0;                     ///< 0: one per processor
  unsigned ahead = 4;                               ///< kernels in flight, 1 to 64
  unsigned max_restarts = 8;
  double connect_timeout_seconds = 60;  ///< for starting the command, sending a task, and the answer to it
  double reply_grace_seconds = 20;      ///< after `protocol.run_timeout_seconds`, until the worker is lost
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
  [[nodiscard]] remote::Connection& connected() const;
  /// Disconnects from the worker; returns a description of how it ended.
  [[nodiscard]] std::string lose(const std::exception& reason) const;
  void set_task(const Task& task);
  void check_options() const;
};

}  // namespace tunewright::measurers

#if TUNEWRIGHT_DEFINES(orc)

#include <algorithm>
#include <deque>
#include <exception>
#include <stdexcept>
#include <utility>
#include <variant>

#include "tunewright/core/hash.hpp"
#include "tunewright/core/latency.hpp"
#include "tunewright/core/require.hpp"

namespace tunewright::measurers {

TUNEWRIGHT_INLINE void Remote::check_options() const {
  validate(protocol);
  if (command.empty() || command.front().empty()) {
    throw std::invalid_argument(
        "measurers::Remote: command is empty; give the program that starts a worker and its arguments, such as "
        "{\"ssh\", \"board\", \"tunewright-worker\"}");
  }
  constexpr const char* who = "measurers::Remote";
  require(ahead >= 1 && ahead <= 64, who, "ahead", ahead, "1 to 64");
  require(connect_timeout_seconds > 0, who, "connect_timeout_seconds", connect_timeout_seconds, "a time above 0");
  require(reply_grace_seconds > 0, who, "reply_grace_seconds", reply_grace_seconds, "a time above 0");
}

TUNEWRIGHT_INLINE remote::Connection& Remote::connected() const {
  if (state->connection) return *state->connection;
  check_options();
  std::string words;
  for (const std::string& word : command) words += (words.empty() ? "" : " ") + word;
  if (state->workers_started > max_restarts) {
    throw std::runtime_error("the worker '" + words + "' was lost " + std::to_string(state->workers_started) +
                             " times, and measurers::Remote starts it again " + std::to_string(max_restarts) +
                             " times at most; look after the machine, or give max_restarts more");
  }
  ++state->workers_started;
  std::unique_ptr<remote::Connection> made;
  try {
    made = std::make_unique<remote::Connection>(command, Seconds(connect_timeout_seconds));
  } catch (const std::exception& error) {
    throw std::runtime_error("there is no worker at the end of '" + words + "': " + error.what());
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

TUNEWRIGHT_INLINE std::string Remote::identity() const {
  const remote::Device& worker = device();
  return identity_of(remote::compiled_for(worker.target, worker), compile, protocol) + ", on " + worker.identity();
}

TUNEWRIGHT_INLINE void Remote::set_task(const Task& task) {
  const std::uint64_t data_key = StableHash().add(stable_hash(task)).add(stable_hash(reference)).value();
  const std::uint64_t key = StableHash().add(data_key).add(task.target.threads).value();
  if (state->task_key == key) return;
  const std::vector<char> data =
      remote::to_bytes(*state->tasks.data_of(task, on_threads(reference, processors.size()), task_cache_bytes));
  state->task_key = 0;  // a worker that refused a task has none
  connected().worker().set_task({data_key, data.size(), task.target.threads}, data);
  state->task_key = key;
}

TUNEWRIGHT_INLINE std::vector<Outcome> Remote::measure(const Task& task, std::span<const loops::LoopNest> programs,
                                                       const OutcomeSink& sink) {
  check_options();
  if (const std::string reason = remote::objection(task.target, device()); !reason.empty())
    throw std::invalid_argument("measurers::Remote: " + reason);
  std::vector<Outcome> outcomes(programs.size());
  std::optional<std::string> lost;
  try {
    set_task(task);
  } catch (const remote::ConversationFailed& error) {
    lost = lose(error);
  }

  const std::size_t threads = compile_threads != 0 ? compile_threads : std::max<std::size_t>(1, processors.size());
  const CpuCompileTeam::Compilers& compilers =
      state->compilers.at_least(threads, remote::compiled_for(task.target, *state->device), compile);
  CpuCompileTeam team(programs, compilers, threads, protocol.compile_timeout_seconds, processors);
  Seconds& best = state->best.try_emplace(best_key(task, protocol), Seconds(0)).first->second;
  const Seconds patience(protocol.run_timeout_seconds + reply_grace_seconds);

  const auto finish = [&](std::size_t i) {
    best = best_with(best, outcomes[i]);
    if (sink) sink(i, outcomes[i]);
  };
  std::deque<std::size_t> under_way;
  const auto fail = [&](std::size_t i) {
    outcomes[i].result = Failure{Fault::Unknown, *lost};
    finish(i);
  };
  const auto give_up = [&](const std::exception& error) {
    lost = lose(error);
    for (; !under_way.empty(); under_way.pop_front()) fail(under_way.front());
  };
  const auto receive_one = [&] {
    try {
      remote::MeasureResult result = state->connection->worker().receive(patience);
      const std::size_t i = under_way.front();
      if (result.number != i) {
        throw remote::ProtocolError("it sent result " + std::to_string(result.number) + " where " + std::to_string(i) +
                                    " was due");
      }
      under_way.pop_front();
      outcomes[i].result = std::move(result.outcome.result);
      outcomes[i].run_time = result.outcome.run_time;
      finish(i);
    } catch (const remote::ConversationFailed& error) {
      give_up(error);
    }
  };
  try {
    for (std::size_t i = 0; i < programs.size(); ++i) {
      Compiled compiled = team.wait(i);
      outcomes[i].compile_time = compiled.time;
      if (auto* failure = std::get_if<Failure>(&compiled.result)) {
        outcomes[i].result = std::move(*failure);
        finish(i);
        continue;
      }
      while (!lost && under_way.size() >= ahead) receive_one();
      if (!lost) {
        try {
          state->connection->worker().send({i, std::get<codegen::Kernel>(compiled.result), protocol, best.count()},
                                           patience);
          under_way.push_back(i);
          continue;
        } catch (const remote::Disconnected& error) {
          give_up(error);
        }
      }
      fail(i);
    }
    while (!under_way.empty()) receive_one();
  } catch (...) {
    // Results of this batch must not be attributed to the next.
    if (!under_way.empty()) state->connection.reset();
    throw;
  }
  return outcomes;
}

}  // namespace tunewright::measurers

#endif
