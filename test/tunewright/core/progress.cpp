// SPDX-License-Identifier: Apache-2.0
#include "tunewright/core/progress.hpp"

#include <doctest/doctest.h>

#include <sstream>

using namespace tunewright;

namespace {

RunStatus half_way() {
  RunStatus status;
  status.task.name = "matmul";
  status.task.flops = 2e9;
  status.budget.trials = 100;
  status.trials = 60;
  status.recalled = 10;
  status.best = Seconds(0.01);
  status.elapsed = Seconds(50);
  status.faults[static_cast<std::size_t>(Fault::RunTimeout)] = 2;
  status.faults[static_cast<std::size_t>(Fault::WrongResult)] = 1;
  return status;
}

}  // namespace

TEST_CASE("the line says task, trials, best, rate, faults by class, time and time left") {
  // 2e9 flops in 10 ms are 200 GFLOP/s; 50 trials took 50 s, so 40 more take 40 s.
  CHECK(Progress::line(half_way()) ==
        "matmul | 60/100 trials | best 10 ms, 200.0 GFLOP/s | 3 failed: 1 wrong_result, 2 run_timeout | 50 "
        "s, 40 s left");
}

TEST_CASE("how precise measurements were is told, and what to do where finalists cannot be told apart") {
  RunStatus status = half_way();
  status.imprecise = 7;
  CHECK(Progress::line(status).find(" | 7 imprecise | 50 s") != std::string::npos);
  std::ostringstream out;
  Progress progress{.out = &out, .in_place = false};
  progress.on_stop(status, Stop::Trials);
  CHECK(out.str().find("Tuner::confirm") == std::string::npos);
  status.as_fast = 3;
  progress.on_stop(status, Stop::Trials);
  CHECK(out.str().ends_with("matmul | 3 other trials are as fast as the best, as far as measuring can tell\n"));
  status.can_confirm = true;
  progress.on_stop(status, Stop::Trials);
  CHECK(out.str().find("Tuner::confirm") != std::string::npos);
}

TEST_CASE("candidates that no score told apart are counted, and what to look for is told at the end") {
  RunStatus status = half_way();
  std::ostringstream out;
  Progress progress{.out = &out, .in_place = false};
  progress.on_stop(status, Stop::Trials);
  CHECK(out.str().find("NaN") == std::string::npos);
  status.unscored = 512;
  CHECK(Progress::line(status).find(" | 512 unscored | 50 s") != std::string::npos);
  progress.on_stop(status, Stop::Trials);
  CHECK(out.str().find("matmul | 512 candidates had scores that are no numbers (NaN)") != std::string::npos);
}

TEST_CASE("before the first valid trial there is no best and no estimate") {
  RunStatus status;
  status.task.name = "conv";
  status.budget.trials = 8;
  CHECK(Progress::line(status) == "conv | 0/8 trials | nothing valid yet | 0 s");
}

TEST_CASE("the time left is what runs out first") {
  RunStatus status = half_way();
  status.budget.time = Seconds(65);
  CHECK(Progress::time_left(status) == Seconds(15));
  status.elapsed = Seconds(70);
  CHECK(Progress::time_left(status) == Seconds(0));
  status.trials = status.recalled;
  CHECK(Progress::time_left(status) == std::nullopt);
}

TEST_CASE("of unlimited trials the line has no number") {
  RunStatus status;
  status.task.name = "task";
  status.budget = {.trials = Budget::unlimited, .batch = 8, .time = Seconds(60)};
  status.trials = 12;
  status.elapsed = Seconds(20);
  const std::string line = Progress::line(status);
  CHECK(line.find("task | 12 trials | nothing valid yet") == 0);
  CHECK(line.find("40 s left") != std::string::npos);
  status.budget.time = Budget{}.time;
  CHECK_FALSE(Progress::time_left(status));
}

TEST_CASE("a log file gets whole lines, now and then") {
  std::ostringstream out;
  Progress progress{.out = &out, .in_place = false, .log_every = Seconds(10)};
  RunStatus status = half_way();
  progress.on_start(status);
  for (int second = 50; second < 75; ++second) {
    status.elapsed = Seconds(second);
    progress.on_record({}, status);
  }
  progress.on_stop(status, Stop::Trials);
  std::vector<std::string> lines;
  std::istringstream in(out.str());
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  REQUIRE(lines.size() == 5);  // taken over; at 50, 60 and 70 s; the end
  CHECK(lines[0] == "matmul | 10 trials taken over from a journal");
  CHECK(lines[2].find("| 60 s, ") != std::string::npos);
  CHECK(lines[4].find("| all trials used") != std::string::npos);
  CHECK(out.str().find('\r') == std::string::npos);
}

TEST_CASE("a terminal gets one line that renews itself and is never longer than asked") {
  std::ostringstream out;
  Progress progress{.out = &out, .in_place = true, .columns = 40};
  RunStatus status = half_way();
  status.recalled = 0;
  progress.on_start(status);
  progress.on_record({}, status);
  status.elapsed += Seconds(0.06);  // too soon
  progress.on_record({}, status);
  status.elapsed += Seconds(0.06);
  progress.on_record({}, status);
  const std::string shown = out.str();
  CHECK(shown.find('\n') == std::string::npos);
  CHECK(shown.size() == 2 * 41);  // twice a carriage return and 40 columns
  progress.on_stop(status, Stop::Requested);
  CHECK(out.str().substr(shown.size(), 42) == "\r" + std::string(40, ' ') + "\r");
  CHECK(out.str().ends_with("stopped on request\n"));
}

TEST_CASE("a budget of fewer trials than two batches is warned of, with a better batch") {
  std::ostringstream out;
  Progress progress{.out = &out, .in_place = false};
  RunStatus status;
  status.task.name = "matmul";
  status.learns = true;
  status.budget = {.trials = 64};
  progress.on_start(status);
  CHECK(out.str() ==
        "matmul | 64 trials in batches of 64 are one round, so no trial is chosen by what others taught the model; "
        "give a batch of 16 or less\n");
  status.budget.trials = 100;
  CHECK(Progress::too_few_rounds(status) ==
        "100 trials in batches of 64 are two rounds, so only the last 36 trials are chosen by what the others taught "
        "the model; give a batch of 25 or less");
  status.budget.trials = 128;
  CHECK(Progress::too_few_rounds(status).empty());
  status.budget = {.trials = 3, .batch = 3};
  CHECK(Progress::too_few_rounds(status).ends_with("give a batch of 1"));
  status.budget.trials = 1;  // nothing to choose
  CHECK(Progress::too_few_rounds(status).empty());
  status.budget = {.trials = 100, .batch = 10};
  CHECK(Progress::too_few_rounds(status).empty());
  status.warmup = 101;
  CHECK(Progress::too_few_rounds(status) ==
        "the model learns from 101 measurements on, so it chooses none of 100 trials in batches of 10; give more "
        "trials, or the adaptation fewer warmup_candidates");
  status.budget.trials = 110;  // learned from after eleven batches
  CHECK_FALSE(Progress::too_few_rounds(status).empty());
  status.budget.trials = 111;
  CHECK(Progress::too_few_rounds(status).empty());
  status.warmup = 0;
  status.budget = {.trials = 64};
  status.recalled = 10;  // the model learns from the journal
  CHECK(Progress::too_few_rounds(status).empty());
  status.recalled = 0;
  status.learns = false;
  CHECK(Progress::too_few_rounds(status).empty());
}

TEST_CASE("of a network the line says how many tasks there are, its latency and the task of the round") {
  RunStatus status = half_way();
  status.network =
      NetworkStatus{.tasks = 18, .finished = 2, .without_valid = 1, .flops = 3e9, .latency = Seconds(0.015)};
  CHECK(Progress::line(status) ==
        "18 tasks, 2 finished | 60/100 trials | 1 without a valid program | matmul: best 10 ms, 200.0 GFLOP/s | 3 "
        "failed: "
        "1 wrong_result, 2 run_timeout | 50 s, 40 s left");
  status.network->without_valid = status.network->finished = 0;  // 3e9 operations in 15 ms
  CHECK(Progress::line(status).starts_with(
      "18 tasks | 60/100 trials | end to end 15 ms, 200.0 GFLOP/s | matmul: best 10 ms, 200.0 GFLOP/s | 3 failed"));
  status.best.reset();
  CHECK(Progress::line(status).find(" | matmul: nothing valid yet | ") != std::string::npos);
}

TEST_CASE("at the end of a run of a network, tasks without a valid program are named") {
  RunStatus status = half_way();
  status.network = NetworkStatus{.tasks = 18};
  std::ostringstream out;
  Progress progress{.out = &out, .in_place = false};
  progress.on_stop(status, Stop::Trials);
  CHECK(out.str().find("without a valid program") == std::string::npos);
  status.network->without_valid = 2;
  status.network->names_without_valid = {"conv", "dense"};
  progress.on_stop(status, Stop::Trials);
  CHECK(out.str().ends_with("18 tasks | without a valid program: conv, dense\n"));
}

TEST_CASE("before a run of a network it is told when the scheduler will hardly choose") {
  RunStatus status;
  status.network = NetworkStatus{.tasks = 18};
  status.budget = {.trials = 1152, .batch = 64};
  CHECK(Progress::too_few_rounds(status) ==
        "1152 trials for 18 tasks in batches of 64 are less than two rounds a task, so the scheduler hardly chooses; "
        "give "
        "a batch of 16 or less");
  status.recalled = 1;
  CHECK(Progress::too_few_rounds(status).empty());
  status.recalled = 0;
  status.budget.batch = 32;
  CHECK(Progress::too_few_rounds(status).empty());
}
