// SPDX-License-Identifier: Apache-2.0
#include "tunewright/study/search.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/refusal.hpp"
#include "support/temporary_folder.hpp"
#include "support/toy_recipes.hpp"
#include "support/toy_space.hpp"
#include "tunewright/study/finished_search.hpp"

namespace {

using namespace tunewright;

std::vector<WeightedTask> network() { return {{toy::task("a", 1), 2}, {toy::task("b", 2), 1}}; }

/// A trial of a task; 0 seconds are a failure.
Record trial(const WeightedTask& of, const std::string& config, double latency_s) {
  Record record;
  record.task = stable_hash(of.task);
  record.key = config.size();
  record.config = config;
  record.outcome.result = Failure{Fault::RunError, "fails"};
  if (latency_s > 0) record.outcome.result = Timing{.repeats = {Seconds(latency_s)}, .median = Seconds(latency_s)};
  return record;
}

TEST_CASE("the course of a network is the sum of weight times best, from when all tasks have a valid program") {
  const std::vector<WeightedTask> tasks = network();
  study::CourseKeeper keeper(tasks);
  RunStatus status;
  const auto after = [&](double seconds, const Record& record) {
    status.elapsed = Seconds(seconds);
    keeper.on_record(record, status);
  };
  after(1, trial(tasks[0], "a1", 5));
  CHECK(keeper.searched().best_config.empty());
  after(2, trial(tasks[1], "b1", 3));
  after(3, trial(tasks[0], "a2", 0));
  after(4, trial(tasks[0], "a3", 4));
  after(5, trial(tasks[1], "b2", 9));
  const study::Searched searched = keeper.searched();
  CHECK(searched.course.improvements == std::vector<study::Improvement>{{2, 2, 13}, {4, 4, 11}});
  CHECK(searched.course.trials == 5);
  CHECK(searched.course.failed == 1);
  CHECK(searched.course.elapsed_s == 5);
  CHECK(searched.best_config == "a3\nb1");

  const WeightedTask stranger{toy::task("c", 3), 1};
  CHECK_THROWS_AS(keeper.on_record(trial(stranger, "c1", 1), status), std::logic_error);
}

TEST_CASE("latencies that stayed imprecise are counted apart from failures") {
  const std::vector<WeightedTask> tasks = network();
  study::CourseKeeper keeper(tasks);
  Record imprecise = trial(tasks[0], "a1", 5);
  imprecise.outcome.result =
      Timing{.repeats = {Seconds(5), Seconds(6)}, .median = Seconds(5), .stopped = StopReason::Budget};
  for (const Record& record : {imprecise, trial(tasks[0], "a2", 0), trial(tasks[1], "b1", 3)})
    keeper.on_record(record, RunStatus{});
  const study::Course course = keeper.searched().course;
  CHECK(course.trials == 3);
  CHECK(course.failed == 1);
  CHECK(course.imprecise == 1);
}

TEST_CASE("a course is recalled in the order of its measurements, without those that a search would refuse") {
  const support::TemporaryFolder folder;
  const std::vector<WeightedTask> tasks = network();
  study::Searched before;
  {
    study::CourseKeeper keeper(tasks, folder.file("journal.jsonl"));
    RunStatus status;
    double now_s = 0;
    for (const Record& record : {trial(tasks[1], "b", 3), trial(tasks[0], "a_", 5), trial(tasks[1], "b__", 2)}) {
      status.elapsed = Seconds(++now_s);
      keeper.on_record(record, status);
    }
    before = keeper.searched();
    Record foreign = trial(tasks[0], "a____", 1);
    foreign.compiler = "another";
    keeper.on_record(foreign, status);
    keeper.on_record(trial(tasks[1], "of a former space", 1), status);
  }
  const auto refusals = [&](const Task& task, std::span<const Record> records) {
    std::vector<std::size_t> refused;
    for (std::size_t i = 0; i < records.size(); ++i) {
      const Record& record = records[i];
      if (record.task != stable_hash(task) || !record.compiler.empty() || record.config == "of a former space")
        refused.push_back(i);
    }
    return refused;
  };
  study::CourseKeeper keeper(tasks, folder.file("journal.jsonl"), refusals);
  CHECK(keeper.spent_before() == Seconds(3));
  CHECK(keeper.recall(tasks).size() == 3);
  CHECK(keeper.searched().course == before.course);
  CHECK(keeper.searched().best_config == "a_\nb__");

  RunStatus status;
  status.elapsed = Seconds(1);  // of the new run, which goes on after 3 seconds
  keeper.on_record(trial(tasks[0], "a_____", 4), status);
  CHECK(keeper.searched().course.improvements.back() == study::Improvement{4, 4, 10});
}

/// Adds to the journal of a search what it measured after `now_s`.
void add(const std::string& journal, const Task& task, double now_s, const std::string& config, double latency_s) {
  const std::vector<WeightedTask> tasks{{task, 1}};
  study::CourseKeeper keeper(tasks, journal);
  Record record = trial(tasks[0], config, latency_s);
  record.key = StableHash().add(config).value();
  RunStatus status;
  status.task = task;
  status.elapsed = Seconds(now_s) - keeper.spent_before();
  keeper.on_record(record, status);
}

std::optional<study::Searched> search(const std::string& journal, const Task& task, const Budget& budget) {
  const study::Problem<toy::Space, toy::Measurer> problem{.name = "a", .task = task};
  Interrupt interrupt;
  return study::search<toy::RandomSearch>(problem, 1, budget, 1, journal, interrupt, study::AsTheyAre{});
}

TEST_CASE("a stopped search goes on with what is left of its time") {
  const support::TemporaryFolder folder;
  const std::string journal = folder.file("journal.jsonl");
  const Task task = toy::task("a", 1);
  add(journal, task, 2, "0123", 0.5);
  add(journal, task, 3600, "1234", 0.25);
  const auto ended = search(journal, task, {.trials = 20, .batch = 10, .time = Seconds(3600)});
  REQUIRE(ended);
  CHECK(ended->course.improvements == std::vector<study::Improvement>{{1, 2, 0.5}, {2, 3600, 0.25}});
  CHECK(ended->course.trials == 2);
  CHECK(ended->best_config == "1234");
  const auto longer = search(journal, task, {.trials = 20, .batch = 10, .time = Seconds(7200)});
  REQUIRE(longer);
  CHECK(longer->course.trials == 20);
  CHECK(longer->course.elapsed_s >= 3600);
}

TEST_CASE(
    "where two programs made one search at a time, what both measured counts once, in a course that is possible") {
  const support::TemporaryFolder folder;
  const Task task = toy::task("a", 1);
  std::ofstream both(folder.file("journal.jsonl"));
  int part = 0;
  for (const auto& [now_s, config] :
       {std::pair(5, "0123"), std::pair(1, "0123"), std::pair(6, "1234"), std::pair(2, "1234"), std::pair(3, "2345")}) {
    const std::string journal = folder.file(std::to_string(++part));
    add(journal, task, now_s, config, 1.0 / part);
    both << std::ifstream(journal).rdbuf();
  }
  both.close();
  const auto ended = search(folder.file("journal.jsonl"), task, {.trials = 5, .batch = 5});
  REQUIRE(ended);
  CHECK(ended->course.trials == 5);
  CHECK(study::is_possible(ended->course));
}

TEST_CASE("a folder for the journal that cannot be made is named, and the option that names another") {
  const support::TemporaryFolder folder;
  std::ofstream(folder.file("file")) << "text";
  const std::string refused = test::refusal<std::runtime_error>(
      [&] { study::CourseKeeper(network(), folder.file("file/journals/journal.jsonl")); });
  CHECK(refused.find("the folder '" + folder.file("file/journals") + "' cannot be made") != std::string::npos);
  CHECK(refused.find("--out=DIR") != std::string::npos);
}

TEST_CASE("searches are comparable if they share tasks, occurrences, budget and options") {
  const std::vector<WeightedTask> tasks = network();
  const Budget budget{.trials = 20, .batch = 10};
  const std::uint64_t conditions = study::conditions_of(tasks, budget);
  CHECK(study::conditions_of(tasks, budget) == conditions);
  CHECK(study::conditions_of(tasks, {.trials = 20, .batch = 5}) != conditions);
  CHECK(study::conditions_of(tasks, {.trials = 21, .batch = 10}) != conditions);
  CHECK(study::conditions_of(tasks, {.trials = 20, .batch = 10, .patience_trials = 5}) != conditions);
  CHECK(study::conditions_of(tasks, {.trials = 20, .batch = 10, .time = Seconds(60)}) != conditions);
  CHECK(study::conditions_of(tasks, budget, " pool=9") != conditions);
  std::vector<WeightedTask> others = tasks;
  others[0].weight = 3;
  CHECK(study::conditions_of(others, budget) != conditions);
  others = {tasks[0]};
  CHECK(study::conditions_of(others, budget) != conditions);
}

}  // namespace
