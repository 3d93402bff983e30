// SPDX-License-Identifier: Apache-2.0
#include "tunewright/study/trial_costs.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "support/refusal.hpp"
#include "support/square_latencies.hpp"

using namespace tunewright;
using study::TrialCosts;

namespace {
constexpr double failed = std::numeric_limits<double>::infinity();
}

TEST_CASE("what random search pays for a trial, by hand") {
  // Valid ones cost (1 + 3 + 2) / 3 = 2, the one of four that failed 8, so 2 + 8 / 4; the middle of 1 2 3 8 is 2.5.
  const TrialCosts costs(std::vector<double>{1, failed, 2, 4}, std::vector<double>{1, 8, 3, 2});
  CHECK(costs.mean_s() == 4);
  CHECK(costs.median_s() == 2.5);
  CHECK(costs.trials_in(0) == 1);
  CHECK(costs.trials_in(4) == 1);
  CHECK(costs.trials_in(10) == 2);  // 2.5, halves to the even number
  CHECK(costs.trials_in(14) == 4);
  const study::SecondsRange seconds = costs.range({2, 8}, 4);
  CHECK(seconds.first_s == 5);
  CHECK(seconds.at(1) == 10);
  CHECK(seconds.at(3) == 20);
}

TEST_CASE("random search over seconds goes through what it has after whole trials") {
  // 60 configurations cost 1 s and 40 cost 3 s, 1.8 s on average: 2, 4, 6 and 8 s are 1, 2, 3 and 4 trials.
  const study::RandomSearch space = test::squares();
  std::vector<double> costs_s(60, 1.0);
  costs_s.resize(100, 3.0);
  const TrialCosts costs(space.ascending(), costs_s);
  CHECK(costs.mean_s() == doctest::Approx(1.8));
  const std::vector<double> best = study::best_over(space, costs, {2, 8, 4});
  REQUIRE(best.size() == 4);
  for (std::size_t trials = 1; trials <= 4; ++trials)
    CHECK(best[trials - 1] == doctest::Approx(space.best_after(trials)).epsilon(1e-12));
  // Between them it falls without steps.
  const std::vector<double> fine = study::best_over(space, costs, {2, 8, 301});
  for (std::size_t at = 1; at < fine.size(); ++at) CHECK(fine[at] < fine[at - 1]);
  // Before the second trial there is but one value.
  CHECK(study::best_over(space, costs, {0, 1, 3}) == std::vector<double>(3, space.best_after(1)));
}

TEST_CASE("costs that are none are refused") {
  const auto refusal = [](std::vector<double> latencies_s, std::vector<double> costs_s) {
    return test::refusal([&] { return TrialCosts(latencies_s, costs_s).mean_s(); });
  };
  CHECK(refusal({1, 2}, {1}).find("1 costs for 2 latencies") != std::string::npos);
  CHECK(refusal({1, 2}, {1, -1}).find("configuration 1 costs -1") != std::string::npos);
  CHECK(refusal({1, 2}, {failed, 1}).find("configuration 0 costs inf") != std::string::npos);
  CHECK(refusal({failed}, {1}).find("none of the 1 configurations") != std::string::npos);
  CHECK(refusal({1, 2}, {0, 0}).find("leave them out") != std::string::npos);
}

TEST_CASE("ranges of seconds that are none are refused") {
  const study::RandomSearch space = test::squares();
  const TrialCosts costs(space.ascending(), std::vector<double>(100, 1.0));
  const auto refusal = [&](study::SecondsRange seconds) {
    return test::refusal([&] { return study::best_over(space, costs, seconds); });
  };
  CHECK(refusal({0, failed, 3}).find("to inf s in 3 points; give two finite times") != std::string::npos);
  CHECK(refusal({std::nan(""), 1, 3}).find("from nan s") != std::string::npos);
  CHECK(refusal({0, 1, 0}).find("at least 2 points") != std::string::npos);
  CHECK(test::refusal([&] { return costs.trials_in(std::nan("")); }).find("give a finite time") != std::string::npos);
  CHECK(costs.trials_in(1e300) == 1'000'000'000'000'000);
}
