// SPDX-License-Identifier: Apache-2.0
#include "tunewright/recipes/random.hpp"

#include <doctest/doctest.h>

#include "recipes/simulated_tasks.hpp"

namespace {

using namespace tunewright;
using RandomSearch = recipes::Random<spaces::MultiLevelTiling, measurers::Simulated>;

TEST_CASE("random search repeats itself with its seed, at any number of threads") {
  const Task task = test::small_matmul();
  const test::Trace one = test::trace(test::searched<RandomSearch>(task, 9, 1));
  CHECK(one.size() == 48);
  CHECK(one == test::trace(test::searched<RandomSearch>(task, 9, 2)));
  CHECK(one != test::trace(test::searched<RandomSearch>(task, 10, 1)));
}

TEST_CASE("a budget of virtual seconds ends a run within the round that uses it up") {
  const measurers::Simulated machine{.trial = Seconds(1)};
  Tuner<RandomSearch> tuner{{.measurer = machine, .clock = machine.clock}};
  const auto run = tuner.run(test::small_matmul(), {.trials = 1000, .batch = 16, .time = Seconds(40)});
  CHECK(run.stop == Stop::Time);
  CHECK(run.history.size() == 40);  // 16, 32 and, eight measurements later, 40 seconds
}

}  // namespace
