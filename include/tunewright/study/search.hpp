// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tunewright/core/budget.hpp"
#include "tunewright/core/clock.hpp"
#include "tunewright/core/hash.hpp"
#include "tunewright/core/history.hpp"
#include "tunewright/core/interrupt.hpp"
#include "tunewright/core/make_folder.hpp"
#include "tunewright/core/observer.hpp"
#include "tunewright/core/precision.hpp"
#include "tunewright/core/weighted_task.hpp"
#include "tunewright/data/journal.hpp"
#include "tunewright/multi_task_tuner.hpp"
#include "tunewright/spaces/decode_records.hpp"
#include "tunewright/study/course.hpp"
#include "tunewright/study/network_problem.hpp"
#include "tunewright/study/problem.hpp"
#include "tunewright/tuner.hpp"

namespace tunewright::study {

/// Processor time of the process: the cost of a search on top of a measurer's own clock.
inline Seconds processor_time() { return Seconds(static_cast<double>(std::clock()) / CLOCKS_PER_SEC); }

/// Hash of tasks, occurrences, budget and `Options::conditions`, which two comparable searches of a problem share.
inline std::uint64_t conditions_of(std::span<const WeightedTask> tasks, const Budget& budget,
                                   std::string_view options = {}) {
  StableHash hash;
  for (const WeightedTask& one : tasks) {
    hash.add(stable_hash(one.task));
    if (one.weight != 1) hash.add(one.weight);
  }
  hash.add(std::uint64_t{budget.trials})
      .add(std::uint64_t{budget.batch})
      .add(std::uint64_t{budget.patience_trials})
      .add(std::to_string(budget.time.count()));
  if (!options.empty()) hash.add(options);
  return hash.value();
}

/// The course and the result of a search.
struct Searched {
  Course course{};
  /// `space.encode` of the fastest configuration, of a network a line a task in their order; empty if nothing was
  /// valid, or a task of the network has no valid program.
  std::string best_config{};
};

/// Observer that records the course of a search and, with a journal, what a stopped search needs to resume. Records are
/// stamped with the seconds since the search began, without pauses.
class CourseKeeper {
 public:
  /// Positions of those records that a search of the task does not take over.
  using Refusals = std::function<std::vector<std::size_t>(const Task&, std::span<const Record>)>;

  /// For the search of `tasks`, a network or a task alone. Of a journal, uses the records that `refusals` leaves: all
  /// where it is empty.
  explicit CourseKeeper(std::span<const WeightedTask> tasks, const std::filesystem::path& journal = {},
                        const Refusals& refusals = {}) {
    for (const WeightedTask& one : tasks) best_.push_back({.task = stable_hash(one.task), .weight = one.weight});
    if (journal.empty()) return;
    make_folder(journal.parent_path(), "name another folder by --out=DIR of a study");
    journal_.emplace(data::Journal::Options{.path = journal.string(), .clock = [this] { return now_; }});
    recalled_ = journal_->recall(tasks);
    if (refusals) leave_out_refused(tasks, refusals);
    // Where two programs made the search at a time, their seconds alternate.
    for (const Record& record : recalled_) count(record, std::max(course_.elapsed_s, record.timestamp.count()));
    before_ = Seconds(course_.elapsed_s);
  }
  CourseKeeper(const CourseKeeper&) = delete;  // the journal's clock refers to it
  CourseKeeper& operator=(const CourseKeeper&) = delete;

  [[nodiscard]] Searched searched() const {
    Searched all{.course = course_};
    if (course_.best_s() == Course::infinity) return all;
    for (const Best& one : best_) all.best_config += (all.best_config.empty() ? "" : "\n") + one.config;
    return all;
  }

  /// What the search had taken when it was stopped; 0 for a new one.
  [[nodiscard]] Seconds spent_before() const noexcept { return before_; }

  std::vector<Record> recall(const Task&) { return std::move(recalled_); }
  std::vector<Record> recall(std::span<const WeightedTask>) { return std::move(recalled_); }
  void on_record(const Record& record, const RunStatus& status) {
    now_ = before_ + status.elapsed;
    count(record, now_.count());
    if (journal_) journal_->on_record(record, status);
  }

 private:
  /// The fastest program of a task.
  struct Best {
    std::uint64_t task = 0;  ///< its `stable_hash`
    double weight = 1;
    double latency_s = Course::infinity;
    std::string config{};
  };

  void leave_out_refused(std::span<const WeightedTask> tasks, const Refusals& refusals) {
    std::vector<std::size_t> refused(recalled_.size());  // by so many tasks
    for (const WeightedTask& one : tasks)
      for (const std::size_t position : refusals(one.task, recalled_)) ++refused[position];
    std::vector<Record> taken;
    for (std::size_t i = 0; i < recalled_.size(); ++i)
      if (refused[i] < tasks.size()) taken.push_back(std::move(recalled_[i]));
    recalled_ = std::move(taken);
  }

  void count(const Record& record, double now_s) {
    const double latency_s = cost_s(record.outcome);
    const auto best =
        std::find_if(best_.begin(), best_.end(), [&](const Best& one) { return one.task == record.task; });
    if (best == best_.end()) throw std::logic_error("a record of a task that is not searched");
    if (latency_s < best->latency_s) best->latency_s = latency_s, best->config = record.config;
    double all_s = 0;
    for (const Best& one : best_) all_s += one.weight * one.latency_s;
    course_.add(latency_s < Course::infinity, all_s, now_s);
    if (const Timing* timing = record.outcome.timing(); timing != nullptr && is_imprecise(*timing)) ++course_.imprecise;
  }

  std::vector<Best> best_;  // [T]
  Course course_;
  std::optional<data::Journal> journal_;
  std::vector<Record> recalled_;  // until the search takes them over
  Seconds before_{0}, now_{0};
};

/// Prepares nothing.
struct AsTheyAre {
  template <class Parts>
  void operator()(Parts&) const {}
};

/// Runs the search of a task.
template <class Recipe, class Space, class Measurer, class... Observers>
Stop run_search(const Problem<Space, Measurer>& problem, Parts<Recipe> parts, const Budget& budget,
                Observers&... observers) {
  Tuner<Recipe> tuner{std::move(parts)};
  return tuner.run(problem.task, budget, observers...).stop;
}

/// Runs the search of a network.
template <class Recipe, class Space, class Measurer, class Scheduler, class... Observers>
Stop run_search(const NetworkProblem<Space, Measurer, Scheduler>& problem, Parts<Recipe> parts, const Budget& budget,
                Observers&... observers) {
  MultiTaskTuner<Recipe, Scheduler> tuner{std::move(parts), problem.scheduler};
  return tuner.run(problem.tasks, budget, observers...).stop;
}

/// Runs one search of a problem, a `Problem` or a `NetworkProblem`; empty if `interrupt` ended it. If the measurer has
/// no clock of its own, a stopped search resumes from `journal`, with what is left of its trials and time.
/// `prepare(parts)` may set what recipe and problem do not.
template <class Recipe, class P, class Prepare>
std::optional<Searched> search(const P& problem, std::uint64_t seed, const Budget& budget, unsigned threads,
                               const std::filesystem::path& journal, Interrupt& interrupt, const Prepare& prepare) {
  using Measurer = measurer_of<P>;
  check(budget);
  Parts<Recipe> parts{.space = problem.space, .seed = seed, .threads = threads};
  if (problem.measurer) parts.measurer = problem.measurer();
  if constexpr (requires { parts.model.threads = threads; }) parts.model.threads = threads;
  if constexpr (requires { parts.model.trees.threads = threads; }) parts.model.trees.threads = threads;
  if constexpr (HasOwnClock<Measurer>) {
    parts.clock = [virtual_clock = parts.measurer.clock] { return virtual_clock() + processor_time(); };
  }
  prepare(parts);
  std::string compiler;
  if constexpr (IdentifiedMeasurer<Measurer>) compiler = parts.measurer.identity();
  const auto refusals = [&space = parts.space, &compiler](const Task& task, std::span<const Record> records) {
    std::vector<std::size_t> positions;
    for (const auto& one : spaces::decode_records(space, task, records, compiler).refused)
      positions.push_back(one.record);
    return positions;
  };
  CourseKeeper keeper(problem.weighted_tasks(), HasOwnClock<Measurer> ? std::filesystem::path() : journal, refusals);
  Budget left = budget;  // a run counts its own seconds
  left.time -= keeper.spent_before();
  if (!(left.time > Seconds(0))) return keeper.searched();
  if (run_search<Recipe>(problem, std::move(parts), left, keeper, interrupt) == Stop::Requested) return std::nullopt;
  return keeper.searched();
}

}  // namespace tunewright::study
