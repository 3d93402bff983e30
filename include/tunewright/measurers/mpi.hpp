// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
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
#include "tunewright/measurers/mpi/world.hpp"
#include "tunewright/measurers/protocol.hpp"
#include "tunewright/measurers/reference_data.hpp"
#include "tunewright/measurers/task_cache.hpp"

namespace tunewright::measurers {

namespace mpi {

/// What a measurer keeps between batches.
struct State {
  std::optional<remote::Device> device;  ///< the device of all `ranks`
  std::vector<int> ranks;                ///< that measure, including lost ones
  TaskCache<TaskData> tasks;
  std::map<std::uint64_t, Seconds> best;
  CpuCompilers compilers;
  std::size_t handed_on = 0;  ///< kernels that were sent again after a loss, to any rank
};

class Batch;

}  // namespace mpi

/// Compiles loop nests with LLVM in rank 0 of an MPI program and measures them on the other ranks. Each of these checks
/// and times kernels in a sandboxed process and follows the protocol of workers (docs/design/remote_protocol.md).
///
///   measurers::mpi::World world;
///   if (!world.is_manager()) return world.serve();
///   measurers::Mpi cluster{.world = &world};
///   const Task task = program::make_task("matmul", graph, cluster.target().with_threads(1));
///
/// A lost rank (ended, silent, or violating the protocol) costs only time: the other ranks measure what it had not
/// finished. A kernel that is lost more than `retries` times, with its rank or with the process that ran it, is
/// `Unknown` with the reason.
///
/// All measuring ranks must be devices of the same kind, because their latencies go into one journal; if they differ,
/// `device_name` selects some of them. Each rank identifies its device in its first message.
///
/// Models:      StreamingMeasurerFor<loops::LoopNest>, IdentifiedMeasurer, BestAwareMeasurer.
/// Units:       latencies are seconds per call; `Outcome::compile_time` is the time on one thread.
/// Cost:        transfers the object code of each kernel (some KiB); up to `ahead` kernels are in flight per rank. Rank
///              0 compiles for all ranks, so it needs as many threads as keep them busy.
/// Determinism: inputs are a function of `reference.seed`; latencies are measurements and arrive in any order.
/// Errors:      `std::invalid_argument` for invalid options, for a task without a graph, and for a task of another
///              device (the message names both); `std::runtime_error` if the devices of the ranks differ, or no rank is
///              left.
struct Mpi {
  mpi::World* world = nullptr;  ///< must outlive the measurer
  Protocol protocol = {};
  codegen::CompileOptions compile = {};
  ReferenceData reference = {};
  std::string device_name{};  ///< measure only on devices whose identity contains this; empty: on all
  std::vector<int> processors = host_processors();  ///< of rank 0, for compiling
  unsigned compile_threads = 0;                     ///< 0: one per processor
  unsigned ahead = 3;                               ///< kernels in flight per rank, 1 to 64
  unsigned retries = 2;                             ///< per kernel, after losses
  double connect_timeout_seconds = 60;              ///< for the ranks' first messages, and for sending a task
  double reply_grace_seconds = 20;                  ///< after `protocol.run_timeout_seconds`, until a rank is lost
  std::size_t task_cache_bytes = std::size_t{256} << 20;  ///< limit of the cached data of tasks

  // Run-time state, shared by copies of a measurer.
  std::shared_ptr<mpi::State> state = std::make_shared<mpi::State>();

  std::vector<Outcome> measure(const Task& task, std::span<const loops::LoopNest> programs,
                               const OutcomeSink& sink = {});

  /// Sets the best latency known for `task`, e.g. from a journal.
  void note_best(const Task& task, Seconds latency) { state->best[best_key(task, protocol)] = latency; }

  /// The device of the ranks.
  [[nodiscard]] const remote::Device& device() const;
  /// The part of a machine that one rank uses, as a target for tasks; restrict it with `with_threads`.
  [[nodiscard]] const Target& target() const { return device().target; }

  /// Identifies what determines latencies: compiler, timing protocol and device.
  [[nodiscard]] std::string identity() const;

 private:
  friend class mpi::Batch;
  void check_options() const;
};

}  // namespace tunewright::measurers

#if TUNEWRIGHT_DEFINES(mpi)

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <utility>
#include <variant>

#include "tunewright/core/hash.hpp"
#include "tunewright/core/latency.hpp"

namespace tunewright::measurers {

TUNEWRIGHT_INLINE void Mpi::check_options() const {
  if (world == nullptr || world->size() < 2) {
    throw std::invalid_argument(
        std::string("measurers::Mpi: ") + (world == nullptr ? "world is not set" : "there is one rank, which tunes") +
        "; make a measurers::mpi::World first of all in main, and start the program by mpirun with 2 ranks or more");
  }
  remote::check_worker_options("measurers::Mpi", *this);
}

TUNEWRIGHT_INLINE const remote::Device& Mpi::device() const {
  if (state->device) return *state->device;
  check_options();
  std::map<std::string, std::vector<int>> ranks;  // by identity
  std::map<std::string, remote::Device> devices;
  std::string losses;
  for (int rank = 1; rank < world->size(); ++rank) {
    try {
      if (world->lost(rank)) continue;
      const remote::Device& one = world->worker(rank, Seconds(connect_timeout_seconds)).device();
      ranks[one.identity()].push_back(rank);
      devices.emplace(one.identity(), one);
    } catch (const std::runtime_error& error) {  // from the carrier or the protocol
      world->lose(rank, error.what());
      losses += "; rank " + std::to_string(rank) + ": " + error.what();
    }
  }
  if (devices.empty()) throw std::runtime_error("no rank introduced itself" + losses);
  std::string all;
  for (const auto& [identity, of_it] : ranks) {
    all += (all.empty() ? "'" : ", '") + identity + "' (rank " + std::to_string(of_it.front()) +
           (of_it.size() > 1 ? " and " + std::to_string(of_it.size() - 1) + " more)" : ")");
  }
  std::erase_if(ranks, [&](const auto& entry) { return entry.first.find(device_name) == std::string::npos; });
  if (ranks.empty()) {
    throw std::invalid_argument("measurers::Mpi: no rank's device has '" + device_name + "' in its name; there are " +
                                all);
  }
  if (ranks.size() > 1) {
    throw std::runtime_error("the ranks are different devices: " + all +
                             "; name one of them as device_name, and give each a measurer and a journal of its own");
  }
  state->ranks = ranks.begin()->second;
  state->device = devices.at(ranks.begin()->first);
  return *state->device;
}

TUNEWRIGHT_INLINE std::string Mpi::identity() const { return identity_of(device(), compile, protocol); }

namespace mpi {

/// The state of one batch in progress.
class Batch {
 public:
  Batch(Mpi& measurer, const Task& task, std::size_t count, const OutcomeSink& sink)
      : m_(measurer),
        state_(*measurer.state),
        task_(task),
        sink_(sink),
        outcomes_(count),
        items_(count),
        unfinished_(count),
        patience_(m_.protocol.run_timeout_seconds + m_.reply_grace_seconds) {
    for (const int rank : state_.ranks) {
      if (!m_.world->lost(rank)) ranks_.push_back({rank, {}, {}});
    }
    data_key_ = data_key(task, m_.reference);
    task_key_ = StableHash().add(data_key_).add(task.target.threads).value();
    best_ = &state_.best.try_emplace(best_key(task, m_.protocol), Seconds(0)).first->second;
  }

  std::vector<Outcome> run(CpuCompileTeam& team) {
    if (ranks_.empty()) throw none_left();
    try {
      while (unfinished_ > 0) step(team);
    } catch (...) {
      drain();
      throw;
    }
    return std::move(outcomes_);
  }

 private:
  using SteadyClock = std::chrono::steady_clock;
  struct Item {
    std::optional<codegen::Kernel> kernel;
    unsigned losses = 0;
  };
  struct Rank {
    int number = 0;
    std::deque<std::size_t> under_way;
    Seconds silence{0};  // time during which this process only waited for the rank
  };

  void step(CpuCompileTeam& team) {
    while (const auto rank = m_.world->wait(Seconds(0))) receive_from(*rank);
    drop_silent();
    if (ranks_.empty()) throw none_left();
    const auto idle = std::min_element(ranks_.begin(), ranks_.end(), [](const Rank& a, const Rank& b) {
      return a.under_way.size() < b.under_way.size();
    });
    const bool has_work = !again_.empty() || next_ < items_.size();
    if (idle->under_way.size() >= m_.ahead || !has_work) {
      const SteadyClock::time_point start = SteadyClock::now();
      static_cast<void>(m_.world->wait(Seconds(0.05)));
      for (Rank& rank : ranks_) rank.silence += SteadyClock::now() - start;
      return;
    }
    std::size_t i = 0;
    if (!again_.empty()) {
      i = again_.front();
      again_.pop_front();
    } else {
      i = next_++;
      Compiled compiled = team.wait(i);
      outcomes_[i].compile_time = compiled.time;
      if (auto* failure = std::get_if<Failure>(&compiled.result)) return finish(i, std::move(*failure));
      items_[i].kernel = std::get<codegen::Kernel>(std::move(compiled.result));
    }
    assign(*idle, i);
  }

  void assign(Rank& rank, std::size_t i) {
    try {
      remote::Conversation& worker = m_.world->worker(rank.number, Seconds(m_.connect_timeout_seconds));
      if (rank.under_way.empty()) {
        if (std::uint64_t& key = m_.world->task_key(rank.number); key != task_key_) {
          key = 0;  // a rank that refused a task has none
          worker.set_task({data_key_, data().size(), task_.target.threads}, data());
          key = task_key_;
        }
        rank.silence = Seconds(0);
      }
      rank.under_way.push_back(i);
      worker.send({i, *items_[i].kernel, m_.protocol, best_->count()}, patience_);
    } catch (const remote::ConversationFailed& error) {
      if (rank.under_way.empty()) rank.under_way.push_back(i);
      lose(rank.number, error.what());
    }
  }

  /// The task's data, computed when the first rank needs them.
  const std::vector<char>& data() {
    if (data_.empty()) {
      data_ = remote::to_bytes(
          *state_.tasks.data_of(task_, on_threads(m_.reference, m_.processors.size()), m_.task_cache_bytes));
    }
    return data_;
  }

  void receive_from(int number) {
    const auto rank = std::find_if(ranks_.begin(), ranks_.end(), [&](const Rank& one) { return one.number == number; });
    try {
      remote::MeasureResult result = m_.world->worker(number, Seconds(m_.connect_timeout_seconds)).receive(patience_);
      if (rank == ranks_.end() || rank->under_way.empty() || rank->under_way.front() != result.number)
        throw remote::ProtocolError("it sent result " + std::to_string(result.number) + ", which was not due");
      rank->under_way.pop_front();
      rank->silence = Seconds(0);
      const auto i = static_cast<std::size_t>(result.number);
      outcomes_[i].run_time = result.outcome.run_time;
      const Failure* failure = result.outcome.failure();
      if (failure != nullptr && failure->fault == Fault::Unknown) return resend_or_fail(i, *failure);
      finish(i, std::move(result.outcome.result));
    } catch (const remote::ConversationFailed& error) {
      lose(number, error.what());
    }
  }

  void drop_silent() {
    std::vector<std::pair<int, std::string>> silent;
    for (const Rank& rank : ranks_) {
      if (m_.world->gone(rank.number)) {
        silent.emplace_back(rank.number, "it has ended");
      } else if (!rank.under_way.empty() && rank.silence > patience_) {
        silent.emplace_back(rank.number, "it was not heard of for " + std::to_string(patience_.count()) + " s");
      }
    }
    for (const auto& [number, reason] : silent) lose(number, reason);
  }

  void lose(int number, const std::string& reason) {
    m_.world->lose(number, reason);
    const auto rank = std::find_if(ranks_.begin(), ranks_.end(), [&](const Rank& one) { return one.number == number; });
    if (rank == ranks_.end()) return;
    const std::deque<std::size_t> left = std::move(rank->under_way);
    ranks_.erase(rank);
    for (const std::size_t i : left) {
      resend_or_fail(i, {Fault::Unknown, "rank " + std::to_string(number) + " on '" + state_.device->identity() +
                                             "' was lost: " + reason});
    }
  }

  /// Sends a lost kernel again, or gives it up after `retries` losses.
  void resend_or_fail(std::size_t i, const Failure& reason) {
    if (items_[i].losses++ >= m_.retries) return finish(i, reason);
    ++state_.handed_on;
    again_.push_back(i);
  }

  void finish(std::size_t i, TimingOrFailure result) {
    Outcome& outcome = outcomes_[i];
    outcome.result = std::move(result);
    items_[i].kernel.reset();
    --unfinished_;
    *best_ = best_with(*best_, outcome);
    if (sink_) sink_(i, outcome);
  }

  /// Receives the remaining results, which must not be attributed to the next batch.
  void drain() noexcept {
    for (Rank& rank : ranks_) {
      try {
        for (; !rank.under_way.empty(); rank.under_way.pop_front()) {
          static_cast<void>(m_.world->worker(rank.number, patience_).receive(patience_));
        }
      } catch (const std::exception& error) {
        m_.world->lose(rank.number, error.what());
      }
    }
  }

  [[nodiscard]] std::runtime_error none_left() const {
    std::string text;
    for (const int rank : state_.ranks) {
      text += (text.empty() ? "rank " : "; rank ") + std::to_string(rank) + ": " + m_.world->lost(rank).value_or("");
    }
    return std::runtime_error(
        "no rank is left to measure on; start the program again, and it goes on from its journal: " + text);
  }

  Mpi& m_;
  State& state_;
  const Task& task_;
  const OutcomeSink& sink_;
  std::vector<Outcome> outcomes_;
  std::vector<Item> items_;
  std::deque<std::size_t> again_;
  std::size_t next_ = 0, unfinished_;
  std::vector<Rank> ranks_;
  Seconds patience_;
  std::uint64_t data_key_ = 0, task_key_ = 0;
  std::vector<char> data_;
  Seconds* best_ = nullptr;
};

}  // namespace mpi

TUNEWRIGHT_INLINE std::vector<Outcome> Mpi::measure(const Task& task, std::span<const loops::LoopNest> programs,
                                                    const OutcomeSink& sink) {
  check_options();
  if (const std::string reason = remote::objection(task.target, device()); !reason.empty())
    throw std::invalid_argument("measurers::Mpi: " + reason);
  mpi::Batch batch(*this, task, programs.size(), sink);
  const std::size_t threads = compile_threads != 0 ? compile_threads : std::max<std::size_t>(1, processors.size());
  const CpuCompileTeam::Compilers& compilers =
      state->compilers.at_least(threads, remote::compiled_for(task.target, *state->device), compile);
  CpuCompileTeam team(programs, compilers, threads, protocol.compile_timeout_seconds, processors);
  return batch.run(team);
}

}  // namespace tunewright::measurers

#endif
