// SPDX-License-Identifier: Apache-2.0
#include "tunewright/data/auto_scheduler_programs.hpp"

#include <doctest/doctest.h>

#include "support/data_file.hpp"
#include "tunewright/data/auto_scheduler_log.hpp"
#include "tunewright/features/per_statement/schema.hpp"
#include "tunewright/program/operators/matmul.hpp"

using namespace tunewright;

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
  data::AutoSchedulerLog log(support::data_file("bennu_x86_resnet18.json.gz"));
  data::AutoSchedulerRecord record;
  REQUIRE(log.next(record));
  FeatureBatch batch(features::per_statement::columns);
  programs.describe(record, batch);
  CHECK(batch.programs() == 1);
  CHECK(batch.rows() == 0);
  CHECK(programs.refusals().at("unknown workload") == 1);

  data::AutoSchedulerPrograms told("x86");
  told.add_workload(record.task->workload_key, program::operators::matmul_graph({.m = 8, .n = 8, .k = 8}));
  REQUIRE(told.task(record) != nullptr);
  told.describe(record, batch);  // steps of a convolution on a matrix product
  CHECK(batch.rows() == 0);
  CHECK(told.refusals().size() == 1);
  CHECK(told.refusals().begin()->first.find("unknown_stage") != std::string::npos);
}
