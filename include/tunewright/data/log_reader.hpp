// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "tunewright/data/gzip.hpp"
#include "tunewright/data/import_report.hpp"
#include "tunewright/json/scanner.hpp"

namespace tunewright::data {

struct ImportOptions {
  std::size_t max_line_bytes = std::size_t{64} << 20;  ///< a longer line is reported and skipped
  std::size_t max_listed = 20;                         ///< bad lines listed with their reasons; all are counted
};

/// A log with one record per line, plain or gzip; lines that begin with '#' are comments, as in TVM. `Parser` has
/// `parse(line, record)`, which throws `FormatError` for a line that is not a record; it may cache text that repeats
/// from line to line.
template <class Record, class Parser>
class LogReader {
 public:
  using record_type = Record;

  /// Throws `std::runtime_error` if the file cannot be opened.
  explicit LogReader(const std::string& path, const ImportOptions& options = {})
      : lines_(path, options.max_line_bytes) {
    report_.file = path;
    report_.max_listed = options.max_listed;
  }

  /// Reads the next record into `record`, whose memory is reused; false at the end of the file.
  bool next(Record& record) {
    for (std::string_view line; lines_.next(line);) {
      ++report_.lines;
      if (lines_.too_long()) {
        report_.add_bad(lines_.number(), "longer than the limit");
        continue;
      }
      if (line.find_first_not_of(" \t") == std::string_view::npos || line.front() == '#') {
        ++report_.blank;
        continue;
      }
      try {
        parser_.parse(line, record);
      } catch (const FormatError& error) {
        report_.add_bad(lines_.number(), error.what());
        continue;
      }
      ++report_.records;
      if (!record.result.valid()) ++report_.failed;
      return true;
    }
    report_.damage = lines_.damage();
    return false;
  }

  /// The report so far; complete once `next` has returned false.
  [[nodiscard]] const ImportReport& report() const noexcept { return report_; }
  /// Line number of the last record, from 1.
  [[nodiscard]] std::size_t line() const noexcept { return lines_.number(); }

 private:
  GzipLines lines_;
  Parser parser_;
  ImportReport report_;
};

/// Calls `use(record)` for every record of a log and returns the report.
template <class Log, class F>
ImportReport read_log(const std::string& path, F&& use, const ImportOptions& options = {}) {
  Log log(path, options);
  for (typename Log::record_type record; log.next(record);) use(record);
  return log.report();
}

}  // namespace tunewright::data
