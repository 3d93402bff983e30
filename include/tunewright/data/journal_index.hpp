// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tunewright/core/record.hpp"
#include "tunewright/core/task.hpp"
#include "tunewright/data/bad_line.hpp"
#include "tunewright/data/journal_index/format.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright::data {

/// An index of the records of each task in a journal, stored beside it (`<journal>.index`), so that recalling one task
/// of a large journal takes time proportional to that task's records and not to the file.
///
/// The index covers complete lines up to some byte. Opening it reads what was appended since. It is rebuilt if it is
/// missing, of another version, damaged, or of another journal: the journal is shorter, or its first bytes or those
/// before the end of the covered part differ. The index is only a hint: every line is read and checked again when its
/// task is recalled. Where this user may not write it, a temporary one is made in memory.
///
/// Cost:        opening: one pass over new data; memory: under 100 bytes per task, plus two MiB. On disk: 40 bytes for
///              each run of lines of one task, at most that per record.
/// Errors:      `std::runtime_error` if the journal cannot be read or the index cannot be written. A damaged index is
///              rebuilt; where only a call after opening finds the damage, it throws, and the next opening rebuilds it.
class JournalIndex {
 public:
  /// Path of the index of a journal.
  [[nodiscard]] static std::string path_of(const std::string& journal) { return journal + ".index"; }

  /// Opens the index of an existing journal and updates it.
  explicit JournalIndex(const std::string& journal);
  JournalIndex(JournalIndex&& other) noexcept;
  JournalIndex& operator=(JournalIndex&&) = delete;
  ~JournalIndex();

  using TaskEntry = journal_index::TaskEntry;
  /// Entries by the hash of their task.
  [[nodiscard]] const std::map<std::uint64_t, TaskEntry>& tasks() const noexcept { return tasks_; }
  /// Number of complete lines of the journal, including blank ones.
  [[nodiscard]] std::uint64_t lines() const noexcept { return header_.lines; }
  /// Lines that neither begin as a record nor describe a task.
  [[nodiscard]] std::uint64_t other_lines() const noexcept { return header_.other_lines; }
  /// Bytes of the journal that were read to open it.
  [[nodiscard]] std::uint64_t bytes_read() const noexcept { return bytes_read_; }

  struct Found {
    std::vector<Record> records;       ///< in file order
    std::vector<std::uint64_t> lines;  ///< [records], where they stand, from 1
    std::vector<BadLine> bad;          ///< lines of the task that are no records; skipped
  };
  /// The records of a task; none for an unknown task.
  [[nodiscard]] Found find(std::uint64_t task) const;
  /// The first valid record among the latest lines of the task, at a cost of at most one MiB; empty if there is none.
  [[nodiscard]] std::optional<Record> first_record(std::uint64_t task) const;
  /// A record of some task, for messages.
  [[nodiscard]] std::optional<Record> any_record() const;
  /// Whether there is text after the last complete line: a writer was killed, or is writing now.
  [[nodiscard]] bool ends_within_a_line() const;
  /// The text after the last complete line: a line cut short, or a whole one without its newline. Empty if there is
  /// none.
  [[nodiscard]] std::string last_text() const;
  /// The task described in the journal; empty if it is not.
  [[nodiscard]] std::optional<Task> description(std::uint64_t task) const;
  /// The errors of lines that belong to no task.
  [[nodiscard]] std::vector<BadLine> bad_lines() const;

 private:
  using Run = journal_index::Run;

  [[nodiscard]] bool load();
  [[nodiscard]] bool is_of_this_journal() const;
  void extend();
  void store();
  [[nodiscard]] std::vector<Run> chain(std::uint64_t last, std::uint64_t lines) const;
  [[nodiscard]] Run run_at(std::uint64_t number) const;
  template <class F>
  void for_each_line(const Run& run, const F& use) const;
  void read_run(const Run& run, std::uint64_t task, Found& found) const;
  /// The error of an index whose lines are wrong, after making sure that nobody opens it as it is.
  [[nodiscard]] std::runtime_error damaged() const;
  [[nodiscard]] std::string text_at(std::uint64_t offset, std::uint64_t bytes) const;
  [[nodiscard]] std::uint64_t hash_of(std::uint64_t begin, std::uint64_t end) const;
  void close() noexcept;

  std::string journal_;
  int journal_fd_ = -1, index_fd_ = -1;
  journal_index::Header header_;
  std::map<std::uint64_t, TaskEntry> tasks_;
  std::uint64_t bytes_read_ = 0;
};

}  // namespace tunewright::data

#if TUNEWRIGHT_DEFINES(journal)

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

#include "tunewright/core/hash.hpp"
#include "tunewright/core/uninterrupted.hpp"
#include "tunewright/data/journal_index/builder.hpp"
#include "tunewright/data/positioned_io.hpp"
#include "tunewright/data/record_json.hpp"
#include "tunewright/data/task_json.hpp"

namespace tunewright::data {

TUNEWRIGHT_INLINE JournalIndex::JournalIndex(const std::string& journal) : journal_(journal) {
  const auto refuse = [&](const std::string& path, const char* what) {
    const std::string reason = std::strerror(errno);
    close();
    throw std::runtime_error("cannot " + std::string(what) + " '" + path + "': " + reason);
  };
  journal_fd_ = uninterrupted([&] { return ::open(journal.c_str(), O_RDONLY | O_CLOEXEC); });
  if (journal_fd_ < 0) refuse(journal, "read journal");
  const std::string path = path_of(journal);
  index_fd_ = uninterrupted([&] { return ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644); });
  if (index_fd_ < 0 && (errno == EACCES || errno == EPERM || errno == EROFS)) {
    if (const int in_memory = ::memfd_create("journal.index", MFD_CLOEXEC); in_memory >= 0) index_fd_ = in_memory;
  }
  if (index_fd_ < 0) refuse(path, "write the journal's index");
  try {
    // Several programs may open one journal; only one at a time updates the index.
    static_cast<void>(uninterrupted([&] { return ::flock(index_fd_, LOCK_EX); }));
    if (!load() || !is_of_this_journal()) {
      header_ = {};
      header_.magic = journal_index::magic;
      tasks_.clear();
    }
    extend();
    ::flock(index_fd_, LOCK_UN);
  } catch (...) {
    close();
    throw;
  }
}

TUNEWRIGHT_INLINE JournalIndex::JournalIndex(JournalIndex&& other) noexcept
    : journal_(std::move(other.journal_)),
      journal_fd_(std::exchange(other.journal_fd_, -1)),
      index_fd_(std::exchange(other.index_fd_, -1)),
      header_(other.header_),
      tasks_(std::move(other.tasks_)),
      bytes_read_(other.bytes_read_) {}

TUNEWRIGHT_INLINE JournalIndex::~JournalIndex() { close(); }

TUNEWRIGHT_INLINE void JournalIndex::close() noexcept {
  if (journal_fd_ >= 0) ::close(std::exchange(journal_fd_, -1));
  if (index_fd_ >= 0) ::close(std::exchange(index_fd_, -1));
}

TUNEWRIGHT_INLINE bool JournalIndex::load() {
  if (!read_at(index_fd_, 0, &header_, sizeof header_)) return false;
  if (header_.magic != journal_index::magic || header_.checksum != journal_index::checksum_of(header_)) return false;
  std::uint64_t at = journal_index::offset_of_run(header_.runs);
  StableHash table;
  for (std::uint64_t t = 0; t < header_.tasks; ++t, at += sizeof(journal_index::StoredTask)) {
    journal_index::StoredTask stored{};
    if (!read_at(index_fd_, at, &stored, sizeof stored)) return false;
    journal_index::add(table, stored);
    tasks_[stored.task] = {stored.lines, stored.last, stored.described_at, stored.described_line};
  }
  return table.value() == header_.table;
}

TUNEWRIGHT_INLINE std::uint64_t JournalIndex::hash_of(std::uint64_t begin, std::uint64_t end) const {
  return StableHash().add(std::string_view(text_at(begin, end - begin))).value();
}

TUNEWRIGHT_INLINE bool JournalIndex::is_of_this_journal() const {
  struct stat status{};
  if (::fstat(journal_fd_, &status) != 0 || static_cast<std::uint64_t>(status.st_size) < header_.covered) return false;
  const std::uint64_t some = std::min(journal_index::hashed_bytes, header_.covered);
  return hash_of(0, some) == header_.first_bytes &&
         hash_of(header_.covered - some, header_.covered) == header_.last_bytes;
}

TUNEWRIGHT_INLINE void JournalIndex::extend() {
  journal_index::Builder builder(index_fd_, header_, tasks_);
  const std::uint64_t before = header_.covered;
  LineReader lines(journal_fd_, header_.covered);
  std::uint64_t offset = 0;
  for (std::string_view line; lines.next(line, offset);) {
    builder.add(offset, line);
    header_.covered = offset + line.size() + 1;
  }
  bytes_read_ = header_.covered - before;
  if (bytes_read_ == 0 && header_.checksum != 0) return;
  // The header is written last: a process killed before leaves an index with a wrong checksum, or the previous one with
  // an overwritten table, which is detected too.
  builder.flush();
  store();
}

TUNEWRIGHT_INLINE void JournalIndex::store() {
  StableHash hash;
  BufferedWriter table(index_fd_, journal_index::offset_of_run(header_.runs));
  for (const auto& [task, entry] : tasks_) {
    const journal_index::StoredTask stored{task, entry.lines, entry.last, entry.described_at, entry.described_line};
    journal_index::add(hash, stored);
    table.append(&stored, sizeof stored);
  }
  table.flush();
  const std::uint64_t some = std::min(journal_index::hashed_bytes, header_.covered);
  header_.tasks = tasks_.size();
  header_.first_bytes = hash_of(0, some);
  header_.last_bytes = hash_of(header_.covered - some, header_.covered);
  header_.table = hash.value();
  header_.checksum = journal_index::checksum_of(header_);
  BufferedWriter head(index_fd_, 0);
  head.append(&header_, sizeof header_);
  head.flush();
}

TUNEWRIGHT_INLINE std::runtime_error JournalIndex::damaged() const {
  const journal_index::Header none{};
  static_cast<void>(uninterrupted([&] { return ::pwrite(index_fd_, &none, sizeof none, 0); }));
  return std::runtime_error("the index '" + path_of(journal_) + "' of journal '" + journal_ +
                            "' is damaged; it is made again when the journal is next opened");
}

TUNEWRIGHT_INLINE std::vector<JournalIndex::Run> JournalIndex::chain(std::uint64_t last, std::uint64_t lines) const {
  std::vector<Run> runs;
  while (last != 0) {
    runs.push_back(run_at(last));
    last = runs.back().previous;
    lines -= std::min(lines, runs.back().lines);
  }
  if (lines != 0) throw damaged();
  std::reverse(runs.begin(), runs.end());
  return runs;
}

TUNEWRIGHT_INLINE std::string JournalIndex::text_at(std::uint64_t offset, std::uint64_t bytes) const {
  std::string text(bytes, '\0');
  if (!read_at(journal_fd_, offset, text.data(), bytes))
    throw std::runtime_error("cannot read journal '" + journal_ + "': it became shorter while it was read");
  return text;
}

TUNEWRIGHT_INLINE JournalIndex::Run JournalIndex::run_at(std::uint64_t number) const {
  Run run;
  // Earlier runs have smaller numbers, so even a damaged chain ends.
  if (number > header_.runs || !read_at(index_fd_, journal_index::offset_of_run(number - 1), &run, sizeof run) ||
      run.previous >= number || run.offset > header_.covered || run.bytes > header_.covered - run.offset) {
    throw damaged();
  }
  return run;
}

template <class F>
void JournalIndex::for_each_line(const Run& run, const F& use) const {
  const std::string text = text_at(run.offset, run.bytes);
  std::uint64_t number = run.line;
  for (std::string_view rest = text; !rest.empty(); ++number) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    use(number, line);
  }
}

TUNEWRIGHT_INLINE void JournalIndex::read_run(const Run& run, std::uint64_t task, Found& found) const {
  for_each_line(run, [&](std::uint64_t number, std::string_view line) {
    try {
      Record record = from_line(line);
      if (record.task != task) throw std::runtime_error("a record of another task than it was; was the file edited?");
      found.records.push_back(std::move(record));
      found.lines.push_back(number);
    } catch (const std::exception& error) {
      found.bad.push_back({static_cast<std::size_t>(number), error.what()});
    }
  });
}

TUNEWRIGHT_INLINE JournalIndex::Found JournalIndex::find(std::uint64_t task) const {
  Found found;
  const auto known = tasks_.find(task);
  if (known == tasks_.end()) return found;
  for (const Run& run : chain(known->second.last, known->second.lines)) read_run(run, task, found);
  return found;
}

TUNEWRIGHT_INLINE std::optional<Record> JournalIndex::first_record(std::uint64_t task) const {
  const auto known = tasks_.find(task);
  if (known == tasks_.end() || known->second.last == 0) return std::nullopt;
  Found found;
  read_run(run_at(known->second.last), task, found);
  if (found.records.empty()) return std::nullopt;
  return std::move(found.records.front());
}

TUNEWRIGHT_INLINE std::optional<Record> JournalIndex::any_record() const {
  for (const auto& [task, entry] : tasks_) {
    if (auto record = first_record(task)) return record;
  }
  return std::nullopt;
}

TUNEWRIGHT_INLINE bool JournalIndex::ends_within_a_line() const {
  struct stat status{};
  return ::fstat(journal_fd_, &status) == 0 && static_cast<std::uint64_t>(status.st_size) > header_.covered;
}

TUNEWRIGHT_INLINE std::string JournalIndex::last_text() const {
  LineReader lines(journal_fd_, header_.covered);
  std::uint64_t offset = 0;
  std::string_view line;
  // A writer may have completed the line meanwhile.
  return std::string(lines.next(line, offset) ? line : lines.rest());
}

TUNEWRIGHT_INLINE std::optional<Task> JournalIndex::description(std::uint64_t task) const {
  const auto known = tasks_.find(task);
  if (known == tasks_.end() || known->second.described_line == 0) return std::nullopt;
  LineReader lines(journal_fd_, known->second.described_at);
  std::uint64_t offset = 0;
  std::string_view line;
  if (!lines.next(line, offset)) return std::nullopt;
  try {
    Task described = task_from_line(line);
    if (stable_hash(described) == task) return described;
  } catch (const std::exception&) {  // damaged since, or ever
  }
  return std::nullopt;
}

TUNEWRIGHT_INLINE std::vector<BadLine> JournalIndex::bad_lines() const {
  std::vector<BadLine> bad;
  for (const Run& run : chain(header_.last_other, header_.other_lines)) {
    for_each_line(run, [&](std::uint64_t number, std::string_view line) {
      const bool is_newer = is_of_newer_schema(line);
      std::string reason = "neither a record nor the description of a task";
      try {
        if (describes_task(line))
          static_cast<void>(task_from_line(line));
        else
          static_cast<void>(from_line(line));
      } catch (const std::exception& error) {
        reason = error.what();
      }
      bad.push_back({static_cast<std::size_t>(number), std::move(reason), is_newer});
    });
  }
  return bad;
}

}  // namespace tunewright::data

#endif
