// SPDX-License-Identifier: Apache-2.0
#include "tunewright/data/auto_scheduler_log/replay.hpp"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "support/data_file.hpp"
#include "support/fixed_inputs.hpp"
#include "support/refusal.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/data/auto_scheduler_log.hpp"
#include "tunewright/data/auto_scheduler_log/workloads.hpp"
#include "tunewright/loops/device.hpp"
#include "tunewright/loops/interpret.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/loops/simt.hpp"

using namespace tunewright;
namespace ansor = data::ansor;

namespace {

std::vector<ansor::Step> steps(const std::string& text) {
  return data::parse_auto_scheduler_line(R"({"i": [["[\"f\"]", "llvm", [1, 64, 64, 0, 0, 0, 0, 0]], [[], )" + text +
                                         R"(]], "r": [[1], 0, 1, 1], "v": "v0.6"})")
      .steps;
}

schedule::ScheduleFault fault_of(const std::string& key, const std::string& text) {
  try {
    (void)ansor::to_schedule(ansor::workload_graph(key), steps(text));
  } catch (const schedule::ScheduleError& error) {
    return error.fault();
  }
  FAIL("'" << text << "' was accepted");
  return {};
}

}  // namespace

TEST_CASE("translated steps compute what the workload does") {
  const std::map<std::string, std::pair<std::string, std::string>> cases{
      {"matrix product on a CPU: cache, fused splits, parallel, vectorized",
       {R"(["matmul_layer", 8, 6, 12])",
        R"([["CHW", 2, "local"], ["SP", 2, 0, 8, [2, 1, 2], 1], ["SP", 2, 4, 12, [1, 3, 2], 1],
        ["SP", 2, 8, 6, [3], 1], ["RE", 2, [0, 4, 1, 5, 8, 2, 6, 9, 3, 7]], ["FSP", 3, 0, 1, 2],
        ["FSP", 3, 3, 2, 2], ["RE", 3, [0, 3, 1, 4, 2, 5]], ["CA", 2, 3, 3], ["FU", 3, [0, 1, 2]],
        ["AN", 3, 0, 3], ["PR", 2, 0, "auto_unroll_max_step$16"], ["AN", 2, 9, 2]])"}},
      {"matrix product on a GPU: shared tiles fetched by all threads of a block",
       {R"(["matmul_layer", 8, 6, 12])",
        R"([["CHW", 2, "local"], ["SP", 2, 0, 8, [2, 2, 1, 1], 1], ["SP", 2, 5, 12, [1, 3, 1, 2], 1],
        ["SP", 2, 10, 6, [1, 3], 1], ["RE", 2, [0, 5, 1, 6, 2, 7, 10, 11, 3, 8, 12, 4, 9]], ["FSP", 3, 0, 1, 3],
        ["FSP", 3, 4, 2, 3], ["RE", 3, [0, 4, 1, 5, 2, 6, 3, 7]], ["CA", 2, 3, 5], ["CHR", 1, "shared", [2]],
        ["CA", 2, 3, 6], ["CHR", 0, "shared", [3]], ["CA", 1, 4, 6], ["FU", 5, [0, 1]], ["AN", 5, 0, 5],
        ["FU", 5, [1, 2]], ["AN", 5, 1, 4], ["FU", 5, [2, 3]], ["AN", 5, 2, 6], ["FU", 3, [0, 1]],
        ["SP", 3, 0, 32, [2], 1], ["AN", 3, 1, 2], ["FFSP", 3, 0, [2, 1], 1, 1], ["AN", 3, 1, 6],
        ["FU", 1, [0, 1]], ["SP", 1, 0, 16, [1], 1], ["AN", 1, 1, 2], ["FFSP", 1, 0, [2, 1], 1, 1],
        ["AN", 1, 1, 6], ["PR", 4, 0, "auto_unroll_max_step$16"]])"}},
      {"convolution with its padding computed at a tile",
       {R"(["conv2d_layer", 1, 2, 6, 6, 4, 3, 3, 1, "SAME"])",
        R"([["CHW", 3, "local"], ["SP", 3, 0, 1, [1, 1, 1], 1], ["SP", 3, 4, 4, [1, 2, 2], 1],
        ["SP", 3, 8, 6, [1, 2, 1], 1], ["SP", 3, 12, 6, [1, 1, 3], 1], ["SP", 3, 16, 2, [1], 1],
        ["SP", 3, 18, 3, [3], 1], ["SP", 3, 20, 3, [1], 1],
        ["RE", 3, [0, 4, 8, 12, 1, 5, 9, 13, 16, 18, 20, 2, 6, 10, 14, 17, 19, 21, 3, 7, 11, 15]],
        ["FSP", 4, 0, 1, 1], ["FSP", 4, 2, 2, 1], ["FSP", 4, 4, 3, 1], ["FSP", 4, 6, 4, 1],
        ["RE", 4, [0, 2, 4, 6, 1, 3, 5, 7]], ["CA", 3, 4, 3], ["CA", 1, 3, 7], ["FU", 4, [0, 1, 2]],
        ["AN", 4, 0, 3]])"}},
      {"depthwise convolution on a GPU with the padding inlined",
       {R"(["depthwise_conv2d_layer", 2, 3, 6, 6, 3, 3, 2, "SAME"])",
        R"([["CHW", 3, "local"], ["SP", 3, 0, 2, [1, 1, 1, 1], 1], ["SP", 3, 5, 3, [1, 3, 1, 1], 1],
        ["SP", 3, 10, 3, [1, 1, 1, 3], 1], ["SP", 3, 15, 3, [3, 1, 1, 1], 1], ["SP", 3, 20, 3, [1, 3], 1],
        ["SP", 3, 23, 3, [3, 1], 1],
        ["RE", 3, [0, 5, 10, 15, 1, 6, 11, 16, 2, 7, 12, 17, 20, 23, 21, 24, 3, 8, 13, 18, 22, 25, 4, 9, 14, 19]],
        ["FSP", 4, 0, 1, 3], ["FSP", 4, 4, 2, 3], ["FSP", 4, 8, 3, 3], ["FSP", 4, 12, 4, 3],
        ["RE", 4, [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15]], ["CA", 3, 4, 11],
        ["CHR", 2, "shared", [3]], ["CA", 3, 4, 13], ["CHR", 1, "shared", [4]], ["CA", 2, 5, 13], ["CI", 1],
        ["FU", 6, [0, 1, 2, 3]], ["AN", 6, 0, 5], ["FU", 6, [1, 2, 3, 4]], ["AN", 6, 1, 4],
        ["FU", 6, [2, 3, 4, 5]], ["AN", 6, 2, 6], ["FU", 4, [0, 1, 2, 3]], ["SP", 4, 0, 9, [2], 1],
        ["AN", 4, 1, 2], ["FFSP", 4, 0, [4, 3, 2, 1], 1, 1], ["AN", 4, 1, 6]])"}},
      {"average pooling in two kernels",
       {R"(["pool_layer", "avg", 1, 2, 5, 5, 3, 3, 2, "SAME"])",
        R"([["CI", 1], ["FU", 3, [0, 1, 2, 3]], ["SP", 3, 0, 18, [4], 1], ["AN", 3, 0, 5], ["AN", 3, 1, 6],
        ["FU", 2, [0, 1, 2, 3]], ["SP", 2, 0, 18, [6], 1], ["AN", 2, 0, 5], ["AN", 2, 1, 6],
        ["PR", 2, 0, "auto_unroll_max_step$64"]])"}},
      {"reduction by the threads of a block",
       {R"(["reduction_layer", [4, 3, 5, 2], [2, 3], false])",
        R"([["FU", 1, [2, 3]], ["SP", 1, 2, 10, [4], 1], ["AN", 1, 3, 6], ["FU", 1, [0, 1]], ["AN", 1, 0, 5]])"}},
      {"reduction in parts, and a split given by its outer part",
       {R"(["reduction_layer", [4, 12], 1, false])",
        R"([["SP", 1, 1, 12, [4], 0], ["RF", 1, 2, 1], ["SP", 2, 0, 4, [2], 1], ["AN", 2, 0, 3]])"}},
      {"elementwise", {R"(["relu_layer", 2, 3, 2, 2])", R"([["FU", 1, [0, 1, 2, 3]], ["SP", 1, 0, 24, [5], 1]])"}},
  };
  for (const auto& [name, workload] : cases) {
    CAPTURE(name);
    const auto graph = ansor::workload_graph(workload.first);
    REQUIRE(graph);
    const auto scheduled = loops::lower(ansor::to_schedule(graph, steps(workload.second)));
    const auto expected = test::outputs(loops::lower(schedule::Schedule{graph, {}}), loops::interpret);
    // Threads that fill shared memory together cannot run one after the other.
    if (workload.second.find("shared") == std::string::npos)
      CHECK(test::outputs(scheduled, loops::interpret) == expected);
    const auto* kernel = std::get_if<loops::Loop>(&scheduled.body.back().content);
    if (kernel != nullptr && kernel->kind == schedule::LoopKind::BlockX)
      CHECK(test::outputs(loops::to_device(scheduled), loops::run_simt) == expected);
  }
}

TEST_CASE("a shared tile covers what all threads read, and no more") {
  // 8 rows in tiles of 2 threads by 2; the threads of a block read 4 rows and all 12 columns of their step.
  const auto graph = ansor::workload_graph(R"(["matmul_layer", 8, 6, 12])");
  const auto nest = loops::lower(ansor::to_schedule(
      graph, steps(R"([["CHR", 0, "shared", [2]], ["SP", 3, 0, 8, [2, 2], 1], ["SP", 3, 4, 6, [3], 1],
                       ["RE", 3, [0, 1, 3, 4, 2, 5]], ["CA", 1, 3, 3], ["AN", 3, 0, 5], ["AN", 3, 1, 6]])")));
  bool seen = false;
  for (const loops::Buffer& buffer : nest.buffers) {
    if (buffer.scope != schedule::Scope::Shared) continue;
    seen = true;
    CHECK(buffer.shape == std::vector<std::int64_t>{4, 3});
  }
  CHECK(seen);
}

TEST_CASE("steps that do not fit, or have no counterpart, are refused by kind") {
  using Fault = schedule::ScheduleFault;
  const std::string matmul = R"(["matmul_layer", 8, 6, 12])";
  CHECK(fault_of(matmul, R"([["CI", 3]])") == Fault::UnknownStage);
  CHECK(fault_of(matmul, R"([["AN", 2, 3, 2]])") == Fault::UnknownIterator);
  CHECK(fault_of(matmul, R"([["AN", 2, -1, 2]])") == Fault::UnknownIterator);
  CHECK(fault_of(matmul, R"([["SP", 2, 0, 8, [0], 1]])") == Fault::BadFactor);
  CHECK(fault_of(matmul, R"([["SP", 2, 0, 0, [2], 0]])") == Fault::BadFactor);
  CHECK(fault_of(matmul, R"([["FSP", 2, 0, 0, 1]])") == Fault::BadFactor);
  CHECK(fault_of(matmul, R"([["SP", 2, 0, 8, [2], 1], ["FFSP", 2, 0, [0], 1, 1]])") == Fault::BadFactor);
  CHECK(fault_of(matmul, R"([["SP", 2, 0, 8, [2], 1], ["FFSP", 2, 0, [0], -1, 1]])") == Fault::BadFactor);
  CHECK(fault_of(matmul, R"([["SP", 2, 0, 8, [2], 0], ["FFSP", 2, 0, [0], 0, 1]])") == Fault::Unsupported);
  CHECK(fault_of(matmul, R"([["SP", 2, 0, 8, [2], 1], ["FFSP", 2, 0, [0], 0, 0]])") == Fault::Unsupported);
  CHECK(fault_of(matmul, R"([["SP", 2, 0, 8, [2000000000, 2000000000], 0]])") == Fault::BadFactor);
  CHECK(fault_of(matmul, R"([["SA", 2, 0, 8, 2]])") == Fault::Unsupported);
  CHECK(fault_of(matmul, R"([["AN", 2, 0, 11]])") == Fault::Unsupported);
  CHECK(fault_of(matmul, R"([["PR", 2, 0, "tensor_core"]])") == Fault::Unsupported);
  CHECK(fault_of(matmul, R"([["PR", 2, 0, "auto_unroll_max_step$"]])") == Fault::Unsupported);
  CHECK(fault_of(matmul, R"([["PR", 2, 0, "auto_unroll_max_step$10000000000000000000"]])") == Fault::Unsupported);
  CHECK(fault_of(matmul, R"([["CHR", 0, "shared", [2, 2]]])") == Fault::Unsupported);
  CHECK(fault_of(matmul, R"([["CHR", 0, "texture", [2]]])") == Fault::Unsupported);
  CHECK(fault_of(matmul, R"([["FU", 2, []]])") == Fault::Unsupported);
  CHECK(fault_of(matmul, R"([["RF", 2, 2, 0]])") == Fault::Unsupported);
}

TEST_CASE("damaged lines are refused, and damaged steps that are read are refused or replay") {
  const auto text = data::read_text(support::data_file("bennu_x86_matmul.json"));
  const std::string first = text.substr(0, text.find('\n'));
  const auto graph = ansor::workload_graph(R"(["matmul_layer", 1000, 800, 700])");
  Rng rng(5);
  std::size_t read = 0, replayed = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string line = first;
    for (std::size_t damage = 1 + rng.below(2); damage > 0; --damage) {
      line[130 + rng.below(line.size() - 130)] = "0123456789-.,[]\"\\ACR"[rng.below(20)];
    }
    try {
      const auto record = data::parse_auto_scheduler_line(line);
      ++read;
      CHECK(data::parse_auto_scheduler_line(to_line(record)) == record);
      (void)ansor::to_schedule(graph, record.steps);
      ++replayed;
    } catch (const FormatError&) {
    } catch (const schedule::ScheduleError&) {
    }
  }
  CHECK(read > replayed);
  CHECK(replayed > 100);
}

TEST_CASE("workload keys with wrong arguments are refused, unknown functions are not known") {
  CHECK(ansor::workload_graph(R"(["6d125280c99b3732e95e03b4ef2b5fb7", [1, 2]])") == nullptr);
  CHECK_THROWS_WITH_AS((void)ansor::workload_graph(R"(["matmul_layer", 8, 6])"), doctest::Contains("more arguments"),
                       FormatError);
  CHECK_THROWS_WITH_AS((void)ansor::workload_graph(R"(["matmul_layer", 8, 6, "x"])"),
                       doctest::Contains("argument 3 should be a number"), FormatError);
  CHECK_THROWS_WITH_AS((void)ansor::workload_graph(R"(["conv2d_ansor", [1, 2], [1, 2]])"),
                       doctest::Contains("a shape of rank 4"), FormatError);
  CHECK_THROWS_WITH_AS((void)ansor::workload_graph(R"(["pool_layer", "min", 1, 2, 5, 5, 3, 3, 2, "SAME"])"),
                       doctest::Contains("neither avg nor max"), FormatError);
  CHECK_THROWS_WITH_AS((void)ansor::workload_graph(R"(["conv2d_layer", 1, 2, 6, 6, 4, 3, 3, 1, "NONE"])"),
                       doctest::Contains("neither SAME nor VALID"), FormatError);
  CHECK_THROWS_WITH_AS((void)ansor::workload_graph(R"(["reduction_layer", [4, 5], [4294967296]])"),
                       doctest::Contains("argument 2 should be dimensions of a tensor of rank 2"), FormatError);
}

TEST_CASE("numbers of a workload that are no extents, or make arithmetic overflow, are refused") {
  const auto refused = [](const std::string& key) {
    return test::refusal<FormatError>([&] { (void)ansor::workload_graph(key); });
  };
  using doctest::Contains;
  CHECK(refused(R"(["depthwise_conv2d_layer", 1, 4, 8, 8, 3, 3, 0, "SAME"])").c_str() ==
        Contains("argument 7 should be from 1 to 2^30, but is 0"));
  CHECK(refused(R"(["conv2d_layer", 1, 4, 8, 8, 4, 9223372036854775807, 3, 1, "SAME"])").c_str() ==
        Contains("argument 6 should be from 1 to 2^30"));
  CHECK(refused(R"(["pool_layer", "max", 1, 4, 8, 8, 3, -9223372036854775808, 1, "SAME"])").c_str() ==
        Contains("argument 7 should be from 1 to 2^30"));
  CHECK(refused(R"(["conv2d_ansor", [1, 4, 8, 8], [4, 4, 9223372036854775807, 3]])").c_str() ==
        Contains("argument 2 should be from 1 to 2^30"));
  CHECK(test::refusal([] {
          (void)ansor::workload_graph(R"(["depthwise_conv2d_layer", 1, 4, 8, 8, 9, 9, 2, "VALID"])");
        }).c_str() == Contains("does not fit"));
  // The sum of these extents is no 64-bit number.
  CHECK(ansor::workload_graph(R"(["6d125280c99b3732e95e03b4ef2b5fb7", [1, 1, 9223372036854775807, 1, 1],
    [1, 1, 9223372036854775807, 1, 1]])") == nullptr);
}

TEST_CASE("every published record of a known workload replays and lowers") {
  for (const auto& [file, expected] : {std::pair{"bennu_x86_matmul.json.gz", 50},
                                       {"bennu_x86_conv2d.json.gz", 40},
                                       {"roller_v100_ansor.log.gz", 103}}) {
    CAPTURE(file);
    data::AutoSchedulerLog log(support::data_file(file));
    int lowered = 0;
    for (data::AutoSchedulerRecord record; log.next(record);) {
      const auto graph = ansor::workload_graph(record.task->workload_key);
      REQUIRE(graph);
      lowered += !loops::lower(ansor::to_schedule(graph, record.steps)).body.empty();
    }
    CHECK(lowered == expected);
  }
}
