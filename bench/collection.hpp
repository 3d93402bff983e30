// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collection_index.hpp"
#include "tunewright/core/hash.hpp"
#include "tunewright/core/outcome.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/core/target.hpp"
#include "tunewright/core/task.hpp"
#include "tunewright/data/journal.hpp"
#include "tunewright/data/replaced_file.hpp"
#include "tunewright/graph.hpp"
#include "tunewright/json/writer.hpp"
#include "tunewright/stats/robust.hpp"

/// A dataset of measured programs as a folder: of each target a folder, of each of its tasks a journal.
///
///   <folder>/<target>/<task>.jsonl        what was measured
///   <folder>/<target>/<task>.again.jsonl  some of it, measured once more
///   <folder>/index.jsonl                  a line a journal: `IndexEntry`
///
/// Targets and tasks are named by `stable_hash`, of what the machine says of itself, so that folders of several
/// machines may be copied into one.
namespace tunewright::bench {

/// A task of the dataset, and whose it is.
struct CollectedTask {
  Task task;
  Occurrences networks;
  std::size_t drawn = IndexedJournal{}.drawn;  ///< of its programs, the first ones: drawn at random
};

/// The tasks of `networks` on each of `targets`, each once, by target and in the order in which networks need them.
/// Throws `std::invalid_argument` for no networks and for no targets.
inline std::vector<CollectedTask> tasks_of(std::span<const networks::Network> networks,
                                           std::span<const Target> targets) {
  if (networks.empty() || targets.empty())
    throw std::invalid_argument("a collection needs a network and a target at least");
  std::vector<CollectedTask> tasks;
  std::map<std::uint64_t, std::size_t> place;
  for (const Target& target : targets) {
    for (const networks::Network& network : networks) {
      for (const WeightedTask& part : networks::partition(network, target).tasks) {
        const auto [at, is_new] = place.try_emplace(stable_hash(part.task), tasks.size());
        if (is_new) tasks.push_back({.task = part.task, .networks = {}});
        tasks[at->second].networks[network.name] += part.weight;
      }
    }
  }
  return tasks;
}

/// "avx2-2-<hash>", a name that no other target has.
inline std::string folder_name(const Target& target) {
  return std::string(name(target.isa)) + '-' + std::to_string(target.threads) + '-' + to_hex(stable_hash(target));
}

/// The journals of a task.
struct CollectedFiles {
  CollectedFiles(const std::filesystem::path& folder, const Task& task)
      : measured(folder / folder_name(task.target) / (to_hex(stable_hash(task)) + ".jsonl")),
        again(std::filesystem::path(measured).replace_extension(".again.jsonl")) {}

  std::filesystem::path measured;
  std::filesystem::path again;
};

/// Up to `count` valid records of a journal, drawn by `rng`.
inline std::vector<Record> draw_records(const std::filesystem::path& journal, std::size_t count, Rng rng) {
  std::vector<Record> records = data::read_journal(journal.string()).records;
  std::erase_if(records, [](const Record& record) { return !record.outcome.valid(); });
  rng.shuffle(std::span(records));
  if (records.size() > count) records.resize(count);
  return records;
}

/// What a journal of the dataset holds.
struct IndexEntry {
  std::string file{};  ///< below the folder
  CollectedTask task{};
  std::size_t programs = 0;
  std::map<std::string, std::size_t, std::less<>> faults{};  ///< programs without a latency
  std::size_t partly = 0;                                    ///< measured in part, and so not checked
  double seconds = 0;                                        ///< spent compiling, running and checking
  double best_s = 0, median_s = 0, slowest_s = 0;            ///< of programs with a latency; 0 without any
  std::vector<double> repeated{};  ///< of what was measured again: the second latency over the first
};

/// Reads the journals of a task. One that does not exist has no programs.
inline IndexEntry index_entry(const std::filesystem::path& folder, const CollectedTask& task) {
  const CollectedFiles files(folder, task.task);
  IndexEntry entry{.file = std::filesystem::relative(files.measured, folder).string(), .task = task};
  std::vector<double> latencies;
  std::map<std::uint64_t, double> first;
  for (const Record& record : data::read_journal(files.measured.string()).records) {
    ++entry.programs;
    entry.seconds += (record.outcome.compile_time + record.outcome.run_time).count();
    if (const Failure* failure = record.outcome.failure()) {
      ++entry.faults[std::string(name(failure->fault))];
      continue;
    }
    const Timing& timing = *record.outcome.timing();
    entry.partly += timing.stopped == StopReason::Extrapolated ? 1 : 0;
    latencies.push_back(timing.median.count());
    first.emplace(record.key, timing.median.count());
  }
  for (const Record& record : data::read_journal(files.again.string()).records) {
    const auto known = first.find(record.key);
    if (known != first.end() && record.outcome.valid())
      entry.repeated.push_back(record.outcome.timing()->median.count() / known->second);
  }
  if (!latencies.empty()) {
    const auto [best, slowest] = std::minmax_element(latencies.begin(), latencies.end());
    entry.best_s = *best;
    entry.slowest_s = *slowest;
    entry.median_s = stats::median(latencies);
  }
  return entry;
}

/// Median of how far a second measurement is from the first, as a share; 0 without any.
inline double repeatability(std::span<const double> ratios) {
  if (ratios.empty()) return 0;
  std::vector<double> distances;
  for (const double ratio : ratios) distances.push_back(std::expm1(std::abs(std::log(ratio))));
  return stats::median(std::move(distances));
}

/// One line of index.jsonl, with its end.
inline std::string to_line(const IndexEntry& entry) {
  std::string line = "{\"file\": ";
  json::write(line, std::string_view(entry.file));
  const auto add = [&line](std::string_view key, const auto& value) {
    line += ", \"" + std::string(key) + "\": ";
    json::write(line, value);
  };
  const Task& task = entry.task.task;
  add("task", std::string_view(task.name));
  add("target", std::string_view(task.target.name));
  add("isa", name(task.target.isa));
  add("threads", task.target.threads);
  add("flops", task.flops);
  line += ", \"networks\": ";
  json::write_object(line, entry.task.networks);
  add("programs", entry.programs);
  add("drawn", entry.task.drawn);
  line += ", \"faults\": {";
  for (const auto& [fault, count] : entry.faults) {
    if (!line.ends_with('{')) line += ", ";
    json::write(line, std::string_view(fault));
    line += ": " + std::to_string(count);
  }
  line += '}';
  add("partly", entry.partly);
  add("seconds", entry.seconds);
  add("best_s", entry.best_s);
  add("median_s", entry.median_s);
  add("slowest_s", entry.slowest_s);
  add("repeated", entry.repeated.size());
  add("repeatability", repeatability(entry.repeated));
  return line + "}\n";
}

/// Writes a line of index.jsonl for each of `tasks` that something was measured of, and returns these. Lines of other
/// tasks, which were collected before, are kept, and so are networks that a task was collected for before, and that
/// none of `tasks` is of. Of random programs the least number that a run had is kept: what a later one draws stands
/// behind what a search found.
inline std::vector<IndexEntry> write_index(const std::filesystem::path& folder, std::span<const CollectedTask> tasks) {
  const std::filesystem::path written = folder / "index.jsonl";
  std::vector<std::string> before;
  std::map<std::string, IndexedJournal> journals_before;
  std::ifstream old_file(written);
  for (std::string line; std::getline(old_file, line); before.push_back(line)) {
    const std::optional<IndexedJournal> journal = indexed_journal_if_any(line);
    if (journal) journals_before[journal->file] = *journal;
  }
  std::set<std::string> networks_now;
  for (const CollectedTask& task : tasks)
    for (const auto& [network, times] : task.networks) networks_now.insert(network);

  std::vector<IndexEntry> index;
  std::string text;
  std::set<std::string> fresh;  // lines up to the name of the journal
  const auto name_in = [](const std::string& line) { return line.substr(0, line.find(',')); };
  for (const CollectedTask& task : tasks) {
    IndexEntry entry = index_entry(folder, task);
    if (entry.programs == 0) continue;
    if (const auto known = journals_before.find(entry.file); known != journals_before.end()) {
      for (const auto& [network, times] : known->second.networks)
        if (!networks_now.contains(network)) entry.task.networks.emplace(network, times);
      entry.task.drawn = std::min(entry.task.drawn, known->second.drawn);
    }
    const std::string line = to_line(entry);
    fresh.insert(name_in(line));
    text += line;
    index.push_back(std::move(entry));
  }
  std::string kept;
  for (const std::string& line : before)
    if (!fresh.contains(name_in(line))) kept += line + '\n';
  // Processes that share the folder may do so at a time; readers find one of their files whole.
  data::ReplacedFile file(written.string());
  file.stream() << kept << text;
  file.replace();
  return index;
}

/// Sums for people, a line a target and one of all: tasks, programs, failures, seconds, how far apart programs of a
/// task are (the median of slowest over best, and of median over best), and how well measurements repeat.
inline std::string summary(std::span<const IndexEntry> index) {
  struct Sum {
    std::size_t tasks = 0, programs = 0, failed = 0, partly = 0;
    double seconds = 0;
    std::vector<double> spread, middle, repeated;
  };
  std::map<std::string, Sum> sums;
  for (const IndexEntry& entry : index) {
    for (const std::string& name : {folder_name(entry.task.task.target), std::string("~all")}) {
      Sum& sum = sums[name];
      ++sum.tasks;
      sum.programs += entry.programs;
      for (const auto& [fault, count] : entry.faults) sum.failed += count;
      sum.partly += entry.partly;
      sum.seconds += entry.seconds;
      if (entry.best_s > 0) {
        sum.spread.push_back(entry.slowest_s / entry.best_s);
        sum.middle.push_back(entry.median_s / entry.best_s);
      }
      sum.repeated.insert(sum.repeated.end(), entry.repeated.begin(), entry.repeated.end());
    }
  }
  std::string text =
      "tasks  programs  failed  partly    seconds  slowest/best  median/best  repeated  repeatability  target\n";
  for (const auto& [name, sum] : sums) {
    const auto middle = [](const std::vector<double>& values) { return values.empty() ? 0.0 : stats::median(values); };
    std::array<char, 200> line{};
    std::snprintf(line.data(), line.size(), "%5zu %9zu %7zu %7zu %10.1f %13.1f %12.2f %9zu %13.2f%%  ", sum.tasks,
                  sum.programs, sum.failed, sum.partly, sum.seconds, middle(sum.spread), middle(sum.middle),
                  sum.repeated.size(), 100 * repeatability(sum.repeated));
    text += line.data() + (name == "~all" ? std::string("all") : name) + '\n';
  }
  return text;
}

}  // namespace tunewright::bench
