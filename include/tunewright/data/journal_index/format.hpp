// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tunewright/core/hash.hpp"

/// The file of a `JournalIndex`: a header, runs of lines in order of appearance, and the tasks. Numbers have 64 bits in
/// the machine's byte order.
namespace tunewright::data::journal_index {

inline constexpr std::uint64_t magic = 0x3230584449525754;  // "TWRIDX02"
/// Number of bytes at the beginning and before the end of the covered part that identify a journal.
inline constexpr std::uint64_t hashed_bytes = 4096;

/// The index entry of a task.
struct TaskEntry {
  std::uint64_t lines = 0;           ///< that say they are records of the task
  std::uint64_t last = 0;            ///< number of the last run of lines, from 1; 0: there are none
  std::uint64_t described_at = 0;    ///< first byte of the line that describes the task
  std::uint64_t described_line = 0;  ///< its number, from 1; 0: there is none
};

/// Consecutive lines of one task, linked to the task's previous run.
struct Run {
  std::uint64_t offset = 0;    ///< in the journal
  std::uint64_t previous = 0;  ///< number of the task's run before this one, from 1
  std::uint64_t line = 0;      ///< of the first, from 1
  std::uint64_t bytes = 0;
  std::uint64_t lines = 0;
};

struct Header {
  std::uint64_t magic = 0, covered = 0, lines = 0, other_lines = 0, runs = 0, tasks = 0, last_other = 0;
  std::uint64_t first_bytes = 0;  ///< hash of the journal's
  std::uint64_t last_bytes = 0;   ///< hash of those before `covered`
  std::uint64_t table = 0;        ///< hash of the tasks
  std::uint64_t checksum = 0;     ///< of the above
};

/// An entry of the table of tasks, which follows the runs.
struct StoredTask {
  std::uint64_t task, lines, last, described_at, described_line;
};

/// Offset in the file of the run with `runs` runs before it.
[[nodiscard]] constexpr std::uint64_t offset_of_run(std::uint64_t runs) { return sizeof(Header) + runs * sizeof(Run); }

inline void add(StableHash& hash, const StoredTask& stored) {
  for (const std::uint64_t value : {stored.task, stored.lines, stored.last, stored.described_at, stored.described_line})
    hash.add(value);
}

[[nodiscard]] inline std::uint64_t checksum_of(const Header& header) {
  StableHash hash;
  for (const std::uint64_t value :
       {header.magic, header.covered, header.lines, header.other_lines, header.runs, header.tasks, header.last_other,
        header.first_bytes, header.last_bytes, header.table})
    hash.add(value);
  return hash.value();
}

}  // namespace tunewright::data::journal_index
