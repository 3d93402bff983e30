// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "tunewright/data/auto_scheduler_log/record.hpp"
#include "tunewright/data/auto_scheduler_log/text.hpp"
#include "tunewright/data/log_reader.hpp"

namespace tunewright::data {

/// Reads logs of TVM's auto_scheduler ("Ansor"), formats v0.2 to v0.6, plain or gzip, record by record:
///
///   data::AutoSchedulerLog log("conv.log.gz");
///   for (data::AutoSchedulerRecord record; log.next(record);) use(record);
///   std::cout << summary(log.report());
///
/// A line that is not a record is counted and listed with its reason, never thrown. Memory is bounded by the longest
/// line. Records of one task share its description.
/// Units: seconds, as in the format.
using AutoSchedulerLog = LogReader<AutoSchedulerRecord, ansor::LineParser>;

/// Parses one line. Throws `FormatError` with the column and what was expected there.
[[nodiscard]] inline AutoSchedulerRecord parse_auto_scheduler_line(std::string_view line) {
  AutoSchedulerRecord record;
  ansor::LineParser().parse(line, record);
  return record;
}

/// The record as one line of a log, without the line end; reading it gives an equal record. Throws
/// `std::invalid_argument` for a record without a task.
[[nodiscard]] inline std::string to_line(const AutoSchedulerRecord& record) { return ansor::write_line(record); }

}  // namespace tunewright::data
