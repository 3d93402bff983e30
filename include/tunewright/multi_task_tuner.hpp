// SPDX-License-Identifier: Apache-2.0
#pragma once

// The tuner of networks: `tuner.hpp` with a scheduler that chooses the task of each round.
//
//   while budget remains
//     batch = session.ask(n)           of the task that the scheduler chooses
//     runs  = session.measure(batch)
//     session.tell(batch, runs)

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tunewright/adaptations/none.hpp"
#include "tunewright/core/budget.hpp"
#include "tunewright/core/history.hpp"
#include "tunewright/core/observer.hpp"
#include "tunewright/core/weighted_task.hpp"
#include "tunewright/multi_task_session.hpp"
#include "tunewright/recipe.hpp"
#include "tunewright/session/confirm_fastest.hpp"
#include "tunewright/session/measure_in_time.hpp"

namespace tunewright {

/// The result of a run for one task of a network.
template <class Config>
struct TaskRun {
  WeightedTask task;
  History<Config> history;
  std::optional<Stop> stop;  ///< why the task was finished before the run ended: `Stop::Patience`, `Stop::Exhausted`

  /// The fastest trial; null if none was valid.
  [[nodiscard]] const Trial<Config>* best() const noexcept { return history.best(); }
};

/// The result of a run for a network.
template <class Config>
struct MultiTaskRun {
  std::vector<TaskRun<Config>> tasks;  // [T], as they were given
  Stop stop = Stop::Trials;
  RunStatus status;

  /// Estimated latency of the network, the sum of weight times best over its tasks; empty while a task has no valid
  /// program.
  [[nodiscard]] std::optional<Seconds> end_to_end() const { return status.network->end_to_end(); }
};

/// A search for all tasks of a network, assembled at compile time from a recipe and a scheduler.
///
///   MultiTaskTuner<recipes::AnsorQuick<Space, Measurer>, schedulers::Gradient> tuner{{.seed = 7}};
///   const auto run = tuner.run(tasks, {.trials = 20000}, journal, progress);
///
/// All tasks share one model and one journal, from which a stopped search resumes.
/// Options of the scheduler follow those of the parts: `tuner{{.seed = 7}, {.epsilon = 0}}`.
///
/// Determinism: the same seed, tasks, budget, journal and measurements give the same histories at any number of
///              threads.
template <class Recipe, class Scheduler>
struct MultiTaskTuner : CheckedParts<Recipe>::type {
  static_assert(check_scheduler<Scheduler>());
  using Config = typename Session<Recipe>::Config;

  Scheduler scheduler = settings::scheduler_by_default<Scheduler>();

  [[nodiscard]] Parts<Recipe>& parts() noexcept { return *this; }
  [[nodiscard]] const Parts<Recipe>& parts() const noexcept { return *this; }

  /// Searches the tasks until the budget is used, all of them are finished, or an observer asks to stop.
  ///
  /// `budget.trials` and `budget.time` apply to the whole network, `budget.patience_trials` finishes a task. A round
  /// has at most `budget.trials` / T trials, so that each of T tasks gets one. Observers of rounds get the history of
  /// the task of the round; `RunStatus::task` and `best` are of that task, `network` of all.
  ///
  /// Throws `std::invalid_argument` for a budget that allows nothing or has fewer trials than tasks, an empty clock,
  /// tasks and options that `MultiTaskSession` rejects, and a first task whose space has no configuration. Once there
  /// are trials, such a task is finished without any: its run has no `best()` and the network no `end_to_end()`. What
  /// the space itself throws, say from `sample`, ends the run at any time.
  template <class... Observers>
    requires(observers::Observer<std::remove_reference_t<Observers>, History<config_t<typename Recipe::space>>> && ...)
  MultiTaskRun<Config> run(std::span<const WeightedTask> tasks, Budget budget, Observers&&... observers) {
    check(budget);
    check(parts().clock);
    MultiTaskSession<Recipe, Scheduler> session(parts(), scheduler, tasks, budget.patience_trials);
    if (budget.trials < tasks.size()) {
      throw std::invalid_argument("budget: " + std::to_string(budget.trials) + " trials for " +
                                  std::to_string(tasks.size()) + " tasks; give at least 1 a task");
    }
    budget.batch = std::min(budget.batch, budget.trials / tasks.size());
    RunStatus status =
        status_before(tasks.front().task, budget, !std::same_as<typename Recipe::adaptation, adaptations::None>);
    status.warmup = session.session(0).warmup();
    status.can_confirm = ConfirmingMeasurerFor<typename Recipe::measurer, program_t<typename Recipe::space>>;
    const Seconds start = parts().clock();
    const auto read_clock = [&] { status.elapsed = parts().clock() - start; };

    if constexpr ((observers::Recalls<std::remove_reference_t<Observers>> || ...)) {
      status.unusable = session.recall(observers::recall_all(tasks, observers...));
      for (std::size_t t = 0; t < tasks.size(); ++t)
        for (const Trial<Config>& trial : session.session(t).history().trials()) status.count(trial.outcome);
      status.recalled = status.trials;
    }
    const auto turn_to = [&](std::size_t t) {
      status.task = session.tasks()[t].task;
      status.best.reset();
      if (const auto* best = session.session(t).history().best()) status.best = Seconds(best->cost_s());
    };
    turn_to(0);
    status.network = status_of(session.tasks());
    read_clock();
    (observers::start(observers, std::as_const(status)), ...);

    std::optional<Stop> stop;
    TimesBetweenRecords times;
    while (!(stop = reason_to_stop(budget, session, status.elapsed, observers...))) {
      read_clock();
      const Seconds asked = status.elapsed;
      const auto batch = session.ask(std::min(budget.batch, budget.trials - session.trials()));
      status.rejected = rejected(session);
      status.unscored = unscored(session);
      if (batch.empty()) {
        stop = Stop::Exhausted;
        break;
      }
      turn_to(batch.task);
      read_clock();
      times.searching = status.elapsed - asked;
      const auto measure = [&](std::size_t begin, std::size_t size) {
        auto some = session.measure(batch.part(begin, size), [&](std::size_t slot, const Outcome& outcome) {
          status.count(outcome);
          read_clock();
          if constexpr ((observers::SeesRecords<std::remove_reference_t<Observers>> || ...)) {
            const Record record = times.taken_by(session.record(batch, begin + slot, outcome));
            (observers::record(observers, record, std::as_const(status)), ...);
          }
        });
        read_clock();
        return some;
      };
      const auto outcomes = measure_in_time(budget, status, batch.candidates.size(), measure);
      const Seconds measured = status.elapsed;
      session.tell(batch.part(0, outcomes.size()), outcomes);
      ++status.rounds;
      status.network = status_of(session.tasks());
      read_clock();
      times.learning = status.elapsed - measured;
      (observers::round(observers, std::as_const(status), session.session(batch.task).history()), ...);
    }
    status.network = status_of(session.tasks());
    (observers::stop(observers, std::as_const(status), *stop), ...);
    MultiTaskRun<Config> found{.tasks = {}, .stop = *stop, .status = status};
    for (std::size_t t = 0; t < tasks.size(); ++t)
      found.tasks.push_back({tasks[t], session.session(t).history(), session.stop(t)});
    return found;
  }

  /// Measures the `count` fastest trials of a task again, alternately, as `Tuner::confirm` does.
  [[nodiscard]] std::vector<Trial<Config>> confirm(const TaskRun<Config>& run, std::size_t count = default_finalists)
    requires ConfirmingMeasurerFor<typename Recipe::measurer, program_t<typename Recipe::space>>
  {
    return confirm_fastest(parts(), run.task.task, run.history, count);
  }

 private:
  template <class... Observers>
  static std::optional<Stop> reason_to_stop(const Budget& budget, const MultiTaskSession<Recipe, Scheduler>& session,
                                            Seconds elapsed, Observers&... observers) {
    if ((observers::wants_stop(observers) || ...)) return Stop::Requested;
    if (const auto stop = exhausted(budget, session.trials(), 0, elapsed)) return stop;
    for (std::size_t t = 0; t < session.tasks().size(); ++t)
      if (session.stop(t) != Stop::Patience) return std::nullopt;
    return Stop::Patience;
  }

  static ReasonCounts rejected(const MultiTaskSession<Recipe, Scheduler>& session) {
    ReasonCounts counts;
    for (std::size_t t = 0; t < session.tasks().size(); ++t) add_counts(counts, session.session(t).rejected());
    return counts;
  }
  static std::size_t unscored(const MultiTaskSession<Recipe, Scheduler>& session) {
    std::size_t count = 0;
    for (std::size_t t = 0; t < session.tasks().size(); ++t) count += session.session(t).unscored();
    return count;
  }
};

}  // namespace tunewright
