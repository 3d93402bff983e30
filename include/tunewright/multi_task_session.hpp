// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/core/observer.hpp"
#include "tunewright/core/require.hpp"
#include "tunewright/core/weighted_task.hpp"
#include "tunewright/schedulers/concept.hpp"
#include "tunewright/session.hpp"
#include "tunewright/session/network_tasks.hpp"

namespace tunewright {

/// The search of several tasks of a network, round by round: `ask` for candidates of the task that the scheduler
/// chooses, measure them here or elsewhere, `tell` the outcomes.
///
///   t     = scheduler.next(tasks)        the task of this round
///   batch = session(t).ask(n)            as `Session` does
///   runs  = measure(batch)
///   session(t).tell(batch, runs)         the model learns, for all tasks
///
/// All tasks share the model, its training data, the filter and the measurer of `parts`. Each has its own explorer,
/// history and generator. A task is finished when its space has nothing new, or when `patience_trials` consecutive
/// trials brought no better program; the scheduler no longer chooses it.
///
/// Refers to `parts` and `scheduler`, which must outlive it.
///
/// Determinism: (seed, tasks, histories, model) determine the next batch, independent of the order in which the
///              histories grew. A session that recalls them fits its model once, on all of them. With
///              `adaptations::Refit` without `min_growth` this gives the model of an uninterrupted session; with other
///              adaptations it may not. `ask` without `tell` repeats itself unless the explorer keeps state.
template <class Recipe, class Scheduler>
class MultiTaskSession {
  static_assert(check_scheduler<Scheduler>());

 public:
  using Config = typename Session<Recipe>::Config;

  /// Consecutive candidates of a batch, which must outlive it.
  struct Part {
    std::size_t task = 0;
    std::span<const Candidate<Config>> candidates{};
  };
  /// Candidates of one task; none if every task is finished.
  struct Batch {
    std::size_t task = 0;  ///< position in the list of tasks
    typename Session<Recipe>::Batch candidates{};
    [[nodiscard]] bool empty() const noexcept { return candidates.empty(); }
    [[nodiscard]] Part part(std::size_t begin, std::size_t size) const {
      return {task, std::span(candidates).subspan(begin, size)};
    }
    operator Part() const noexcept { return part(0, candidates.size()); }  // NOLINT: all of it is a part, too
  };

  /// Throws `std::invalid_argument` for no task, a repeated task, a weight that is not positive and finite, and options
  /// of policies and of the scheduler out of range that `check_options_of` finds.
  MultiTaskSession(Parts<Recipe>& parts, Scheduler& scheduler, std::span<const WeightedTask> tasks,
                   std::size_t patience_trials = 0)
      : parts_(parts), scheduler_(scheduler), patience_trials_(patience_trials), tasks_(network_tasks(tasks)) {
    check_options_of(scheduler_);
    for (const schedulers::TaskState& one : tasks_) {
      sessions_.emplace_back(parts, one.task);
      // Reserves places in the training data, so that they are in the order of the tasks and not of their first
      // batches.
      parts_.training.add(stable_hash(one.task), FeatureBatch{}, {});
    }
    is_exhausted_.resize(tasks_.size());
  }

  [[nodiscard]] std::span<const schedulers::TaskState> tasks() const noexcept { return tasks_; }  // [T]
  [[nodiscard]] const Session<Recipe>& session(std::size_t task) const { return sessions_.at(task); }

  /// Trials of all tasks.
  [[nodiscard]] std::size_t trials() const {
    std::size_t sum = 0;
    for (const Session<Recipe>& one : sessions_) sum += one.history().size();
    return sum;
  }

  /// The reason why the search of a task is over, if it is.
  [[nodiscard]] std::optional<Stop> stop(std::size_t task) const {
    if (!tasks_.at(task).finished) return std::nullopt;
    return is_exhausted_[task] ? Stop::Exhausted : Stop::Patience;
  }

  /// Returns at most `n` new candidates of a task. Throws as `Session::ask` does, but once there are trials, a task
  /// whose space has no configuration is finished without any; what the space throws; and `std::logic_error` for a
  /// scheduler that chooses a finished task or none.
  [[nodiscard]] Batch ask(std::size_t n) {
    std::size_t rounds = 0, finished = 0;
    for (const schedulers::TaskState& one : tasks_) {
      rounds += one.rounds.size();
      finished += one.finished ? 1 : 0;
    }
    for (; finished < tasks_.size(); ++finished) {
      Rng rng = Rng(parts_.seed).split(scheduler_stream).split(rounds);
      const std::size_t task = scheduler_.next(std::span<const schedulers::TaskState>(tasks_), rng);
      schedulers::check_next(task, tasks_);
      Batch batch{task, trials() == 0 ? sessions_[task].ask(n) : sessions_[task].try_ask(n)};
      if (!batch.empty()) return batch;
      tasks_[task].finished = true;
      is_exhausted_[task] = true;
    }
    return {};
  }

  /// Lowers and measures a batch, or some of it, with the measurer of the recipe; `sink` receives each outcome as soon
  /// as it is known.
  [[nodiscard]] std::vector<Outcome> measure(const Part& batch, const OutcomeSink& sink = {}) {
    return sessions_.at(batch.task).measure(batch.candidates, sink);
  }

  /// Takes the outcomes of a batch, or of some of it. Throws as `Session::tell` does.
  void tell(const Part& batch, std::span<const Outcome> outcomes) {
    sessions_.at(batch.task).tell(batch.candidates, outcomes);
    note_rounds(batch.task);
  }

  /// Takes over measurements of the tasks from a journal; the model learns from all of them at once. Returns the number
  /// of rejected records by reason. The search continues as if these trials had been measured now.
  ReasonCounts recall(std::span<const Record> records) {
    ReasonCounts unusable;
    const std::size_t before = trials();
    std::vector<std::vector<Record>> of_task = records_of(tasks_, records, unusable);
    for (std::size_t task = 0; task < tasks_.size(); ++task) {
      add_counts(unusable, sessions_[task].take_over(of_task[task]));
      note_rounds(task);
    }
    if (trials() > before) sessions_.front().update_model();
    return unusable;
  }

  [[nodiscard]] Record record(const Batch& batch, std::size_t slot, const Outcome& outcome) const {
    return sessions_.at(batch.task).record(batch.candidates.at(slot), outcome);
  }

 private:
  static constexpr std::uint64_t scheduler_stream = 0x7461736b73;  // no hash of a task, as sessions split by

  // Updates the state of a task from its history.
  void note_rounds(std::size_t task) {
    schedulers::TaskState& state = tasks_[task];
    const History<Config>& history = sessions_[task].history();
    for (std::size_t i = state.trials(); i < history.size(); ++i) {
      const Trial<Config>& trial = history.trials()[i];
      const bool is_new_round = i == 0 || trial.candidate.round != history.trials()[i - 1].candidate.round;
      if (is_new_round) state.rounds.push_back({.trials = i, .best_s = state.best_s()});
      schedulers::Round& round = state.rounds.back();
      round.trials = i + 1;
      round.best_s = std::min(round.best_s, trial.cost_s());
    }
    if (patience_trials_ != 0 && history.trials_since_best() >= patience_trials_) state.finished = true;
  }

  Parts<Recipe>& parts_;
  Scheduler& scheduler_;
  std::size_t patience_trials_;
  std::vector<schedulers::TaskState> tasks_;  // [T]
  std::deque<Session<Recipe>> sessions_;      // [T]
  std::vector<bool> is_exhausted_;            // [T]
};

}  // namespace tunewright
