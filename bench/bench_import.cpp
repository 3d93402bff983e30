// SPDX-License-Identifier: Apache-2.0
// Importers of measured data: records a second on one core, plain and gzip, beside a general JSON parser that only
// parses the same lines. --help lists the options.
//
// files/<format> reads every .gz file of the format below DIR, from opening to the last record; without DIR it is left
// out. The others read the lines of the excerpts in test/data, repeated. Counters:
//   records_per_second, megabytes_per_second   of text, decompressed
//   files                                      read in one go
//   programs_per_second                        programs rebuilt, lowered and described by statement rows
#include <benchmark/benchmark.h>
#include <stdlib.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "benchmark_program.hpp"
#include "tunewright/data/auto_scheduler_log.hpp"
#include "tunewright/data/auto_scheduler_programs.hpp"
#include "tunewright/data/autotvm_log.hpp"
#include "tunewright/data/read_table.hpp"
#include "tunewright/features/per_statement/schema.hpp"

namespace {

using namespace tunewright;

constexpr const char* usage = R"(usage: bench_import [options] [Google Benchmark options]

Importers of measured data: records a second on one core, beside a general JSON parser.

  --data=DIR  also reads all tuning logs and tables below it that end in .gz
)";

constexpr std::size_t wanted_bytes = 64 << 20;

std::string excerpt(const std::string& name) { return (std::filesystem::path(TUNEWRIGHT_TEST_DATA) / name).string(); }

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The lines of an excerpt, repeated, as a plain and as a compressed file, which has as many members.
class Files {
 public:
  explicit Files(const std::string& name) {
    const std::string text = data::read_text(excerpt(name)), members = bytes_of(excerpt(name));
    std::string folder = (std::filesystem::temp_directory_path() / "tunewright-XXXXXX").string();
    if (::mkdtemp(folder.data()) == nullptr) throw std::runtime_error("no temporary folder");
    folder_ = folder;
    plain = folder_ + "/log";
    packed = plain + ".gz";
    std::ofstream plain_file(plain, std::ios::binary), packed_file(packed, std::ios::binary);
    for (std::size_t written = 0; written < wanted_bytes; written += text.size()) {
      plain_file << text;
      packed_file << members;
      bytes += static_cast<double>(text.size());
    }
  }
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;
  ~Files() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::string plain, packed;
  double bytes = 0;

 private:
  std::string folder_;
};

void count(benchmark::State& state, std::size_t records, double bytes) {
  using benchmark::Counter;
  state.counters["records_per_second"] = Counter(static_cast<double>(records), Counter::kIsRate);
  state.counters["megabytes_per_second"] =
      Counter(bytes * 1e-6 * static_cast<double>(state.iterations()), Counter::kIsRate);
}

template <class Log>
void read(benchmark::State& state, const char* name, bool packed) {
  const Files files(name);
  std::size_t records = 0;
  for (auto _ : state) {
    const auto report = data::read_log<Log>(packed ? files.packed : files.plain,
                                            [](const auto& record) { benchmark::DoNotOptimize(&record); });
    if (!report.complete()) state.SkipWithError(summary(report).c_str());
    records += report.records;
  }
  count(state, records, files.bytes);
}

void read_auto_scheduler(benchmark::State& state, const char* name, bool packed) {
  read<data::AutoSchedulerLog>(state, name, packed);
}
void read_autotvm(benchmark::State& state, const char* name, bool packed) {
  read<data::AutoTvmLog>(state, name, packed);
}

// Parses into a tree and takes nothing out of it.
void read_with_nlohmann(benchmark::State& state, const char* name) {
  const Files files(name);
  std::size_t records = 0;
  for (auto _ : state) {
    data::GzipLines lines(files.plain);
    for (std::string_view line; lines.next(line); ++records) {
      const auto tree = nlohmann::json::parse(line);
      benchmark::DoNotOptimize(&tree);
    }
  }
  count(state, records, files.bytes);
}

struct WholeFiles {
  std::vector<std::string> paths;
  double bytes = 0;
};

// Files by format, which the first key of the first object tells.
std::map<std::string, WholeFiles> files_by_format(const std::string& folder) {
  static const std::map<std::string_view, const char*> format_of_key{
      {"i", "auto_scheduler"}, {"input", "autotvm"}, {"device_name", "kernel_tuner"},
      {"Metadata", "ktt"},     {"metadata", "t4"},   {"schema_version", "t4"},
      {"results", "t4"}};
  std::map<std::string, WholeFiles> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file() || entry.path().extension() != ".gz") continue;
    const std::string text = data::read_text(entry.path().string());
    json::Scanner in(text);
    if (!in.accept('{') || in.peek() != '"') continue;
    const auto format = format_of_key.find(in.plain_string());
    if (format == format_of_key.end()) continue;
    WholeFiles& files = found[format->second];
    files.paths.push_back(entry.path().string());
    files.bytes += static_cast<double>(text.size());
  }
  return found;
}

data::ImportReport read_file(const std::string& format, const std::string& path) {
  const auto use = [](const auto& record) { benchmark::DoNotOptimize(&record); };
  if (format == "auto_scheduler") return data::read_log<data::AutoSchedulerLog>(path, use);
  if (format == "autotvm") return data::read_log<data::AutoTvmLog>(path, use);
  return data::read_table(path, {.device = "some device"}).report;
}

void read_whole_files(benchmark::State& state, const std::string& format, const WholeFiles& files) {
  std::size_t records = 0;
  for (auto _ : state) {
    for (const std::string& path : files.paths) {
      const auto report = read_file(format, path);
      if (!report.complete()) state.SkipWithError(summary(report).c_str());
      records += report.records;
    }
  }
  count(state, records, files.bytes);
  state.counters["files"] = static_cast<double>(files.paths.size());
}

void describe_programs(benchmark::State& state, const char* name) {
  std::vector<data::AutoSchedulerRecord> records;
  data::read_log<data::AutoSchedulerLog>(excerpt(name), [&](const auto& record) { records.push_back(record); });
  data::AutoSchedulerPrograms programs("device");
  for (auto _ : state) {
    FeatureBatch batch(features::per_statement::columns);
    for (const auto& record : records) programs.describe(record, batch);
    benchmark::DoNotOptimize(&batch);
  }
  state.counters["programs_per_second"] =
      benchmark::Counter(static_cast<double>(programs.replayed()), benchmark::Counter::kIsRate);
}

constexpr const char* ansor_gpu = "roller_v100_ansor.log.gz";
constexpr const char* ansor_cpu = "bennu_x86_matmul.json.gz";
constexpr const char* autotvm = "roller_v100_autotvm.log.gz";

BENCHMARK_CAPTURE(read_auto_scheduler, ansor_gpu_plain, ansor_gpu, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(read_auto_scheduler, ansor_gpu_gzip, ansor_gpu, true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(read_auto_scheduler, ansor_cpu_gzip, ansor_cpu, true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(read_autotvm, autotvm_plain, autotvm, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(read_autotvm, autotvm_gzip, autotvm, true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(read_with_nlohmann, ansor_gpu_plain, ansor_gpu)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(read_with_nlohmann, autotvm_plain, autotvm)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(describe_programs, gpu, ansor_gpu)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(describe_programs, cpu, ansor_cpu)->Unit(benchmark::kMillisecond);

// Removes and returns the value of --data.
std::string take_folder(int& argc, char** argv) {
  std::string folder;
  char** const end = std::remove_if(argv + 1, argv + argc, [&](const char* argument) {
    const bool ours = std::string_view(argument).starts_with("--data=");
    if (ours) folder = argument + std::string_view("--data=").size();
    return ours;
  });
  argc = static_cast<int>(end - argv);
  return folder;
}

}  // namespace

int main(int argc, char** argv) {
  bench::answer_help(argc, argv, usage);
  const std::string folder = take_folder(argc, argv);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  if (std::filesystem::is_directory(folder)) {
    for (const auto& [format, files] : files_by_format(folder)) {
      benchmark::RegisterBenchmark(("files/" + format).c_str(), [format = format, files = files](auto& state) {
        read_whole_files(state, format, files);
      })->Unit(benchmark::kMillisecond);
    }
  } else {
    std::fprintf(stderr, "skipped: files/..., there is no folder '%s'; name one of tuning logs by --data=DIR\n",
                 folder.c_str());
  }
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
