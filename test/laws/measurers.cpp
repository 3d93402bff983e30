// SPDX-License-Identifier: Apache-2.0
// What every measurer owes, whatever it is: see measurers/concept.hpp. test/support/measurer_laws.hpp holds the laws; the
// tests of measurers that compile or run programs check them too.
#include "tunewright/measurers/concept.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "support/measurer_laws.hpp"
#include "support/small_table.hpp"
#include "support/toy_space.hpp"
#include "tunewright/core/gpu_targets.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/measurers/replay.hpp"
#include "tunewright/measurers/simulated.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/schedule/schedule.hpp"
#include "tunewright/spaces/recorded_table.hpp"

using namespace tunewright;

namespace {

Task product_for(const Target& target) {
  return program::make_task("matmul", program::operators::matmul_graph({.m = 2048, .n = 64, .k = 32}), target);
}

/// The rows of a product in vectors of `lanes`.
loops::LoopNest on_cpu(const Task& task, std::int64_t lanes) {
  schedule::ScheduleBuilder s(task.graph);
  const auto rows = s.split(2, 0, {lanes});
  s.reorder(2, {rows[0], 1, 2, rows[1]});
  s.vectorize(2, rows[1]);
  return loops::lower(s.schedule());
}
/// A thread a row, `threads` a block.
loops::LoopNest on_gpu(const Task& task, std::int64_t threads) {
  schedule::ScheduleBuilder s(task.graph);
  const auto rows = s.split(2, 0, {threads});
  s.bind(2, rows[0], schedule::LoopKind::BlockX);
  s.bind(2, rows[1], schedule::LoopKind::ThreadX);
  return loops::lower(s.schedule());
}

}  // namespace

TEST_CASE("laws of measurers: Function") {
  test::KnownPrograms<toy::Program> known{.task = toy::task(), .programs = {}, .works = {}};
  for (const toy::Tiles& tiles : {toy::Tiles{3, 4, 5, 2}, {1, 1, 0, 7}, {1, 2, 3, 4}, {2, 2, 0, 7}, {0, 0, 0, 0}}) {
    known.programs.push_back(toy::Space{}.lower(known.task, tiles));
    known.works.push_back(tiles[2] != 0 || tiles[3] != 7);
  }
  toy::Measurer measurer;
  measurer.name = "toy";
  test::check_measurer(measurer, known, true);
}

TEST_CASE("laws of measurers: Replay, of rows that succeeded, failed and were never recorded") {
  const data::Table table = small_table();
  test::KnownPrograms<spaces::TableRow> known{.task = data::task_of(table), .programs = {}, .works = {}};
  const std::vector<Record> records = data::records_of(table, known.task);
  for (std::size_t row = 0; row < table.size(); ++row) {
    known.programs.push_back({static_cast<std::uint32_t>(row), records[row].key});
    known.works.push_back(table.outcomes[row].valid());
  }
  known.programs.insert(known.programs.begin() + 2, spaces::TableRow{99, 99});
  known.works.insert(known.works.begin() + 2, false);
  measurers::Replay<spaces::TableRow> replay;
  replay.load(records);
  test::check_measurer(replay, known, true);
  const auto outcomes = replay.measure(toy::task(), known.programs);  // records of another task are no answers
  for (const Outcome& outcome : outcomes) CHECK_FALSE(outcome.valid());
}

TEST_CASE("laws of measurers: Simulated, on a CPU and on a GPU") {
  const Task on_host = product_for({.threads = 2, .isa = Isa::Avx2});
  test::check_measurer(
      measurers::Simulated{},
      test::KnownPrograms<loops::LoopNest>{.task = on_host,
                                           .programs = {on_cpu(on_host, 4), on_cpu(on_host, 2048), on_cpu(on_host, 16)},
                                           .works = {true, false, true}},
      true);
  const Task on_device = product_for(gpu_target("V100"));
  test::check_measurer(measurers::Simulated{},
                       test::KnownPrograms<loops::LoopNest>{
                           .task = on_device,
                           .programs = {on_gpu(on_device, 2048), on_gpu(on_device, 64), on_gpu(on_device, 128)},
                           .works = {false, true, true}},
                       true);
}
