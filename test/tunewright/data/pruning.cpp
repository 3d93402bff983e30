// SPDX-License-Identifier: Apache-2.0
#include "tunewright/data/pruning.hpp"

#include <doctest/doctest.h>

#include <set>

#include "support/small_dataset.hpp"

using namespace tunewright;

TEST_CASE("failures and small groups go, slow records thin out, fast ones stay") {
  data::Dataset data = small_dataset(4, 1, 100);  // costs 1 to 100 s in each task
  for (std::size_t i = 0; i < 60; ++i) data.cost_s[i] = std::numeric_limits<double>::infinity();
  const auto kept =
      data::prune(data, {.min_records = 48, .task_rows = 1, .floor = 0.4, .slow_share = 0.1}, Rng(1));
  std::vector<int> fast(4), slow(4);
  for (const std::size_t i : kept) ++(data.cost_s[i] <= 60 ? fast : slow)[data.task[i]];
  CHECK(fast == std::vector<int>{0, 60, 60, 60});  // the first task has 40 valid records
  CHECK(slow[0] == 0);
  CHECK(slow[1] + slow[2] + slow[3] > 3);  // 12 of 120 expected
  CHECK(slow[1] + slow[2] + slow[3] < 25);

  CHECK(data::prune(data, {.min_records = 1, .task_rows = 1, .floor = 0}, Rng(1)).size() == 340);
  CHECK(data::prune(data, {.min_records = 1, .task_rows = 1, .floor = 0.4, .slow_share = 0}, Rng(1)).size() ==
        204);
}

TEST_CASE("tasks with much work are drawn first, and a class is not drowned by the number of its tasks") {
  // Two classes: nine small tasks, and one of the same total work as the nine. By hand:
  //   p = 0.9, 0.1   f = 0.5, 0.5   sqrt(p f) / p = 0.745, 2.236   rank / size = 5 / 9 for the equal ones, 1
  //   weight = 0.414 each, 2.236
  std::vector<data::DatasetTask> tasks(10, {.name = "", .operator_class = "small", .flops = 1, .weight = 1});
  tasks[9] = {.name = "", .operator_class = "big", .flops = 3, .weight = 3};
  const auto weight = data::pruning_detail::importance(tasks, std::vector<std::size_t>(10, 50));
  CHECK(weight[0] == doctest::Approx(std::sqrt(0.9 * 0.5) / 0.9 * 5 / 9));
  CHECK(weight[9] == doctest::Approx(std::sqrt(0.1 * 0.5) / 0.1));

  int big_kept = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed)
    big_kept += data::pruning_detail::draw_tasks(weight, std::vector<std::size_t>(10, 50), 50, Rng(seed))[9];
  // One task is drawn: the big one with probability 2.236 / (2.236 + 9 * 0.414) = 0.375.
  CHECK(big_kept > 50);
  CHECK(big_kept < 100);
}

TEST_CASE("the share of rows that tasks may keep is met by whole tasks") {
  const data::Dataset data = small_dataset(20, 2, 50);
  const auto kept = data::prune(data, {.min_records = 48, .task_rows = 0.6, .floor = 0}, Rng(3));
  CHECK(kept.size() == 12 * 100);
  std::set<std::uint32_t> tasks;
  for (const std::size_t i : kept) tasks.insert(data.task[i]);
  CHECK(tasks.size() == 12);
  CHECK(std::is_sorted(kept.begin(), kept.end()));
  CHECK(data::prune(data, {.min_records = 48, .task_rows = 0.6, .floor = 0}, Rng(3)) == kept);
  CHECK(data::prune(data, {.min_records = 48, .task_rows = 0.6, .floor = 0}, Rng(4)) != kept);
  CHECK(data::prune({}, {}, Rng(1)).empty());
}

TEST_CASE("shares that are none are refused") {
  const data::Dataset data = small_dataset(1, 1, 1);
  CHECK_THROWS_WITH_AS((void)data::prune(data, {.task_rows = 0}, Rng(1)), doctest::Contains("task_rows is 0"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS((void)data::prune(data, {.floor = 2}, Rng(1)), doctest::Contains("floor is 2"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS((void)data::prune(data, {.slow_share = -1}, Rng(1)),
                       doctest::Contains("slow_share is -1"), std::invalid_argument);
}
