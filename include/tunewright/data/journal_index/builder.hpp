// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <map>
#include <string_view>

#include "tunewright/core/task.hpp"
#include "tunewright/data/journal_index/format.hpp"
#include "tunewright/data/journal_index/line_head.hpp"
#include "tunewright/data/positioned_io.hpp"
#include "tunewright/data/record_json.hpp"
#include "tunewright/data/task_json.hpp"

namespace tunewright::data::journal_index {

/// A run is read in one piece, so its length is limited.
inline constexpr std::uint64_t longest_run_bytes = std::uint64_t{1} << 20;

static_assert(task_schema > record_schema, "is_of_newer_schema knows lines by the version of descriptions");

/// The head of any line. Members of other programs' lines may be in any order. A description counts only if it is
/// complete: unlike a record, it is not read again before a journal relies on it.
[[nodiscard]] inline LineHead head_of_any(std::string_view line) {
  if (const LineHead head = head_of(line); head.schema == record_schema) return head;
  try {
    if (describes_task(line)) return {task_schema, stable_hash(task_from_line(line))};
    return {record_schema, from_line(line).task};
  } catch (const std::exception&) {
    return {};
  }
}

/// Adds lines to an index.
class Builder {
 public:
  /// Runs are written to `file`; `header` and `tasks` are those of the index, and are updated.
  Builder(int file, Header& header, std::map<std::uint64_t, TaskEntry>& tasks)
      : header_(header), tasks_(tasks), runs_(file, offset_of_run(header.runs)) {}

  void add(std::uint64_t offset, std::string_view line) {
    ++header_.lines;
    if (line.empty()) return;
    const LineHead head = head_of_any(line);
    if (head.schema == task_schema) {
      TaskEntry& task = tasks_[head.task];
      if (task.described_line == 0) {
        task.described_at = offset;
        task.described_line = header_.lines;
      }
      return;
    }
    const bool is_record = head.schema != 0;
    if (!open_ || is_record != open_is_record_ || head.task != open_task_ || offset != run_.offset + run_.bytes ||
        run_.bytes + line.size() > longest_run_bytes) {
      finish();
      open_ = true;
      open_is_record_ = is_record;
      open_task_ = head.task;
      run_ = {offset, is_record ? tasks_[head.task].last : header_.last_other, header_.lines, 0, 0};
    }
    run_.bytes += line.size() + 1;
    ++run_.lines;
    if (is_record)
      ++tasks_[head.task].lines;
    else
      ++header_.other_lines;
  }
  void finish() {
    if (!open_) return;
    runs_.append(&run_, sizeof run_);
    ++header_.runs;
    (open_is_record_ ? tasks_[open_task_].last : header_.last_other) = header_.runs;
    open_ = false;
  }
  void flush() {
    finish();
    runs_.flush();
  }

 private:
  Header& header_;
  std::map<std::uint64_t, TaskEntry>& tasks_;
  BufferedWriter runs_;
  Run run_;
  bool open_ = false, open_is_record_ = false;
  std::uint64_t open_task_ = 0;
};

}  // namespace tunewright::data::journal_index
