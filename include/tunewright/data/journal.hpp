// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <ostream>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tunewright/core/clock.hpp"
#include "tunewright/core/observer.hpp"
#include "tunewright/core/record.hpp"
#include "tunewright/core/task.hpp"
#include "tunewright/core/weighted_task.hpp"
#include "tunewright/data/bad_line.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright::data {

/// The contents of a journal file.
struct JournalContents {
  std::vector<Record> records;            ///< in file order, of all tasks
  std::vector<std::size_t> record_lines;  ///< [records], their line numbers, from 1
  std::vector<Task> tasks;                ///< described, each once; `program::with_graph` completes one
  std::vector<BadLine> bad;               ///< skipped
  std::size_t lines = 0;
  std::size_t blank = 0;
};

/// Reads a journal. Truncated lines, garbage and newer schemas are skipped and listed; a missing file is empty. Throws
/// `std::runtime_error` if the file exists but cannot be read.
[[nodiscard]] JournalContents read_journal(const std::string& path);

/// Whether the file may be used as a journal: it does not exist, has no lines, or has a line that is a record or begins
/// like one, such as the truncated line of a killed writer. Lines cut within their first characters could also be
/// indented JSON, so they count only if there are no others.
[[nodiscard]] bool is_journal(const std::string& path);

/// Throws `std::runtime_error` for a journal that is to be read and is missing, a folder, or not a journal.
void check_journal(const std::string& path);

/// Observer that stores every measurement as soon as it is known, one line each, and recalls them in the next run of
/// the same task:
///
///   data::Journal journal{{.path = "matmul.jsonl"}};
///   tuner.run(task, {.trials = 500}, journal);   // killed after 300 and started again, it measures 200
///
/// Before the first record of a new task it writes a line that describes the task (`to_line(task)`), so that a journal
/// alone is enough for training: see `data::read_journals`.
///
/// A line is written by a single write to a file opened for appending, so killing the process loses at most the line
/// being written, and the next writer starts a new line. Several tasks may share a file. A file with only tasks of
/// other runs is an error, unless `many_tasks` is set.
///
/// A file in which no line begins like a record is not a journal: it is rejected and left unchanged.
///
/// `sync_each_line` is off by default: the system keeps written data when the process dies, so only a crash of the
/// machine can lose more.
class Journal {
 public:
  struct Options {
    std::string path;
    bool many_tasks = false;              ///< for several tasks: a file without records of this one is no error
    bool sync_each_line = false;          ///< wait for the disk: survives a crash of the machine
    Clock clock = calendar_seconds();     ///< time stamps only; not empty
    std::ostream* warnings = &std::clog;  ///< reports skipped lines once; null: silent
    /// Larger files are recalled through a `JournalIndex`, a file beside the journal.
    std::uint64_t index_above_bytes = std::uint64_t{16} << 20;
  };

  /// Opens the file, creating it if needed; a file that is there stays as it is until the first record. Throws
  /// `std::runtime_error` if it cannot be written or is not a journal, and `std::invalid_argument` for an empty clock.
  explicit Journal(Options options);
  Journal(Journal&& other) noexcept
      : options_(std::move(other.options_)),
        described_(std::move(other.described_)),
        fd_(std::exchange(other.fd_, -1)) {}
  Journal& operator=(Journal&&) = delete;
  ~Journal() {
    if (fd_ >= 0) ::close(fd_);
  }

  [[nodiscard]] const std::string& path() const noexcept { return options_.path; }

  /// Appends one record, stamped with the time. Throws `std::invalid_argument`, before writing anything, for a number
  /// that readers reject, as `write_journal` does, and `std::runtime_error` if the file cannot be written or, with
  /// `sync_each_line`, does not reach the disk.
  void append(Record record);

  /// Appends a description of the task, unless the file has one. A run does this itself; call it when appending records
  /// by hand, to make the journal complete. Throws `std::invalid_argument` for a member that readers reject, as
  /// `write_journal` does.
  void describe(const Task& task);

  // Observer hooks.

  /// The records of `task`. Throws `std::runtime_error` if there are records, but only of other tasks.
  [[nodiscard]] std::vector<Record> recall(const Task& task);

  /// The records of a network's tasks, in file order. Throws as above if there are none of its tasks.
  [[nodiscard]] std::vector<Record> recall(std::span<const WeightedTask> tasks);

  void on_record(const Record& record, const RunStatus& status) {
    describe(status.task);
    append(record);
  }

 private:
  /// Begins on a fresh line if the last one has no end: its writer, which may be another program, was killed, or the
  /// disk was full.
  void write_all(std::string text);

  /// The lines of `wanted` tasks and, if there are none, some record of another task.
  [[nodiscard]] JournalContents read(const std::set<std::uint64_t>& wanted);
  [[nodiscard]] bool read_by_index(const std::set<std::uint64_t>& wanted, JournalContents& contents);

  void warn(const JournalContents& contents) const;

  Options options_;
  std::optional<std::set<std::uint64_t>> described_;  // tasks that the file describes, as last read
  int fd_ = -1;
};

/// The fastest valid record of `task` in a journal, if any; `space.decode(task, record->config)` restores its
/// configuration. Reads line by line, so memory does not grow with the journal. Throws as `read_journal` does.
[[nodiscard]] std::optional<Record> best_record(const std::string& path, const Task& task);

}  // namespace tunewright::data

#if TUNEWRIGHT_DEFINES(journal)

#include "tunewright/core/uninterrupted.hpp"
#include "tunewright/data/journal_index.hpp"
#include "tunewright/data/journal_index/line_head.hpp"
#include "tunewright/data/positioned_io.hpp"
#include "tunewright/data/record_json.hpp"
#include "tunewright/data/task_json.hpp"
#include "tunewright/data/whole_journal.hpp"

namespace tunewright::data::journal_detail {

/// Calls use(number from 1, line, whether it has no newline) for each line of a journal. Returns their number; a
/// missing file has none. Throws `std::runtime_error` if the file exists but cannot be read.
template <class F>
std::size_t for_each_line(const std::string& path, const F& use) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0 && errno == ENOENT) return 0;
  std::ifstream file(path, std::ios::binary);
  if (!file || S_ISDIR(status.st_mode)) {
    throw std::runtime_error("cannot read journal '" + path +
                             "'; name a readable file, or one that does not exist yet");
  }
  std::size_t lines = 0;
  for (std::string line; std::getline(file, line);) use(++lines, std::as_const(line), file.eof());
  if (file.bad()) {
    throw std::runtime_error("cannot read journal '" + path + "' beyond line " + std::to_string(lines) +
                             "; copy it to a disk that works");
  }
  return lines;
}

}  // namespace tunewright::data::journal_detail

namespace tunewright::data {

TUNEWRIGHT_INLINE JournalContents read_journal(const std::string& path) {
  JournalContents contents;
  std::set<std::uint64_t> described;
  contents.lines = journal_detail::for_each_line(path, [&](std::size_t number, const std::string& line, bool is_cut) {
    if (line.empty()) {
      ++contents.blank;
      return;
    }
    try {
      if (describes_task(line)) {
        Task task = task_from_line(line);
        if (described.insert(stable_hash(task)).second) contents.tasks.push_back(std::move(task));
      } else {
        contents.records.push_back(from_line(line));
        contents.record_lines.push_back(number);
      }
    } catch (const std::exception& error) {
      // A last line without a newline is that of a writer that was killed.
      contents.bad.push_back({number, is_cut ? std::string(cut_short) : error.what()});
    }
  });
  return contents;
}

TUNEWRIGHT_INLINE bool is_journal(const std::string& path) {
  constexpr std::string_view begin = "{\"schema\":";
  std::ifstream file(path, std::ios::binary);
  bool all_cut_short = true;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(begin)) return true;
    if (begin.starts_with(line)) continue;  // blank, or so short that the other lines decide
    try {
      static_cast<void>(from_line(line));
      return true;
    } catch (const std::exception&) {
      all_cut_short = false;
    }
  }
  return all_cut_short;
}

TUNEWRIGHT_INLINE void check_journal(const std::string& path) {
  constexpr const char* fix = "; name a file that data::Journal or data::write_journal wrote";
  if (!std::filesystem::exists(path)) throw std::runtime_error("there is no journal '" + path + "'" + fix);
  if (std::filesystem::is_directory(path)) throw std::runtime_error("'" + path + "' is a folder, not a journal" + fix);
  if (!is_journal(path)) throw std::runtime_error("'" + path + "' is no journal: none of its lines is a record" + fix);
}

TUNEWRIGHT_INLINE Journal::Journal(Options options) : options_(std::move(options)) {
  if (!options_.clock) {
    throw std::invalid_argument("Journal '" + options_.path +
                                "': the clock is empty; give one, or leave the default, calendar_seconds()");
  }
  if (!is_journal(options_.path)) {
    throw std::runtime_error("'" + options_.path +
                             "' is no journal: none of its lines is a record, and it was left as it is; name "
                             "another file, or one that does not exist yet");
  }
  fd_ = uninterrupted([&] { return ::open(options_.path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0644); });
  if (fd_ < 0) {
    throw std::runtime_error("cannot write journal '" + options_.path + "': " + std::strerror(errno) +
                             "; create the folder, or name a file you may write");
  }
}

TUNEWRIGHT_INLINE void Journal::append(Record record) {
  record.timestamp = options_.clock();
  if (const std::string refused = record_json::refused_number(record); !refused.empty()) {
    throw std::invalid_argument("journal '" + options_.path + "': candidate " + to_hex(record.key) + " of task '" +
                                record.task_name + "' has " + refused);
  }
  write_all(to_line(record) + '\n');
  if (options_.sync_each_line && uninterrupted([&] { return ::fdatasync(fd_); }) != 0) {
    throw std::runtime_error("journal '" + options_.path + "' does not reach the disk: " + std::strerror(errno) +
                             "; name a file on a disk that works, or leave out sync_each_line");
  }
}

TUNEWRIGHT_INLINE void Journal::describe(const Task& task) {
  if (!described_) static_cast<void>(read({}));
  if (described_->contains(stable_hash(task))) return;
  if (const std::string refused = refused_member(task); !refused.empty())
    throw std::invalid_argument("journal '" + options_.path + "': of task '" + task.name + "', " + refused);
  write_all(to_line(task) + '\n');
  described_->insert(stable_hash(task));
}

TUNEWRIGHT_INLINE std::vector<Record> Journal::recall(const Task& task) {
  const WeightedTask only{task};
  return recall(std::span(&only, 1));
}

TUNEWRIGHT_INLINE std::vector<Record> Journal::recall(std::span<const WeightedTask> tasks) {
  std::set<std::uint64_t> wanted;
  for (const WeightedTask& one : tasks) wanted.insert(stable_hash(one.task));
  const JournalContents contents = read(wanted);
  if (options_.warnings != nullptr && !contents.bad.empty()) warn(contents);
  std::vector<Record> own;
  for (const Record& record : contents.records) {
    if (wanted.contains(record.task)) own.push_back(record);
  }
  if (own.empty() && !contents.records.empty() && !tasks.empty() && !options_.many_tasks) {
    const Record& other = contents.records.front();
    const Task& task = tasks.front().task;
    const std::string others =
        tasks.size() == 1 ? "" : " or another of its network of " + std::to_string(tasks.size()) + " tasks";
    throw std::runtime_error(
        "journal '" + options_.path + "' belongs to task '" + other.task_name + "' on '" + other.target_name + "' (" +
        to_hex(other.task) + "), not to '" + task.name + "' on '" + task.target.name + "' (" +
        to_hex(stable_hash(task)) + ")" + others +
        "; give this task a journal of its own, or set many_tasks among the options of the journal");
  }
  return own;
}

TUNEWRIGHT_INLINE JournalContents Journal::read(const std::set<std::uint64_t>& wanted) {
  described_.emplace();
  JournalContents contents;
  const off_t size = ::lseek(fd_, 0, SEEK_END);
  if (size > 0 && static_cast<std::uint64_t>(size) > options_.index_above_bytes && read_by_index(wanted, contents))
    return contents;
  contents = read_journal(options_.path);
  for (const Task& task : contents.tasks) described_->insert(stable_hash(task));
  return contents;
}

TUNEWRIGHT_INLINE bool Journal::read_by_index(const std::set<std::uint64_t>& wanted, JournalContents& contents) {
  try {
    const WholeJournal journal(options_.path);
    std::vector<std::pair<std::uint64_t, Record>> found;  // with the number of the line
    for (const std::uint64_t task : wanted) {
      JournalIndex::Found of_task = journal.find(task);
      for (std::size_t i = 0; i < of_task.records.size(); ++i)
        found.emplace_back(of_task.lines[i], std::move(of_task.records[i]));
      contents.bad.insert(contents.bad.end(), of_task.bad.begin(), of_task.bad.end());
    }
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (auto& [line, record] : found) {
      contents.records.push_back(std::move(record));
      contents.record_lines.push_back(static_cast<std::size_t>(line));
    }
    if (contents.records.empty()) {
      if (auto other = journal.any_record()) contents.records.push_back(*std::move(other));
    }
    for (BadLine& bad : journal.bad_lines()) contents.bad.push_back(std::move(bad));
    std::sort(contents.bad.begin(), contents.bad.end(),
              [](const BadLine& a, const BadLine& b) { return a.number < b.number; });
    contents.lines = journal.lines();
    described_ = journal.described_tasks();
    return true;
  } catch (const std::runtime_error& error) {
    // A folder that cannot be written has no index; the whole journal is read.
    if (options_.warnings != nullptr)
      *options_.warnings << error.what() << "; reading the whole journal\n" << std::flush;
    contents = {};
    return false;
  }
}

TUNEWRIGHT_INLINE void Journal::write_all(std::string text) {
  // A file without a name, such as one in memory, may still be found where it was opened.
  struct stat own{}, there{};
  const bool is_known = ::fstat(fd_, &own) == 0;
  if (is_known && own.st_nlink == 0 &&
      (::stat(options_.path.c_str(), &there) != 0 || there.st_ino != own.st_ino || there.st_dev != own.st_dev)) {
    throw std::runtime_error("journal '" + options_.path +
                             "' was replaced or removed while it was open; start again: the run goes on from the file "
                             "that is there now");
  }
  char last = '\n';  // that another program may have written since
  if (is_known && own.st_size > 0 && read_at(fd_, static_cast<std::uint64_t>(own.st_size - 1), &last, 1) &&
      last != '\n')
    text.insert(0, 1, '\n');
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = uninterrupted([&] { return ::write(fd_, text.data() + done, text.size() - done); });
    if (written < 0) {
      throw std::runtime_error("cannot write journal '" + options_.path + "': " + std::strerror(errno) +
                               "; free some space, then start again: everything measured so far is kept");
    }
    done += static_cast<std::size_t>(written);
  }
}

TUNEWRIGHT_INLINE void Journal::warn(const JournalContents& contents) const {
  constexpr std::size_t shown = 3;
  std::ostream& out = *options_.warnings;
  out << "journal '" << options_.path << "': " << contents.bad.size() << " of " << contents.lines << " lines skipped";
  for (std::size_t i = 0; i < contents.bad.size() && i < shown; ++i) {
    out << "; line " << contents.bad[i].number << ": " << contents.bad[i].reason;
  }
  if (contents.bad.size() > shown) out << "; and " << contents.bad.size() - shown << " more";
  out << '\n' << std::flush;
}

TUNEWRIGHT_INLINE std::optional<Record> best_record(const std::string& path, const Task& task) {
  const std::uint64_t wanted = stable_hash(task);
  std::optional<Record> best;
  journal_detail::for_each_line(path, [&](std::size_t, const std::string& line, bool) {
    const journal_index::LineHead head = journal_index::head_of(line);
    if (line.empty() || (head.schema != 0 && head.task != wanted)) return;
    try {
      Record record = from_line(line);
      if (record.task != wanted || !record.outcome.valid()) return;
      if (!best || record.outcome.timing()->median < best->outcome.timing()->median) best = std::move(record);
    } catch (const std::exception&) {  // no record
    }
  });
  return best;
}

}  // namespace tunewright::data

#endif
