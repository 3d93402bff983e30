// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tunewright/core/reason_counts.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright::data {

/// The result of reading journals: every line is a used record, describes a task, is blank, or was skipped. `lines ==
/// records + tasks + blank + skipped()`.
struct JournalReport {
  struct Line {
    std::string file;
    std::size_t number = 0;  ///< from 1
    std::string reason;      ///< for people
    bool operator==(const Line&) const = default;
  };

  std::size_t files = 0;
  std::size_t lines = 0;
  std::size_t records = 0;
  std::size_t failed = 0;       ///< records without a latency; they are data, and part of `records`
  std::size_t undescribed = 0;  ///< records whose programs the featurizer cannot describe; part of `records`
  std::size_t tasks = 0;        ///< lines that describe one
  std::size_t blank = 0;
  ReasonCounts reasons{};      ///< lines skipped, by reason
  std::vector<Line> listed{};  ///< the first of them, file by file; the list stops growing at `max_listed`
  std::size_t max_listed = 20;

  [[nodiscard]] std::size_t skipped() const noexcept {
    std::size_t sum = 0;
    for (const auto& [reason, count] : reasons) sum += count;
    return sum;
  }

  /// Counts a line under `kind`; `reason` may give details.
  void skip(const std::string& file, std::size_t number, const std::string& kind, const std::string& reason = {});
};

/// A summary line: "2 journals: 410 records (3 failed); 5 lines skipped: 4 another compiler, 1 no record; a.jsonl:17:
/// another compiler; ...".
[[nodiscard]] std::string summary(const JournalReport& report);

}  // namespace tunewright::data

#if TUNEWRIGHT_DEFINES(data)

namespace tunewright::data {

TUNEWRIGHT_INLINE void JournalReport::skip(const std::string& file, std::size_t number, const std::string& kind,
                                           const std::string& reason) {
  ++reasons[kind];
  if (listed.size() < max_listed) listed.push_back({file, number, reason.empty() ? kind : reason});
}

TUNEWRIGHT_INLINE std::string summary(const JournalReport& report) {
  const auto count = [](std::size_t n, const char* one, const char* many) {
    return std::to_string(n) + ' ' + (n == 1 ? one : many);
  };
  std::string text = count(report.files, "journal", "journals") + ": " + count(report.records, "record", "records") +
                     " (" + std::to_string(report.failed) + " failed)";
  if (report.undescribed > 0) text += ", " + std::to_string(report.undescribed) + " not described";
  if (report.skipped() == 0) return text;
  text += "; " + count(report.skipped(), "line skipped", "lines skipped");
  const char* separator = ": ";
  for (const auto& [reason, lines] : report.reasons) {
    text += separator + std::to_string(lines) + ' ' + reason;
    separator = ", ";
  }
  for (const JournalReport::Line& line : report.listed)
    text += "; " + line.file + ':' + std::to_string(line.number) + ": " + line.reason;
  if (report.skipped() > report.listed.size())
    text += "; and " + std::to_string(report.skipped() - report.listed.size()) + " more";
  return text;
}

}  // namespace tunewright::data

#endif
