// SPDX-License-Identifier: Apache-2.0
#include "tunewright/spaces/decode_records.hpp"

#include <doctest/doctest.h>

#include "support/toy_space.hpp"

using namespace tunewright;

TEST_CASE("records come back in order of round and slot; the rest is counted by reason") {
  const Task task = toy::task();
  const auto record = [&](std::string config, unsigned round, unsigned slot) {
    Record one;
    one.task = stable_hash(task);
    one.config = std::move(config);
    one.compiler = "cc 1";
    one.round = round;
    one.slot = slot;
    one.outcome = toy::outcome({1, 1, 1, 1});
    return one;
  };
  std::vector<Record> records{record("1111", 1, 0), record("2222", 0, 1), record("3333", 0, 0),
                              record("1111", 2, 0), record("9999", 2, 1), record("4444", 2, 2),
                              record("5555", 2, 3), record("6666", 0, 2), record("6666", 1, 1)};
  records[5].compiler = "cc 2";
  records[6].task = 1;
  records[2].predicted = 0.5F;
  std::get<Timing>(records[7].outcome.result).median = Seconds(0);  // the next counts instead
  const auto decoded = spaces::decode_records(toy::Space{}, task, records, "cc 1");
  REQUIRE(decoded.batch.size() == 4);
  CHECK(decoded.batch[0].config == toy::Tiles{3, 3, 3, 3});
  CHECK(decoded.batch[1].config == toy::Tiles{2, 2, 2, 2});
  CHECK(decoded.batch[2].config == toy::Tiles{1, 1, 1, 1});
  CHECK(decoded.batch[2].round == 1);
  CHECK(decoded.batch[0].predicted == 0.5F);
  CHECK(std::isnan(decoded.batch[1].predicted));
  CHECK(decoded.batch[3].config == toy::Tiles{6, 6, 6, 6});
  CHECK(decoded.outcomes.size() == 4);
  CHECK(decoded.unusable == ReasonCounts{{"measured twice", 1},
                                         {"not in the search space", 1},
                                         {"another compiler", 1},
                                         {"another task", 1},
                                         {"a latency that is none", 1}});
  std::vector<std::pair<std::size_t, std::string>> refused;
  for (const auto& one : decoded.refused) refused.emplace_back(one.record, one.reason);
  CHECK(refused == std::vector<std::pair<std::size_t, std::string>>{{3, "measured twice"},
                                                                    {4, "not in the search space"},
                                                                    {5, "another compiler"},
                                                                    {6, "another task"},
                                                                    {7, "a latency that is none"}});
}

TEST_CASE("of several records of one candidate the one that says most counts") {
  const Task task = toy::task();
  const auto record = [&](unsigned slot, const Outcome& outcome) {
    Record one;
    one.task = stable_hash(task);
    one.config = "1111";
    one.slot = slot;
    one.outcome = outcome;
    return one;
  };
  const Outcome checked = toy::outcome({1, 1, 1, 1});
  Outcome estimate = checked, lost;
  std::get<Timing>(estimate.result).stopped = StopReason::Extrapolated;
  lost.result = Failure{Fault::Unknown, "the worker was lost"};
  const std::vector<Record> records{record(0, lost), record(1, estimate), record(2, checked), record(3, checked)};
  const auto decoded = spaces::decode_records(toy::Space{}, task, records, "");
  REQUIRE(decoded.batch.size() == 1);
  CHECK(decoded.batch[0].slot == 2);
  CHECK(decoded.outcomes[0] == checked);
  REQUIRE(decoded.refused.size() == 3);
  CHECK(decoded.refused[0].record == 0);
  CHECK(decoded.refused[1].record == 1);
  CHECK(decoded.refused[2].record == 3);
}
