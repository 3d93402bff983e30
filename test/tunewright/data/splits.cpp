// SPDX-License-Identifier: Apache-2.0
#include "tunewright/data/splits.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "support/small_dataset.hpp"
#include "tunewright/data/auto_scheduler_log/replay.hpp"  // has a Split too, that of a schedule

using namespace tunewright;

namespace {

std::set<std::uint32_t> values(const std::vector<std::uint32_t>& column, const std::vector<std::size_t>& at) {
  std::set<std::uint32_t> found;
  for (const std::size_t i : at) found.insert(column[i]);
  return found;
}

void check_complete(const data::Split& split, std::size_t n) {
  std::set<std::size_t> all(split.train.begin(), split.train.end());
  for (const std::size_t i : split.test) CHECK(all.insert(i).second);
  CHECK(all.size() == n);
  CHECK(std::is_sorted(split.test.begin(), split.test.end()));
}

}  // namespace

TEST_CASE("within_task holds back the share of every task on every target, at random") {
  const data::Dataset data = small_dataset(3, 2, 20);
  const data::Split split = data::within_task(data, 0.1, Rng(1));
  check_complete(split, 120);
  CHECK(split.test.size() == 12);
  const std::vector<std::uint32_t> group = data.groups();
  std::vector<int> held(6);
  for (const std::size_t i : split.test) ++held[group[i]];
  CHECK(held == std::vector<int>{2, 2, 2, 2, 2, 2});
  CHECK(data::within_task(data, 0.1, Rng(1)).test == split.test);
  CHECK(data::within_task(data, 0.1, Rng(2)).test != split.test);
  std::set<std::size_t> places;  // not the same place in every task, and not the end or the beginning
  for (const std::size_t i : split.test) places.insert(i % 20);
  CHECK(places.size() > 4);
}

TEST_CASE("within_task holds back the nearest number of records") {
  CHECK(data::within_task(small_dataset(1, 1, 5), 0.35, Rng(1)).test.size() == 2);  // of 1.75
  CHECK(data::within_task(small_dataset(1, 1, 5), 0.25, Rng(1)).test.size() == 1);  // of 1.25
}

TEST_CASE("by_task holds back whole tasks on all targets") {
  const data::Dataset data = small_dataset(10, 2, 5);
  const data::Split split = data::by_task(data, 0.2, Rng(3));
  check_complete(split, 100);
  CHECK(split.test.size() == 20);
  const auto test = values(data.task, split.test), train = values(data.task, split.train);
  CHECK(test.size() == 2);
  CHECK(train.size() == 8);
  CHECK(values(data.target, split.test).size() == 2);
}

TEST_CASE("by_target holds back whole targets, by share or by name") {
  const data::Dataset data = small_dataset(2, 4, 5);
  const data::Split split = data::by_target(data, 0.25, Rng(3));
  check_complete(split, 40);
  CHECK(values(data.target, split.test).size() == 1);
  const data::Split named = data::by_target(data, {"target 1", "target 3"});
  check_complete(named, 40);
  CHECK(values(data.target, named.test) == std::set<std::uint32_t>{1, 3});
}

TEST_CASE("a split that would leave a side empty is an error that names split and fix") {
  const data::Dataset one = small_dataset(1, 1, 4);
  CHECK_THROWS_WITH_AS((void)data::by_target(one, 0.5, Rng(1)),
                       doctest::Contains("by_target: the test side would be empty"), std::invalid_argument);
  CHECK_THROWS_WITH_AS((void)data::by_target(one, 0.5, Rng(1)), doctest::Contains("records of another device"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS((void)data::by_task(one, 0.5, Rng(1)), doctest::Contains("by_task: the test side"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS((void)data::within_task(one, 0.1, Rng(1)), doctest::Contains("within_task: the test side"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS((void)data::by_target(one, {"target 0"}), doctest::Contains("the training side"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS((void)data::by_target(one, {"K80"}), doctest::Contains("it has: target 0"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS((void)data::within_task(one, 1.5, Rng(1)), doctest::Contains("1.5"), std::invalid_argument);
  CHECK_THROWS_AS((void)data::by_task({}, 0.5, Rng(1)), std::invalid_argument);
}

TEST_CASE("the first records of each group, and values at positions") {
  const data::Dataset data = small_dataset(2, 1, 3);
  const std::vector<std::size_t> first = data::first_records(data, 2);
  CHECK(first == std::vector<std::size_t>{0, 1, 3, 4});
  CHECK(data::pick(data.task, first) == std::vector<std::uint32_t>{0, 0, 1, 1});
  CHECK_THROWS_WITH_AS((void)data::pick(data.task, std::vector<std::size_t>{6}), doctest::Contains("position 6 of 6"),
                       std::out_of_range);
  const std::vector<std::size_t> by_turns{0, 3, 1, 4, 2, 5};
  CHECK(data::first_records(data.subset(by_turns), 2) == std::vector<std::size_t>{0, 1, 2, 3});
}

TEST_CASE("datasets that do not hold together are not split") {
  data::Dataset data = small_dataset(2, 2, 3);
  data.target.pop_back();
  const auto refused = doctest::Contains("11 target numbers");
  CHECK_THROWS_WITH_AS((void)data::within_task(data, 0.5, Rng(1)), refused, std::invalid_argument);
  CHECK_THROWS_WITH_AS((void)data::by_task(data, 0.5, Rng(1)), refused, std::invalid_argument);
  CHECK_THROWS_WITH_AS((void)data::by_target(data, 0.5, Rng(1)), refused, std::invalid_argument);
  CHECK_THROWS_WITH_AS((void)data::by_target(data, {"target 1"}), refused, std::invalid_argument);
  data = small_dataset(2, 2, 3);
  data.task[0] = 4'000'000'000;
  CHECK_THROWS_WITH_AS((void)data::by_task(data, 0.5, Rng(1)), doctest::Contains("task 4000000000 of 2"),
                       std::invalid_argument);
}
