// SPDX-License-Identifier: Apache-2.0
#include "tunewright/networks/default_schedules.hpp"

#include <doctest/doctest.h>

#include "support/evaluated.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/networks/partition.hpp"
#include "tunewright/networks/squeezenet.hpp"

using namespace tunewright;

TEST_CASE("each task gets a schedule of its own, the same for the same seed at any number of threads") {
  const networks::Partition partition =
      networks::partition(networks::squeezenet1_1({.image_size = 32, .width = 0.125}), Target{});
  const auto one = networks::default_schedules(partition.tasks, {.candidates = 3});
  REQUIRE(one.size() == partition.tasks.size());
  for (std::size_t t = 0; t < one.size(); ++t) CHECK(one[t].graph == partition.tasks[t].task.graph);
  CHECK(one == networks::default_schedules(partition.tasks, {.candidates = 3, .threads = 2}));
  CHECK(one != networks::default_schedules(partition.tasks, {.candidates = 3, .seed = 2}));
}

TEST_CASE("options without candidates and tasks without programs are refused") {
  Task none_task;
  none_task.name = "empty";
  const std::vector<WeightedTask> none{{none_task, 1}};
  CHECK_REFUSES("task 'empty' has no program", (void)networks::default_schedules(none));
  CHECK_REFUSES("candidates", (void)networks::default_schedules({}, {.candidates = 0}));
}
