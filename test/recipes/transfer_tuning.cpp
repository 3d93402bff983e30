// SPDX-License-Identifier: Apache-2.0
#include "tunewright/recipes/transfer_tuning.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "recipes/simulated_tasks.hpp"
#include "support/temporary_folder.hpp"
#include "tunewright/data/journal.hpp"
#include "tunewright/data/schedule_store.hpp"
#include "tunewright/multi_task_tuner.hpp"
#include "tunewright/networks/default_schedules.hpp"
#include "tunewright/program/operators/softmax.hpp"
#include "tunewright/schedulers/round_robin.hpp"

namespace {

using namespace tunewright;
using Space = spaces::MultiLevelTiling;
using TransferTuning = recipes::TransferTuning<Space, measurers::Simulated>;
static_assert(check_recipe<TransferTuning>());

Task softmax_task() {
  return program::make_task("softmax", program::operators::softmax_graph({.rows = 64, .columns = 128}),
                            test::simulated_target());
}

TEST_CASE("Transfer-Tuning measures the other network's schedules of a task's class and keeps the fastest") {
  const support::TemporaryFolder folder;
  const std::vector<Task> of_donor{test::matmul_task({.m = 64, .n = 64, .k = 64}),
                                   test::matmul_task({.m = 128, .n = 256, .k = 64}),
                                   test::matmul_task({.m = 256, .n = 64, .k = 512})};
  const measurers::Simulated machine;
  for (const Task& task : of_donor) {
    data::Journal journal{{.path = folder.file("donor"), .many_tasks = true, .warnings = nullptr}};
    Tuner<recipes::Random<Space, measurers::Simulated>> tuner{{.measurer = machine, .seed = 3, .clock = machine.clock}};
    (void)tuner.run(task, {.trials = 32, .batch = 8}, journal);
  }
  data::ScheduleStore donor(1);
  donor.add({folder.file("donor")});

  const std::vector<WeightedTask> network{{test::matmul_task({.m = 96, .n = 128, .k = 128}), 3}, {softmax_task(), 1}};
  // [snippet-begin given]
  const auto given = [&](const Space& space, const Task& task) {
    std::vector<schedule::Schedule> schedules = donor.candidates(space, task, 1000, 1).schedules;
    schedules.push_back(networks::default_schedule(task));
    return schedules;
  };
  MultiTaskTuner<TransferTuning, schedulers::RoundRobin> tuner{
      {.measurer = machine, .seed = 5, .clock = machine.clock, .starts = given}};
  const auto run = tuner.run(network, {.trials = 1000, .batch = 16});
  CHECK(run.stop == Stop::Exhausted);
  // [snippet-end given]

  const Space space;
  const auto fastest_of = [&](const Task& task, const std::vector<schedule::Schedule>& schedules) {
    double fastest = std::numeric_limits<double>::infinity();
    measurers::Simulated again;
    for (const schedule::Schedule& one : schedules) {
      const auto outcomes = again.measure(task, std::vector{space.lower(task, one)});
      fastest = std::min(fastest, cost_s(outcomes[0]));
    }
    return fastest;
  };
  const std::vector<schedule::Schedule> of_product = given(space, network[0].task);
  REQUIRE(of_product.size() >= 3);  // two schedules of the donor at least, and the default
  CHECK(run.tasks[0].history.size() == of_product.size());
  CHECK(run.tasks[0].best()->cost_s() == fastest_of(network[0].task, of_product));
  // A class that the donor lacks keeps its default.
  REQUIRE(run.tasks[1].history.size() == 1);
  CHECK(run.tasks[1].best()->cost_s() == fastest_of(network[1].task, {networks::default_schedule(network[1].task)}));
}

}  // namespace
