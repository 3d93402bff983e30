// SPDX-License-Identifier: Apache-2.0
// A whole journal. Reading it takes any bytes; every line is a record, a task, blank or bad; and what is appended to it
// is read back behind what it held, whatever its last line is.
#include <stdexcept>
#include <string>

#include "fuzz/fuzz.hpp"
#include "fuzz/memory_file.hpp"
#include "tunewright/data/journal.hpp"

using namespace tunewright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const fuzz::MemoryFile file(fuzz::text(bytes, size));
  const data::JournalContents before = data::read_journal(file.path());
  fuzz::require(before.records.size() == before.record_lines.size(), "each record has its line");
  fuzz::require(before.records.size() + before.tasks.size() + before.bad.size() + before.blank <= before.lines,
                "lines are counted once");
  const bool accepted = fuzz::accepts<std::runtime_error>([&] {
    data::Journal journal({.path = file.path(), .clock = [] { return Seconds(1); }, .warnings = nullptr});
    Record record;
    record.config = "appended";
    record.outcome.result = Failure{Fault::RunError, "none"};
    journal.append(record);
  });
  fuzz::require(accepted == data::is_journal(file.path()), "a file that holds something else is left as it is");
  const data::JournalContents after = data::read_journal(file.path());
  fuzz::require(after.records.size() == before.records.size() + (accepted ? 1 : 0), "no record is lost");
  for (std::size_t i = 0; i < before.records.size(); ++i)
    fuzz::require(after.records[i] == before.records[i], "records stay what they are");
  if (accepted) fuzz::require(after.records.back().config == "appended", "what is appended is read");
  return 0;
}
