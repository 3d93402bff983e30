// SPDX-License-Identifier: Apache-2.0
#include "tunewright/multi_task_session.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "support/toy_recipes.hpp"
#include "tunewright/schedulers/fixed.hpp"
#include "tunewright/schedulers/flops_first.hpp"
#include "tunewright/schedulers/gradient.hpp"
#include "tunewright/schedulers/round_robin.hpp"

using namespace tunewright;

namespace {

const std::vector<WeightedTask> abc{{toy::task("a", 1), 3}, {toy::task("b", 2), 1}, {toy::task("c", 3), 2}};

template <class Batch>
std::vector<Outcome> measured(const Batch& batch) {
  std::vector<Outcome> outcomes;
  for (const auto& candidate : batch.candidates) outcomes.push_back(toy::outcome(candidate.config));
  return outcomes;
}

struct CountedRefit : adaptations::Refit {
  std::size_t updates = 0;
  template <CostModel M>
  void update(M& model, const FeatureBatch& x, std::span<const float> y, std::span<const std::uint32_t> group) {
    ++updates;
    Refit::update(model, x, y, group);
  }
};

}  // namespace

TEST_CASE("a session of several tasks asks for the task that is scheduled, is told, and asks for another") {
  Parts<toy::Evolution> parts{.seed = 2};
  schedulers::RoundRobin scheduler;
  MultiTaskSession<toy::Evolution, schedulers::RoundRobin> session(parts, scheduler, abc);
  std::vector<std::size_t> visited;
  for (std::size_t round = 0; round < 4; ++round) {
    const auto batch = session.ask(10);
    REQUIRE(batch.candidates.size() == 10);
    const auto again = session.ask(10);  // nothing was learned in between
    CHECK(again.task == batch.task);
    CHECK(again.candidates.front().key == batch.candidates.front().key);
    session.tell(batch, measured(batch));
    visited.push_back(batch.task);
  }
  CHECK(visited == std::vector<std::size_t>{0, 1, 2, 0});
  CHECK(session.trials() == 40);
  const schedulers::TaskState& first = session.tasks()[0];
  REQUIRE(first.rounds.size() == 2);
  CHECK(first.rounds[0].trials == 10);
  CHECK(first.rounds[1].trials == 20);
  CHECK(first.best_s() == session.session(0).history().best()->cost_s());
  CHECK(first.weight == 3);
  CHECK(parts.training.size() == 40);  // one model for all
}

TEST_CASE("the search of a task is the one that it would be alone, but for what the model learned of the others") {
  struct Recipe : toy::RandomSearch {};  // which learns nothing
  Parts<Recipe> parts{.seed = 2};
  schedulers::RoundRobin scheduler;
  MultiTaskSession<Recipe, schedulers::RoundRobin> session(parts, scheduler, abc);
  for (std::size_t round = 0; round < 6; ++round) {
    const auto batch = session.ask(8);
    session.tell(batch, session.measure(batch));
  }
  Parts<Recipe> own{.seed = 2};
  Session<Recipe> alone(own, toy::task("b", 2));
  for (std::size_t round = 0; round < 2; ++round) {
    const auto batch = alone.ask(8);
    alone.tell(batch, alone.measure(batch));
  }
  REQUIRE(session.session(1).history().size() == alone.history().size());
  for (std::size_t i = 0; i < alone.history().size(); ++i)
    CHECK(session.session(1).history().trials()[i].candidate.key == alone.history().trials()[i].candidate.key);
}

TEST_CASE("a task whose space is used up, and one that finds nothing better, are finished and not chosen any more") {
  struct Tiny : toy::Space {
    std::optional<toy::Tiles> sample(const Task& task, Rng& rng) const {
      if (task.name == "b") return toy::Tiles{static_cast<int>(rng.below(5)), 0, 0, 0};
      if (task.name == "c") return toy::best;
      return toy::Space::sample(task, rng);
    }
  };
  struct Recipe : recipes::Random<Tiny, toy::Measurer> {};
  Parts<Recipe> parts;
  schedulers::RoundRobin scheduler;
  MultiTaskSession<Recipe, schedulers::RoundRobin> session(parts, scheduler, abc, 60);
  CHECK_FALSE(session.stop(0));
  std::map<std::size_t, std::size_t> trials;
  for (auto batch = session.ask(4); !batch.empty(); batch = session.ask(4)) {
    session.tell(batch, measured(batch));
    trials[batch.task] += batch.candidates.size();
  }
  CHECK(trials[1] == 5);
  CHECK(trials[2] == 1);
  CHECK(session.stop(0) == Stop::Patience);
  CHECK(session.session(0).history().trials_since_best() >= 60);
  CHECK(session.session(0).history().trials_since_best() < 64);
  CHECK(session.stop(1) == Stop::Exhausted);
  CHECK(session.stop(2) == Stop::Exhausted);
  CHECK(session.ask(4).empty());
}

TEST_CASE("a task without any configuration is refused before anything is measured, and finished after that") {
  struct NoneForB : toy::Space {
    std::optional<toy::Tiles> sample(const Task& task, Rng& rng) const {
      return task.name == "b" ? std::nullopt : toy::Space::sample(task, rng);
    }
  };
  struct Recipe : recipes::Random<NoneForB, toy::Measurer> {};
  Parts<Recipe> parts;
  schedulers::RoundRobin scheduler;
  MultiTaskSession<Recipe, schedulers::RoundRobin> session(parts, scheduler, abc);
  auto batch = session.ask(4);
  CHECK(batch.task == 0);
  session.tell(batch, measured(batch));
  batch = session.ask(4);
  CHECK(batch.task == 2);
  session.tell(batch, measured(batch));
  CHECK(session.stop(1) == Stop::Exhausted);
  CHECK(session.ask(4).task == 0);

  Parts<Recipe> others;
  MultiTaskSession<Recipe, schedulers::RoundRobin> first(others, scheduler, std::vector{abc[1], abc[0]});
  CHECK_THROWS_WITH_AS((void)first.ask(4), doctest::Contains("'b'"), std::invalid_argument);
}

TEST_CASE("records of all tasks are taken over in any order, and the model learns from them at once") {
  struct Recipe : toy::Evolution {
    using adaptation = CountedRefit;
  };
  using Session = MultiTaskSession<Recipe, schedulers::FlopsFirst>;
  schedulers::FlopsFirst scheduler;  // begins with a, goes on with c
  Parts<Recipe> parts{.seed = 3};
  Session whole(parts, scheduler, abc);
  std::vector<Record> records;
  for (std::size_t round = 0; round < 5; ++round) {
    const auto batch = whole.ask(6);
    const auto outcomes = measured(batch);
    for (std::size_t i = 0; i < outcomes.size(); ++i) records.push_back(whole.record(batch, i, outcomes[i]));
    whole.tell(batch, outcomes);
  }
  CHECK(records[6].task == stable_hash(abc[2].task));
  CHECK(parts.adaptation.updates == 5);
  const auto expected = whole.ask(6);
  REQUIRE_FALSE(std::isnan(expected.candidates.front().predicted));

  Record foreign = records[0];
  foreign.task = 77;
  records.push_back(foreign);
  std::reverse(records.begin(), records.end());
  Parts<Recipe> fresh{.seed = 3};
  Session resumed(fresh, scheduler, abc);
  CHECK(resumed.recall(records) == ReasonCounts{{"another task", 1}});
  CHECK(fresh.adaptation.updates == 1);
  CHECK(resumed.trials() == 30);
  for (std::size_t t = 0; t < 3; ++t) {
    REQUIRE(resumed.tasks()[t].rounds.size() == whole.tasks()[t].rounds.size());
    for (std::size_t r = 0; r < whole.tasks()[t].rounds.size(); ++r) {
      CHECK(resumed.tasks()[t].rounds[r].trials == whole.tasks()[t].rounds[r].trials);
      CHECK(resumed.tasks()[t].rounds[r].best_s == whole.tasks()[t].rounds[r].best_s);
    }
  }
  const auto next = resumed.ask(6);
  CHECK(next.task == expected.task);
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(next.candidates[i].key == expected.candidates[i].key);
    CHECK(next.candidates[i].predicted == expected.candidates[i].predicted);
  }
}

TEST_CASE("networks that are none are refused before anything is searched") {
  Parts<toy::RandomSearch> parts;
  schedulers::RoundRobin scheduler;
  const auto refuses = [&](const std::vector<WeightedTask>& tasks, const char* why) {
    using Session = MultiTaskSession<toy::RandomSearch, schedulers::RoundRobin>;
    CHECK_THROWS_WITH_AS(Session(parts, scheduler, tasks), doctest::Contains(why), std::invalid_argument);
  };
  refuses({}, "0 tasks");
  refuses({abc[0], abc[1], {toy::task("a again", 1)}}, "tasks 0, 'a', and 2, 'a again', are the same");
  for (const double weight : {0.0, -1.0, static_cast<double>(NAN), static_cast<double>(INFINITY)})
    refuses({abc[0], {toy::task("b", 2), weight}}, "task 'b' has weight");
}

TEST_CASE("a scheduler that chooses what it may not is found out") {
  struct Stubborn {
    std::size_t choice = 0;
    std::size_t next(std::span<const schedulers::TaskState>, Rng&) const { return choice; }
  };
  Parts<toy::RandomSearch> parts;
  Stubborn scheduler{3};
  MultiTaskSession<toy::RandomSearch, Stubborn> session(parts, scheduler, abc, 1);
  CHECK_THROWS_WITH_AS((void)session.ask(4), doctest::Contains("task 3 of 3"), std::logic_error);
  scheduler.choice = 1;
  for (std::size_t round = 0; round < 2 && !session.stop(1); ++round) {
    const auto batch = session.ask(40);
    std::vector<Outcome> failures(batch.candidates.size());
    for (Outcome& outcome : failures) outcome.result = Failure{Fault::RunTimeout, ""};
    session.tell(batch, failures);
  }
  CHECK_THROWS_WITH_AS((void)session.ask(4), doctest::Contains("which is finished"), std::logic_error);
}

TEST_CASE("options of policies and of the scheduler out of range are refused before anything is searched") {
  Parts<toy::Evolution> parts;
  schedulers::Gradient scheduler{.alpha = 7};
  using Session = MultiTaskSession<toy::Evolution, schedulers::Gradient>;
  CHECK_THROWS_WITH_AS(Session(parts, scheduler, abc), doctest::Contains("Gradient: alpha is 7"),
                       std::invalid_argument);
  scheduler.alpha = 0.5;
  CHECK_NOTHROW(Session(parts, scheduler, abc));
  parts.explorer.population = 0;
  CHECK_THROWS_WITH_AS(Session(parts, scheduler, abc), doctest::Contains("Evolutionary: population is 0"),
                       std::invalid_argument);
}

TEST_CASE("what a scheduler cannot work with is told as it says it") {
  Parts<toy::RandomSearch> parts;
  schedulers::Fixed scheduler{.shares = {1, 2}};
  MultiTaskSession<toy::RandomSearch, schedulers::Fixed> session(parts, scheduler, abc);
  CHECK_THROWS_WITH_AS((void)session.ask(4), doctest::Contains("2 shares for 3 tasks"), std::invalid_argument);
}
