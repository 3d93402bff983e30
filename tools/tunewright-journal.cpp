// SPDX-License-Identifier: Apache-2.0
// Looks into journals of measurements, merges and exports them: see docs/journals.md.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <limits>
#include <optional>
#include <ostream>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tunewright/core/hash.hpp"
#include "tunewright/core/record.hpp"
#include "tunewright/core/task.hpp"
#include "tunewright/core/write_file.hpp"
#include "tunewright/data/bad_line.hpp"
#include "tunewright/data/journal.hpp"
#include "tunewright/data/journal_index.hpp"
#include "tunewright/data/merge_journals.hpp"
#include "tunewright/data/npz.hpp"
#include "tunewright/data/record_json.hpp"
#include "tunewright/data/replaced_file.hpp"
#include "tunewright/data/t4.hpp"
#include "tunewright/data/whole_journal.hpp"

namespace {

using namespace tunewright;

constexpr const char* usage =
    R"(usage: tunewright-journal <command> ...

  list JOURNAL                            tasks: hash, lines, name, target
  best JOURNAL [--task HASH]              the fastest record of each task, as JSON lines
  verify JOURNAL...                       counts records, bad lines and keys that come twice; status 1 if any
  merge OUTPUT JOURNAL...                 all records of the journals, every key once
  compact JOURNAL                         the same in place, tasks one after the other
  export FORMAT JOURNAL OUTPUT [--task HASH]   as t4 or npz

Journals of any size are read by an index beside them, JOURNAL.index, which is made when it is missing.
)";

/// A mistake of whoever typed the command.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

const std::string& checked(const std::string& path) {
  data::check_journal(path);
  return path;
}

/// All tasks of a journal, or `only` that one. Throws `std::runtime_error` if it is not there.
std::set<std::uint64_t> tasks_of(const data::WholeJournal& journal, const std::optional<std::uint64_t>& only) {
  std::set<std::uint64_t> tasks = journal.tasks();
  if (!only) return tasks;
  if (!tasks.contains(*only))
    throw std::runtime_error("the journal has no task " + to_hex(*only) + "; 'list' tells which it has");
  return {*only};
}

int list(const std::string& path) {
  const data::WholeJournal journal(checked(path));
  for (const std::uint64_t task : journal.tasks()) {
    std::string name = "?", target = "?";
    if (const auto described = journal.description(task)) {
      name = described->name;
      target = described->target.name;
    } else if (const auto found = journal.first_record(task)) {
      name = found->task_name;
      target = found->target_name;
    }
    std::printf("%s %10llu  %s  [%s]\n", to_hex(task).c_str(), static_cast<unsigned long long>(journal.lines_of(task)),
                name.c_str(), target.c_str());
  }
  std::printf("%zu tasks, %llu lines, %zu of them neither records nor tasks\n", journal.tasks().size(),
              static_cast<unsigned long long>(journal.lines()), journal.bad_count());
  return 0;
}

int best(const std::string& path, const std::optional<std::uint64_t>& only) {
  const data::WholeJournal journal(checked(path));
  std::size_t bad = journal.bad_count();
  for (const std::uint64_t task : tasks_of(journal, only)) {
    const data::JournalIndex::Found found = journal.find(task);
    bad += found.bad.size();
    const Record* fastest = nullptr;
    for (const Record& record : found.records) {
      const Timing* timing = record.outcome.timing();
      if (timing != nullptr && (fastest == nullptr || timing->median < fastest->outcome.timing()->median))
        fastest = &record;
    }
    if (fastest != nullptr) std::printf("%s\n", data::to_line(*fastest).c_str());
  }
  if (bad > 0) std::fprintf(stderr, "%s: %zu bad lines left out; 'verify' tells which\n", path.c_str(), bad);
  return 0;
}

int verify(std::span<const std::string> paths) {
  bool clean = true;
  for (const std::string& path : paths) {
    const data::WholeJournal journal(checked(path));
    std::size_t records = 0, failed = 0, twice = 0, bad = 0;
    const auto tell = [&](const std::vector<data::BadLine>& lines) {
      for (const data::BadLine& line : lines) {
        if (++bad <= 20) std::printf("%s:%zu: %s\n", path.c_str(), line.number, line.reason.c_str());
      }
    };
    tell(journal.bad_lines());
    const std::set<std::uint64_t> tasks = journal.tasks();
    for (const std::uint64_t task : tasks) {
      const data::JournalIndex::Found found = journal.find(task);
      tell(found.bad);
      std::set<std::uint64_t> keys;
      for (const Record& record : found.records) {
        ++records;
        failed += record.outcome.valid() ? 0 : 1;
        twice += keys.insert(StableHash().add(record.key).add(record.compiler).value()).second ? 0 : 1;
      }
    }
    for (const auto& [task, entry] : journal.index().tasks()) {
      if (entry.described_line != 0 && !journal.index().description(task))
        tell({{static_cast<std::size_t>(entry.described_line), "the task described is another than the line says"}});
    }
    std::printf("%s: %llu lines, %zu records of %zu tasks, %zu of them failed; %zu bad lines, %zu keys come twice\n",
                path.c_str(), static_cast<unsigned long long>(journal.lines()), records, tasks.size(), failed, bad,
                twice);
    clean = clean && bad == 0 && twice == 0;
  }
  return clean ? 0 : 1;
}

int merge(const std::string& output, std::span<const std::string> inputs, bool in_place) {
  if (!in_place && std::filesystem::exists(output))
    throw std::runtime_error("'" + output + "' exists; name a file that does not, or remove it first");
  const data::MergeReport report = data::merge_journals(inputs, output);
  for (const std::string& line : report.listed) std::printf("%s\n", line.c_str());
  std::printf("%s: %zu of %zu records of %zu tasks; %zu had a key that was there, %zu lines were bad\n", output.c_str(),
              report.written, report.records, report.tasks, report.duplicates, report.bad);
  return 0;
}

void write_npz(std::ostream& out, std::span<const Record> records) {
  // As the costs of a dataset: a failure must not look like the fastest of all.
  constexpr double none = std::numeric_limits<double>::infinity();
  std::vector<std::string> tasks, keys, names, configs, compilers, faults, stops;
  std::vector<double> median, deviation, time;
  std::vector<std::uint32_t> rounds, slots;
  for (const Record& record : records) {
    const Timing* timing = record.outcome.timing();
    tasks.push_back(to_hex(record.task));
    keys.push_back(to_hex(record.key));
    names.push_back(record.task_name);
    configs.push_back(record.config);
    compilers.push_back(record.compiler);
    faults.emplace_back(timing != nullptr ? "" : name(record.outcome.failure()->fault));
    stops.emplace_back(timing != nullptr ? name(timing->stopped) : "");
    median.push_back(timing != nullptr ? timing->median.count() : none);
    deviation.push_back(timing != nullptr ? timing->median_absolute_deviation.count() : none);
    time.push_back(record.timestamp.count());
    rounds.push_back(record.round);
    slots.push_back(record.slot);
  }
  data::NpzWriter file(out);
  file.add("task", tasks);
  file.add("key", keys);
  file.add("task_name", names);
  file.add("config", configs);
  file.add("compiler", compilers);
  file.add("fault", faults);
  file.add("stopped", stops);
  file.add("median_s", std::span<const double>(median));
  file.add("mad_s", std::span<const double>(deviation));
  file.add("time", std::span<const double>(time));
  file.add("round", std::span<const std::uint32_t>(rounds));
  file.add("slot", std::span<const std::uint32_t>(slots));
  file.finish();
}

// In place of a file; a device or a pipe has nothing to replace.
template <class Content>
void write_output(const std::string& output, const Content& content) {
  if (std::filesystem::exists(output) && !std::filesystem::is_regular_file(output))
    return write_file(output, "name a file you may write", content);
  data::ReplacedFile file(output);
  content(file.stream());
  file.replace();
}

int export_as(const std::string& format, const std::string& path, const std::string& output,
              const std::optional<std::uint64_t>& only) {
  if (format == "tvm") {
    throw UsageError(
        "a journal holds decisions of a search space, and TVM's format holds schedule steps: a program that has "
        "the space writes them, see docs/design/tuning_logs.md; here t4 and npz are written");
  }
  if (format != "t4" && format != "npz") throw UsageError("unknown format '" + format + "'; give t4 or npz");
  const data::WholeJournal journal(checked(path));
  if (std::filesystem::is_regular_file(output) && std::filesystem::file_size(output) > 0 && data::is_journal(output))
    throw std::runtime_error("'" + output + "' is a journal; name another file, or remove it first");
  const std::set<std::uint64_t> tasks = tasks_of(journal, only);
  if (format == "t4" && tasks.size() > 1) {
    throw UsageError("t4 knows no tasks, and '" + path + "' has " + std::to_string(tasks.size()) +
                     "; choose one by --task HASH, as 'list' prints it");
  }
  std::vector<Record> records;
  std::size_t bad = journal.bad_count();
  for (const std::uint64_t task : tasks) {
    data::JournalIndex::Found found = journal.find(task);
    bad += found.bad.size();
    for (Record& record : found.records) records.push_back(std::move(record));
  }
  write_output(output, [&](std::ostream& out) {
    if (format == "t4")
      data::write_t4(out, std::span<const Record>(records));
    else
      write_npz(out, records);
  });
  // A pipe takes what was exported and nothing else.
  std::FILE* told = std::filesystem::is_regular_file(output) ? stdout : stderr;
  std::fprintf(told, "%s: %zu records, %zu bad lines left out\n", output.c_str(), records.size(), bad);
  return 0;
}

/// Removes `--task HASH`, or `--task=HASH`, from the words and returns its value. Any other option is a mistake, as is
/// this one for a command that does not read it.
std::optional<std::uint64_t> take_task(std::vector<std::string>& words) {
  const std::string option = "--task";
  std::optional<std::uint64_t> task;
  for (std::size_t w = 1; w < words.size();) {
    const bool joined = words[w].starts_with(option + "=");
    if (!words[w].starts_with("--")) {
      ++w;
      continue;
    }
    if (!joined && words[w] != option) throw UsageError("'" + words[w] + "' is not an option; see --help");
    if (words[0] != "best" && words[0] != "export") throw UsageError("'" + words[0] + "' takes no " + option);
    if (task) throw UsageError(option + " is given twice; give one task");
    if (!joined && w + 1 == words.size()) throw UsageError(option + " wants the hash of a task, as 'list' prints it");
    try {
      task = from_hex(joined ? words[w].substr(option.size() + 1) : words[w + 1], option);
    } catch (const std::runtime_error& error) {
      throw UsageError(std::string(error.what()) + "; give the hash of a task, as 'list' prints it");
    }
    const auto first = words.begin() + static_cast<std::ptrdiff_t>(w);
    words.erase(first, first + (joined ? 1 : 2));
  }
  return task;
}

int run(std::vector<std::string> words) {
  if (std::ranges::find(words, "--help") != words.end()) {
    std::fputs(usage, stdout);
    return 0;
  }
  const std::optional<std::uint64_t> task = take_task(words);
  const std::string command = words.empty() ? "" : words.front();
  const auto rest = words.empty() ? std::span<const std::string>() : std::span<const std::string>(words).subspan(1);
  const auto wants = [&](bool holds, const char* what) {
    if (!holds) throw UsageError("'" + command + "' wants " + what + "; see --help");
  };
  if (command == "list") return wants(rest.size() == 1, "one journal"), list(rest[0]);
  if (command == "best") return wants(rest.size() == 1, "one journal"), best(rest[0], task);
  if (command == "verify") return wants(!rest.empty(), "journals"), verify(rest);
  if (command == "merge")
    return wants(rest.size() >= 2, "an output and journals"), merge(rest[0], rest.subspan(1), false);
  if (command == "compact") return wants(rest.size() == 1, "one journal"), merge(rest[0], rest, true);
  if (command == "export")
    return wants(rest.size() == 3, "a format, a journal and an output"), export_as(rest[0], rest[1], rest[2], task);
  throw UsageError(command.empty() ? "no command; see --help" : "unknown command '" + command + "'; see --help");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int status = run({argv + 1, argv + argc});
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
      throw std::runtime_error("cannot write the standard output; check that its disk has room");
    return status;
  } catch (const UsageError& error) {
    std::fprintf(stderr, "tunewright-journal: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tunewright-journal: %s\n", error.what());
    return 1;
  }
}
