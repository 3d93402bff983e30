// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/core/task.hpp"
#include "tunewright/data/auto_scheduler_log/record.hpp"
#include "tunewright/data/dataset.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/features/per_statement/describer.hpp"
#include "tunewright/loops/nest.hpp"
#include "tunewright/program/graph.hpp"

namespace tunewright::data {

/// Programs of auto_scheduler logs as loop nests: the computation is rebuilt from the workload key, and the steps are
/// replayed on it and lowered.
///
///   data::AutoSchedulerPrograms programs("V100");
///   for (data::AutoSchedulerRecord record; log.next(record);) programs.append(record, dataset);
///
/// Errors: `std::invalid_argument` for a record without a task.
/// Cost: some 50 microseconds per program. Not thread-safe: each thread needs its own.
class AutoSchedulerPrograms {
 public:
  /// `device` is the name of the target, which logs do not contain.
  explicit AutoSchedulerPrograms(std::string device) : device_(std::move(device)) {}

  /// Adds a graph for a workload that `ansor::workload_graph` does not know, by the complete workload key.
  void add_workload(const std::string& key, std::shared_ptr<const program::ComputeGraph> graph) {
    graphs_[key] = std::move(graph);
    std::erase_if(tasks_, [&](const auto& known) { return known.first.starts_with(key + "\n"); });
    last_info_.reset();
  }

  /// The tuning task of a record; null for an unknown workload.
  [[nodiscard]] const Task* task(const AutoSchedulerRecord& record);

  /// The loop nest; empty for an unknown workload, or steps that do not replay or lower: `refusals` then counts the
  /// reason.
  [[nodiscard]] std::optional<loops::LoopNest> lower(const AutoSchedulerRecord& record);

  /// Appends the rows of features::PerStatement, 164 columns; a program without rows if it cannot be lowered.
  void describe(const AutoSchedulerRecord& record, FeatureBatch& batch);

  /// Appends the record to a dataset, without its features. The task's name is its workload key and its class the
  /// function's name, or the key again where that is no list that starts with a name.
  void append_result(const AutoSchedulerRecord& record, Dataset& dataset);
  /// Appends the record with its statement rows.
  void append(const AutoSchedulerRecord& record, Dataset& dataset);

  [[nodiscard]] std::size_t replayed() const noexcept { return replayed_; }
  /// Counts of programs that could not be lowered, by reason.
  [[nodiscard]] const std::map<std::string, std::size_t>& refusals() const noexcept { return refusals_; }

 private:
  const Task* find_task(const ansor::TaskInfo& info);

  std::string device_;
  std::map<std::string, std::shared_ptr<const program::ComputeGraph>> graphs_;
  /// By workload key and target with its hardware; empty for an unknown workload.
  std::map<std::string, std::optional<Task>> tasks_;
  std::shared_ptr<const ansor::TaskInfo> last_info_;
  const Task* last_task_ = nullptr;  // of `last_info_`
  std::map<std::string, std::size_t> refusals_;
  std::size_t replayed_ = 0;
  features::per_statement::Describer describer_;
};

}  // namespace tunewright::data

#if TUNEWRIGHT_DEFINES(tuning_logs)

#include "tunewright/data/auto_scheduler_log/replay.hpp"
#include "tunewright/data/auto_scheduler_log/workloads.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/program/task.hpp"

namespace tunewright::data::ansor {

/// The name of the function of a workload; the key itself if it names none.
[[nodiscard]] inline std::string class_of(const std::string& key) {
  try {
    return parse_workload(key).name;
  } catch (const FormatError&) {
    return key;
  }
}

}  // namespace tunewright::data::ansor

namespace tunewright::data {

TUNEWRIGHT_INLINE const Task* AutoSchedulerPrograms::task(const AutoSchedulerRecord& record) {
  if (last_info_ == nullptr || record.task != last_info_) {
    if (!record.task)
      throw std::invalid_argument("AutoSchedulerPrograms: the record has no task; give one that a log was read into");
    last_task_ = find_task(*record.task);
    last_info_ = record.task;
  }
  return last_task_;
}

TUNEWRIGHT_INLINE std::optional<loops::LoopNest> AutoSchedulerPrograms::lower(const AutoSchedulerRecord& record) {
  const Task* known = task(record);
  if (known == nullptr) {
    ++refusals_["unknown workload"];
    return std::nullopt;
  }
  try {
    auto nest = loops::lower(ansor::to_schedule(known->graph, record.steps));
    ++replayed_;
    return nest;
  } catch (const schedule::ScheduleError& error) {
    ++refusals_[error.what()];
    return std::nullopt;
  }
}

TUNEWRIGHT_INLINE void AutoSchedulerPrograms::describe(const AutoSchedulerRecord& record, FeatureBatch& batch) {
  if (const auto nest = lower(record)) {
    describer_.describe(*nest, *task(record), batch);
  } else {
    batch.close_program();
  }
}

TUNEWRIGHT_INLINE void AutoSchedulerPrograms::append_result(const AutoSchedulerRecord& record, Dataset& dataset) {
  const Task* known = task(record);
  const std::string& key = record.task->workload_key;
  std::optional<std::uint32_t> number = dataset.tasks.find(key);
  if (!number) {  // the class of one that is known would be parsed for nothing
    number = dataset.task_number({.name = key,
                                  .operator_class = ansor::class_of(key),
                                  .flops = known != nullptr ? known->flops : 0,
                                  .weight = 1});
  }
  dataset.add(*number, dataset.target_number(device_), to_outcome(record.result));
}

TUNEWRIGHT_INLINE void AutoSchedulerPrograms::append(const AutoSchedulerRecord& record, Dataset& dataset) {
  if (dataset.x.columns() == 0) dataset.x = FeatureBatch(features::per_statement::columns);
  describe(record, dataset.x);
  append_result(record, dataset);
}

TUNEWRIGHT_INLINE const Task* AutoSchedulerPrograms::find_task(const ansor::TaskInfo& info) {
  const Target target = ansor::to_target(info, device_);
  const auto [place, is_new] = tasks_.try_emplace(info.workload_key + "\n" + to_hex(stable_hash(target)));
  std::optional<Task>& task = place->second;
  if (!is_new) return task ? &*task : nullptr;
  const auto given = graphs_.find(info.workload_key);
  auto graph = given != graphs_.end() ? given->second : nullptr;
  try {
    if (!graph) graph = ansor::workload_graph(info.workload_key);
    if (graph) task = program::make_task(info.workload_key, graph, target);
  } catch (const FormatError& error) {
    ++refusals_[error.what()];
  } catch (const std::invalid_argument& error) {  // shapes that do not fit together
    ++refusals_[error.what()];
  }
  return task ? &*task : nullptr;
}

}  // namespace tunewright::data

#endif
