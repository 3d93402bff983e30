// SPDX-License-Identifier: Apache-2.0
// Journals of many records: what recalling one task, making the index and merging two shards take. --help lists the
// options.
//
// Makes a journal of so many records, tasks interleaved in batches of 64 as a scheduler of many tasks leaves them, and
// two shards that overlap in a tenth of their keys; removes all of it at the end. Each step is a process of its own:
// seconds, and the peak of its resident memory. Ends with status 1 when a record is lost or a key comes twice.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "parse_number.hpp"
#include "tunewright/core/make_folder.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/data/journal.hpp"
#include "tunewright/data/journal_index.hpp"
#include "tunewright/data/merge_journals.hpp"
#include "tunewright/data/record_json.hpp"
#include "tunewright/data/task_json.hpp"
#include "usage.hpp"

namespace {

using namespace tunewright;
namespace fs = std::filesystem;

constexpr const char* usage = R"(usage: bench_journal [options]

Tells how long it takes to recall one task of a journal of many records, to make its index and to merge two shards.

  --records=N   records of the journal (1000000)
  --tasks=N     its tasks (2000)
  --folder=DIR  for the journals, which are removed at the end (that for temporary files)
)";

constexpr std::uint64_t batch = 64;

Task task_of(std::uint64_t number) {
  Task task;
  task.name = "task " + std::to_string(number);
  task.workload_hash = number + 1;
  task.target.name = "bench";
  return task;
}

class Records {
 public:
  explicit Records(std::uint64_t tasks) {
    for (std::uint64_t t = 0; t < tasks; ++t) hashes_.push_back(stable_hash(task_of(t)));
  }
  /// The record with a number, of a shape as measurements of a tiling space have it.
  [[nodiscard]] Record operator()(std::uint64_t number) const {
    const std::uint64_t task = number / batch % hashes_.size();
    Record record;
    record.task = hashes_[task];
    record.task_name = "task " + std::to_string(task);
    record.target_name = "bench";
    record.key = number * 0x9E3779B97F4A7C15U;  // an odd factor: no two numbers have one key
    record.config = "{\"sketch\":" + std::to_string(number % 7) +
                    ",\"tiles\":[[4,2,8,16],[2,2,16,8],[64,8]],\"unroll\":" + std::to_string(number % 512) +
                    ",\"vectorize\":1,\"parallel\":3,\"compute_at\":[2,5]}";
    record.compiler = "llvm 19.1.7 -O2 avx512, on a machine of a benchmark, avx512, 2 threads, 8 GiB";
    record.round = static_cast<unsigned>(number / batch);
    record.slot = static_cast<unsigned>(number % batch);
    if (number % 16 == 5) {
      record.outcome.result = Failure{Fault::RunTimeout, "still running after 2 s"};
      return record;
    }
    Timing timing;
    timing.median = Seconds(1e-3 + 1e-9 * static_cast<double>(number % 1000003));
    for (int i = 0; i < 5; ++i) timing.repeats.push_back(timing.median + Seconds(1e-7 * i));
    record.outcome.result = timing;
    record.outcome.run_time = Seconds(0.021);
    return record;
  }

 private:
  std::vector<std::uint64_t> hashes_;
};

void write(const std::string& path, const Records& records, std::uint64_t begin, std::uint64_t end) {
  std::ofstream out(path, std::ios::binary);
  for (std::uint64_t number = begin; number < end; ++number) out << data::to_line(records(number)) << '\n';
  out.close();
  if (!out) throw std::runtime_error("cannot write '" + path + "'");
}

void expect(std::uint64_t is, std::uint64_t wanted, const char* what) {
  if (is != wanted)
    throw std::runtime_error(std::string(what) + ": " + std::to_string(is) + " where " + std::to_string(wanted) +
                             " are due");
}

/// Runs a step in a process of its own and prints what it took; false where it failed.
template <class Step>
bool measured(const char* name, const Step& step) {
  std::fflush(nullptr);
  const auto start = std::chrono::steady_clock::now();
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      step();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s: %s\n", name, error.what());
      ::_exit(1);
    }
    ::_exit(0);
  }
  int status = 1;
  rusage used{};
  ::wait4(child, &status, 0, &used);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  std::printf("%-44s %9.3f s %9.1f MiB peak\n", name, elapsed.count(), static_cast<double>(used.ru_maxrss) / 1024);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

int main(int argc, char** argv) try {
  if (bench::printed_usage(argc, argv, usage)) return 0;
  std::uint64_t count = 1'000'000, tasks = 2000;
  std::string folder = fs::temp_directory_path().string();
  const auto read = [&](std::string_view option, std::string_view value) {
    if (option == "--records=")
      count = bench::parse_number(value, "records", 1);
    else if (option == "--tasks=")
      tasks = bench::parse_number(value, "tasks", 1);
    else if (option == "--folder=")
      folder = value;
    else
      return false;
    return true;
  };
  if (!bench::read_options("bench_journal", argc, argv, read)) return 2;
  if (count / batch < tasks)
    return std::fprintf(stderr, "bench_journal: give %zu records a task or more\n", std::size_t{batch}), 2;
  const std::string base = folder + "/bench-journal-" + std::to_string(::getpid());
  make_folder(base, "name one that you may write by --folder=DIR");
  const std::string whole = base + "/whole.jsonl", first = base + "/shard-1.jsonl", second = base + "/shard-2.jsonl",
                    merged = base + "/merged.jsonl";
  const Records records(tasks);
  const Task wanted = task_of(tasks / 2);
  std::uint64_t of_wanted = 0;
  for (std::uint64_t number = 0; number < count; ++number) of_wanted += number / batch % tasks == tasks / 2 ? 1U : 0U;
  const auto recall = [&] {
    data::Journal journal({.path = whole});
    expect(journal.recall(wanted).size(), of_wanted, "records of the task");
  };

  bool works = measured("write the journal", [&] { write(whole, records, 0, count); });
  std::printf("%llu records of %llu tasks, %.2f GB\n", static_cast<unsigned long long>(count),
              static_cast<unsigned long long>(tasks), works ? static_cast<double>(fs::file_size(whole)) * 1e-9 : 0.0);
  works =
      works && measured("make the index", [&] { expect(data::JournalIndex(whole).tasks().size(), tasks, "tasks"); });
  works = works && measured("recall one task by the index", recall);
  works = works && measured("recall it once more", recall);
  fs::remove(whole);
  works = works && measured("write two shards", [&] {
            write(first, records, 0, count / 20 * 11);
            write(second, records, count / 20 * 9, count);
          });
  works = works && measured("merge them", [&] {
            const data::MergeReport report = data::merge_journals(std::vector<std::string>{first, second}, merged);
            expect(report.written, count, "records written");
            expect(report.duplicates, count / 20 * 2, "duplicates");
            expect(report.bad, 0, "bad lines");
          });
  works = works && measured("read what was merged: every key once", [&] {
            std::ifstream in(merged, std::ios::binary);
            std::set<std::uint64_t> keys;  // of one task, which stand together
            std::set<std::uint64_t> done;
            std::uint64_t task = 0, seen = 0;
            for (std::string line; std::getline(in, line); ++seen) {
              const Record record = data::from_line(line);
              if (record.task != task) {
                expect(done.insert(task = record.task).second ? 1 : 0, 1, "places of a task");
                keys.clear();
              }
              expect(keys.insert(record.key).second ? 1 : 0, 1, "records of a key");
            }
            expect(seen, count, "records");
          });
  fs::remove_all(base);
  return works ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "bench_journal: %s\n", error.what());
  return 1;
}
