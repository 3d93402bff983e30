// SPDX-License-Identifier: Apache-2.0
// A journal beside an index that somebody edited and signed anew: the first byte is a number of edits, each of them a
// place (two bytes) and a value, and the rest is the journal. An index may hide records; it never makes one up.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include "fuzz/folder.hpp"
#include "fuzz/fuzz.hpp"
#include "tunewright/data/journal.hpp"
#include "tunewright/data/journal_index.hpp"

using namespace tunewright;

namespace {

void write(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

/// Corrects the checksums, which are no secret.
void sign(std::string& index) {
  data::journal_index::Header header;
  if (index.size() < sizeof header) return;
  std::memcpy(&header, index.data(), sizeof header);
  StableHash table;
  const std::uint64_t at = data::journal_index::offset_of_run(header.runs);
  for (std::uint64_t i = 0; i < header.tasks && header.runs < 1000 && header.tasks < 1000; ++i) {
    data::journal_index::StoredTask stored;
    if (at + (i + 1) * sizeof stored > index.size()) break;
    std::memcpy(&stored, index.data() + at + i * sizeof stored, sizeof stored);
    add(table, stored);
  }
  header.table = table.value();
  header.checksum = checksum_of(header);
  std::memcpy(index.data(), &header, sizeof header);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const fuzz::Folder folder;
  const std::string journal = (folder.path / "journal").string(), index = data::JournalIndex::path_of(journal);
  const std::size_t edits = size == 0 ? 0 : std::min<std::size_t>(bytes[0], (size - 1) / 3);
  std::filesystem::remove(index);
  write(journal, fuzz::text(bytes, size).substr(std::min(size, 1 + 3 * edits)));
  const data::JournalContents contents = data::read_journal(journal);
  {
    const data::JournalIndex made(journal);
    for (const auto& [task, entry] : made.tasks()) {
      const auto expected = std::count_if(contents.records.begin(), contents.records.end(),
                                          [&](const Record& record) { return record.task == task; });
      fuzz::require(made.find(task).records.size() >= static_cast<std::size_t>(expected) || made.ends_within_a_line(),
                    "an index finds every record of a whole line");
    }
    for (const Task& task : contents.tasks) {
      fuzz::require(made.description(stable_hash(task)).has_value() || made.ends_within_a_line(),
                    "an index finds the description of every task");
    }
  }
  std::ifstream in(index, std::ios::binary);
  std::string edited{std::istreambuf_iterator<char>(in), {}};
  for (std::size_t e = 0; e < edits && !edited.empty(); ++e) {
    const std::uint8_t* edit = bytes + 1 + 3 * e;
    edited[(edit[0] | static_cast<std::size_t>(edit[1]) << 8) % edited.size()] = static_cast<char>(edit[2]);
  }
  sign(edited);
  write(index, edited);
  (void)fuzz::accepts<std::runtime_error>([&] {
    const data::JournalIndex opened(journal);
    for (const auto& [task, entry] : opened.tasks()) {
      const auto is_written = [&](const Record& record) {
        return record.task == task &&
               std::find(contents.records.begin(), contents.records.end(), record) != contents.records.end();
      };
      const data::JournalIndex::Found found = opened.find(task);
      fuzz::require(std::all_of(found.records.begin(), found.records.end(), is_written), "no record is made up");
      if (const auto first = opened.first_record(task)) fuzz::require(is_written(*first), "no first record is made up");
      if (const auto described = opened.description(task))
        fuzz::require(stable_hash(*described) == task, "a description is of its task");
    }
    (void)opened.any_record();
    (void)opened.bad_lines();
  });
  return 0;
}
