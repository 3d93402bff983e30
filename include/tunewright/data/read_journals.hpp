// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/core/task.hpp"
#include "tunewright/data/dataset.hpp"
#include "tunewright/data/journal_report.hpp"
#include "tunewright/data/measured_tasks.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/features/concept.hpp"
#include "tunewright/features/extract_in_parts.hpp"
#include "tunewright/spaces/concept.hpp"
#include "tunewright/spaces/decode_records.hpp"

namespace tunewright::data {

/// A dataset from journals.
struct JournalDataset {
  Dataset dataset{};          ///< N records with features
  std::vector<Task> tasks{};  ///< by number of the group: record i is of `tasks[dataset.groups()[i]]`
  JournalReport report{};
};

namespace read_journals_detail {

/// Numbers tasks and targets of a dataset by content, because names may be equal.
class Names {
 public:
  /// Number of the task in the dataset; one workload on several targets is one task.
  std::uint32_t task_number(Dataset& dataset, const Task& task);
  std::uint32_t target_number(Dataset& dataset, const Target& target);

 private:
  std::map<std::uint64_t, std::uint32_t> tasks_, targets_;  // by hash
};

/// Throws `std::invalid_argument` for no files, and `std::runtime_error` for an empty dataset.
void check_files(std::span<const std::string> paths);
void check_records(const JournalReport& report);

}  // namespace read_journals_detail

/// Reads the journals of any number of runs, tasks and targets, and featurizes their programs:
///
///   const auto measured = data::read_journals({"cpu.jsonl", "gpu.jsonl"}, space, features::PerStatement{});
///   const data::Split split = data::by_target(measured.dataset, 0.5, Rng(7));
///
/// The journals describe their tasks; `selection.tasks` are needed for journals that do not. Invalid lines, records of
/// unknown tasks, of a compiler other than the target's (see JournalSelection), of configurations outside `space`, and
/// repeated candidates are skipped and counted, with file and line. Failures are records without a latency, with label
/// 0; a program that cannot be described has no rows.
///
/// Records are ordered by task, in the order of the first record of each, and within a task by round and slot. If two
/// tasks or targets have the same name, their hash is appended to the second one's. The class of a task is the name of
/// its operator with the most operations.
///
/// Throws `std::runtime_error` for a file that cannot be read or is not a journal, and if no record remains, and
/// `std::invalid_argument` for no files.
/// Cost:        decoding and describing each record; memory for all of them.
/// Determinism: a pure function of the files and arguments.
template <SearchSpace Space, FeaturizerFor<Space> Featurizer>
[[nodiscard]] JournalDataset read_journals(const std::vector<std::string>& paths, const Space& space,
                                           const Featurizer& featurizer, const JournalSelection& selection = {}) {
  read_journals_detail::check_files(paths);
  JournalDataset read;
  read_journals_detail::Names names;
  for (const MeasuredTask& measured : measured_tasks(paths, selection, read.report)) {
    const auto decoded = spaces::decode_records(space, measured.task, measured.records, measured.compiler);
    for (const auto& refused : decoded.refused) {
      const MeasuredTask::Line& line = measured.lines[refused.record];
      read.report.skip(paths[line.file], line.number, std::string(refused.reason));
    }
    if (decoded.batch.empty()) continue;
    std::vector<config_t<Space>> configs;
    for (const auto& candidate : decoded.batch) configs.push_back(candidate.config);
    const FeatureBatch x =
        features::extract_checked(featurizer, space, measured.task, std::span<const config_t<Space>>(configs));
    const std::uint32_t task = names.task_number(read.dataset, measured.task);
    const std::uint32_t target = names.target_number(read.dataset, measured.task.target);
    for (std::size_t p = 0; p < x.programs(); ++p) read.report.undescribed += x.program(p).empty() ? 1U : 0U;
    for (const Outcome& outcome : decoded.outcomes) {
      read.dataset.add(task, target, outcome);
      read.report.failed += outcome.valid() ? 0U : 1U;
    }
    read.dataset.x.append(x);
    read.report.records += configs.size();
    read.tasks.push_back(measured.task);
  }
  read_journals_detail::check_records(read.report);
  return read;
}

}  // namespace tunewright::data

#if TUNEWRIGHT_DEFINES(tuning_logs)

#include <algorithm>

#include "tunewright/core/hash.hpp"
#include "tunewright/program/analysis.hpp"
#include "tunewright/program/graph.hpp"

namespace tunewright::data::read_journals_detail {

/// The name of the operator with the most operations; the task's name without a graph.
inline std::string class_of(const Task& task) {
  if (!task.graph) return task.name;
  std::string name;
  double most = -1;
  for (program::TensorId id = 0; id < task.graph->size(); ++id) {
    const double work = program::flops(task.graph->op(id));
    if (task.graph->op(id).role != program::Role::Computed || work <= most) continue;
    most = work;
    name = task.graph->op(id).name;
  }
  return name;
}

/// `name`, with the hash appended if the name is taken.
template <class IsTaken>
std::string distinct(const std::string& name, std::uint64_t hash, const IsTaken& is_taken) {
  return is_taken(name) ? name + " (" + to_hex(hash) + ")" : name;
}

TUNEWRIGHT_INLINE std::uint32_t Names::task_number(Dataset& dataset, const Task& task) {
  const auto [place, is_new] = tasks_.try_emplace(task.workload_hash, 0U);
  if (is_new) {
    const auto is_taken = [&](const std::string& name) { return dataset.tasks.find(name).has_value(); };
    const std::string name = distinct(task.name, task.workload_hash, is_taken);
    place->second = dataset.task_number(
        {.name = name, .operator_class = class_of(task), .flops = task.flops, .weight = task.weight});
  }
  return place->second;
}

TUNEWRIGHT_INLINE std::uint32_t Names::target_number(Dataset& dataset, const Target& target) {
  const std::uint64_t hash = stable_hash(target);
  const auto [place, is_new] = targets_.try_emplace(hash, 0U);
  if (is_new) {
    place->second = dataset.target_number(distinct(target.name, hash, [&](const std::string& wanted) {
      return std::find(dataset.targets.begin(), dataset.targets.end(), wanted) != dataset.targets.end();
    }));
  }
  return place->second;
}

TUNEWRIGHT_INLINE void check_files(std::span<const std::string> paths) {
  if (paths.empty()) throw std::invalid_argument("read_journals: no journals were named; give the files of some runs");
}

TUNEWRIGHT_INLINE void check_records(const JournalReport& report) {
  if (report.records > 0) return;
  throw std::runtime_error("read_journals: no record is left to learn from (" + summary(report) +
                           "); give the space and the tasks that were searched");
}

}  // namespace tunewright::data::read_journals_detail

#endif
