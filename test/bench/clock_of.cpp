// SPDX-License-Identifier: Apache-2.0
#include "../../bench/study/clock_of.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "../../bench/two_cores.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/measurers/simulated.hpp"
#include "tunewright/networks/default_schedules.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"

using namespace tunewright;

TEST_CASE("what is measured on the simulated machine takes the time of that machine, and no real one") {
  const measurers::Simulated machine;
  const Clock clock = bench::clock_of(machine);
  const Task task =
      program::make_task("matmul", program::operators::matmul_graph({.m = 8, .n = 8, .k = 8}), bench::two_cores());
  const std::vector<loops::LoopNest> programs(2, loops::lower(networks::default_schedule(task)));
  CHECK(clock() == Seconds(0));
  static_cast<void>(measurers::Simulated(machine).measure(task, programs));  // copies share the clock
  CHECK(clock().count() == doctest::Approx(2 * machine.trial.count()));
}

TEST_CASE("a measurer without a clock of its own takes real time") {
  struct Real {};
  const Clock clock = bench::clock_of(Real{});
  const Seconds before = steady_seconds()(), now = clock(), after = steady_seconds()();
  CHECK(before <= now);
  CHECK(now <= after);
}
