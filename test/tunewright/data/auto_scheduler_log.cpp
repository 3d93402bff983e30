// SPDX-License-Identifier: Apache-2.0
#include "tunewright/data/auto_scheduler_log.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <set>

#include "support/data_file.hpp"
#include "support/temporary_folder.hpp"

using namespace tunewright;
namespace ansor = data::ansor;

namespace {

// One step of every kind; the values are the format's own.
const std::string every_step =
    R"({"i": [["[\"f\", [1, 2], \"x\"]", "cuda -keys=cuda,gpu", [-1, 16, 64, 49152, 2147483647, 1024, 8, 32], "llvm", 2, ["a"]], [[], [)"
    R"(["SP", 2, 0, 64, [1, 4], 1], ["FSP", 3, 1, 0, 2], ["FFSP", 4, 0, [3, 2], 1, 0], ["RE", 2, [1, 0]], )"
    R"(["FU", 2, [0, 1]], ["AN", 2, 0, 5], ["PR", 2, 0, "auto_unroll_max_step$64"], ["CA", 1, 2, 3], ["CI", 1], )"
    R"(["CR", 1], ["CHR", 2, "shared", [3]], ["CHW", 3, "local"], ["RF", 3, 2, 1], ["SA", 1, 0, 32, 8]]]], )"
    R"("r": [[0.0012, 0.0014, 0.001], 0, 1.5, 1638178256], "v": "v0.6"})";

std::string with(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

}  // namespace

TEST_CASE("every transform step is read with its fields") {
  const auto record = data::parse_auto_scheduler_line(every_step);
  const std::vector<ansor::Step> expected{
      ansor::Split{2, 0, 64, {1, 4}, true},
      ansor::FollowSplit{3, 1, 0, 2},
      ansor::FollowFusedSplit{4, 0, {3, 2}, 1, false},
      ansor::Reorder{2, {1, 0}},
      ansor::Fuse{2, {0, 1}},
      ansor::Annotate{2, 0, ansor::Annotation::BlockX},
      ansor::Pragma{2, 0, "auto_unroll_max_step$64"},
      ansor::ComputeAt{1, 2, 3},
      ansor::ComputeInline{1},
      ansor::ComputeRoot{1},
      ansor::CacheRead{2, "shared", {3}},
      ansor::CacheWrite{3, "local"},
      ansor::Rfactor{3, 2, 1},
      ansor::StorageAlign{1, 0, 32, 8},
  };
  CHECK(record.steps == expected);
  CHECK(record.version == "v0.6");
  CHECK(record.task->target_host == "llvm");
  CHECK(record.task->layout_rewrite == 2);
  CHECK(record.task->input_names == std::vector<std::string>{"a"});
  CHECK(record.result.price == Seconds(1.5));
  CHECK(record.result.timestamp == 1638178256);
  CHECK(record.result.median_seconds() == 0.0012);
  CHECK(record.result.mean_seconds() == doctest::Approx(0.0012));
  CHECK(to_line(record) == every_step);

  const Target target = ansor::to_target(*record.task, "V100");
  CHECK(target.kind == DeviceKind::Gpu);
  CHECK(target.shared_memory_per_block_bytes == 49152);
  CHECK(target.warp_size == 32);
  CHECK(target.multiprocessors == 0);

  ansor::TaskInfo on_cpu = *record.task;
  on_cpu.hardware.vector_bytes = 16;
  on_cpu.target = "llvm -keys=cpu -mcpu=nehalem";
  CHECK(ansor::to_target(on_cpu, "old").isa == Isa::Sse42);
  on_cpu.target = "llvm -keys=arm_cpu,cpu -mtriple=aarch64-linux-gnu -mattr=+neon";
  CHECK(ansor::to_target(on_cpu, "board").isa == Isa::Neon);

  const auto workload = ansor::parse_workload(record.task->workload_key);
  CHECK(workload.name == "f");
  REQUIRE(workload.arguments.size() == 2);
  CHECK(*workload.arguments[0].array()->at(1).integer() == 2);
  CHECK(*workload.arguments[1].text() == "x");
}

TEST_CASE("early versions hold fewer fields of the task, and are written back as they were") {
  const std::string v4 = with(with(every_step, R"(, "llvm", 2, ["a"])", ""), "v0.6", "v0.4");
  const auto record = data::parse_auto_scheduler_line(v4);
  CHECK(record.task->fields == 3);
  CHECK(record.task->target_host.empty());
  CHECK(to_line(record) == v4);
  const std::string v5 = with(with(every_step, R"(, ["a"])", ""), "v0.6", "v0.5");
  CHECK(to_line(data::parse_auto_scheduler_line(v5)) == v5);
  const std::string v2 = with(with(v4, ", [-1, 16, 64, 49152, 2147483647, 1024, 8, 32]", ""), "v0.4", "v0.2");
  const auto first = data::parse_auto_scheduler_line(v2);
  CHECK(first.task->fields == 2);
  CHECK(first.task->hardware == ansor::HardwareParameters{});
  CHECK(first.steps == record.steps);
  CHECK(to_line(first) == v2);
}

TEST_CASE("a record without a task is not written") {
  CHECK_THROWS_WITH_AS((void)to_line(data::AutoSchedulerRecord{}), doctest::Contains("has no task"),
                       std::invalid_argument);
}

TEST_CASE("error numbers are faults") {
  const Fault faults[] = {Fault::InvalidSchedule, Fault::CompileError,   Fault::DeviceCompileError, Fault::RunError,
                          Fault::WrongResult,     Fault::CompileTimeout, Fault::RunTimeout,         Fault::Unknown};
  for (int error = 1; error <= 8; ++error) {
    const auto record = data::parse_auto_scheduler_line(
        with(every_step, "[[0.0012, 0.0014, 0.001], 0,", "[[1e+10], " + std::to_string(error) + ","));
    CHECK(record.result.fault == faults[error - 1]);
    CHECK(std::isinf(record.result.median_seconds()));
    CHECK(data::parse_auto_scheduler_line(to_line(record)) == record);
  }
}

TEST_CASE("a line that is no record is refused with the column and what was expected") {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "expected '{'"},
      {"hello", "column 1: expected '{'"},
      {every_step.substr(0, 300), "but the text ends"},
      {every_step + "x", "expected the end of the record"},
      {with(every_step, R"("SP")", R"("XX")"), "unknown transform step 'XX'"},
      {with(every_step, "2, 0, 5]", "2, 0, 12]"), "expected an annotation from 0 to 11, not 12"},
      {with(every_step, R"(["CI", 1])", R"(["CI", 1, 2])"), "expected ']'"},
      {with(every_step, R"(["CI", 1])", R"(["CI", 1.5])"), "not a fraction"},
      {with(every_step, R"(["CI", 1])", R"(["CI", 99999999999])"), "too large"},
      {with(every_step, "0.001], 0", "0.001], 9"), "expected an error number from 0 to 8, not 9"},
      {with(every_step, "0.0014", "-1"), "expected run times above 0"},
      {with(every_step, "0.0014", "1e+10"), "below 1e9"},
      {with(every_step, "0.0014", "NaN"), "expected run times above 0"},
      {with(every_step, "[0.0012, 0.0014, 0.001]", "[]"), "expected a run time"},
      {with(every_step, "[0.0012, 0.0014, 0.001], 0", "[-Infinity], 4"), "expected finite run times"},
      {with(every_step, "0, 1.5", "0, NaN"), "expected a price in seconds"},
      {with(every_step, "0, 1.5", "0, -1"), "expected a price in seconds"},
      {with(every_step, "v0.6", "v0.7"), "expected a format version from v0.2 to v0.6, not v0.7"},
      {with(every_step, R"(, "v": "v0.6")", ""), "no version"},
      {with(every_step, R"("r")", R"("q")"), "no result"},
      {with(every_step, "16, 64,", "16,"), "expected 8 hardware parameters, not 7"},
      // A count of processors is an unsigned number of 32 bits, of which 2^32 leave none.
      {with(every_step, "[-1, 16,", "[4294967296, 16,"), "expected hardware parameters of 32 bits, not 4294967296"},
      {R"({"input": ["llvm", "conv", [], {}], "version": 0.2})", "no input"},
  };
  for (const auto& [line, reason] : cases) {
    CAPTURE(line);
    CHECK_THROWS_WITH_AS((void)data::parse_auto_scheduler_line(line), doctest::Contains(reason.c_str()), FormatError);
  }
  CHECK_THROWS_WITH_AS((void)ansor::parse_workload("{\"a\": 1}"), doctest::Contains("no object"), FormatError);
  CHECK_THROWS_WITH_AS((void)ansor::parse_workload("[1]"), doctest::Contains("starts with a name"), FormatError);
}

TEST_CASE("published logs are read line by line, and written back equal") {
  struct Expected {
    const char* file;
    std::size_t records, failed, tasks;
  };
  for (const auto& [file, records, failed, tasks] :
       {Expected{"bennu_x86_matmul.json", 6, 0, 1}, Expected{"bennu_x86_matmul.json.gz", 50, 0, 1},
        Expected{"bennu_x86_resnet18.json.gz", 48, 0, 24}, Expected{"roller_v100_ansor.log.gz", 103, 13, 18}}) {
    CAPTURE(file);
    data::AutoSchedulerLog log(support::data_file(file));
    std::set<std::string> keys;
    for (data::AutoSchedulerRecord record; log.next(record);) {
      keys.insert(record.task->workload_key);
      CHECK(data::parse_auto_scheduler_line(to_line(record)) == record);
    }
    CHECK(log.report().complete());
    CHECK(log.report().records == records);
    CHECK(log.report().lines == records);
    CHECK(log.report().failed == failed);
    CHECK(keys.size() == tasks);
  }
}

TEST_CASE("comments are no bad lines") {
  const support::TemporaryFolder folder;
  const std::string path = folder.file("log.json");
  std::ofstream(path) << "# tuned on a Tuesday\n" << every_step << "\n#\n";
  const auto report = data::read_log<data::AutoSchedulerLog>(path, [](const data::AutoSchedulerRecord&) {});
  CHECK(report.records == 1);
  CHECK(report.blank == 2);
  CHECK(report.complete());
}

TEST_CASE("bad lines are counted and listed, and the records around them are read") {
  const support::TemporaryFolder folder;
  const std::string path = folder.file("mixed.json");
  std::ofstream(path) << every_step << "\n\nnonsense\n"
                      << with(every_step, "FSP", "ABC") << "\n"
                      << every_step << "\n"
                      << every_step.substr(0, 100);
  data::AutoSchedulerLog log(path, {.max_listed = 2});
  data::AutoSchedulerRecord record;
  REQUIRE(log.next(record));
  const auto first = record;
  REQUIRE(log.next(record));
  CHECK(record == first);
  CHECK(record.task == first.task);  // read once
  CHECK(log.line() == 5);
  CHECK_FALSE(log.next(record));
  const data::ImportReport& report = log.report();
  CHECK(report.lines == 6);
  CHECK(report.records == 2);
  CHECK(report.blank == 1);
  CHECK(report.bad == 3);
  REQUIRE(report.bad_lines.size() == 2);
  CHECK(report.bad_lines[0] == data::BadLine{3, "column 1: expected '{'"});
  CHECK(report.bad_lines[1].number == 4);
  CHECK_FALSE(report.complete());
  CHECK(summary(report).find("3 bad lines; line 3: column 1") != std::string::npos);
  CHECK(summary(report).find("and 1 more") != std::string::npos);

  data::ImportReport total{.file = "all"};
  total += report;
  CHECK(total.records == 2);
  CHECK(total.bad_lines[0].reason.find("mixed.json: ") != std::string::npos);
}
