// SPDX-License-Identifier: Apache-2.0
#include "tunewright/data/pruning.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "support/small_dataset.hpp"

using namespace tunewright;

TEST_CASE("failures and small groups go, slow records thin out, fast ones stay") {
  data::Dataset data = small_dataset(4, 1, 100);  // costs 1 to 100 s in each task
  for (std::size_t i = 0; i < 60; ++i) data.cost_s[i] = std::numeric_limits<double>::infinity();
  const auto kept = data::prune(
      data, {.min_records = 48, .task_rows = 1, .floor = 0.4, .slow_share = 0.1, .distinct_share = 1}, Rng(1));
  std::vector<int> fast(4), slow(4);
  for (const std::size_t i : kept) ++(data.cost_s[i] <= 60 ? fast : slow)[data.task[i]];
  CHECK(fast == std::vector<int>{0, 60, 60, 60});  // the first task has 40 valid records
  CHECK(slow[0] == 0);
  CHECK(slow[1] + slow[2] + slow[3] > 3);  // 12 of 120 expected
  CHECK(slow[1] + slow[2] + slow[3] < 25);

  CHECK(data::prune(data, {.min_records = 1, .distinct_share = 1}, Rng(1)).size() == 340);
  CHECK(
      data::prune(data, {.min_records = 1, .task_rows = 1, .floor = 0.4, .slow_share = 0, .distinct_share = 1}, Rng(1))
          .size() == 204);
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
  const auto kept = data::prune(data, {.min_records = 48, .task_rows = 0.6, .distinct_share = 1}, Rng(3));
  CHECK(kept.size() == 12 * 100);
  std::set<std::uint32_t> tasks;
  for (const std::size_t i : kept) tasks.insert(data.task[i]);
  CHECK(tasks.size() == 12);
  CHECK(std::is_sorted(kept.begin(), kept.end()));
  CHECK(data::prune(data, {.min_records = 48, .task_rows = 0.6, .distinct_share = 1}, Rng(3)) == kept);
  CHECK(data::prune(data, {.min_records = 48, .task_rows = 0.6, .distinct_share = 1}, Rng(4)) != kept);
  CHECK(data::prune({}, {}, Rng(1)).empty());
}

TEST_CASE("of every group the records least alike stay") {
  // Two tasks of four programs; the second column is the same everywhere. Half of them are wanted.
  data::Dataset data;
  data.x = FeatureBatch(2);
  const auto add = [&](const char* task, double cost_s, std::vector<float> rows) {
    data.x.append_program(rows);
    data.add(data.task_number({.name = task}), data.target_number("gpu"),
             {.result = Timing{.repeats = {}, .median = Seconds(cost_s)}});
  };
  add("a", 3, {0, 5});
  add("a", 1, {2, 5});        // the fastest, at 2
  add("a", 4, {1.5F, 5});     // 0.5 from it
  add("a", 2, {9, 5});        // 7 from it
  add("b", 4, {7, 5});        // 1 from the fastest
  add("b", 1, {4, 2, 4, 3});  // two rows: 8
  add("b", 5, {2, 5});        // 6 from it
  add("b", 2, {10, 5});       // 2 from it
  using Kept = std::vector<std::size_t>;
  CHECK(data::prune(data, {.min_records = 1, .distinct_share = 0.5}, Rng(1)) == Kept{1, 3, 5, 6});
  // The third is the one farthest from both: of task a 0, at 2; of task b 10, at 2 (7 is 1 from 8).
  CHECK(data::prune(data, {.min_records = 1, .distinct_share = 0.75}, Rng(1)) == Kept{0, 1, 3, 5, 6, 7});
  CHECK(data::prune(data, {.min_records = 1, .distinct_share = 1}, Rng(1)).size() == 8);

  // Their unit does not count.
  data::Dataset smaller = data;
  smaller.x = FeatureBatch(2);
  for (std::size_t p = 0; p < data.size(); ++p) {
    std::vector<float> rows;
    for (const float value : data.x.program(p)) rows.push_back(1e-9F * value);
    smaller.x.append_program(rows);
  }
  CHECK(data::prune(smaller, {.min_records = 1, .distinct_share = 0.5}, Rng(1)) == Kept{1, 3, 5, 6});

  // A third column with an infinite feature somewhere counts for nothing.
  data::Dataset wider = data;
  wider.x = FeatureBatch(3);
  for (std::size_t p = 0; p < data.size(); ++p) {
    std::vector<float> rows;
    for (std::size_t i = 0; i < data.x.program(p).size(); i += 2) {
      const float last = p == 2 || p == 6 ? std::numeric_limits<float>::infinity() : 0;
      rows.insert(rows.end(), {data.x.program(p)[i], data.x.program(p)[i + 1], last});
    }
    wider.x.append_program(rows);
  }
  CHECK(data::prune(wider, {.min_records = 1, .distinct_share = 0.5}, Rng(1)) == Kept{1, 3, 5, 6});

  data.x = FeatureBatch();  // without features: as many, at random
  const Kept some = data::prune(data, {.min_records = 1, .distinct_share = 0.5}, Rng(1));
  CHECK(some.size() == 4);
  CHECK(std::count_if(some.begin(), some.end(), [](std::size_t i) { return i < 4; }) == 2);
  bool other = false;
  for (std::uint64_t seed = 2; seed < 10; ++seed)
    other = other || data::prune(data, {.min_records = 1, .distinct_share = 0.5}, Rng(seed)) != some;
  CHECK(other);
}

TEST_CASE("shares that are none are refused") {
  const data::Dataset data = small_dataset(1, 1, 1);
  CHECK_THROWS_WITH_AS((void)data::prune(data, {.task_rows = 0}, Rng(1)), doctest::Contains("task_rows is 0"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS((void)data::prune(data, {.floor = 2}, Rng(1)), doctest::Contains("floor is 2"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS((void)data::prune(data, {.slow_share = -1}, Rng(1)), doctest::Contains("slow_share is -1"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS((void)data::prune(data, {.distinct_share = 0}, Rng(1)), doctest::Contains("distinct_share is 0"),
                       std::invalid_argument);
}

TEST_CASE("tasks whose work is no amount are refused, and datasets that do not hold together") {
  for (const double wrong : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    data::Dataset by_flops = small_dataset(1, 1, 3), by_weight = by_flops;
    (void)by_flops.task_number({.name = "odd", .flops = wrong});
    CHECK_THROWS_WITH_AS((void)data::prune(by_flops, {}, Rng(1)), doctest::Contains("'odd'"), std::invalid_argument);
    (void)by_weight.task_number({.name = "odd", .weight = wrong});
    CHECK_THROWS_WITH_AS((void)data::prune(by_weight, {}, Rng(1)), doctest::Contains("weight"), std::invalid_argument);
  }
  data::Dataset data = small_dataset(2, 1, 3);
  data.task[0] = 9;
  CHECK_THROWS_WITH_AS((void)data::prune(data, {}, Rng(1)), doctest::Contains("task 9 of 2"), std::invalid_argument);
}
