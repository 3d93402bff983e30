// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "tunewright/json/scanner.hpp"

/// What the index of a collection tells of its journals.
namespace tunewright::bench {

/// Networks by name, and how often each runs a task.
using Occurrences = std::map<std::string, double>;

/// A journal of a collection, and whose it is.
struct IndexedJournal {
  std::string file{};  ///< below the folder
  Occurrences networks{};
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

/// The networks of the journals of a collection, by file. Throws `std::runtime_error` for a folder without an index,
/// and `FormatError` for a line that is none of an index.
inline std::map<std::string, Occurrences> read_index(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "index.jsonl";
  std::ifstream in(path);
  if (!in)
    throw std::runtime_error("there is no " + path.string() + "; `collect --out=" + folder.string() +
                             "` writes it when it ends");
  std::map<std::string, Occurrences> networks;
  std::size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    try {
      IndexedJournal journal = indexed_journal(line);
      networks[std::move(journal.file)] = std::move(journal.networks);
    } catch (const FormatError& error) {
      throw FormatError(path.string() + ":" + std::to_string(number) + ": " + error.what());
    }
  }
  return networks;
}

}  // namespace tunewright::bench
