// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "tunewright/core/hash.hpp"
#include "tunewright/core/read_file.hpp"
#include "tunewright/json/scanner.hpp"

/// What the index of a collection tells of its journals.
namespace tunewright::bench {

/// Networks by name, and how often each runs a task.
using Occurrences = std::map<std::string, double>;

/// A journal of a collection, and whose it is.
struct IndexedJournal {
  std::string file{};  ///< below the folder
  Occurrences networks{};
  std::size_t drawn = 200;  ///< of its programs, the first ones: drawn at random; an index that does not tell has these
  bool operator==(const IndexedJournal&) const = default;
};

/// Reads a line of an index. Throws `FormatError` for one that does not tell a file and its networks.
inline IndexedJournal indexed_journal(std::string_view line) {
  IndexedJournal journal;
  json::Scanner scanner(line);
  scanner.object([&](std::string_view key) {
    if (key == "file")
      journal.file = scanner.string();
    else if (key == "networks")
      scanner.object([&](std::string_view name) {
        std::string network(name);  // the scanner's own, until the next one
        journal.networks[std::move(network)] = scanner.number();
      });
    else if (key == "drawn")
      journal.drawn = scanner.integer<std::size_t>();
    else
      scanner.skip_value();
  });
  scanner.expect_end();
  if (journal.file.empty() || journal.networks.empty()) scanner.fail("expected a file and its networks");
  return journal;
}

/// The same, and nothing for a line that is none: of an index that a killed program, or somebody, left half written.
inline std::optional<IndexedJournal> indexed_journal_if_any(std::string_view line) {
  try {
    return indexed_journal(line);
  } catch (const FormatError&) {
    return std::nullopt;
  }
}

/// The journals of a collection, by file. Throws `std::runtime_error` for a folder without an index, and `FormatError`
/// for a line that is none of an index.
inline std::map<std::string, IndexedJournal> read_index(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "index.jsonl";
  std::ifstream in(path);
  if (!in)
    throw std::runtime_error("there is no " + path.string() + "; `collect --out=" + folder.string() +
                             "` writes it when it ends");
  std::map<std::string, IndexedJournal> journals;
  std::size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    try {
      IndexedJournal journal = indexed_journal(line);
      std::string file = journal.file;
      journals[std::move(file)] = std::move(journal);
    } catch (const FormatError& error) {
      throw FormatError(path.string() + ":" + std::to_string(number) + ": " + error.what());
    }
  }
  return journals;
}

/// Tells collections apart, and one from what it was before `collect` measured more, which rewrites the index.
inline std::uint64_t index_hash(const std::filesystem::path& folder) {
  return StableHash{}.add(std::string_view(read_file(folder / "index.jsonl").value_or(""))).value();
}

}  // namespace tunewright::bench
