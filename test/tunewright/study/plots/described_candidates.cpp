// SPDX-License-Identifier: Apache-2.0
#include "tunewright/study/plots/described_candidates.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "tunewright/core/gpu_targets.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/schedule/json.hpp"
#include "tunewright/schedule/schedule.hpp"

using namespace tunewright;

namespace {

Record with_config(std::string config) {
  Record record;
  record.config = std::move(config);
  return record;
}

}  // namespace

TEST_CASE("schedules of the task's graph are described by their statements, and move at least their buffers once") {
  const Task task =
      program::make_task("matmul", program::operators::matmul_graph({.m = 64, .n = 64, .k = 64}), Target{});
  schedule::ScheduleBuilder tiled(task.graph);
  tiled.split(2, 0, {8});
  const std::vector<Record> records{with_config("[]"), with_config("no schedule"),
                                    with_config(schedule::to_json(tiled.schedule().steps))};
  const auto found = study::described_candidates(task, records);
  CHECK(found.records == std::vector<std::size_t>{0, 2});
  CHECK(found.columns == 164);
  CHECK(found.features.size() == 2 * 164);
  CHECK(found.left_out == 1);
  REQUIRE(found.bytes.size() == 2);
  CHECK(found.bytes[0] >= 3 * 64 * 64 * 4);
}

TEST_CASE("other configurations are described by the numbers they hold") {
  const std::vector<Record> records{with_config("tile_x=3, gain=-1.5e1"), with_config("7,0"), with_config("7"),
                                    with_config("no number")};
  const auto found = study::described_candidates(Task{}, records);
  CHECK(found.records == std::vector<std::size_t>{0, 1});
  CHECK(found.columns == 2);
  CHECK(found.what == "2 knobs");
  CHECK(found.features == std::vector<float>{2, -4, 3, 0});
  CHECK(found.bytes == std::vector<double>{0, 0});
  CHECK(found.left_out == 2);
}

TEST_CASE("of nothing there is nothing to say") {
  CHECK(study::described_candidates(Task{}, {}).records.empty());
  const auto none = study::described_candidates(Task{}, std::vector{with_config("x"), with_config("")});
  CHECK(none.records.empty());
  CHECK(none.left_out == 2);
}
