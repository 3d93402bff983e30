// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/core/outcome.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright::data {

/// The properties of a workload besides its records. Unknown numbers stay at their defaults.
struct DatasetTask {
  std::string name{};
  std::string operator_class{};  ///< tasks of one class compute the same kind of thing, e.g. "conv2d"
  double flops = 0;              ///< of one run
  double weight = 1;             ///< occurrences in the networks that the data represents
  bool operator==(const DatasetTask&) const = default;
};

/// The tasks of a dataset, by number and by name; no two have the same name. Cost: a look-up by name takes the same
/// time among any number of them.
class DatasetTasks {
 public:
  /// Number of the task with the name of `wanted`, which is added if it is new.
  [[nodiscard]] std::uint32_t number(const DatasetTask& wanted);
  /// Number of the task called `name`; empty if there is none.
  [[nodiscard]] std::optional<std::uint32_t> find(const std::string& name) const;

  [[nodiscard]] const DatasetTask& operator[](std::size_t number) const noexcept { return tasks_[number]; }
  [[nodiscard]] std::size_t size() const noexcept { return tasks_.size(); }
  [[nodiscard]] auto begin() const noexcept { return tasks_.begin(); }
  [[nodiscard]] auto end() const noexcept { return tasks_.end(); }
  bool operator==(const DatasetTasks& other) const { return tasks_ == other.tasks_; }

 private:
  std::vector<DatasetTask> tasks_;
  std::unordered_map<std::string, std::uint32_t> numbers_;  // by name
};

/// Measured programs of many tasks on many targets, as columns of N records: the training and test data of cost models.
/// Failed records stay in it, with an infinite cost.
///
/// Labels are relative to the best of their *group*, the records of one task on one target, because absolute times of
/// different tasks or devices are not comparable.
///
///   data::Split split = data::by_task(dataset, 0.1, Rng(7));
///   data::Dataset train = dataset.subset(split.train);
///   model.fit(train.x, train.labels(), train.groups());
///
/// Units: seconds. Determinism: every function is a pure function of its arguments.
struct Dataset {
  FeatureBatch x;                     ///< N programs, or none until they are featurized
  std::vector<std::uint32_t> task;    ///< [N], position in `tasks`
  std::vector<std::uint32_t> target;  ///< [N], position in `targets`
  std::vector<double> cost_s;         ///< [N], latency; infinite for a failed program
  std::vector<Fault> fault;           ///< [N], meaningful only if the cost is infinite
  std::vector<double> price_s;        ///< [N], cost of the measurement: compiling and running

  DatasetTasks tasks;
  std::vector<std::string> targets;

  [[nodiscard]] std::size_t size() const noexcept { return cost_s.size(); }  // N
  [[nodiscard]] bool valid(std::size_t i) const noexcept { return std::isfinite(cost_s[i]); }
  [[nodiscard]] std::size_t count_valid() const;

  /// Number of the task with the name of `wanted`, which is added if it is new.
  [[nodiscard]] std::uint32_t task_number(const DatasetTask& wanted) { return tasks.number(wanted); }
  /// Number of the target called `name`, which is added if it is new.
  [[nodiscard]] std::uint32_t target_number(std::string_view name);

  /// Appends one record without its features. A failure has no latency, whatever `latency_s` contains.
  void add(std::uint32_t task_number, std::uint32_t target_number, const Outcome& outcome);

  /// Appends `other`; tasks and targets with equal names are merged. Throws `std::invalid_argument` if only one of both
  /// has features, or for features of another width.
  void append(const Dataset& other);

  /// [N], equal for records of one task on one target; numbered by first appearance. Throws as `check`; so do the next
  /// two.
  [[nodiscard]] std::vector<std::uint32_t> groups() const;

  /// [N], (lowest cost of the group) / cost, in (0, 1]; 0 for a failed record.
  [[nodiscard]] std::vector<float> labels() const;

  /// Positions of the records, one list per group, in order.
  [[nodiscard]] std::vector<std::vector<std::size_t>> by_group() const;

  /// The records at `indices`, in that order; all tasks and targets keep their numbers. Labels of a subset are relative
  /// to the best *in it*; to avoid this, compute the labels of the whole dataset first.
  [[nodiscard]] Dataset subset(std::span<const std::size_t> indices) const;

  /// Throws `std::invalid_argument` if the columns differ in length, for a number without a task or target, and for an
  /// invalid cost.
  void check() const;
};

}  // namespace tunewright::data

#if TUNEWRIGHT_DEFINES(data)

#include "tunewright/core/number_text.hpp"

namespace tunewright::data {

TUNEWRIGHT_INLINE std::uint32_t DatasetTasks::number(const DatasetTask& wanted) {
  const auto [place, is_new] = numbers_.try_emplace(wanted.name, static_cast<std::uint32_t>(tasks_.size()));
  if (is_new) tasks_.push_back(wanted);
  return place->second;
}

TUNEWRIGHT_INLINE std::optional<std::uint32_t> DatasetTasks::find(const std::string& name) const {
  const auto known = numbers_.find(name);
  return known == numbers_.end() ? std::nullopt : std::optional(known->second);
}

TUNEWRIGHT_INLINE std::size_t Dataset::count_valid() const {
  std::size_t count = 0;
  for (std::size_t i = 0; i < size(); ++i) count += valid(i) ? 1U : 0U;
  return count;
}

TUNEWRIGHT_INLINE std::uint32_t Dataset::target_number(std::string_view name) {
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] == name) return static_cast<std::uint32_t>(i);
  }
  targets.emplace_back(name);
  return static_cast<std::uint32_t>(targets.size() - 1);
}

TUNEWRIGHT_INLINE void Dataset::add(std::uint32_t task_number, std::uint32_t target_number, const Outcome& outcome) {
  task.push_back(task_number);
  target.push_back(target_number);
  const Timing* timing = outcome.timing();
  cost_s.push_back(timing != nullptr ? timing->median.count() : std::numeric_limits<double>::infinity());
  fault.push_back(timing != nullptr ? Fault::Unknown : outcome.failure()->fault);
  price_s.push_back((outcome.compile_time + outcome.run_time).count());
}

TUNEWRIGHT_INLINE void Dataset::append(const Dataset& other) {
  if (&other == this) return append(Dataset(other));
  other.check();
  const bool joins = size() == 0 || other.size() == 0 || (x.programs() == 0) == (other.x.programs() == 0);
  if (!joins) {
    throw std::invalid_argument("Dataset::append: one side has features, the other has none; describe both");
  }
  x.append(other.x);
  std::vector<std::uint32_t> task_of, target_of;
  for (const DatasetTask& one : other.tasks) task_of.push_back(task_number(one));
  for (const std::string& one : other.targets) target_of.push_back(target_number(one));
  for (const std::uint32_t number : other.task) task.push_back(task_of[number]);
  for (const std::uint32_t number : other.target) target.push_back(target_of[number]);
  cost_s.insert(cost_s.end(), other.cost_s.begin(), other.cost_s.end());
  fault.insert(fault.end(), other.fault.begin(), other.fault.end());
  price_s.insert(price_s.end(), other.price_s.begin(), other.price_s.end());
}

TUNEWRIGHT_INLINE std::vector<std::uint32_t> Dataset::groups() const {
  check();
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> known;
  std::vector<std::uint32_t> group;
  group.reserve(size());
  for (std::size_t i = 0; i < size(); ++i) {
    const auto next = static_cast<std::uint32_t>(known.size());
    group.push_back(known.try_emplace({task[i], target[i]}, next).first->second);
  }
  return group;
}

TUNEWRIGHT_INLINE std::vector<float> Dataset::labels() const {
  const std::vector<std::uint32_t> group = groups();
  std::vector<double> best;
  for (std::size_t i = 0; i < size(); ++i) {
    if (group[i] >= best.size()) best.resize(group[i] + 1, std::numeric_limits<double>::infinity());
    best[group[i]] = std::min(best[group[i]], cost_s[i]);
  }
  std::vector<float> y;
  y.reserve(size());
  for (std::size_t i = 0; i < size(); ++i)
    y.push_back(valid(i) ? static_cast<float>(best[group[i]] / cost_s[i]) : 0.0F);
  return y;
}

TUNEWRIGHT_INLINE std::vector<std::vector<std::size_t>> Dataset::by_group() const {
  std::vector<std::vector<std::size_t>> lists;
  const std::vector<std::uint32_t> group = groups();
  for (std::size_t i = 0; i < size(); ++i) {
    if (group[i] >= lists.size()) lists.resize(group[i] + 1);
    lists[group[i]].push_back(i);
  }
  return lists;
}

TUNEWRIGHT_INLINE Dataset Dataset::subset(std::span<const std::size_t> indices) const {
  check();
  Dataset part;
  part.tasks = tasks;
  part.targets = targets;
  part.x = FeatureBatch(x.columns());
  for (const std::size_t i : indices) {
    if (i >= size()) {
      throw std::out_of_range("Dataset::subset: record " + std::to_string(i) + " of " + std::to_string(size()) +
                              " was asked for; give positions below that");
    }
    if (x.programs() != 0) part.x.append_program(x.program(i));
    part.task.push_back(task[i]);
    part.target.push_back(target[i]);
    part.cost_s.push_back(cost_s[i]);
    part.fault.push_back(fault[i]);
    part.price_s.push_back(price_s[i]);
  }
  return part;
}

TUNEWRIGHT_INLINE void Dataset::check() const {
  const std::size_t n = size();
  if (task.size() != n || target.size() != n || fault.size() != n || price_s.size() != n ||
      (x.programs() != n && x.programs() != 0)) {
    throw std::invalid_argument("Dataset: columns of different length (" + std::to_string(n) + " costs, " +
                                std::to_string(task.size()) + " task numbers, " + std::to_string(target.size()) +
                                " target numbers, " + std::to_string(fault.size()) + " faults, " +
                                std::to_string(price_s.size()) + " prices, " + std::to_string(x.programs()) +
                                " programs); give one of each a record");
  }
  for (std::size_t i = 0; i < n; ++i) {
    const bool known = task[i] < tasks.size() && target[i] < targets.size();
    if (known && cost_s[i] > 0 && price_s[i] >= 0) continue;
    throw std::invalid_argument(
        "Dataset: record " + std::to_string(i) +
        (known ? " costs " + number_text(cost_s[i]) + " s at a price of " + number_text(price_s[i]) +
                     " s; costs are positive, and infinite for a failure"
               : " has task " + std::to_string(task[i]) + " of " + std::to_string(tasks.size()) + " on target " +
                     std::to_string(target[i]) + " of " + std::to_string(targets.size()) +
                     "; number them with task_number and target_number"));
  }
}

}  // namespace tunewright::data

#endif
