// SPDX-License-Identifier: Apache-2.0
// Importers of tuning logs: records a second on one core, plain and gzip, beside a general JSON parser that only
// parses the same lines.
//
//   bench_import --benchmark_format=json
//
// The lines are those of the excerpts in test/data, repeated. Counters:
//   records_per_second, megabytes_per_second   of text, decompressed
//   programs_per_second                        programs rebuilt, lowered and described by statement rows
#include <benchmark/benchmark.h>
#include <stdlib.h>
#include <zlib.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tunewright/data/auto_scheduler_log.hpp"
#include "tunewright/data/auto_scheduler_programs.hpp"
#include "tunewright/data/autotvm_log.hpp"
#include "tunewright/features/per_statement/schema.hpp"

namespace {

using namespace tunewright;

constexpr std::size_t wanted_bytes = 64 << 20;

std::string excerpt(const std::string& name) {
  return (std::filesystem::path(__FILE__).parent_path().parent_path() / "test" / "data" / name).string();
}

// The lines of an excerpt, repeated, as a plain and as a compressed file.
class Files {
 public:
  explicit Files(const std::string& name) {
    const std::string once = data::read_text(excerpt(name));
    std::string text;
    while (text.size() < wanted_bytes) text += once;
    bytes = static_cast<double>(text.size());
    std::string folder = (std::filesystem::temp_directory_path() / "tunewright-XXXXXX").string();
    if (::mkdtemp(folder.data()) == nullptr) throw std::runtime_error("no temporary folder");
    folder_ = folder;
    plain = folder_ + "/log";
    packed = plain + ".gz";
    std::ofstream(plain, std::ios::binary) << text;
    const gzFile file = ::gzopen(packed.c_str(), "wb6");
    for (std::size_t at = 0; at < text.size(); at += 1 << 20) {
      const std::string_view part = std::string_view(text).substr(at, 1 << 20);
      ::gzwrite(file, part.data(), static_cast<unsigned>(part.size()));
    }
    ::gzclose(file);
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

void describe_programs(benchmark::State& state, const char* name) {
  std::vector<data::AutoSchedulerRecord> records;
  data::read_log<data::AutoSchedulerLog>(excerpt(name),
                                         [&](const auto& record) { records.push_back(record); });
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

}  // namespace

BENCHMARK_MAIN();
