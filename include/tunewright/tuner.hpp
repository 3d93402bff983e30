// SPDX-License-Identifier: Apache-2.0
#pragma once

// Start reading here. A tuner repeats rounds (see session.hpp) until the budget is used:
//
//   while budget remains
//     batch = session.ask(n)           explore, filter, featurize, predict, select
//     runs  = session.measure(batch)   lower, compile, run
//     session.tell(batch, runs)        remember, learn
//
// Then read the contracts of the policies (<family>/concept.hpp), a recipe (recipes/) and one policy, such as
// explorers/evolutionary.hpp.

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
#include "tunewright/core/hash.hpp"
#include "tunewright/core/history.hpp"
#include "tunewright/core/observer.hpp"
#include "tunewright/core/precision.hpp"
#include "tunewright/recipe.hpp"
#include "tunewright/session.hpp"
#include "tunewright/session/confirm_fastest.hpp"
#include "tunewright/session/measure_in_time.hpp"

namespace tunewright {

/// The result of a run.
template <class Config>
struct Run {
  History<Config> history;
  Stop stop = Stop::Trials;
  RunStatus status;

  /// The fastest trial; null if none was valid.
  [[nodiscard]] const Trial<Config>* best() const noexcept { return history.best(); }
};

/// A search assembled at compile time from the policies of a recipe.
///
///   Tuner<recipes::Ansor<Space, Measurer>> tuner{{.seed = 7}};
///   const auto run = tuner.run(task, {.trials = 500}, journal, progress);
///
/// Running several tasks on one tuner shares its model and training data, as Ansor does.
///
/// An aggregate over its parts, so that compiler errors name an option that is unknown or out of order.
///
/// Determinism: the same seed, task, journal and measurements give the same history at any number of threads.
template <class Recipe>
struct Tuner : CheckedParts<Recipe>::type {
  using Config = typename Session<Recipe>::Config;

  [[nodiscard]] Parts<Recipe>& parts() noexcept { return *this; }
  [[nodiscard]] const Parts<Recipe>& parts() const noexcept { return *this; }

  /// Searches `task` until the budget is used, the space has nothing new, or an observer asks to stop. Throws
  /// `std::invalid_argument` for a budget that allows nothing, an empty clock, and a space without any configuration.
  template <class... Observers>
    requires(observers::Observer<std::remove_reference_t<Observers>, History<config_t<typename Recipe::space>>> && ...)
  Run<Config> run(const Task& task, const Budget& budget, Observers&&... observers) {
    check(budget);
    check(parts().clock);
    Session<Recipe> session(parts(), task);
    const History<Config>& history = session.history();
    Run<Config> found{
        .history = {},
        .status = status_before(task, budget, !std::same_as<typename Recipe::adaptation, adaptations::None>)};
    RunStatus& status = found.status;
    status.warmup = session.warmup();
    status.can_confirm = ConfirmingMeasurerFor<typename Recipe::measurer, program_t<typename Recipe::space>>;
    const Seconds start = parts().clock();
    const auto read_clock = [&] { status.elapsed = parts().clock() - start; };

    if constexpr ((observers::Recalls<std::remove_reference_t<Observers>> || ...)) {
      status.unusable = session.recall(observers::recall_all(task, observers...));
      for (const Trial<Config>& trial : history.trials()) status.count(trial.outcome);
      status.recalled = history.size();
    }
    read_clock();
    (observers::start(observers, std::as_const(status)), ...);

    std::optional<Stop> stop;
    TimesBetweenRecords times;
    while (!(stop = reason_to_stop(budget, history, status.elapsed, observers...))) {
      read_clock();
      const Seconds asked = status.elapsed;
      const auto batch = session.ask(std::min(budget.batch, budget.trials - history.size()));
      status.rejected = session.rejected();
      status.unscored = session.unscored();
      if (batch.empty()) {
        stop = Stop::Exhausted;
        break;
      }
      read_clock();
      times.searching = status.elapsed - asked;
      const std::span<const Candidate<Config>> all(batch);
      const auto outcomes = measure_in_time(budget, status, all.size(), [&](std::size_t begin, std::size_t size) {
        const auto next = all.subspan(begin, size);
        auto some = session.measure(next, [&](std::size_t slot, const Outcome& outcome) {
          status.count(outcome);
          read_clock();
          if constexpr ((observers::SeesRecords<std::remove_reference_t<Observers>> || ...)) {
            const Record record = times.taken_by(session.record(next[slot], outcome));
            (observers::record(observers, record, std::as_const(status)), ...);
          }
        });
        read_clock();
        return some;
      });
      const Seconds measured = status.elapsed;
      session.tell(all.first(outcomes.size()), outcomes);
      ++status.rounds;
      read_clock();
      times.learning = status.elapsed - measured;
      (observers::round(observers, std::as_const(status), history), ...);
    }
    status.as_fast = as_fast_as_best(history.trials());
    (observers::stop(observers, std::as_const(status), *stop), ...);
    found.history = std::move(session).history();
    found.stop = *stop;
    return found;
  }

  /// Measures the `count` fastest trials of a run of `task` again, alternately, and returns them with the new outcomes,
  /// fastest first. Minutes may lie between two measurements of a run; here all candidates run under the same
  /// conditions. Throws `std::invalid_argument` for the run of another task.
  [[nodiscard]] std::vector<Trial<Config>> confirm(const Task& task, const Run<Config>& run,
                                                   std::size_t count = default_finalists)
    requires ConfirmingMeasurerFor<typename Recipe::measurer, program_t<typename Recipe::space>>
  {
    if (stable_hash(task) != stable_hash(run.status.task)) {
      const auto named = [](const Task& which) { return "'" + which.name + "' (" + to_hex(stable_hash(which)) + ")"; };
      throw std::invalid_argument("Tuner::confirm: the run is of task " + named(run.status.task) + ", not of " +
                                  named(task) + "; give the task that was searched");
    }
    return confirm_fastest(parts(), task, run.history, count);
  }

 private:
  template <class... Observers>
  static std::optional<Stop> reason_to_stop(const Budget& budget, const History<Config>& history, Seconds elapsed,
                                            Observers&... observers) {
    if ((observers::wants_stop(observers) || ...)) return Stop::Requested;
    return exhausted(budget, history.size(), history.trials_since_best(), elapsed);
  }
};

}  // namespace tunewright
