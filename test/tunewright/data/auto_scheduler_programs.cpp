// SPDX-License-Identifier: Apache-2.0
#include "tunewright/data/auto_scheduler_programs.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/data_file.hpp"
#include "tunewright/data/auto_scheduler_log.hpp"
#include "tunewright/data/auto_scheduler_log/workloads.hpp"
#include "tunewright/features/per_statement/schema.hpp"
#include "tunewright/program/operators/matmul.hpp"

using namespace tunewright;
namespace ansor = data::ansor;

namespace {

/// A record of a log whose workload has another key.
data::AutoSchedulerRecord record_of(const char* workload_key) {
  data::AutoSchedulerLog log(support::data_file("bennu_x86_resnet18.json.gz"));
  data::AutoSchedulerRecord record;
  REQUIRE(log.next(record));
  ansor::TaskInfo info = *record.task;
  info.workload_key = workload_key;
  record.task = std::make_shared<const ansor::TaskInfo>(info);
  return record;
}

}  // namespace

TEST_CASE("records of a log become a described dataset; GPU programs have their thread extents") {
  data::AutoSchedulerPrograms programs("V100");
  data::Dataset dataset;
  data::AutoSchedulerLog log(support::data_file("roller_v100_ansor.log.gz"));
  for (data::AutoSchedulerRecord record; log.next(record);) programs.append(record, dataset);
  CHECK(programs.replayed() == 103);
  CHECK(programs.refusals().empty());
  CHECK(dataset.size() == 103);
  CHECK(dataset.x.programs() == 103);
  CHECK(dataset.count_valid() == 90);
  CHECK(dataset.tasks.size() == 18);
  CHECK(dataset.tasks[0].operator_class == "conv2d_layer");
  // 128 images, 168 channels of 21 x 21, 1008 products each
  CHECK(dataset.tasks[0].flops == 2.0 * 128 * 168 * 21 * 21 * 1008);
  CHECK(dataset.targets == std::vector<std::string>{"V100"});
  using features::per_statement::IsGpu, features::per_statement::ThreadX;
  for (std::size_t r = 0; r < dataset.x.rows(); ++r) {
    CHECK(dataset.x.row(r)[IsGpu] == 1);
    CHECK(dataset.x.row(r)[ThreadX] >= 1);
  }
  // Shared copy of the kernel, of the image, accumulation, result.
  CHECK(dataset.x.offsets()[1] == 4);
}

TEST_CASE("programs of unknown workloads have no rows until somebody says what they compute") {
  data::AutoSchedulerPrograms programs("x86");
  const data::AutoSchedulerRecord record = record_of(R"(["nobody_knows", 1])");
  FeatureBatch batch(features::per_statement::columns);
  programs.describe(record, batch);
  CHECK(batch.programs() == 1);
  CHECK(batch.rows() == 0);
  CHECK(programs.refusals().at("unknown workload") == 1);
  programs.add_workload(record.task->workload_key, program::operators::matmul_graph({.m = 8, .n = 8, .k = 8}));
  CHECK(programs.task(record) != nullptr);

  data::AutoSchedulerPrograms told("x86");
  told.add_workload(record.task->workload_key, program::operators::matmul_graph({.m = 8, .n = 8, .k = 8}));
  REQUIRE(told.task(record) != nullptr);
  told.describe(record, batch);  // steps of a convolution on a matrix product
  CHECK(batch.rows() == 0);
  CHECK(told.refusals().size() == 1);
  CHECK(told.refusals().begin()->first.find("unknown_stage") != std::string::npos);
}

TEST_CASE("a record without a task is refused, and leaves the dataset as it was") {
  data::AutoSchedulerPrograms programs("x86");
  data::Dataset dataset;
  const data::AutoSchedulerRecord bare;
  CHECK_THROWS_WITH_AS((void)programs.lower(bare), doctest::Contains("has no task"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(programs.append(bare, dataset), doctest::Contains("has no task"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(programs.append_result(bare, dataset), doctest::Contains("has no task"), std::invalid_argument);
  CHECK(dataset.size() == 0);
}

TEST_CASE("a workload whose numbers are refused is counted, and its programs have no rows") {
  data::AutoSchedulerPrograms programs("x86");
  const data::AutoSchedulerRecord record = record_of(R"(["depthwise_conv2d_layer", 1, 4, 8, 8, 3, 3, 0, "SAME"])");
  FeatureBatch batch(features::per_statement::columns);
  programs.describe(record, batch);
  CHECK(batch.programs() == 1);
  CHECK(batch.rows() == 0);
  CHECK(programs.refusals().count("workload 'depthwise_conv2d_layer': argument 7 should be from 1 to 2^30, but is 0") ==
        1);
}

TEST_CASE("a workload whose key is no list is unknown, and its own class") {
  data::AutoSchedulerPrograms programs("x86");
  data::Dataset dataset;
  programs.append(record_of("nobody's"), dataset);
  CHECK(dataset.size() == 1);
  CHECK(dataset.x.programs() == 1);
  CHECK(dataset.x.rows() == 0);
  REQUIRE(dataset.tasks.size() == 1);
  CHECK(dataset.tasks[0].name == "nobody's");
  CHECK(dataset.tasks[0].operator_class == "nobody's");
}

TEST_CASE("records of a task go to its entry, in whichever dataset and wherever it stands there") {
  data::AutoSchedulerPrograms programs("x86");
  const data::AutoSchedulerRecord a = record_of(R"(["a", 1])"), b = record_of(R"(["b", 1])");
  data::Dataset first, second;
  for (const auto* record : {&a, &b, &a}) programs.append_result(*record, first);
  for (const auto* record : {&b, &a, &b}) programs.append_result(*record, second);
  programs.append_result(b, first);
  programs.append_result(b, second);
  CHECK(first.task == std::vector<std::uint32_t>{0, 1, 0, 1});
  CHECK(second.task == std::vector<std::uint32_t>{0, 1, 0, 0});
  for (const data::Dataset* dataset : {&first, &second}) CHECK(dataset->tasks.size() == 2);
  CHECK(second.tasks[0].operator_class == "b");
}

TEST_CASE("layers of a network are told by their shapes, and the steps of all their tasks fit") {
  data::AutoSchedulerPrograms programs("x86");
  data::Dataset dataset;
  data::AutoSchedulerLog log(support::data_file("bennu_x86_resnet18.json.gz"));
  for (data::AutoSchedulerRecord record; log.next(record);) programs.append(record, dataset);
  CHECK(programs.replayed() == 48);
  CHECK(programs.refusals().empty());
  REQUIRE(dataset.tasks.size() == 24);
  // 3 x 3 convolution of 128 channels on 28 x 28, and the sum with what bypasses it
  CHECK(dataset.tasks[0].flops == 2.0 * 128 * 28 * 28 * 128 * 9 + 128 * 28 * 28);
  // 7 x 7 convolution at stride 2 from 3 to 64 channels on 224 x 224, bias, ReLU
  CHECK(dataset.tasks[1].flops == 2.0 * 64 * 112 * 112 * 3 * 49 + 2.0 * 64 * 112 * 112);
}

TEST_CASE("shapes that suggest no layer are unknown") {
  const std::string hash = R"(["6d125280c99b3732e95e03b4ef2b5fb7", )";
  CHECK(ansor::workload_graph(hash + "[1, 512], [1000, 512]]") == nullptr);
  CHECK(ansor::workload_graph(hash + "[1, 1, 28, 28, 128], [4, 2, 3, 3, 128, 32], [1, 4, 28, 28, 32]]") == nullptr);
  CHECK(ansor::workload_graph(hash + "[1, 1, 28, 28, 128], [4, 1, 3, 3, 128, 32], [1, 4, 20, 28, 32]]") == nullptr);
  CHECK(ansor::workload_graph(hash + "[1, 2, 28, 28, 32], [1, 2, 9, 9, 32]]") == nullptr);
  CHECK(ansor::workload_graph(hash + "[1, 2, 28], \"x\"]") == nullptr);
  CHECK(ansor::workload_graph(hash + "[1, 0], [1, 0]]") == nullptr);
}
