// SPDX-License-Identifier: Apache-2.0
// A journal as the tools read it that take several: by its index when they are merged, as a whole when they are grouped
// by task. Both find the same records, every line is counted once, and what was merged is merged to itself.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "fuzz/folder.hpp"
#include "fuzz/fuzz.hpp"
#include "support/file_text.hpp"
#include "tunewright/data/journal.hpp"
#include "tunewright/data/measured_tasks.hpp"
#include "tunewright/data/merge_journals.hpp"

using namespace tunewright;

namespace {

/// What tells records apart that merging keeps.
std::set<std::tuple<std::uint64_t, std::uint64_t, std::string>> kept(const data::JournalContents& contents) {
  std::set<std::tuple<std::uint64_t, std::uint64_t, std::string>> found;
  for (const Record& record : contents.records) found.emplace(record.task, record.key, record.compiler);
  return found;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const fuzz::Folder folder;
  const std::string journal = (folder.path / "journal").string(), merged = (folder.path / "merged").string(),
                    again = (folder.path / "again").string();
  for (const std::string& path : {journal, merged, again}) {
    std::filesystem::remove(path);
    std::filesystem::remove(path + ".index");
  }
  std::ofstream(journal, std::ios::binary) << fuzz::text(bytes, size);
  const data::JournalContents whole = data::read_journal(journal);

  data::MergeReport report;
  const bool accepted =
      fuzz::accepts<std::runtime_error>([&] { report = data::merge_journals(std::vector{journal}, merged); });
  fuzz::require(accepted == data::is_journal(journal), "a file that holds something else is refused");
  if (!accepted) return 0;
  const data::JournalContents once = data::read_journal(merged);
  fuzz::require(once.bad.empty() && once.blank == 0, "what is merged has records and descriptions alone");
  fuzz::require(kept(once) == kept(whole), "an index and a reader of the whole file find the same records");
  fuzz::require(once.records.size() == kept(once).size() && once.records.size() == report.written,
                "keys are there once");
  fuzz::require(report.records == whole.records.size() && report.bad == whole.bad.size(), "lines are counted once");
  fuzz::require(report.records == report.written + report.duplicates, "records are written or left out");
  fuzz::require(once.tasks.size() == whole.tasks.size(), "no description is lost");
  if (data::is_journal(merged)) {
    (void)data::merge_journals(std::vector{merged}, again);
    fuzz::require(support::file_text(again) == support::file_text(merged), "what was merged stays as it is");
  }

  data::JournalReport read;
  std::size_t records = 0;
  for (const data::MeasuredTask& measured : data::measured_tasks(std::vector{journal}, {}, read)) {
    fuzz::require(measured.records.size() == measured.lines.size(), "each record has its line");
    records += measured.records.size();
  }
  fuzz::require(read.lines == records + read.tasks + read.blank + read.skipped(), "each line is counted once");
  return 0;
}
