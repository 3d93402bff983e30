// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tunewright/core/make_folder.hpp"
#include "tunewright/data/bad_line.hpp"
#include "tunewright/json/scanner.hpp"
#include "tunewright/json/writer.hpp"

namespace tunewright::study {

/// Writes a line of JSON: the name of the study and the added members.
class LineWriter {
 public:
  explicit LineWriter(const std::string& study) : line_("{\"study\": ") { json::write(line_, std::string_view(study)); }

  /// Adds a number or text.
  template <class Value>
  void add(const char* key, const Value& value) {
    if constexpr (std::is_convertible_v<Value, std::string_view>)
      json::write(begin(key), std::string_view(value));
    else
      json::write(begin(key), value);
  }
  /// The text to which the value of `key` is to be appended.
  std::string& begin(const char* key) { return line_ += std::string(", \"") + key + "\": "; }
  /// The complete line.
  [[nodiscard]] std::string finish() && { return std::move(line_) + "}\n"; }

 private:
  std::string line_;
};

/// Reads the object of a line: `member(key)` reads a value and returns whether it knows the key; values of unknown keys
/// are skipped. Throws `FormatError` for a member that is there twice, one of `needed` that is missing, and text after
/// the object; `what` the line should be completes the message.
template <class Member>
void read_members(json::Scanner& in, const std::string& what, std::initializer_list<std::string_view> needed,
                  const Member& member) {
  std::set<std::string, std::less<>> found;
  in.object([&](std::string_view key) {
    if (!found.emplace(key).second) in.fail("expected " + what + " with '" + std::string(key) + "' once");
    if (!member(key)) in.skip_value();
  });
  in.expect_end();
  for (const std::string_view key : needed)
    if (!found.contains(key)) in.fail("expected " + what + " with a member '" + std::string(key) + "'");
}

/// Reads the value of `key` if it is one of the members that identify a result; returns false for others.
template <class Result>
bool read_circumstances(json::Scanner& in, std::string_view key, Result& result, std::string& study) {
  if (key == "study")
    study = in.string();
  else if (key == "problem")
    result.problem = in.string();
  else if (key == "seed")
    result.seed = in.integer<std::uint64_t>();
  else if (key == "conditions")
    result.conditions = in.integer<std::uint64_t>();
  else
    return false;
  return true;
}

/// Results of one kind that processes with a shared folder have written so far.
///
/// Each process appends to its own file, `<kind>.<shard>-of-<shards>.jsonl`, one line per result, and reads those of
/// all. A killed process leaves at most half a line, which is skipped and reported.
///
/// `Result` has `to_line(result, study)`, which returns a complete line, and `from_line(line, result, study)`, which
/// throws `FormatError` for an invalid line.
template <class Result>
class SharedLines {
 public:
  /// Reads the existing results. Throws `std::runtime_error` if the folder cannot be created or read, or has results of
  /// another study.
  SharedLines(std::filesystem::path folder, const std::string& kind, std::string study, unsigned shard, unsigned shards)
      : study_(std::move(study)), folder_(std::move(folder)) {
    make_folder(folder_, "name one that you may write, by --out=DIR of a study");
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with(kind + ".") && name.ends_with(".jsonl")) files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    for (const auto& file : files) read(file);
    own_ = folder_ / (kind + "." + std::to_string(shard) + "-of-" + std::to_string(shards) + ".jsonl");
  }

  [[nodiscard]] const std::vector<Result>& all() const& noexcept { return all_; }
  [[nodiscard]] std::vector<Result> all() && noexcept { return std::move(all_); }
  /// Invalid lines, which are skipped.
  [[nodiscard]] const std::vector<std::pair<std::string, data::BadLine>>& bad() const noexcept { return bad_; }
  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_; }

  /// Stores a result. Throws `std::runtime_error` if it cannot be written.
  const Result& add(Result result) {
    std::ofstream file(own_, std::ios::app | std::ios::binary);
    // A killed writer, or a full disk, may have left half a line.
    if (!std::exchange(ends_whole_, false) && !ends_with_newline(own_)) file << '\n';
    file << to_line(result, study_) << std::flush;
    if (!file) throw std::runtime_error("cannot write '" + own_.string() + "'; free space or name another --out=DIR");
    ends_whole_ = true;
    all_.push_back(std::move(result));
    return all_.back();
  }

 private:
  void read(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error("cannot read '" + path.string() + "'");
    std::size_t number = 0;
    for (std::string line; std::getline(file, line);) {
      ++number;
      if (line.empty()) continue;
      try {
        Result result;
        std::string study;
        from_line(line, result, study);
        if (study != study_) {
          throw std::runtime_error("'" + path.string() + "' belongs to study '" + study + "', not to '" + study_ +
                                   "'; name another folder by --out=DIR");
        }
        all_.push_back(std::move(result));
      } catch (const FormatError& error) {
        bad_.push_back({path.string(), {number, error.what()}});
      }
    }
  }

  static bool ends_with_newline(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    if (!file || file.tellg() == std::streampos(0)) return true;
    file.seekg(-1, std::ios::end);
    return file.get() == '\n';
  }

  std::string study_;
  std::filesystem::path folder_, own_;
  std::vector<Result> all_;
  std::vector<std::pair<std::string, data::BadLine>> bad_;
  bool ends_whole_ = false;  // what `add` wrote last
};

}  // namespace tunewright::study
