// SPDX-License-Identifier: Apache-2.0
// What every scheduler owes, whatever it is: see schedulers/concept.hpp.
#include <doctest/doctest.h>

#include <functional>
#include <stdexcept>
#include <vector>

#include "support/task_states.hpp"
#include "tunewright/schedulers/bandit.hpp"
#include "tunewright/schedulers/fixed.hpp"
#include "tunewright/schedulers/flops_first.hpp"
#include "tunewright/schedulers/gradient.hpp"
#include "tunewright/schedulers/round_robin.hpp"

using namespace tunewright;

namespace {

using schedulers::TaskState;
using support::task_state;

struct Law {
  const char* name;
  std::function<std::size_t(std::span<const TaskState>, Rng&)> next;
};

std::vector<Law> laws(std::size_t tasks) {
  const auto law = [](const char* name, auto scheduler) {
    static_assert(TaskScheduler<decltype(scheduler)>);
    return Law{
        name, [scheduler](std::span<const TaskState> states, Rng& rng) mutable { return scheduler.next(states, rng); }};
  };
  std::vector<double> shares;
  for (std::size_t t = 0; t < tasks; ++t) shares.push_back(1.0 + static_cast<double>(t));
  return {law("RoundRobin", schedulers::RoundRobin{}),
          law("FlopsFirst", schedulers::FlopsFirst{}),
          law("FlopsFirst, twice", schedulers::FlopsFirst{.rounds_in_a_row = 2}),
          law("Fixed", schedulers::Fixed{.shares = shares}),
          law("Gradient", schedulers::Gradient{}),
          law("Gradient without chance", schedulers::Gradient{.epsilon = 0}),
          law("Gradient of groups", schedulers::Gradient{.similarity = [](const Task& task) { return task.name; }}),
          law("Bandit", schedulers::Bandit{})};
}

// A machine on which a task has `floor_s` + `more_s` / round after a round; every third one fails in its first round.
struct Network {
  std::vector<TaskState> tasks{};
  std::vector<double> floor_s{}, more_s{};

  void measure(std::size_t t, std::size_t trials) {
    const std::size_t round = tasks[t].rounds.size() + 1;
    double best_s = floor_s[t] + more_s[t] / static_cast<double>(round);
    if (t % 3 == 2 && round == 1) best_s = support::never_valid;
    tasks[t].rounds.push_back({tasks[t].trials() + trials, best_s});
  }
};

Network network(std::size_t tasks, std::uint64_t seed) {
  Rng rng(seed);
  Network made;
  for (std::size_t t = 0; t < tasks; ++t) {
    made.tasks.push_back(task_state({}, 1.0 + static_cast<double>(rng.below(8)), 1e6 * (1 + rng.uniform()), "conv"));
    made.floor_s.push_back(1e-3 * (0.1 + rng.uniform()));
    made.more_s.push_back(3e-3 * rng.uniform());
  }
  return made;
}

std::vector<std::size_t> run(const Law& law, Network network, std::size_t rounds, std::uint64_t seed) {
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < rounds; ++i) {
    Rng rng = Rng(seed).split(i);
    chosen.push_back(law.next(network.tasks, rng));
    REQUIRE_NOTHROW(schedulers::check_next(chosen.back(), network.tasks));
    network.measure(chosen.back(), 1 + i % 16);
    if (i % 20 == 19) {  // one after the other comes to its end, but for the last
      const std::size_t ended = i / 20 % network.tasks.size();
      if (ended + 1 < network.tasks.size()) network.tasks[ended].finished = true;
    }
  }
  return chosen;
}

/// A network of nine tasks after so many rounds.
Network searched(const Law& law, std::size_t rounds) {
  Network tasks = network(9, 3);
  for (std::size_t i = 0; i < rounds; ++i) {
    Rng rng = Rng(1).split(i);
    tasks.measure(law.next(tasks.tasks, rng), 8);
  }
  return tasks;
}

}  // namespace

TEST_CASE("only unfinished tasks are chosen, by what is given alone") {
  for (const Law& law : laws(7)) {
    CAPTURE(law.name);
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      const auto chosen = run(law, network(7, seed), 150, seed);
      CHECK(chosen == run(law, network(7, seed), 150, seed));
    }
  }
}

TEST_CASE("each task gets one round before any gets two") {
  for (const Law& law : laws(9)) {
    CAPTURE(law.name);
    const Network done = searched(law, 9);
    for (const TaskState& task : done.tasks) CHECK(task.rounds.size() == 1);
  }
}

TEST_CASE("every unfinished task is visited, those that failed at first too") {
  for (const Law& law : laws(9)) {
    CAPTURE(law.name);
    const Network done = searched(law, 1000);
    for (const TaskState& task : done.tasks) {
      CHECK(task.rounds.size() >= 2);
      CHECK(task.has_valid());
    }
  }
}

TEST_CASE("a task that failed at first is searched again soon") {
  for (const Law& law : laws(9)) {
    CAPTURE(law.name);
    const Network done = searched(law, 100);
    for (const TaskState& task : done.tasks) CHECK(task.has_valid());
  }
}

TEST_CASE("a task that always fails keeps getting its turns") {
  for (const Law& law : laws(9)) {
    CAPTURE(law.name);
    Network searched = network(9, 3);
    searched.floor_s[4] = support::never_valid;
    for (std::size_t i = 0; i < 500; ++i) {
      Rng rng = Rng(1).split(i);
      searched.measure(law.next(searched.tasks, rng), 8);
    }
    CHECK_FALSE(searched.tasks[4].has_valid());
    CHECK(searched.tasks[4].rounds.size() >= 10);
  }
}

TEST_CASE("of two tasks alike in all else the heavier one never has fewer rounds") {
  for (const Law& law : laws(2)) {
    CAPTURE(law.name);
    Network searched{{task_state({}, 1), task_state({}, 5)}, {1e-3, 1e-3}, {4e-3, 4e-3}};
    for (std::size_t i = 0; i < 100; ++i) {
      Rng rng = Rng(1).split(i);
      searched.measure(law.next(searched.tasks, rng), 8);
    }
    CHECK(searched.tasks[1].rounds.size() >= searched.tasks[0].rounds.size());
    const bool knows_weights = std::string_view(law.name).starts_with("Gradient") || law.name == std::string("Bandit");
    if (knows_weights) CHECK(searched.tasks[1].rounds.size() > 3 * searched.tasks[0].rounds.size() / 2);
  }
}

TEST_CASE("the state of a scheduler's own is none: a copy that saw nothing chooses the same") {
  for (std::size_t which = 0; which < laws(5).size(); ++which) {
    Network searched = network(5, 8);
    const Law seen = laws(5)[which];
    CAPTURE(seen.name);
    for (std::size_t i = 0; i < 60; ++i) {
      Rng rng = Rng(2).split(i), same = rng;
      const std::size_t chosen = seen.next(searched.tasks, rng);
      CHECK(laws(5)[which].next(searched.tasks, same) == chosen);
      searched.measure(chosen, 4);
    }
  }
}

TEST_CASE("where every task is finished there is nothing to choose") {
  for (const Law& law : laws(2)) {
    CAPTURE(law.name);
    const std::vector<TaskState> tasks(2, support::finished(task_state({1e-3})));
    Rng rng;
    CHECK_THROWS_WITH_AS((void)law.next(tasks, rng), doctest::Contains("all of them are finished"),
                         std::invalid_argument);
  }
}
