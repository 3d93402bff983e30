// SPDX-License-Identifier: Apache-2.0
// A log of AutoTVM, plain or gzip. Every line is a record, blank or bad; a record is written again and reads equal, and
// its outcome is one that journals take.
#include <string>

#include "fuzz/fuzz.hpp"
#include "fuzz/memory_file.hpp"
#include "tunewright/data/autotvm_log.hpp"
#include "tunewright/data/record_json.hpp"

using namespace tunewright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const fuzz::MemoryFile file(fuzz::text(bytes, size));
  data::AutoTvmLog log(file.path(), {.max_line_bytes = 4096});
  for (data::AutoTvmRecord record; log.next(record);) {
    fuzz::require(data::parse_autotvm_line(data::to_line(record)) == record, "a record reads equal");
    Record kept;
    kept.outcome = data::to_outcome(record.result);
    fuzz::require(data::record_json::refused_number(kept).empty(), "a journal takes the outcome");
  }
  const data::ImportReport& report = log.report();
  fuzz::require(report.lines == report.records + report.blank + report.bad, "lines are counted once");
  return 0;
}
