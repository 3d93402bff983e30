// SPDX-License-Identifier: Apache-2.0
// What a run takes over from a journal, seen through an observer that remembers.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "support/toy_recipes.hpp"
#include "tunewright/explorers/draft_set.hpp"
#include "tunewright/tuner.hpp"

using namespace tunewright;

namespace {

struct Memory {
  std::vector<Record> records;
  std::size_t measured = 0;
  std::vector<Record> recall(const Task&) const { return records; }
  void on_record(const Record& record, const RunStatus&) {
    records.push_back(record);
    ++measured;
  }
};

std::vector<std::uint64_t> keys(const auto& history) {
  std::vector<std::uint64_t> all;
  for (const auto& trial : history.trials()) all.push_back(trial.candidate.key);
  return all;
}

/// Drafts by cost alone, a set for two rounds.
struct Drafted : toy::Evolution {
  struct draft {
    void score(const toy::Space&, const Task&, std::span<const toy::Tiles> configs, std::span<float> score) const {
      for (std::size_t i = 0; i < configs.size(); ++i) score[i] = static_cast<float>(1e-3 / toy::cost_s(configs[i]));
    }
  };
  using explorer = explorers::DraftSet<>;
};
Tuner<Drafted> drafted() {
  Parts<Drafted> parts{.seed = 4};
  parts.explorer.size = 64;
  parts.explorer.explorer.population = 64;
  return Tuner<Drafted>(std::move(parts));
}

}  // namespace

TEST_CASE("a run that was stopped between rounds goes on exactly as if it had not been") {
  Tuner<toy::Evolution> whole{{.seed = 4}};
  const auto expected = keys(whole.run(toy::task(), {.trials = 80, .batch = 16}).history);

  Memory memory;
  Tuner<toy::Evolution> first{{.seed = 4}};
  (void)first.run(toy::task(), {.trials = 48, .batch = 16}, memory);
  Tuner<toy::Evolution> second{{.seed = 4}};
  const auto resumed = second.run(toy::task(), {.trials = 80, .batch = 16}, memory);
  CHECK(memory.measured == 80);
  CHECK(keys(resumed.history) == expected);
  CHECK(resumed.status.recalled == 48);
  CHECK(resumed.status.trials == 80);
  CHECK(resumed.history.trials()[47].recalled);
  CHECK_FALSE(resumed.history.trials()[48].recalled);
}

TEST_CASE("a run that was killed within a round repeats nothing") {
  Memory memory;
  Tuner<toy::Evolution> first{{.seed = 4}};
  (void)first.run(toy::task(), {.trials = 48, .batch = 16}, memory);
  memory.records.resize(39);  // killed in the third round
  memory.measured = 0;
  Tuner<toy::Evolution> second{{.seed = 4}};
  const auto resumed = second.run(toy::task(), {.trials = 80, .batch = 16}, memory);
  CHECK(memory.measured == 41);
  CHECK(resumed.history.size() == 80);
  KeySet distinct;
  for (const Record& record : memory.records) CHECK(distinct.insert(record.key).second);
  for (const Record& record : memory.records) CHECK(record.round <= 5);
}

TEST_CASE(
    "a run that drafts sets goes on as if it had not been stopped where a set ended, elsewhere with another "
    "set") {
  constexpr std::size_t batch = 8, trials = 6 * batch;  // sets for rounds 0 and 1, 2 and 3, 4 and 5
  const auto expected = keys(drafted().run(toy::task(), {.trials = trials, .batch = batch}).history);
  const auto resumed_after = [&](std::size_t first) {
    Memory memory;
    (void)drafted().run(toy::task(), {.trials = first, .batch = batch}, memory);
    return keys(drafted().run(toy::task(), {.trials = trials, .batch = batch}, memory).history);
  };
  CHECK(resumed_after(2 * batch) == expected);
  CHECK(resumed_after(4 * batch) == expected);

  const auto within = resumed_after(3 * batch);
  CHECK(within.size() == trials);
  CHECK(std::equal(within.begin(), within.begin() + 3 * batch, expected.begin()));
  CHECK(within != expected);
  CHECK(within == resumed_after(3 * batch));
  const KeySet distinct(within.begin(), within.end());
  CHECK(distinct.size() == trials);
}

TEST_CASE("recorded trials are spent: a used-up budget measures nothing") {
  Memory memory;
  Tuner<toy::RandomSearch> first;
  const auto before = first.run(toy::task(), {.trials = 30, .batch = 10}, memory);
  Tuner<toy::RandomSearch> second;
  const auto after = second.run(toy::task(), {.trials = 20, .batch = 10}, memory);
  CHECK(memory.measured == 30);
  CHECK(after.stop == Stop::Trials);
  CHECK(after.status.rounds == 0);
  CHECK(after.best()->candidate.key == before.best()->candidate.key);
}

TEST_CASE("records of another compiler or outside of the space are counted and not used") {
  struct Identified : toy::Measurer {
    Identified() { name = "cc 1"; }
  };
  struct Recipe : recipes::Random<toy::Space, Identified> {};
  Memory memory;
  Tuner<Recipe> first;
  (void)first.run(toy::task(), {.trials = 10, .batch = 10}, memory);
  CHECK(memory.records[0].compiler == "cc 1");
  memory.records[0].config = "nonsense";
  memory.records[1].compiler = "cc 0";
  Tuner<Recipe> second;
  const auto run = second.run(toy::task(), {.trials = 10, .batch = 10}, memory);
  CHECK(run.status.recalled == 8);
  CHECK(run.status.unusable == ReasonCounts{{"another compiler", 1}, {"not in the search space", 1}});
}

TEST_CASE("records with a latency that is none are counted, and their candidates may be measured again") {
  Memory memory;
  Tuner<toy::Evolution> first{{.seed = 4}};
  (void)first.run(toy::task(), {.trials = 32, .batch = 16}, memory);
  const double none[] = {0, -1e-3, static_cast<double>(INFINITY), static_cast<double>(NAN)};
  for (std::size_t i = 0; i < 4; ++i)
    memory.records[28 + i].outcome.result = Timing{.repeats = {}, .median = Seconds(none[i])};
  Tuner<toy::Evolution> second{{.seed = 4}};
  const auto resumed = second.run(toy::task(), {.trials = 48, .batch = 16}, memory);
  CHECK(resumed.status.unusable == ReasonCounts{{"a latency that is none", 4}});
  CHECK(resumed.status.recalled == 28);
  CHECK(resumed.history.size() == 48);
}

TEST_CASE("a measurer that answers no time at all for a candidate costs that candidate alone") {
  struct Instant : toy::Measurer {
    std::size_t left = 5;  // until one takes no time
    std::vector<Outcome> measure(const Task& task, std::span<const toy::Program> programs) {
      std::vector<Outcome> outcomes;
      for (const toy::Program& program : programs) {
        outcomes.push_back(run(task, program));
        if (left-- == 0) outcomes.back().result = Timing{};
      }
      return outcomes;
    }
  };
  struct Recipe : recipes::Random<toy::Space, Instant> {};
  Memory memory;
  Tuner<Recipe> first;
  const auto run = first.run(toy::task(), {.trials = 20, .batch = 10}, memory);
  CHECK(run.history.size() == 20);
  REQUIRE(memory.records.size() == 20);
  REQUIRE(memory.records[5].outcome.failure() != nullptr);
  CHECK(memory.records[5].outcome.failure()->fault == Fault::Unknown);
  Tuner<Recipe> second;
  CHECK(second.run(toy::task(), {.trials = 30, .batch = 10}, memory).status.recalled == 20);
}
