// SPDX-License-Identifier: Apache-2.0
#include "tunewright/data/dataset.hpp"

#include <doctest/doctest.h>

#include <array>
#include <utility>

#include "support/small_dataset.hpp"

using namespace tunewright;

TEST_CASE("a label is the best of the same task on the same target over the cost, and 0 for a failure") {
  data::Dataset data;
  const std::uint32_t matmul = data.task_number({.name = "matmul"}), conv = data.task_number({.name = "conv"});
  const std::uint32_t cpu = data.target_number("cpu"), gpu = data.target_number("gpu");
  const auto timing = [](double seconds) {
    return Outcome{.result = Timing{.repeats = {}, .median = Seconds(seconds)},
                   .compile_time = Seconds(1),
                   .run_time = Seconds(2)};
  };
  data.add(matmul, cpu, timing(4));
  data.add(conv, cpu, timing(8));
  data.add(matmul, gpu, timing(1));
  data.add(matmul, cpu, timing(2));
  data.add(matmul, cpu, Outcome{.result = Failure{Fault::RunTimeout, ""}});
  data.check();

  CHECK(data.labels() == std::vector<float>{0.5F, 1, 1, 1, 0});
  CHECK(data.groups() == std::vector<std::uint32_t>{0, 1, 2, 0, 0});
  CHECK(data.count_valid() == 4);
  CHECK(data.fault[4] == Fault::RunTimeout);
  CHECK(data.price_s[0] == 3);
  CHECK(data.task_number({.name = "conv"}) == conv);
  CHECK(data.target_number("cpu") == cpu);
}

TEST_CASE("a group without a valid record has labels of 0") {
  data::Dataset data = small_dataset(1, 1, 2);
  data.cost_s.assign(2, std::numeric_limits<double>::infinity());
  CHECK(data.labels() == std::vector<float>{0, 0});
}

TEST_CASE("a subset keeps features, numbers and order, and its labels are its own") {
  const data::Dataset data = small_dataset(2, 1, 3);  // costs 1, 2, 3 s in each task
  const std::array<std::size_t, 3> indices{5, 1, 2};
  const data::Dataset part = data.subset(indices);
  CHECK(part.size() == 3);
  CHECK(part.x.programs() == 3);
  CHECK(part.x.program(0)[0] == data.x.program(5)[0]);
  CHECK(part.task == std::vector<std::uint32_t>{1, 0, 0});
  CHECK(part.tasks == data.tasks);
  CHECK(part.labels()[2] == doctest::Approx(2.0 / 3));
  CHECK_THROWS_WITH_AS((void)data.subset(std::array<std::size_t, 1>{6}), doctest::Contains("record 6 of 6"),
                       std::out_of_range);
}

TEST_CASE("appending joins tasks and targets by name") {
  data::Dataset data = small_dataset(2, 1, 3);
  data::Dataset other;
  for (const char* task : {"task 2", "task 1"}) static_cast<void>(other.task_number({.name = task}));
  other.append(small_dataset(3, 2, 1));
  CHECK(other.task[0] == 2);
  data.append(other);
  data.check();
  CHECK(data.size() == 12);
  CHECK(data.tasks.size() == 3);
  CHECK(data.targets.size() == 2);
  CHECK(data.tasks[data.task[6]].name == "task 0");

  data::Dataset bare = small_dataset(1, 1, 1);
  bare.x = FeatureBatch();
  CHECK_THROWS_WITH_AS(data.append(bare), doctest::Contains("describe both"), std::invalid_argument);
  bare.append(data::Dataset());
  CHECK(bare.size() == 1);
  data.append(data::Dataset());
  CHECK(data.size() == 12);
  data::Dataset all;
  all.append(data);
  CHECK(all.size() == 12);
  CHECK(all.x.programs() == 12);
  all.append(all);
  all.check();
  CHECK(all.size() == 24);
  CHECK(all.x.programs() == 24);
  CHECK(all.task[12] == all.task[0]);
}

TEST_CASE("tasks are found by name, and a copy has its own") {
  data::DatasetTasks tasks;
  CHECK(tasks.number({.name = "matmul", .flops = 2}) == 0);
  CHECK(tasks.number({.name = "conv"}) == 1);
  CHECK(tasks.number({.name = "matmul", .flops = 5}) == 0);
  CHECK(tasks[0].flops == 2);  // of the first of that name
  CHECK(tasks.find("conv") == 1U);
  data::DatasetTasks copy = tasks;
  CHECK(copy == tasks);
  CHECK(copy.number({.name = "pool"}) == 2);
  CHECK(!tasks.find("pool"));
  CHECK(tasks.size() == 2);
  tasks = std::move(copy);
  CHECK(tasks.find("pool") == 2U);
}

TEST_CASE("columns that do not belong together are refused") {
  data::Dataset data = small_dataset(1, 1, 2);
  data.price_s.pop_back();
  CHECK_THROWS_WITH_AS((void)data.groups(), doctest::Contains("1 prices"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(data.check(), doctest::Contains("1 prices"), std::invalid_argument);
  data = small_dataset(1, 1, 2);
  data.task[1] = 7;
  CHECK_THROWS_WITH_AS(data.check(), doctest::Contains("task 7 of 1"), std::invalid_argument);
  CHECK_THROWS_WITH_AS((void)data.labels(), doctest::Contains("task 7 of 1"), std::invalid_argument);
  CHECK_THROWS_WITH_AS((void)data.by_group(), doctest::Contains("task_number"), std::invalid_argument);
  data = small_dataset(1, 1, 2);
  data.cost_s[0] = 0;
  CHECK_THROWS_WITH_AS(data.check(), doctest::Contains("record 0 costs 0 s"), std::invalid_argument);
}
