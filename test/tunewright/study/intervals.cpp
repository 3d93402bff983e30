// SPDX-License-Identifier: Apache-2.0
#include "tunewright/study/intervals.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/refusal.hpp"
#include "tunewright/core/rng.hpp"

using namespace tunewright;

namespace {

using Values = std::vector<std::vector<double>>;
using Trainings = std::vector<study::OfTrainings>;

/// Normal values of tasks that differ as much as seeds do, around 0.
Values normal_values(std::size_t tasks, std::size_t seeds, Rng rng) {
  Values values(tasks);
  for (auto& of_task : values) {
    const double middle = rng.normal();
    for (std::size_t seed = 0; seed < seeds; ++seed) of_task.push_back(middle + rng.normal());
  }
  return values;
}

/// Normal values around 0 of trainings that judge all tasks; tasks, trainings and single judgements differ alike.
Trainings judgements(std::size_t tasks, std::size_t trainings, Rng rng) {
  std::vector<double> luck(trainings);
  for (double& one : luck) one = rng.normal();
  Trainings values(tasks);
  for (auto& of_task : values) {
    const double middle = rng.normal();
    for (std::size_t seed = 0; seed < trainings; ++seed) of_task[seed] = middle + luck[seed] + rng.normal();
  }
  return values;
}

/// The same values as searches have them, of which each task has seeds of its own.
Values as_searches(const Trainings& values) {
  Values all;
  for (const auto& of_task : values) {
    auto& seeds = all.emplace_back();
    for (const auto& [seed, value] : of_task) seeds.push_back(value);
  }
  return all;
}

}  // namespace

TEST_CASE("the value is the mean over tasks of the mean over seeds") {
  // By hand: (2 + 10) / 2, where the mean of all five would be 5.2.
  const Values values{{1, 2, 3}, {9, 11}};
  const study::Interval of = study::mean_over_tasks(values, Rng(1));
  CHECK(of.value == 6);
  CHECK(of.low < 6);
  CHECK(of.high > 6);
  // Geometric: of 1 and 4 it is 2, of 8 and 8 it is 8, of these 4.
  CHECK(study::geometric_mean_over_tasks(Values{{1, 4}, {8, 8}}, Rng(1)).value == doctest::Approx(4));
}

TEST_CASE("the bootstrap draws tasks and seeds within them") {
  // Two tasks without spread: their mean is 0, 1/2 or 1, with 0 and 1 in a quarter of the resamples each.
  CHECK(study::mean_over_tasks(Values{{0, 0}, {1, 1}}, Rng(2)) == study::Interval{0.5, 0, 1});
  CHECK(study::mean_over_tasks(Values{{0, 0}, {1, 1}}, Rng(2), {.confidence = 0.4}) == study::Interval{0.5, 0.5, 0.5});
  // One task of seeds 0, 0 and 3: the mean is 0, 1, 2 or 3 with probability 8, 12, 6 and 1 of 27, so 3.7 % are 3.
  CHECK(study::mean_over_tasks(Values{{0, 0, 3}}, Rng(3)) == study::Interval{1, 0, 3});
  CHECK(study::mean_over_tasks(Values{{0, 0, 3}}, Rng(3), {.confidence = 0.9}) == study::Interval{1, 0, 2});
}

TEST_CASE("the statistic is asked for tasks and seeds that exist, and as many as there are") {
  const std::vector<std::size_t> seeds{1, 4, 3};
  std::size_t calls = 0;
  bool all_exist = true, any_repeats = false;
  std::vector<std::size_t> of_task(3);
  const auto statistic = [&](std::span<const study::DrawnTask> drawn) {
    ++calls;
    all_exist = all_exist && drawn.size() == 3;
    for (const study::DrawnTask& one : drawn) {
      all_exist = all_exist && one.task < 3 && one.seeds.size() == seeds[one.task];
      for (const std::size_t seed : one.seeds) all_exist = all_exist && seed < seeds[one.task];
      any_repeats = any_repeats || (one.seeds.size() == 4 && one.seeds[0] == one.seeds[1]);
      ++of_task[one.task];
    }
    return static_cast<double>(calls);  // 1 for the value itself, then 2 to 1001
  };
  const study::Interval of = study::bootstrap(seeds, statistic, Rng(4), {.resamples = 1000});
  CHECK(all_exist);
  CHECK(any_repeats);
  CHECK(calls == 1001);
  for (const std::size_t count : of_task) CHECK(std::abs(static_cast<double>(count) - 1001) < 130);  // 5 sigma
  // By hand: number floor(0.025 * 1001) = 25 from either end.
  CHECK(of == study::Interval{1, 26, 977});
}

TEST_CASE("intervals depend on nothing but the generator") {
  const Values values = normal_values(6, 4, Rng(5));
  CHECK(study::mean_over_tasks(values, Rng(6)) == study::mean_over_tasks(values, Rng(6)));
  CHECK(study::mean_over_tasks(values, Rng(6)) != study::mean_over_tasks(values, Rng(7)));
}

TEST_CASE("a higher confidence gives a wider interval") {
  const Values values = normal_values(8, 5, Rng(8));
  const study::Interval narrow = study::mean_over_tasks(values, Rng(9), {.confidence = 0.5});
  const study::Interval wide = study::mean_over_tasks(values, Rng(9), {.confidence = 0.99});
  CHECK(wide.low < narrow.low);
  CHECK(narrow.high < wide.high);
}

TEST_CASE("about 95 % of the intervals cover the true mean") {
  constexpr std::size_t studies = 400;
  std::size_t covering = 0;
  for (std::size_t study = 0; study < studies; ++study) {
    const Rng rng = Rng(10).split(study);
    const Values values = normal_values(20, 5, rng);
    if (!study::mean_over_tasks(values, rng.split(1), {.resamples = 300}).excludes(0)) ++covering;
  }
  CHECK(covering > 0.90 * studies);
  CHECK(covering < 0.99 * studies);
}

TEST_CASE("a paired difference sees what the intervals of either recipe hide") {
  const Values slow = normal_values(12, 5, Rng(12));
  Values fast = slow;
  Rng noise(13);
  for (auto& of_task : fast)
    for (double& value : of_task) value -= 0.2 + 0.05 * noise.normal();
  const study::Interval difference = study::paired_difference(slow, fast, Rng(14));
  CHECK(difference.value == doctest::Approx(0.2).epsilon(0.2));
  CHECK(difference.excludes(0));
  CHECK(difference.high - difference.low < 0.1);
  const study::Interval first = study::mean_over_tasks(slow, Rng(14)), second = study::mean_over_tasks(fast, Rng(14));
  CHECK(first.low < second.high);  // they overlap
  // Either recipe against itself is a draw.
  CHECK(study::paired_difference(slow, slow, Rng(14)) == study::Interval{0, 0, 0});
  CHECK(!study::paired_difference(slow, slow, Rng(14)).excludes(0));
}

TEST_CASE("an interval excludes what is beyond its ends") {
  const study::Interval of{1, 0.5, 2};
  CHECK(of.excludes(0.4));
  CHECK(of.excludes(2.1));
  CHECK(!of.excludes(0.5));
  CHECK(!of.excludes(1.7));
  CHECK(!of.excludes(2));
}

TEST_CASE("a statistic may be infinite") {
  // The second of two tasks has no success: only draws of the first alone, a quarter of all, are finite.
  const std::vector<std::size_t> seeds{3, 3};
  const auto statistic = [](std::span<const study::DrawnTask> drawn) {
    const bool finite = std::all_of(drawn.begin(), drawn.end(), [](const auto& one) { return one.task == 0; });
    return finite ? 7.0 : std::numeric_limits<double>::infinity();
  };
  const study::Interval of = study::bootstrap(seeds, statistic, Rng(15));
  CHECK(of.low == 7);
  CHECK(std::isinf(of.high));
}

TEST_CASE("too little to draw from is named") {
  const Rng rng(16);
  CHECK(test::refusal([&] { return study::mean_over_tasks(Values{}, rng); }).find("0 tasks") != std::string::npos);
  CHECK(test::refusal([&] { return study::mean_over_tasks(Values{{1, 2}}, rng); }).find("1 task with 2 seeds") == 0);
  CHECK(study::mean_over_tasks(Values{{1, 2, 3}}, rng).value == 2);
  CHECK(study::mean_over_tasks(Values{{1}, {3}}, rng).value == 2);
  CHECK(test::refusal([&] { return study::mean_over_tasks(Values{{1, 2}, {}}, rng); }).find("task 1 has 0 seeds") == 0);
}

TEST_CASE("values, shapes and options that make no interval are named") {
  const Rng rng(17);
  const Values values{{1, 2, 3}, {4, 5, 6}};
  const double infinite = std::numeric_limits<double>::infinity();
  CHECK(test::refusal([&] {
          return study::mean_over_tasks(Values{{1, 2}, {3, infinite}}, rng);
        }).find("task 1, seed 1") != std::string::npos);
  CHECK(test::refusal([&] {
          return study::geometric_mean_over_tasks(Values{{1, 0}, {3, 4}}, rng);
        }).find("task 0, seed 1") != std::string::npos);
  CHECK_THROWS_AS(static_cast<void>(study::geometric_mean_over_tasks(Values{{1, -2}, {3, 4}}, rng)),
                  std::invalid_argument);
  CHECK(test::refusal([&] { return study::paired_difference(values, Values{{1, 2, 3}}, rng); }).find("2 and 1 tasks") !=
        std::string::npos);
  CHECK(test::refusal([&] {
          return study::paired_difference(values, Values{{1, 2, 3}, {4, 5}}, rng);
        }).find("task 1 has 3 and 2 seeds") == 0);
  CHECK(test::refusal([&] { return study::mean_over_tasks(values, rng, {.confidence = 1}); }).find("confidence 1.0") ==
        0);
  // By hand: 0.025 (38 + 1) = 0.975 is no rank, 0.025 (39 + 1) is.
  CHECK(test::refusal([&] { return study::mean_over_tasks(values, rng, {.resamples = 38}); }).find("38 resamples") ==
        0);
  CHECK(test::refusal([&] { return study::mean_over_tasks(values, rng, {.resamples = 38}); }).find("at least 39") !=
        std::string::npos);
  CHECK(study::mean_over_tasks(values, rng, {.resamples = 39}).value == 3.5);
  // 0.05 (19 + 1) is rank 1, although (1 - 0.9) / 2 is a bit less than 0.05 in floating point.
  CHECK(study::mean_over_tasks(values, rng, {.resamples = 19, .confidence = 0.9}).value == 3.5);
  const std::vector<std::size_t> seeds{3, 3};
  CHECK(test::refusal([&] {
          return study::bootstrap(seeds, [](std::span<const study::DrawnTask>) { return std::nan(""); }, rng);
        }).find("is NaN") != std::string::npos);
}

TEST_CASE("a training that judges all tasks is drawn once for all of them") {
  // One training ranks all tasks with 0, one with 0 and one with 3: as if there were one task, see above. Drawn anew for
  // each of the four tasks, means of 0 and of 3 would be too rare for the ends.
  const Trainings alike(4, study::OfTrainings{{7, 0}, {8, 0}, {9, 3}});
  CHECK(study::mean_over_tasks_and_trainings(alike, Rng(3)) == study::Interval{1, 0, 3});
  CHECK(study::mean_over_tasks_and_trainings(alike, Rng(3), {.confidence = 0.9}) == study::Interval{1, 0, 2});
  CHECK(study::mean_over_tasks(as_searches(alike), Rng(3)).high < 2.5);
  CHECK(study::mean_over_tasks_and_trainings(Trainings(1, alike[0]), Rng(3)) == study::Interval{1, 0, 3});
}

TEST_CASE("intervals over trainings cover the true mean, where those of searches do not contain the luck of training") {
  constexpr std::size_t studies = 400;
  std::size_t of_trainings = 0, of_searches = 0;
  for (std::size_t study = 0; study < studies; ++study) {
    const Rng rng = Rng(18).split(study);
    const Trainings values = judgements(20, 10, rng);
    const study::Resampling how{.resamples = 300};
    if (!study::mean_over_tasks_and_trainings(values, rng.split(1), how).excludes(0)) ++of_trainings;
    if (!study::mean_over_tasks(as_searches(values), rng.split(1), how).excludes(0)) ++of_searches;
  }
  CHECK(of_trainings > 0.86 * studies);
  CHECK(of_trainings < 0.99 * studies);
  CHECK(of_searches < 0.82 * studies);
}

TEST_CASE("with two trainings only tasks are drawn") {
  // Two tasks without spread but for the luck of training, which is averaged: their means are 1 and 3.
  const Trainings two{{{0, 0}, {1, 2}}, {{0, 2}, {1, 4}}};
  CHECK(study::mean_over_tasks_and_trainings(two, Rng(19)) == study::Interval{2, 1, 3});
  const Trainings one{{{0, 1}}, {{0, 3}}};
  CHECK(study::mean_over_tasks_and_trainings(one, Rng(19)) == study::Interval{2, 1, 3});
}

TEST_CASE("tasks that some trainings have not judged are drawn with those that have") {
  // Each training judges a task of its own, with 1, 2 or 6: the mean of what is drawn is never below 1 nor above 6, and
  // with a probability of 1 in 9 all three draws are the same training.
  const Trainings own{{{0, 1}}, {{1, 2}}, {{2, 6}}};
  CHECK(study::mean_over_tasks_and_trainings(own, Rng(20)) == study::Interval{3, 1, 6});
  // By hand: (1 + (2 + 4) / 2 + 5) / 3.
  const Trainings some{{{0, 1}}, {{1, 2}, {2, 4}}, {{2, 5}}};
  CHECK(study::mean_over_tasks_and_trainings(some, Rng(20)).value == 3);
}

TEST_CASE("trainings and values that make no interval are named") {
  const Rng rng(21);
  const auto refused = [&](const Trainings& values, study::Resampling how = {}) {
    return test::refusal([&] { return study::mean_over_tasks_and_trainings(values, rng, how); });
  };
  CHECK(refused({}).find("0 tasks") != std::string::npos);
  CHECK(refused({{{0, 1}}, {}}).find("task 1 was judged by 0 trainings") == 0);
  CHECK(refused({{{0, 1}, {1, 2}}}).find("1 task with 2 trainings leaves nothing to draw from; run at least 3 seeds") ==
        0);
  CHECK(refused({{{0, 1}}, {{5, std::numeric_limits<double>::infinity()}}}).find("task 1, seed 5 is inf") !=
        std::string::npos);
  CHECK(refused({{{0, 1}}, {{0, 2}}}, {.resamples = 38}).find("38 resamples") == 0);
  const auto count = [](std::span<const study::DrawnTask> drawn) { return static_cast<double>(drawn.size()); };
  const std::vector<std::vector<std::uint64_t>> twice{{4, 5, 6}, {4, 5, 4}};
  CHECK(test::refusal([&] {
          return study::bootstrap_of_trainings(twice, count, rng);
        }).find("task 1 has seed 4 twice") == 0);
  const std::vector<std::vector<std::uint64_t>> once{{4, 5, 6}, {4}};
  CHECK(study::bootstrap_of_trainings(once, count, rng) == study::Interval{2, 2, 2});
  CHECK(test::refusal([&] {
          return study::bootstrap_of_trainings(
              once, [](std::span<const study::DrawnTask>) { return std::nan(""); }, rng);
        }).find("is NaN") != std::string::npos);
}

TEST_CASE("seeds that are drawn for all tasks are the same for all of them") {
  // Tasks list their seeds in orders of their own; the statistic sees positions in them.
  const std::vector<std::vector<std::uint64_t>> seeds{{4, 5, 6}, {6, 4, 5}};
  const auto drawn_alike = [&](std::span<const study::DrawnTask> drawn) {
    std::vector<std::vector<std::uint64_t>> found;
    for (const study::DrawnTask& one : drawn) {
      auto& of_task = found.emplace_back();
      for (const std::size_t at : one.seeds) of_task.push_back(seeds[one.task][at]);
      std::sort(of_task.begin(), of_task.end());
    }
    return found[0] == found[1] && found[0].size() == 3 ? 1.0 : 0.0;
  };
  CHECK(study::bootstrap_of_trainings(seeds, drawn_alike, Rng(22)) == study::Interval{1, 1, 1});
}
