// SPDX-License-Identifier: Apache-2.0
#include "../../bench/study/network_choice.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

using namespace tunewright;
using study::ScoredTask;
using study::Teachers;
using Indices = std::vector<std::size_t>;

namespace {

constexpr double failed = std::numeric_limits<double>::infinity();

// Tasks a (of network n), b (of m) and c (of both) on targets s and t, a program each, in this order.
data::Dataset small_collection() {
  data::Dataset data;
  for (const char* task : {"a", "b", "c"}) static_cast<void>(data.task_number({.name = task}));
  data.targets = {"s", "t"};
  for (std::uint32_t task = 0; task < 3; ++task) {
    for (std::uint32_t target = 0; target < 2; ++target) {
      data.task.push_back(task);
      data.target.push_back(target);
      data.cost_s.push_back(1);
    }
  }
  return data;
}
const study::NetworksOfTasks owners{{"a", {{"n", 1}}}, {"b", {{"m", 2}}}, {"c", {{"n", 3}, {"m", 4}}}};

}  // namespace

TEST_CASE("a network on a target is tested on, and others teach: other networks, other targets, or both") {
  const data::Dataset data = small_collection();
  const auto split = [&](Teachers teachers) { return study::hold_out(data, owners, "n", "t", teachers); };
  for (const Teachers teachers : {Teachers::OtherNetworks, Teachers::OtherTargets, Teachers::Both})
    CHECK(split(teachers).test == Indices{1, 5});
  CHECK(split(Teachers::OtherNetworks).train == Indices{3});
  CHECK(split(Teachers::OtherTargets).train == Indices{0, 4});
  CHECK(split(Teachers::Both).train == Indices{2});
}

TEST_CASE("a task that other networks have on another target has the networks of both") {
  study::NetworksOfTasks networks;
  study::add_networks(networks, "a", {{"n", 1}, {"m", 2}});
  study::add_networks(networks, "a", {{"o", 3}, {"n", 1}});
  study::add_networks(networks, "b", {{"m", 4}});
  CHECK(networks == study::NetworksOfTasks{{"a", {{"m", 2}, {"n", 1}, {"o", 3}}}, {"b", {{"m", 4}}}});
}

TEST_CASE("an empty side of a split is refused") {
  data::Dataset data = small_collection();
  const auto split = [&](const char* network, const char* target, Teachers teachers) {
    return study::hold_out(data, owners, network, target, teachers);
  };
  CHECK_THROWS_WITH_AS(static_cast<void>(split("o", "t", Teachers::OtherNetworks)),
                       doctest::Contains("o on t the test"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(split("n", "u", Teachers::OtherNetworks)),
                       doctest::Contains("n on u the test"), std::invalid_argument);
  for (std::uint32_t& task : data.task) task = task == 1 ? 2 : task;
  CHECK_THROWS_WITH_AS(static_cast<void>(split("n", "t", Teachers::Both)), doctest::Contains("the training side"),
                       std::invalid_argument);
}

TEST_CASE("latency of a network sums the fastest of the highest scores by occurrences") {
  // The fastest programs take 1 s and 2 s: three occurrences of the first task and one of the second take 5 s.
  const std::vector<ScoredTask> tasks{{3, {0.1F, 0.9F, 0.5F}, {1, 4, 2}}, {1, {0.7F, 0.2F, 0.7F}, {6, 2, 3}}};
  CHECK(study::relative_latency(tasks, 1) == doctest::Approx((3 * 4 + 6) / 5.0));
  CHECK(study::relative_latency(tasks, 2) == doctest::Approx((3 * 2 + 3) / 5.0));
  CHECK(study::relative_latency(tasks, 3) == 1);
  CHECK(study::relative_latency(tasks, 64) == 1);
}

TEST_CASE("programs drawn at random are chosen from alone, as many as each task has") {
  std::vector<ScoredTask> tasks{{3, {0.1F, 0.9F, 0.5F}, {1, 4, 2}, 1}, {1, {0.9F, 0.2F, 0.7F}, {6, 2, 3}, 2}};
  const auto latency = [&](std::size_t k) { return study::relative_latency(tasks, k, study::Among::Drawn); };
  CHECK(latency(1) == doctest::Approx((3 * 1 + 6) / 5.0));
  CHECK(latency(2) == doctest::Approx((3 * 1 + 2) / 5.0));
  tasks[1].drawn = 0;
  CHECK(latency(2) == doctest::Approx((3 * 1 + 6) / 5.0));
  tasks[1].drawn = 9;
  CHECK(latency(3) == doctest::Approx((3 * 1 + 2) / 5.0));
}

TEST_CASE("failures chosen cost a task its slowest program, and a task that never works is left out") {
  const std::vector<ScoredTask> tasks{{1, {3, 2, 1}, {failed, 1, 5}}, {1, {2, 1}, {failed, failed}}};
  CHECK(study::relative_latency(tasks, 1) == 5);
  CHECK(study::relative_latency(tasks, 2) == 1);
  CHECK_THROWS_AS(static_cast<void>(study::relative_latency(tasks, 0)), std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(study::relative_latency(std::vector{tasks[1]}, 1)), std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(study::relative_latency({}, 1)), std::invalid_argument);
}
