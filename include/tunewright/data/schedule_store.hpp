// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tunewright/core/history.hpp"
#include "tunewright/core/reason_counts.hpp"
#include "tunewright/core/record.hpp"
#include "tunewright/core/task.hpp"
#include "tunewright/core/weighted_task.hpp"
#include "tunewright/data/journal_report.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/schedule/json.hpp"
#include "tunewright/schedule/schedule.hpp"
#include "tunewright/spaces/refit.hpp"

namespace tunewright::data {

/// The fastest records of one task on one target.
struct StoredTask {
  Task task{};                    ///< with its graph
  std::uint64_t structure = 0;    ///< `program::structure_hash`
  std::vector<Record> records{};  ///< valid ones of distinct candidates, fastest first
};

/// Schedules of other shapes, refitted to a task.
struct StoredCandidates {
  struct Source {
    std::string task;      ///< task of the schedule
    double distance = 0;   ///< `program::shape_distance` to it; 0 for the task itself
    double latency_s = 0;  ///< measured for that task
  };
  std::vector<schedule::Schedule> schedules;  ///< the nearest shape's first
  std::vector<Source> sources;                ///< [schedules]
  ReasonCounts unfitted;                      ///< among those tried before there were enough
};

/// The fastest schedules of each task on each target from earlier searches, for later searches. Journals fill it, and
/// its file is a journal, which can be shared.
///
///   data::ScheduleStore store;
///   store.add({"resnet50.jsonl"});   // journals of searches, or stores
///   store.save("store.jsonl");
///
///   Tuner<Recipe> tuner{{.seed = 7, .starts = store.starts<Recipe::space>()}};
///
/// A task is looked up by its structure (`program::structure_hash`: operators and data flow, without extents) on its
/// own target: the task itself first, then other shapes by `program::shape_distance`. Their schedules are refitted
/// (`spaces::refitted`) to the extents of the task, so a search starts from good schedules of similar tasks.
///
/// Records of several compilers are mixed, because a store gives starting points that are measured again.
///
/// Errors: `std::invalid_argument` for a task on a target that is missing in a nonempty store, with all its targets;
///         the errors of journals (`measured_tasks`). Lines that are not records, and records of tasks whose program no
///         journal describes, such as those of recorded tables, are skipped and counted by `report`.
/// Cost: a lookup replays and lowers each schedule that it tries, some hundred microseconds each.
/// Determinism: a function of the files in their order.
class ScheduleStore {
 public:
  /// Keeps at most `per_task` records per task. Throws `std::invalid_argument` for 0.
  explicit ScheduleStore(std::size_t per_task = 8);

  /// Adds the fastest records of journals.
  void add(const std::vector<std::string>& journals);
  /// Writes the store as a journal; an existing file is replaced atomically. Throws `std::runtime_error` with the path
  /// if it cannot be written.
  void save(const std::string& path) const;

  [[nodiscard]] std::span<const StoredTask> tasks() const noexcept { return tasks_; }
  [[nodiscard]] const JournalReport& report() const noexcept { return report_; }

  /// At most `count` configurations of `space` for `task`, at most `per_shape` of one shape: the nearest shape's first.
  /// None if the store has no schedule of this structure.
  template <SearchSpace S>
  [[nodiscard]] StoredCandidates candidates(const S& space, const Task& task, std::size_t count = 8,
                                            std::size_t per_shape = 2) const {
    StoredCandidates found;
    KeySet keys;
    for (const auto& [stored, distance] : nearest(task)) {
      for (std::size_t r = 0; r < stored->records.size() && r < per_shape; ++r) {
        if (found.schedules.size() == count) return found;
        std::string_view why = "no list of steps";
        std::optional<schedule::Schedule> fitted;
        try {
          fitted = spaces::refitted(space, task, schedule::steps_from_json(stored->records[r].config), &why);
        } catch (const schedule::ScheduleError&) {  // of another kind of space
        }
        if (fitted && !keys.insert(space.key(*fitted)).second)
          why = "the same as another";
        else if (fitted) {
          found.schedules.push_back(*std::move(fitted));
          found.sources.push_back({stored->task.name, distance, stored->records[r].outcome.timing()->median.count()});
          continue;
        }
        ++found.unfitted[std::string(why)];
      }
    }
    return found;
  }

  /// A function for `Parts::starts`: the candidates of each task. The store must outlive it.
  template <SearchSpace S>
  [[nodiscard]] auto starts(std::size_t count = 8, std::size_t per_shape = 2) const {
    return [this, count, per_shape](const S& space, const Task& task) {
      return candidates(space, task, count, per_shape).schedules;
    };
  }

  /// Transfer-Tuning's criterion for choosing a source of schedules (Gibson and Cano, PACT 2022): how promising these
  /// schedules, of another network, are for a network of `tasks`, with the times `untuned` of its tasks without tuning:
  ///
  ///     sum over classes c of P_c sqrt(W_c)
  ///
  /// P_c is the share of the untuned network's time spent in tasks of the class, W_c the number of stored schedules of
  /// the class. A class is a structure on a target. Choose the network with the largest promise; a store with per_task
  /// 1 counts schedules as the paper does.
  ///
  /// Throws `std::invalid_argument` for no task, for different numbers of times and tasks, for times that are not
  /// positive and finite, and as `candidates` does. Determinism: a function of store and arguments.
  [[nodiscard]] double promise(std::span<const WeightedTask> tasks, std::span<const Seconds> untuned) const;

 private:
  struct Neighbour {
    const StoredTask* stored = nullptr;
    double distance = 0;
  };
  /// Tasks of the same structure on the same target, the nearest first. Throws for a missing target.
  [[nodiscard]] std::vector<Neighbour> nearest(const Task& task) const;

  std::size_t per_task_;
  std::vector<StoredTask> tasks_;  // in the order in which they were met
  JournalReport report_;
};

}  // namespace tunewright::data

#if TUNEWRIGHT_DEFINES(tuning_logs)

#include <algorithm>
#include <cmath>
#include <map>
#include <ostream>
#include <set>
#include <stdexcept>

#include "tunewright/core/hash.hpp"
#include "tunewright/core/latency.hpp"
#include "tunewright/core/number_text.hpp"
#include "tunewright/data/measured_tasks.hpp"
#include "tunewright/data/record_json.hpp"
#include "tunewright/data/replaced_file.hpp"
#include "tunewright/data/task_json.hpp"
#include "tunewright/program/structure.hpp"

namespace tunewright::data::schedule_store_detail {

/// Targets may share a name and differ in threads or caches.
inline std::string described(const Target& target) {
  return "'" + target.name + "' (" + std::to_string(target.threads) + " threads, " + to_hex(stable_hash(target)) + ")";
}

inline double latency_of(const Record& record) { return record.outcome.timing()->median.count(); }

struct Class {
  std::uint64_t target = 0, structure = 0;
  friend auto operator<=>(const Class&, const Class&) = default;
};

inline Class class_of(const Task& task) {
  if (!task.graph)
    throw std::invalid_argument("task '" + task.name + "' has no program to look up; make it with program::make_task");
  return {stable_hash(task.target), program::structure_hash(*task.graph)};
}

}  // namespace tunewright::data::schedule_store_detail

namespace tunewright::data {

TUNEWRIGHT_INLINE ScheduleStore::ScheduleStore(std::size_t per_task) : per_task_(per_task) {
  if (per_task == 0) throw std::invalid_argument("ScheduleStore: per_task is 0; keep at least 1 record of a task");
}

TUNEWRIGHT_INLINE void ScheduleStore::add(const std::vector<std::string>& journals) {
  using schedule_store_detail::latency_of;
  for (MeasuredTask& measured : measured_tasks(journals, {}, report_)) {
    if (!measured.task.graph) {
      for (const MeasuredTask::Line& line : measured.lines) {
        report_.skip(journals[line.file], line.number, "no program",
                     "task '" + measured.task.name + "' is described without a program, so it has no structure");
      }
      continue;
    }
    const std::uint64_t hash = stable_hash(measured.task);
    auto place = std::find_if(tasks_.begin(), tasks_.end(),
                              [&](const StoredTask& stored) { return stable_hash(stored.task) == hash; });
    std::vector<Record> records;
    if (place != tasks_.end()) records = std::move(place->records);
    for (Record& record : measured.records) {
      ++report_.records;
      if (!record.outcome.valid() || impossible_latency(record.outcome)) {
        ++report_.failed;
        continue;
      }
      records.push_back(std::move(record));
    }
    std::stable_sort(records.begin(), records.end(),
                     [](const Record& a, const Record& b) { return latency_of(a) < latency_of(b); });
    std::set<std::uint64_t> keys;
    std::erase_if(records, [&](const Record& record) { return !keys.insert(record.key).second; });
    if (records.size() > per_task_) records.resize(per_task_);
    if (place != tasks_.end())
      place->records = std::move(records);
    else if (!records.empty())
      tasks_.push_back({measured.task, program::structure_hash(*measured.task.graph), std::move(records)});
  }
}

TUNEWRIGHT_INLINE void ScheduleStore::save(const std::string& path) const {
  ReplacedFile file(path);
  for (const StoredTask& stored : tasks_) {
    file.stream() << to_line(stored.task) << '\n';
    for (const Record& record : stored.records) file.stream() << to_line(record) << '\n';
    file.check();
  }
  file.replace();
}

TUNEWRIGHT_INLINE double ScheduleStore::promise(std::span<const WeightedTask> tasks,
                                                std::span<const Seconds> untuned) const {
  if (tasks.empty() || tasks.size() != untuned.size()) {
    throw std::invalid_argument("ScheduleStore::promise: " + std::to_string(untuned.size()) + " times for " +
                                std::to_string(tasks.size()) + " tasks; give one for each of at least 1");
  }
  struct Share {
    double seconds = 0;
    std::size_t schedules = 0;
  };
  std::map<schedule_store_detail::Class, Share> shares;
  double total = 0;
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    const Task& task = tasks[t].task;
    const double seconds = tasks[t].weight * untuned[t].count();
    if (!(seconds > 0) || !std::isfinite(seconds)) {
      throw std::invalid_argument("ScheduleStore::promise: task '" + task.name + "' takes " + number_text(seconds) +
                                  " s; give measured times");
    }
    const auto [place, is_new] = shares.try_emplace(schedule_store_detail::class_of(task));
    if (is_new)
      for (const Neighbour& neighbour : nearest(task)) place->second.schedules += neighbour.stored->records.size();
    place->second.seconds += seconds;
    total += seconds;
  }
  double sum = 0;
  for (const auto& [of_class, share] : shares)
    sum += share.seconds / total * std::sqrt(static_cast<double>(share.schedules));
  return sum;
}

TUNEWRIGHT_INLINE std::vector<ScheduleStore::Neighbour> ScheduleStore::nearest(const Task& task) const {
  using schedule_store_detail::described;
  const auto [target, structure] = schedule_store_detail::class_of(task);
  std::vector<Neighbour> found;
  std::set<std::string> others;
  for (const StoredTask& stored : tasks_) {
    if (stable_hash(stored.task.target) != target)
      others.insert(described(stored.task.target));
    else if (stored.structure == structure)
      found.push_back({&stored, program::shape_distance(*task.graph, *stored.task.graph)});
  }
  const bool has_target = std::any_of(tasks_.begin(), tasks_.end(), [&](const StoredTask& stored) {
    return stable_hash(stored.task.target) == target;
  });
  if (!has_target && !others.empty()) {
    std::string names;
    for (const std::string& name : others) names += (names.empty() ? "" : ", ") + name;
    throw std::invalid_argument("the store has schedules for " + names + ", and task '" + task.name + "' is for " +
                                described(task.target) + "; add journals of that target, or tune for the store's");
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Neighbour& a, const Neighbour& b) { return a.distance < b.distance; });
  return found;
}

}  // namespace tunewright::data

#endif
