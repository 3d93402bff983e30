// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tunewright/core/record.hpp"
#include "tunewright/core/task.hpp"
#include "tunewright/data/bad_line.hpp"
#include "tunewright/data/journal_index.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright::data {

/// A journal of any size, read by its index, together with the text after its last complete line, which an index does
/// not cover: a whole record or description there counts though it has no newline, other text is a bad line. Tasks are
/// named by their hashes.
///
/// Cost, errors: those of `JournalIndex`.
class WholeJournal {
 public:
  /// Opens an existing journal and updates its index.
  explicit WholeJournal(const std::string& path);

  /// What covers the complete lines.
  [[nodiscard]] const JournalIndex& index() const noexcept { return index_; }
  /// Number of lines, including blank ones.
  [[nodiscard]] std::uint64_t lines() const { return index_.lines() + (index_.ends_within_a_line() ? 1 : 0); }
  /// Tasks that have lines or are described.
  [[nodiscard]] std::set<std::uint64_t> tasks() const;
  [[nodiscard]] std::set<std::uint64_t> described_tasks() const;
  /// Number of lines of a task that begin as records.
  [[nodiscard]] std::uint64_t lines_of(std::uint64_t task) const;

  /// The records of a task; none for an unknown task.
  [[nodiscard]] JournalIndex::Found find(std::uint64_t task) const;
  /// The task described in the journal; empty if it is not.
  [[nodiscard]] std::optional<Task> description(std::uint64_t task) const;
  /// Some record of a task, and of any task, found as `JournalIndex` finds them; empty if there is none.
  [[nodiscard]] std::optional<Record> first_record(std::uint64_t task) const;
  [[nodiscard]] std::optional<Record> any_record() const;

  /// Lines that are of no task, in order.
  [[nodiscard]] std::vector<BadLine> bad_lines() const;
  /// Number of these lines; costs nothing.
  [[nodiscard]] std::size_t bad_count() const noexcept;

 private:
  /// The text after the last complete line: a record, a description, or a bad line; nothing if there is no text.
  struct LastLine {
    std::optional<std::uint64_t> task;
    std::optional<Record> record;
    std::optional<Task> description;
    std::optional<BadLine> bad;
  };
  [[nodiscard]] static LastLine last_line_of(const JournalIndex& index);

  JournalIndex index_;
  LastLine last_;
};

}  // namespace tunewright::data

#if TUNEWRIGHT_DEFINES(journal)

#include <exception>

#include "tunewright/data/record_json.hpp"
#include "tunewright/data/task_json.hpp"

namespace tunewright::data {

TUNEWRIGHT_INLINE WholeJournal::WholeJournal(const std::string& path) : index_(path), last_(last_line_of(index_)) {}

TUNEWRIGHT_INLINE WholeJournal::LastLine WholeJournal::last_line_of(const JournalIndex& index) {
  LastLine last;
  const std::string text = index.last_text();
  if (text.empty()) return last;
  try {
    if (describes_task(text)) {
      last.description = task_from_line(text);
      last.task = stable_hash(*last.description);
    } else {
      last.record = from_line(text);
      last.task = last.record->task;
    }
  } catch (const std::exception&) {
    last.bad = BadLine{static_cast<std::size_t>(index.lines()) + 1, std::string(cut_short), is_of_newer_schema(text)};
  }
  return last;
}

TUNEWRIGHT_INLINE std::set<std::uint64_t> WholeJournal::tasks() const {
  std::set<std::uint64_t> tasks;
  for (const auto& [task, entry] : index_.tasks()) tasks.insert(task);
  if (last_.task) tasks.insert(*last_.task);
  return tasks;
}

TUNEWRIGHT_INLINE std::set<std::uint64_t> WholeJournal::described_tasks() const {
  std::set<std::uint64_t> tasks;
  for (const auto& [task, entry] : index_.tasks())
    if (entry.described_line != 0) tasks.insert(task);
  if (last_.description) tasks.insert(*last_.task);
  return tasks;
}

TUNEWRIGHT_INLINE std::uint64_t WholeJournal::lines_of(std::uint64_t task) const {
  const auto known = index_.tasks().find(task);
  return (known == index_.tasks().end() ? 0 : known->second.lines) + (last_.record && last_.task == task ? 1 : 0);
}

TUNEWRIGHT_INLINE JournalIndex::Found WholeJournal::find(std::uint64_t task) const {
  JournalIndex::Found found = index_.find(task);
  if (last_.record && last_.task == task) {
    found.records.push_back(*last_.record);
    found.lines.push_back(index_.lines() + 1);
  }
  return found;
}

TUNEWRIGHT_INLINE std::optional<Task> WholeJournal::description(std::uint64_t task) const {
  if (auto described = index_.description(task)) return described;
  return last_.task == task ? last_.description : std::nullopt;
}

TUNEWRIGHT_INLINE std::optional<Record> WholeJournal::first_record(std::uint64_t task) const {
  if (auto found = index_.first_record(task)) return found;
  return last_.task == task ? last_.record : std::nullopt;
}

TUNEWRIGHT_INLINE std::optional<Record> WholeJournal::any_record() const {
  if (auto found = index_.any_record()) return found;
  return last_.record;
}

TUNEWRIGHT_INLINE std::vector<BadLine> WholeJournal::bad_lines() const {
  std::vector<BadLine> bad = index_.bad_lines();
  if (last_.bad) bad.push_back(*last_.bad);
  return bad;
}

TUNEWRIGHT_INLINE std::size_t WholeJournal::bad_count() const noexcept {
  return static_cast<std::size_t>(index_.other_lines()) + (last_.bad ? 1 : 0);
}

}  // namespace tunewright::data

#endif
