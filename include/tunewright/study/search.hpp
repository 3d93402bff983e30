// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/core/budget.hpp"
#include "tunewright/core/clock.hpp"
#include "tunewright/core/hash.hpp"
#include "tunewright/core/history.hpp"
#include "tunewright/core/interrupt.hpp"
#include "tunewright/core/observer.hpp"
#include "tunewright/core/precision.hpp"
#include "tunewright/data/journal.hpp"
#include "tunewright/study/course.hpp"
#include "tunewright/study/problem.hpp"
#include "tunewright/tuner.hpp"

namespace tunewright::study {

/// Processor time of the process: the cost of a search on top of a measurer's own clock.
inline Seconds processor_time() { return Seconds(static_cast<double>(std::clock()) / CLOCKS_PER_SEC); }

/// Hash of everything that two comparable searches of a problem must share.
inline std::uint64_t conditions_of(const Task& task, const Budget& budget) {
  return StableHash{}
      .add(stable_hash(task))
      .add(std::uint64_t{budget.trials})
      .add(std::uint64_t{budget.batch})
      .add(std::uint64_t{budget.patience_trials})
      .add(std::to_string(budget.time.count()))
      .value();
}

/// Observer that records the course of a search and, with a journal, what a stopped search needs to resume. Records are
/// stamped with the seconds since the search began, without pauses.
class CourseKeeper {
 public:
  /// Uses only records of `compiler` from a journal.
  explicit CourseKeeper(const std::filesystem::path& journal = {}, std::string compiler = {})
      : compiler_(std::move(compiler)) {
    if (journal.empty()) return;
    std::filesystem::create_directories(journal.parent_path());
    journal_.emplace(data::Journal::Options{.path = journal.string(), .clock = [this] { return now_; }});
  }
  CourseKeeper(const CourseKeeper&) = delete;  // the journal's clock refers to it
  CourseKeeper& operator=(const CourseKeeper&) = delete;

  [[nodiscard]] const Course& course() const noexcept { return course_; }
  /// `space.encode` of the fastest configuration; empty before the first valid trial.
  [[nodiscard]] const std::string& best_config() const noexcept { return best_config_; }

  std::vector<Record> recall(const Task& task) {
    std::vector<Record> records;
    if (journal_) records = journal_->recall(task);
    std::erase_if(records, [&](const Record& record) { return record.compiler != compiler_; });
    for (const Record& record : records) count(record, record.timestamp.count());
    before_ = Seconds(course_.elapsed_s);
    return records;
  }
  void on_record(const Record& record, const RunStatus& status) {
    now_ = before_ + status.elapsed;
    count(record, now_.count());
    if (journal_) journal_->on_record(record, status);
  }

 private:
  void count(const Record& record, double now_s) {
    if (cost_s(record.outcome) < course_.best_s()) best_config_ = record.config;
    course_.add(cost_s(record.outcome), now_s);
    if (const Timing* timing = record.outcome.timing(); timing != nullptr && is_imprecise(*timing)) ++course_.imprecise;
  }

  std::string compiler_;
  Course course_;
  std::string best_config_;
  std::optional<data::Journal> journal_;
  Seconds before_{0}, now_{0};
};

/// Prepares nothing.
struct AsTheyAre {
  template <class Parts>
  void operator()(Parts&) const {}
};

/// The course and the result of a search.
struct Searched {
  Course course{};
  std::string best_config{};  ///< `space.encode` of the fastest configuration; empty if none was valid
};

/// Runs one search of a problem; empty if `interrupt` ended it. If the measurer has no clock of its own, a stopped
/// search resumes from `journal`. `prepare(parts)` may set what recipe and problem do not.
template <class Recipe, class Space, class Measurer, class Prepare>
std::optional<Searched> search(const Problem<Space, Measurer>& problem, std::uint64_t seed, const Budget& budget,
                               unsigned threads, const std::filesystem::path& journal, Interrupt& interrupt,
                               const Prepare& prepare) {
  Parts<Recipe> parts{.space = problem.space, .seed = seed, .threads = threads};
  if (problem.measurer) parts.measurer = problem.measurer();
  if constexpr (requires { parts.model.threads = threads; }) parts.model.threads = threads;
  if constexpr (HasOwnClock<Measurer>) {
    parts.clock = [virtual_clock = parts.measurer.clock] { return virtual_clock() + processor_time(); };
  }
  prepare(parts);
  std::string compiler;
  if constexpr (IdentifiedMeasurer<Measurer>) compiler = parts.measurer.identity();
  CourseKeeper keeper(HasOwnClock<Measurer> ? std::filesystem::path() : journal, std::move(compiler));
  Tuner<Recipe> tuner{std::move(parts)};
  const auto run = tuner.run(problem.task, budget, keeper, interrupt);
  if (run.stop == Stop::Requested) return std::nullopt;
  return Searched{keeper.course(), keeper.best_config()};
}

}  // namespace tunewright::study
