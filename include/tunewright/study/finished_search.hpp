// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tunewright/data/bad_line.hpp"
#include "tunewright/json/scanner.hpp"
#include "tunewright/json/writer.hpp"
#include "tunewright/study/course.hpp"
#include "tunewright/study/options.hpp"

namespace tunewright::study {

/// A search that came to its end.
struct FinishedSearch {
  std::string recipe, problem;
  std::uint64_t seed = 0;
  std::uint64_t conditions = 0;  ///< hash of task and budget: what makes searches comparable
  Course course{};
  bool operator==(const FinishedSearch&) const = default;
};

/// One line of JSON.
inline std::string to_line(const FinishedSearch& search, const std::string& study) {
  std::string line = "{\"study\": ";
  json::write(line, study);
  const auto text = [&](const char* key, const std::string& value) {
    line += std::string(", \"") + key + "\": ";
    json::write(line, value);
  };
  const auto number = [&](const char* key, auto value) {
    line += std::string(", \"") + key + "\": ";
    json::write(line, value);
  };
  text("recipe", search.recipe);
  text("problem", search.problem);
  number("seed", search.seed);
  number("conditions", search.conditions);
  number("trials", search.course.trials);
  number("failed", search.course.failed);
  number("imprecise", search.course.imprecise);
  number("elapsed_s", search.course.elapsed_s);
  line += ", \"improvements\": ";
  json::write_array(line, search.course.improvements, [&](const Improvement& one) {
    line += '[';
    json::write(line, one.trial);
    line += ", ";
    json::write(line, one.elapsed_s);
    line += ", ";
    json::write(line, one.best_s);
    line += ']';
  });
  return line + "}\n";
}

/// The search of a line, and the study that it belongs to. Throws `FormatError` for a line that is none.
inline std::pair<FinishedSearch, std::string> from_finished_line(const std::string& line) {
  FinishedSearch search;
  std::string study;
  unsigned known = 0;
  json::Scanner in(line);
  in.object([&](std::string_view key) {
    ++known;
    if (key == "study")
      study = in.string();
    else if (key == "recipe")
      search.recipe = in.string();
    else if (key == "problem")
      search.problem = in.string();
    else if (key == "seed")
      search.seed = in.integer<std::uint64_t>();
    else if (key == "conditions")
      search.conditions = in.integer<std::uint64_t>();
    else if (key == "trials")
      search.course.trials = in.integer<std::size_t>();
    else if (key == "failed")
      search.course.failed = in.integer<std::size_t>();
    else if (key == "imprecise") {
      search.course.imprecise = in.integer<std::size_t>();
      --known;  // other programs may not know
    } else if (key == "elapsed_s")
      search.course.elapsed_s = in.number();
    else if (key == "improvements")
      in.array([&] {
        Improvement one;
        in.expect('[');
        one.trial = in.integer<std::size_t>();
        in.expect(',');
        one.elapsed_s = in.number();
        in.expect(',');
        one.best_s = in.number();
        in.expect(']');
        search.course.improvements.push_back(one);
      });
    else {
      --known;
      in.skip_value();
    }
  });
  in.expect_end();
  if (known != 9) in.fail("expected a finished search with its nine members");
  return {std::move(search), std::move(study)};
}

/// The finished searches of a folder: what processes that share it have written so far.
///
/// Each process appends to a file of its own, `finished.<shard>-of-<shards>.jsonl`, a line a search, and reads those of
/// all. Killing it loses the search that runs, and with it what its journal does not hold.
class FinishedSearches {
 public:
  /// Reads what is there. Throws `std::runtime_error` for a folder that cannot be made or read, or that holds the
  /// searches of another study.
  FinishedSearches(std::filesystem::path folder, std::string study, unsigned shard = 1, unsigned shards = 1)
      : study_(std::move(study)) {
    std::filesystem::create_directories(folder);
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("finished.") && name.ends_with(".jsonl")) files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    for (const auto& file : files) read(file);
    own_ = folder / ("finished." + std::to_string(shard) + "-of-" + std::to_string(shards) + ".jsonl");
  }

  [[nodiscard]] const std::vector<FinishedSearch>& all() const& noexcept { return all_; }
  [[nodiscard]] std::vector<FinishedSearch> all() && noexcept { return std::move(all_); }
  /// Lines that are no finished search, and are left out.
  [[nodiscard]] const std::vector<std::pair<std::string, data::BadLine>>& bad() const noexcept { return bad_; }

  /// Null where that search is not finished. Throws `std::runtime_error` where it was made under other conditions.
  [[nodiscard]] const FinishedSearch* find(const std::string& recipe, const std::string& problem, std::uint64_t seed,
                                           std::uint64_t conditions) const {
    for (const FinishedSearch& search : all_) {
      if (search.recipe != recipe || search.problem != problem || search.seed != seed) continue;
      if (search.conditions != conditions) {
        throw std::runtime_error("folder '" + own_.parent_path().string() + "' has a search by " + recipe + " for " +
                                 problem + " with another task or budget; name another folder by --out=DIR");
      }
      return &search;
    }
    return nullptr;
  }

  /// Keeps a search. Throws `std::runtime_error` where it cannot be written.
  const FinishedSearch& add(FinishedSearch search) {
    std::ofstream file(own_, std::ios::app | std::ios::binary);
    // A writer that was killed may have left half a line.
    if (!std::exchange(begun_, true) && !ends_with_newline(own_)) file << '\n';
    file << to_line(search, study_) << std::flush;
    if (!file) throw std::runtime_error("cannot write '" + own_.string() + "'; free space or name another --out=DIR");
    all_.push_back(std::move(search));
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
        auto [search, study] = from_finished_line(line);
        if (study != study_) {
          throw std::runtime_error("'" + path.string() + "' belongs to study '" + study + "', not to '" + study_ +
                                   "'; name another folder by --out=DIR");
        }
        all_.push_back(std::move(search));
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
  std::filesystem::path own_;
  std::vector<FinishedSearch> all_;
  std::vector<std::pair<std::string, data::BadLine>> bad_;
  bool begun_ = false;
};

}  // namespace tunewright::study
