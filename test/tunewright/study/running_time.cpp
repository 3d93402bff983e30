// SPDX-License-Identifier: Apache-2.0
#include "tunewright/study/running_time.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/refusal.hpp"
#include "tunewright/core/rng.hpp"

using namespace tunewright;
using study::Effort;

namespace {

study::Course search(std::vector<study::Improvement> improvements, std::size_t trials, double elapsed_s) {
  return {.improvements = std::move(improvements), .trials = trials, .elapsed_s = elapsed_s};
}

/// Latency 1 after 10 trials and 2.5 s; after 4 and 0.5 s; never.
const std::vector<study::Course> runs{search({{2, 0.5, 3}, {10, 2.5, 1}}, 20, 5), search({{4, 0.5, 0.5}}, 20, 4),
                                      search({{1, 0.25, 2}}, 16, 3)};

std::vector<std::pair<double, double>> points(const study::RunningTimeDistribution& of) {
  std::vector<std::pair<double, double>> result;
  for (const auto& step : of.steps()) result.emplace_back(step.effort, step.share);
  return result;
}

}  // namespace

TEST_CASE("expected running time charges successes with unfinished searches") {
  // By hand: (10 + 4 + 16) / 2 trials and (2.5 + 0.5 + 3) / 2 seconds.
  const study::RunningTime in_trials = study::running_time(runs, 1, Effort::Trials);
  CHECK(in_trials.expected == 15);
  CHECK(in_trials.reached == 2);
  CHECK(in_trials.runs == 3);
  CHECK(in_trials.success_rate() == doctest::Approx(2.0 / 3));
  CHECK(study::running_time(runs, 1, Effort::Seconds).expected == 3);
  // All reach 3: (2 + 4 + 1) / 3.
  CHECK(study::running_time(runs, 3, Effort::Trials).expected == doctest::Approx(7.0 / 3));
  CHECK(study::success_rate(runs, 3) == 1);
  CHECK(study::success_rate(runs, 2) == 1);
  CHECK(study::success_rate(runs, 0.75) == doctest::Approx(1.0 / 3));
}

TEST_CASE("without a success the running time is infinite") {
  const study::RunningTime none = study::running_time(runs, 0.1, Effort::Seconds);
  CHECK(std::isinf(none.expected));
  CHECK(none.reached == 0);
  CHECK(study::success_rate(runs, 0.1) == 0);
  CHECK(test::refusal([] { return study::running_time({}, 1, Effort::Trials); }).find("0 searches") !=
        std::string::npos);
}

TEST_CASE("effort is trials or seconds") {
  CHECK(study::effort_to(runs[0], 1, Effort::Trials) == 10);
  CHECK(study::effort_to(runs[0], 1, Effort::Seconds) == 2.5);
  CHECK(study::effort_to(runs[2], 1, Effort::Seconds) == std::nullopt);
  CHECK(study::effort_of(runs[2], Effort::Trials) == 16);
  CHECK(study::effort_of(runs[2], Effort::Seconds) == 3);
}

TEST_CASE("expected running time is the mean of a recipe that starts again until it succeeds") {
  // A trial succeeds with probability 0.05, so searches of any length need 20 trials to a success, however many fail.
  std::vector<study::Course> many(20000);
  Rng rng(17);
  for (study::Course& run : many) {
    const auto trials = 1 + rng.below(30);
    while (run.trials < trials && run.improvements.empty())
      run.add(rng.uniform() < 0.05 ? 1.0 : study::Course::infinity, 0);
  }
  CHECK(study::running_time(many, 1, Effort::Trials).expected == doctest::Approx(20).epsilon(0.03));
  CHECK(study::success_rate(many, 1) < 0.7);
}

TEST_CASE("the distribution has a step for every effort at which a pair is reached") {
  // By hand: target 3 is reached after 2, 4 and 1 trials, target 1 after 10 and 4, of 6 pairs.
  const std::vector<double> targets{3, 1};
  const study::RunningTimeDistribution of({runs, targets}, Effort::Trials);
  CHECK(of.pairs() == 6);
  CHECK(points(of) == std::vector<std::pair<double, double>>{{1, 1.0 / 6}, {2, 2.0 / 6}, {4, 4.0 / 6}, {10, 5.0 / 6}});
  CHECK(of.within(0) == 0);
  CHECK(of.within(1) == doctest::Approx(1.0 / 6));
  CHECK(of.within(3.9) == doctest::Approx(2.0 / 6));
  CHECK(of.within(4) == doctest::Approx(4.0 / 6));
  CHECK(of.within(1e9) == doctest::Approx(5.0 / 6));
  const study::RunningTimeDistribution in_seconds({runs, targets}, Effort::Seconds);
  CHECK(points(in_seconds) == std::vector<std::pair<double, double>>{{0.25, 1.0 / 6}, {0.5, 4.0 / 6}, {2.5, 5.0 / 6}});
}

TEST_CASE("pairs of several problems are pooled") {
  const std::vector<double> hard{0.5}, easy{3};
  const std::vector<study::TargetedRuns> problems{{runs, hard}, {std::span(runs).first(1), easy}};
  const study::RunningTimeDistribution of(problems, Effort::Trials);
  CHECK(points(of) == std::vector<std::pair<double, double>>{{2, 0.25}, {4, 0.5}});
  const std::vector<double> out_of_reach{0.01};
  const study::RunningTimeDistribution unreached({runs, out_of_reach}, Effort::Trials);
  CHECK(unreached.steps().empty());
  CHECK(study::RunningTimeDistribution({runs, out_of_reach}, Effort::Trials).within(1e9) == 0);
  CHECK(test::refusal([] { return study::RunningTimeDistribution({runs, {}}, Effort::Trials); }).find("0 pairs") !=
        std::string::npos);
}
