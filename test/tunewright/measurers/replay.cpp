// SPDX-License-Identifier: Apache-2.0
#include "tunewright/measurers/replay.hpp"

#include <doctest/doctest.h>

#include <utility>
#include <vector>

#include "support/toy_space.hpp"

using namespace tunewright;

TEST_CASE("answers are those recorded for the task, and their cost passes on the clock") {
  const toy::Space space;
  const Task task = toy::task();
  const auto record = [&](const toy::Tiles& tiles, const toy::Tiles& answer) {
    Record one;
    one.task = stable_hash(task);
    one.key = space.key(tiles);
    one.outcome = toy::outcome(answer);
    return one;
  };
  measurers::Replay<toy::Program> replay{.key = [](const toy::Program& program) { return program.key; }};
  Record lost = record({1, 1, 1, 1}, {1, 1, 1, 1});
  lost.outcome.result = Failure{Fault::Unknown, "the worker was lost"};
  const std::vector<Record> records{lost, record({1, 1, 1, 1}, {1, 1, 1, 1}), record({1, 1, 1, 1}, {2, 2, 2, 2})};
  replay.load(records);
  CHECK(replay.size() == 1);

  const std::vector<toy::Program> programs{space.lower(task, {1, 1, 1, 1}), space.lower(task, {3, 3, 3, 3})};
  std::vector<std::pair<std::size_t, Outcome>> told;
  const auto outcomes = replay.measure(
      task, programs, [&](std::size_t position, const Outcome& outcome) { told.emplace_back(position, outcome); });
  REQUIRE(outcomes.size() == 2);
  CHECK(outcomes[0] == toy::outcome({1, 1, 1, 1}));  // the first latency counts
  CHECK(outcomes[1].failure()->fault == Fault::Unknown);
  CHECK(outcomes[1].failure()->detail == "no record of candidate " + to_hex(space.key({3, 3, 3, 3})));
  CHECK(told == std::vector<std::pair<std::size_t, Outcome>>{{0, outcomes[0]}, {1, outcomes[1]}});
  CHECK(replay.clock().count() == doctest::Approx(0.015));  // 10 ms compiling, 5 ms running, the unknown one is free
  CHECK(replay.measure(toy::task("other", 1), programs)[0].failure() != nullptr);
}

TEST_CASE("a program that carries its key needs no function for it") {
  const Task task = toy::task();
  measurers::Replay<toy::Program> replay;
  Record record;
  record.task = stable_hash(task);
  record.key = 7;
  record.outcome = toy::outcome({1, 1, 1, 1});
  replay.load(std::vector<Record>{record});
  CHECK(replay.measure(task, std::vector<toy::Program>{{.key = 7}})[0].valid());
}

TEST_CASE("a replay without keys says so") {
  CHECK_THROWS_WITH_AS((void)measurers::Replay<int>{}.measure(toy::task(), std::vector<int>(1)),
                       doctest::Contains("key"), std::invalid_argument);
}
