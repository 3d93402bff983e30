// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tunewright/data/bad_line.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright::data {

/// The result of reading one file: every line is a record, blank or bad. `lines == records + blank + bad`.
struct ImportReport {
  std::string file{};
  std::size_t lines = 0;
  std::size_t records = 0;
  std::size_t failed = 0;            ///< records without a latency; they are data, and part of `records`
  std::size_t blank = 0;             ///< lines without text, and comments
  std::size_t bad = 0;               ///< lines that are no record
  std::vector<BadLine> bad_lines{};  ///< the first ones; the list stops growing at `max_listed`
  std::string damage{};              ///< of the whole file, such as a truncated compressed stream
  std::size_t max_listed = 20;

  /// Whether every line was a record or blank and the file was undamaged.
  [[nodiscard]] bool complete() const noexcept { return bad == 0 && damage.empty(); }

  void add_bad(std::size_t line, std::string reason);
  /// Adds the counts of another file; its bad lines are listed with its name.
  ImportReport& operator+=(const ImportReport& other);
};

/// A summary line: "conv.log.gz: 1000 records (3 failed), 1 bad line; line 17: ...".
[[nodiscard]] std::string summary(const ImportReport& report);

}  // namespace tunewright::data

#if TUNEWRIGHT_DEFINES(data)

namespace tunewright::data {

TUNEWRIGHT_INLINE void ImportReport::add_bad(std::size_t line, std::string reason) {
  ++bad;
  if (bad_lines.size() < max_listed) bad_lines.push_back({line, std::move(reason)});
}

TUNEWRIGHT_INLINE ImportReport& ImportReport::operator+=(const ImportReport& other) {
  lines += other.lines;
  records += other.records;
  failed += other.failed;
  blank += other.blank;
  bad += other.bad;
  for (const BadLine& line : other.bad_lines) {
    if (bad_lines.size() < max_listed) bad_lines.push_back({line.number, other.file + ": " + line.reason});
  }
  if (!other.damage.empty()) {
    damage += damage.empty() ? "" : "; ";
    damage += other.file;
    damage += ": ";
    damage += other.damage;
  }
  return *this;
}

TUNEWRIGHT_INLINE std::string summary(const ImportReport& report) {
  std::string text =
      report.file + ": " + std::to_string(report.records) + " records (" + std::to_string(report.failed) + " failed)";
  if (report.bad > 0) text += ", " + std::to_string(report.bad) + (report.bad == 1 ? " bad line" : " bad lines");
  for (const BadLine& line : report.bad_lines) {
    text += "; line " + std::to_string(line.number) + ": " + line.reason;
  }
  if (report.bad > report.bad_lines.size()) {
    text += "; and " + std::to_string(report.bad - report.bad_lines.size()) + " more";
  }
  if (!report.damage.empty()) text += "; " + report.damage;
  return text;
}

}  // namespace tunewright::data

#endif
