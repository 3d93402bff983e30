// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/core/budget.hpp"
#include "tunewright/core/outcome.hpp"
#include "tunewright/core/reason_counts.hpp"
#include "tunewright/core/record.hpp"
#include "tunewright/core/task.hpp"
#include "tunewright/core/weighted_task.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright {

/// The status of a run of a network of several tasks.
struct NetworkStatus {
  std::size_t tasks = 0;
  std::size_t finished = 0;       ///< finished tasks: nothing new, or no improvement for a long time
  std::size_t without_valid = 0;  ///< tasks without a valid program
  double flops = 0;               ///< operations of one run of the network: sum of weight times operations
  Seconds latency{0};             ///< sum of weight times best, over the tasks with a valid program
  std::vector<std::string> names_without_valid{};  ///< of the tasks without a valid program, in their order

  /// Estimated latency of the network; empty while a task has no valid program.
  [[nodiscard]] std::optional<Seconds> end_to_end() const {
    return without_valid == 0 ? std::optional(latency) : std::nullopt;
  }
};

/// The status of a run, without types of the search space.
struct RunStatus {
  Task task{};
  Budget budget{};
  bool learns = false;                                   ///< the recipe's model learns from the measurements
  std::size_t warmup = 0;                                ///< measurements that this takes before the first training
  std::size_t trials = 0;                                ///< measured and recalled
  std::size_t recalled = 0;                              ///< of these, recalled from journals
  std::size_t rounds = 0;                                ///< finished in this run
  std::array<std::size_t, fault_names.size()> faults{};  ///< failed trials by `Fault`
  std::optional<Seconds> best{};
  std::size_t imprecise = 0;  ///< valid trials that used up their budget (`is_imprecise`)
  std::size_t as_fast = 0;    ///< at the end: trials indistinguishable from the fastest (`as_fast_as_best`)
  bool can_confirm = false;   ///< the measurer can measure finalists in turns (`ConfirmingMeasurerFor`)
  Seconds elapsed{0};         ///< since the start of the run, by its clock
  ReasonCounts rejected{};    ///< candidates rejected by the filter; repeated ones count again
  std::size_t unscored = 0;   ///< described candidates with a score of NaN, which no model told apart; likewise
  ReasonCounts unusable{};    ///< records of a journal that could not be used
  std::optional<NetworkStatus>
      network{};  ///< of a run of several tasks; then `task` and `best` are those of the latest round

  [[nodiscard]] std::size_t failed() const noexcept {
    std::size_t sum = 0;
    for (const std::size_t count : faults) sum += count;
    return sum;
  }

  void count(const Outcome& outcome);
};

/// The status of a run that has not begun.
[[nodiscard]] RunStatus status_before(const Task& task, const Budget& budget, bool learns);

/// Observers are objects with some of these members; `run()` calls the existing ones, in the given order.
///
/// - `recall(task) -> vector<Record>`: once before the search: measurements to take over instead of repeating them. A
///   run of several tasks calls `recall(tasks)` with all of them, a `std::span<const WeightedTask>`, if it exists.
/// - `on_start(status)`: after recalling, before the first round.
/// - `on_record(record, status)`: after every measurement, as soon as it is known; not for recalled ones.
/// - `on_round(status)`: after every round, after the update of the model.
/// - `should_stop() -> bool`: before every round; true ends the run with its results so far.
/// - `on_stop(status, stop)`: once at the end, unless an exception ends the run.
/// - `operator()(history)`: with `on_round`; a lambda is an observer.
namespace observers {

template <class O>
concept Recalls = requires(O& observer, const Task& task) {
  { observer.recall(task) } -> std::same_as<std::vector<Record>>;
};
template <class O>
concept RecallsNetworks = Recalls<O> && requires(O& observer, std::span<const WeightedTask> tasks) {
  { observer.recall(tasks) } -> std::same_as<std::vector<Record>>;
};
template <class O>
concept SeesStart = requires(O& observer, const RunStatus& status) { observer.on_start(status); };
template <class O>
concept SeesRecords =
    requires(O& observer, const Record& record, const RunStatus& status) { observer.on_record(record, status); };
template <class O>
concept SeesRounds = requires(O& observer, const RunStatus& status) { observer.on_round(status); };
template <class O>
concept MayStop = requires(O& observer) {
  { observer.should_stop() } -> std::convertible_to<bool>;
};
template <class O>
concept SeesStop = requires(O& observer, const RunStatus& status, Stop stop) { observer.on_stop(status, stop); };

/// An object with at least one hook; one without any is most likely a mistake.
template <class O, class History>
concept Observer = Recalls<O> || SeesStart<O> || SeesRecords<O> || SeesRounds<O> || MayStop<O> || SeesStop<O> ||
                   std::invocable<O&, const History&>;

template <class O>
std::vector<Record> recall(O& observer, const Task& task) {
  if constexpr (Recalls<O>)
    return observer.recall(task);
  else
    return {};
}
template <class O>
std::vector<Record> recall(O& observer, std::span<const WeightedTask> tasks) {
  if constexpr (RecallsNetworks<O>) {
    return observer.recall(tasks);
  } else {
    std::vector<Record> records;
    for (const WeightedTask& one : tasks)
      for (Record& record : recall(observer, one.task)) records.push_back(std::move(record));
    return records;
  }
}
/// The recalled records of all observers for a task, or for the tasks of a network, in their order.
template <class Tasks, class... Os>
std::vector<Record> recall_all(const Tasks& tasks, Os&... observers) {
  std::vector<Record> records;
  const auto collect = [&](std::vector<Record> more) {
    std::move(more.begin(), more.end(), std::back_inserter(records));
  };
  (collect(recall(observers, tasks)), ...);
  return records;
}
template <class O>
void start(O& observer, const RunStatus& status) {
  if constexpr (SeesStart<O>) observer.on_start(status);
}
template <class O>
void record(O& observer, const Record& one, const RunStatus& status) {
  if constexpr (SeesRecords<O>) observer.on_record(one, status);
}
template <class O, class History>
void round(O& observer, const RunStatus& status, const History& history) {
  if constexpr (SeesRounds<O>) observer.on_round(status);
  if constexpr (std::invocable<O&, const History&>) observer(history);
}
template <class O>
bool wants_stop(O& observer) {
  if constexpr (MayStop<O>)
    return observer.should_stop();
  else
    return false;
}
template <class O>
void stop(O& observer, const RunStatus& status, Stop why) {
  if constexpr (SeesStop<O>) observer.on_stop(status, why);
}

}  // namespace observers
}  // namespace tunewright

#if TUNEWRIGHT_DEFINES(core)

#include "tunewright/core/precision.hpp"

namespace tunewright {

TUNEWRIGHT_INLINE void RunStatus::count(const Outcome& outcome) {
  ++trials;
  if (const Failure* failure = outcome.failure()) {
    ++faults[static_cast<std::size_t>(failure->fault)];
    return;
  }
  const Timing& timing = *outcome.timing();
  imprecise += is_imprecise(timing) ? 1U : 0U;
  if (!best || timing.median < *best) best = timing.median;
}

TUNEWRIGHT_INLINE RunStatus status_before(const Task& task, const Budget& budget, bool learns) {
  return {.task = task, .budget = budget, .learns = learns};
}

}  // namespace tunewright

#endif
