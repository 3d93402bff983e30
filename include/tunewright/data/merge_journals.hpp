// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "tunewright/detail/config.hpp"

namespace tunewright::data {

/// The result of merging journals.
struct MergeReport {
  std::size_t records = 0;     ///< read
  std::size_t written = 0;     ///< one per key
  std::size_t duplicates = 0;  ///< omitted
  std::size_t tasks = 0;
  std::size_t bad = 0;              ///< lines left out because they are neither records nor descriptions
  std::vector<std::string> listed;  ///< of these the first 20: "file:line: reason"
};

/// Writes the records of all `inputs` to `output`, each key once, tasks one after the other and each after its
/// description. It joins the shards of a collection, and compacts a journal (with one input).
///
/// The key of a record consists of its task, its candidate and the compiler with the measuring device
/// (`Record::compiler`). Of several records with one key the one that says most is kept (`says_more`), of equals the
/// first; records of one task stay in the order of inputs and lines. A whole last line without a newline counts. The
/// output is written to a file beside `output`, which it finally replaces, and is removed after an error
/// (`ReplacedFile`).
///
/// Throws `std::invalid_argument` for no inputs, `std::runtime_error` for an input that is not a journal or is missing,
/// for an output that is there and is none, if the output cannot be written, and if an input that is also the output
/// has grown meanwhile or has lines of a newer schema, which would be lost.
/// Cost: two passes over the files; memory: the records of the largest task, and an index beside each input.
MergeReport merge_journals(std::span<const std::string> inputs, const std::string& output);

}  // namespace tunewright::data

#if TUNEWRIGHT_DEFINES(journal)

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <ostream>
#include <set>
#include <stdexcept>
#include <utility>

#include "tunewright/core/hash.hpp"
#include "tunewright/core/record.hpp"
#include "tunewright/core/task.hpp"
#include "tunewright/data/journal.hpp"
#include "tunewright/data/journal_index.hpp"
#include "tunewright/data/record_json.hpp"
#include "tunewright/data/replaced_file.hpp"
#include "tunewright/data/task_json.hpp"
#include "tunewright/data/whole_journal.hpp"

namespace tunewright::data {

TUNEWRIGHT_INLINE MergeReport merge_journals(std::span<const std::string> inputs, const std::string& output) {
  if (inputs.empty()) throw std::invalid_argument("merge_journals: no journals; give at least one");
  MergeReport report;
  constexpr std::size_t max_listed = 20;
  const auto note_bad = [&](const std::string& file, const std::vector<BadLine>& bad) {
    report.bad += bad.size();
    for (std::size_t i = 0; i < bad.size() && report.listed.size() < max_listed; ++i)
      report.listed.push_back(file + ":" + std::to_string(bad[i].number) + ": " + bad[i].reason);
  };

  const auto is_output = [&](const std::string& input) {
    return std::filesystem::exists(output) && std::filesystem::equivalent(input, output);
  };

  if (std::filesystem::is_regular_file(output)) check_journal(output);
  std::vector<WholeJournal> journals;
  std::vector<std::uintmax_t> sizes;
  std::set<std::uint64_t> tasks;
  for (const std::string& input : inputs) {
    check_journal(input);
    sizes.push_back(std::filesystem::file_size(input));
    journals.emplace_back(input);
    tasks.merge(journals.back().tasks());
    const std::vector<BadLine> bad = journals.back().bad_lines();
    const auto newer = std::find_if(bad.begin(), bad.end(), [](const BadLine& line) { return line.is_newer; });
    if (newer != bad.end() && is_output(input)) {
      throw std::runtime_error("journal '" + input + "' has lines of a newer schema, the first is line " +
                               std::to_string(newer->number) +
                               ", and was left as it is; compact it with the version of the library that wrote them, "
                               "or merge it into another file to leave them out");
    }
    note_bad(input, bad);
  }

  ReplacedFile out(output);
  for (const std::uint64_t task : tasks) {
    std::optional<Task> described;
    std::vector<Record> records;
    std::map<std::uint64_t, std::size_t> place;  // in `records`, by key
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!described) described = journals[i].description(task);
      JournalIndex::Found found = journals[i].find(task);
      note_bad(inputs[i], found.bad);
      report.records += found.records.size();
      for (Record& record : found.records) {
        const std::uint64_t key = StableHash().add(record.key).add(record.compiler).value();
        const auto [at, is_new] = place.try_emplace(key, records.size());
        if (is_new) {
          records.push_back(std::move(record));
          continue;
        }
        ++report.duplicates;
        if (says_more(record.outcome, records[at->second].outcome)) records[at->second] = std::move(record);
      }
    }
    if (described) out.stream() << to_line(*described) << '\n';
    for (const Record& record : records) out.stream() << to_line(record) << '\n';
    out.check();
    report.written += records.size();
    ++report.tasks;
  }
  out.complete();  // which takes seconds; what was appended meanwhile would be lost
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!is_output(inputs[i])) continue;
    if (std::filesystem::file_size(inputs[i]) != sizes[i]) {
      throw std::runtime_error("journal '" + inputs[i] +
                               "' has grown meanwhile and was left as it is; end what writes "
                               "to it first");
    }
  }
  out.replace();
  return report;
}

}  // namespace tunewright::data

#endif
