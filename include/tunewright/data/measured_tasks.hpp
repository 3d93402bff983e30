// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "tunewright/core/record.hpp"
#include "tunewright/core/task.hpp"
#include "tunewright/data/journal_report.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright::data {

/// Selects records of journals and provides their tasks.
struct JournalSelection {
  std::vector<Task> tasks{};             ///< in addition to those described in the journals, with precedence over them
  std::vector<std::string> compilers{};  ///< whose code counts, the first that measured on a target; empty: of each
                                         ///< target the compiler of most of its records
  std::size_t max_listed = 20;           ///< skipped lines that the report lists; all are counted
};

/// The records of one task on one target, in the order of the files and their lines.
struct MeasuredTask {
  struct Line {
    std::size_t file = 0;  ///< position among the files given
    std::size_t number = 0;
  };

  Task task{};
  std::string compiler{};         ///< the one whose records count, as the journals name it
  std::vector<Record> records{};  ///< of all compilers
  std::vector<Line> lines{};      ///< [records]
};

/// Groups the records of journals by task, in the order of their first records. Records of tasks that are neither given
/// nor described, or whose graph cannot be rebuilt, and bad lines are skipped and counted by `report`. Throws
/// `std::runtime_error` for a file that is missing, cannot be read, or is not a journal.
[[nodiscard]] std::vector<MeasuredTask> measured_tasks(std::span<const std::string> paths,
                                                       const JournalSelection& selection, JournalReport& report);

}  // namespace tunewright::data

#if TUNEWRIGHT_DEFINES(tuning_logs)

#include <algorithm>
#include <cstdint>
#include <exception>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

#include "tunewright/core/hash.hpp"
#include "tunewright/data/journal.hpp"
#include "tunewright/program/task.hpp"

namespace tunewright::data::measured_tasks_detail {

/// Tasks by hash, with their graphs; empty for one whose graph cannot be rebuilt.
using KnownTasks = std::map<std::uint64_t, std::optional<Task>>;

inline JournalContents contents_of(const std::string& path) {
  check_journal(path);
  return read_journal(path);
}

/// The selected compiler for each target, by the target's hash.
inline std::map<std::uint64_t, std::string> compilers_of(std::span<const MeasuredTask> tasks,
                                                         std::span<const std::string> wanted) {
  std::map<std::uint64_t, std::map<std::string, std::size_t>> counts;
  for (const MeasuredTask& measured : tasks)
    for (const Record& record : measured.records) ++counts[stable_hash(measured.task.target)][record.compiler];
  std::map<std::uint64_t, std::string> chosen;
  for (const auto& [target, by_compiler] : counts) {
    if (!wanted.empty()) {
      const auto found = std::find_if(wanted.begin(), wanted.end(),
                                      [&](const std::string& one) { return by_compiler.count(one) > 0; });
      chosen[target] = found != wanted.end() ? *found : wanted.front();
      continue;
    }
    const auto most = std::max_element(by_compiler.begin(), by_compiler.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    chosen[target] = most->first;
  }
  return chosen;
}

}  // namespace tunewright::data::measured_tasks_detail

namespace tunewright::data {

TUNEWRIGHT_INLINE std::vector<MeasuredTask> measured_tasks(std::span<const std::string> paths,
                                                           const JournalSelection& selection, JournalReport& report) {
  using namespace measured_tasks_detail;
  report.max_listed = selection.max_listed;
  std::vector<JournalContents> files;
  for (const std::string& path : paths) files.push_back(contents_of(path));

  KnownTasks known;
  for (const Task& task : selection.tasks) known.emplace(stable_hash(task), task);
  std::map<std::uint64_t, std::string> why_unknown;
  for (const JournalContents& file : files) {
    for (const Task& task : file.tasks) {
      std::optional<Task>& place = known[stable_hash(task)];
      if (place) continue;
      try {
        place = program::with_graph(task);
      } catch (const std::invalid_argument& error) {
        why_unknown[stable_hash(task)] = error.what();
      }
    }
  }

  std::vector<MeasuredTask> measured;
  std::map<std::uint64_t, std::size_t> place_of;
  for (std::size_t f = 0; f < files.size(); ++f) {
    JournalContents& file = files[f];
    ++report.files;
    report.lines += file.lines;
    report.blank += file.blank;
    report.tasks += file.lines - file.records.size() - file.bad.size() - file.blank;
    for (const BadLine& line : file.bad) report.skip(paths[f], line.number, "no record", line.reason);
    for (std::size_t i = 0; i < file.records.size(); ++i) {
      Record& record = file.records[i];
      const auto found = known.find(record.task);
      if (found == known.end()) {
        report.skip(paths[f], file.record_lines[i], "unknown task",
                    "no line describes task '" + record.task_name + "' (" + to_hex(record.task) +
                        "); give it in JournalSelection::tasks");
        continue;
      }
      if (!found->second) {
        report.skip(paths[f], file.record_lines[i], "unknown task", why_unknown[record.task]);
        continue;
      }
      const auto [place, is_new] = place_of.try_emplace(record.task, measured.size());
      if (is_new) measured.push_back({.task = *found->second});
      measured[place->second].records.push_back(std::move(record));
      measured[place->second].lines.push_back({f, file.record_lines[i]});
    }
  }
  const auto compilers = compilers_of(measured, selection.compilers);
  for (MeasuredTask& one : measured) one.compiler = compilers.at(stable_hash(one.task.target));
  return measured;
}

}  // namespace tunewright::data

#endif
