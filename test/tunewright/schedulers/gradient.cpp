// SPDX-License-Identifier: Apache-2.0
#include "tunewright/schedulers/gradient.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>

#include "support/task_states.hpp"

using namespace tunewright;
using schedulers::Gradient;
using schedulers::TaskState;
using support::finished;
using support::task_state;
using Positions = std::vector<std::size_t>;

namespace {

double gradient_ms(const Gradient& scheduler, const std::vector<TaskState>& tasks, std::size_t i) {
  return 1e3 * scheduler.gradient(tasks, i);
}

std::string by_name(const Task& task) { return task.name; }

}  // namespace

TEST_CASE("the gradient is what the last three rounds brought and what an optimist expects of the next, times weight") {
  // backward (4 - 10) / 3 = -2, forward (4 - 4 / 4) - 4 = -1: 2 (0.2 * -2 + 0.8 * -1) = -2.4
  const std::vector<TaskState> tasks{task_state({10e-3, 8e-3, 6e-3, 4e-3}, 2), task_state({2.9e-3}),
                                     task_state({5e-3, 5e-3, 5e-3})};
  CHECK(gradient_ms({}, tasks, 0) == doctest::Approx(-2.4));
  CHECK(gradient_ms({}, tasks, 1) == doctest::Approx(0.8 * -2.9));                // no past yet, all to come
  CHECK(gradient_ms({}, tasks, 2) == doctest::Approx(0.8 * -5.0 / 3));            // three rounds are no window of three
  CHECK(gradient_ms({.alpha = 1}, tasks, 0) == doctest::Approx(2 * -2.0));        // the past alone
  CHECK(gradient_ms({.backward_window = 1}, tasks, 0) == doctest::Approx(-2.4));  // (4 - 6) / 1 = -2 as well
  CHECK(gradient_ms({.backward_window = 2}, tasks, 2) == doctest::Approx(0.8 * -5.0 / 3));  // it stood still
  CHECK(support::choices(Gradient{.epsilon = 0}, tasks, 1) == Positions{0});
}

TEST_CASE("a task that stands still loses to one that may have more to come") {
  // Rounds of 1 / t: the first has -0.8 * 6 / 6 = -0.8, the second -0.8 * 2 / 2.
  const std::vector<TaskState> tasks{task_state({6e-3, 6e-3, 6e-3, 6e-3, 6e-3, 6e-3}), task_state({2.2e-3, 2.2e-3})};
  CHECK(gradient_ms({}, tasks, 0) == doctest::Approx(-0.8));
  CHECK(gradient_ms({}, tasks, 1) == doctest::Approx(-0.88));
  CHECK(support::choices(Gradient{.epsilon = 0}, tasks, 1) == Positions{1});
}

TEST_CASE("rounds before the first valid program are no past") {
  constexpr double never = support::never_valid;
  const std::vector<TaskState> tasks{task_state({never, never, 4e-3, 4e-3}), task_state({never, never})};
  CHECK(gradient_ms({}, tasks, 0) == doctest::Approx(-0.8));
  CHECK(gradient_ms({}, tasks, 1) == 0);
}

TEST_CASE("a task is expected to run half as fast as the fastest like it, unless an optimist expects more") {
  // Both have 8e6 operations. The first stands at 4 ms after four rounds; the optimist says 3 ms, the fastest 1 ms, of
  // which the double is 2 ms: forward -2, backward -2, weight 2.
  std::vector<TaskState> tasks{task_state({10e-3, 8e-3, 6e-3, 4e-3}, 2, 8e6, "conv"),
                               task_state({1e-3}, 1, 8e6, "conv")};
  const Gradient alike{.similarity = by_name};
  CHECK(gradient_ms(alike, tasks, 0) == doctest::Approx(-4));
  CHECK(gradient_ms({.beta = 3.5, .similarity = by_name}, tasks, 0) == doctest::Approx(-2.4));  // 3.5 ms: the optimist
  CHECK(gradient_ms(alike, tasks, 1) == doctest::Approx(-0.8));                                 // none is faster
  SUBCASE("not if it has another name") { tasks[1].task.name = "dense"; }
  SUBCASE("not if it has no name") { tasks[0].task.name = tasks[1].task.name = ""; }
  SUBCASE("not if it has far more operations") { tasks[1].task.flops = 8e7; }
  SUBCASE("not if none of its programs was valid") { tasks[1] = task_state({support::never_valid}, 1, 8e6, "conv"); }
  CHECK(gradient_ms(alike, tasks, 0) == doctest::Approx(-2.4));
}

TEST_CASE("a task of no known operations is like none, not even where sizes are alike") {
  const std::vector<TaskState> tasks{task_state({4e-3, 4e-3, 4e-3, 4e-3}, 1, 0, "conv"),
                                     task_state({1e-3}, 1, 0.5, "conv")};
  CHECK(gradient_ms({.similarity = by_name}, tasks, 0) == doctest::Approx(-0.8));
}

TEST_CASE("sizes are alike within a power of the golden ratio") {
  // floor(log(C + 1) / log 1.618): 32.9 for 7.5e6, 33.0 for 8e6, 33.9 for 1.2e7
  const auto gradient_beside = [](double flops) {
    const std::vector<TaskState> tasks{task_state({4e-3, 4e-3, 4e-3, 4e-3}, 1, 8e6, "conv"),
                                       task_state({1e-3}, 1, flops, "conv")};
    return gradient_ms({.similarity = by_name}, tasks, 0);
  };
  CHECK(gradient_beside(7.5e6) == doctest::Approx(-0.8));
  CHECK(gradient_beside(1.2e7) == doctest::Approx(0.8 * (2 * 8.0 / 12 - 4)));
  CHECK(gradient_beside(1.4e7) == doctest::Approx(-0.8));  // 34.2
  // The class counts C + 1, not C: log to base phi is 5.08 for 10.5 and 5.33 for 12, while that of 10.5 itself is 4.89.
  const std::vector<TaskState> small{task_state({4e-3, 4e-3, 4e-3, 4e-3}, 1, 10.5, "conv"),
                                     task_state({1e-3}, 1, 12, "conv")};
  CHECK(gradient_ms({.similarity = by_name}, small, 0) == doctest::Approx(0.8 * (2 * 10.5 / 12 - 4)));
}

TEST_CASE("a task leaves its group when six rounds more did not make it like the others") {
  const auto tasks_with_rounds = [](std::size_t rounds) {
    return std::vector<TaskState>{task_state(std::vector<double>(rounds, 4e-3), 1, 8e6, "conv"),
                                  task_state({1e-3}, 1, 8e6, "conv")};
  };
  const Gradient alike{.similarity = by_name};
  CHECK(gradient_ms(alike, tasks_with_rounds(6), 0) == doctest::Approx(0.8 * -2));        // expects 2 ms
  CHECK(gradient_ms(alike, tasks_with_rounds(7), 0) == doctest::Approx(0.8 * -4.0 / 7));  // the optimist alone
  // One that failed in as many rounds is none of the others.
  std::vector<TaskState> tasks = tasks_with_rounds(7);
  tasks.push_back(task_state(std::vector<double>(7, support::never_valid), 1, 8e6, "conv"));
  CHECK(gradient_ms(alike, tasks, 0) == doctest::Approx(0.8 * -4.0 / 7));
}

TEST_CASE("each task has a round first, then the least gradient decides") {
  const std::vector<TaskState> tasks{task_state({}), finished(task_state({})), task_state({}, 3)};
  // The rounds bring 1 ms and nothing more: -0.8 / t and 3 * -0.8 / t.
  CHECK(support::choices(Gradient{.epsilon = 0}, tasks, 6) == Positions{0, 2, 2, 2, 0, 2});
}

TEST_CASE(
    "a task without a valid program is searched as if the largest latency of the others, 7 ms, stood still there") {
  // Its gradient is 0.8 * -7 / t: -1.87, -1.4, -1.12, -0.93 after 3 to 6 rounds. That of the first is 3 * 0.8 * -2 / t:
  // -1.2, -0.96, -0.8 after 4 to 6.
  std::vector<TaskState> tasks{task_state(std::vector<double>(4, 2e-3), 3),
                               task_state(std::vector<double>(3, support::never_valid)),
                               task_state(std::vector<double>(100, 7e-3))};
  CHECK(support::choices(Gradient{.epsilon = 0}, tasks, 6) == Positions{1, 1, 0, 1, 0, 1});
  tasks[2].finished = true;  // its latency still says how large those of the network are
  CHECK(support::choices(Gradient{.epsilon = 0}, tasks, 6) == Positions{1, 1, 0, 1, 0, 1});
  CHECK(Gradient{}.gradient(tasks, 1) == 0);
}

TEST_CASE("equal gradients are decided at random, by the generator alone") {
  const std::vector<TaskState> tasks(4, task_state({1e-3}));
  std::vector<std::size_t> counts(4);
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Rng rng(seed), again(seed);
    const std::size_t chosen = Gradient{.epsilon = 0}.next(tasks, rng);
    CHECK(chosen == Gradient{.epsilon = 0}.next(tasks, again));
    ++counts.at(chosen);
  }
  for (const std::size_t count : counts) CHECK(count > 60);  // 100 +- 9
}

TEST_CASE("gradients of the tasks that are left are equal, whatever that of a finished one was") {
  const std::vector<TaskState> tasks{task_state({1e-3}), task_state({1e-3}), finished(task_state({9e-3}))};
  std::vector<std::size_t> counts(3);
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed);
    ++counts.at(Gradient{.epsilon = 0}.next(tasks, rng));
  }
  CHECK(counts[0] > 60);  // 100 +- 7
  CHECK(counts[1] > 60);
  CHECK(counts[2] == 0);
}

TEST_CASE("now and then the choice is random, so that a task with little to gain comes up again") {
  const std::vector<TaskState> tasks{task_state({1e-3}), task_state({1e-6})};
  std::size_t revisited = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    Rng rng(seed);
    revisited += Gradient{.epsilon = 0.2}.next(tasks, rng);
    Rng same(seed);
    CHECK(Gradient{.epsilon = 0}.next(tasks, same) == 0);
  }
  CHECK(revisited > 140);  // a half of a fifth of 2000 is 200 +- 13
  CHECK(revisited < 260);
}

TEST_CASE("a random choice does not change because another task was found to be finished") {
  std::vector<TaskState> tasks(5, task_state({1e-3}));
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Rng rng(seed), again(seed);
    const std::size_t chosen = Gradient{.epsilon = 1}.next(tasks, rng);
    std::vector<TaskState> fewer = tasks;
    fewer[(chosen + 1) % 5].finished = true;
    CHECK(Gradient{.epsilon = 1}.next(fewer, again) == chosen);
  }
}

TEST_CASE("options out of range are refused by name") {
  const std::vector<TaskState> tasks{task_state({1e-3})};
  const auto refuses = [&](const Gradient& scheduler, const char* name) {
    Rng rng;
    CHECK_THROWS_WITH_AS((void)scheduler.next(tasks, rng), doctest::Contains(name), std::invalid_argument);
    CHECK_THROWS_WITH_AS(scheduler.check_options(), doctest::Contains(name), std::invalid_argument);
  };
  for (const double bad : {-0.1, 1.1, static_cast<double>(NAN)}) {
    refuses({.alpha = bad}, "alpha");
    refuses({.epsilon = bad}, "epsilon");
  }
  for (const double bad : {0.0, 0.9, static_cast<double>(NAN)}) refuses({.beta = bad}, "beta");
  refuses({.backward_window = 0}, "backward_window");
  refuses({.epsilon = 2}, "Gradient: epsilon is 2; give one in [0, 1]");
  CHECK_NOTHROW(Gradient{}.check_options());
}
