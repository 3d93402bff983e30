// SPDX-License-Identifier: Apache-2.0
#include "tunewright/study/random_search.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/refusal.hpp"
#include "support/square_latencies.hpp"
#include "tunewright/core/rng.hpp"

using namespace tunewright;
using test::squares;

TEST_CASE("the curve of random search has the reference program's values") {
  // by autotuning_methodology 1.1.0: RandomSearchCalculatedBaseline
  const study::RandomSearch of_squares = squares();
  const std::vector<double> expected{100, 25, 10.89, 5.76, 3.61, 2.56, 1.69, 1.44, 1, 0.81, 0.64, 0.49};
  for (std::size_t m = 0; m < expected.size(); ++m) CHECK(of_squares.best_after(m) == expected[m]);

  std::vector<double> numbers(40);
  std::iota(numbers.begin(), numbers.end(), 1.0);
  const study::RandomSearch of_numbers(numbers);
  const std::vector<double> lower{40, 20, 13, 9, 7, 6, 5, 4, 4, 3, 3, 2};
  for (std::size_t m = 0; m < lower.size(); ++m) CHECK(of_numbers.best_after(m) == lower[m]);
  CHECK(of_numbers.best_after(100000) == 1);
}

TEST_CASE("halves round to the even place") {
  // By hand, N = 4: M = 1 gives 5/2, between places 2 and 3 from the worst; N = 6 gives 7/2, between 3 and 4.
  CHECK(study::RandomSearch({4, 3, 2, 1}).best_after(1) == 2);
  CHECK(study::RandomSearch({6, 5, 4, 3, 2, 1}).best_after(1) == 2);
}

TEST_CASE("failed configurations are left out") {
  const double infinite = std::numeric_limits<double>::infinity();
  const study::RandomSearch space({4, infinite, 1, std::nan(""), 3, 2});
  CHECK(std::vector(space.ascending().begin(), space.ascending().end()) == std::vector<double>{1, 2, 3, 4});
  CHECK(space.optimum_s() == 1);
  CHECK(space.worst_s() == 4);
  CHECK(space.median_s() == 2.5);
  CHECK(study::RandomSearch({4, 1, 9}).median_s() == 4);
  CHECK(test::refusal([&] { return study::RandomSearch({infinite, std::nan("")}); }).find("none of the 2 latencies") ==
        0);
  CHECK_THROWS_AS(study::RandomSearch({}), std::invalid_argument);
  CHECK(test::refusal([] { return study::RandomSearch({1, 0}); }).find("configuration 1 of the space takes 0 s") == 0);
  CHECK(test::refusal([&] { return study::RandomSearch({-infinite, 1}); }).find("configuration 0") == 0);
}

TEST_CASE("trials to a share of the way have the reference program's values") {
  // by autotuning_methodology 1.1.0: SearchspaceStatistics.cutoff_point
  const study::RandomSearch space = squares();
  CHECK(space.median_s() == doctest::Approx(25.505));
  CHECK(space.latency_at(0.5) == doctest::Approx(12.7575));
  CHECK(space.latency_at(1) == 0.01);
  CHECK(space.trials_to(0) == 1);
  CHECK(space.trials_to(0.5) == 2);
  CHECK(space.trials_to(0.75) == 3);
  CHECK(space.trials_to(0.9) == 6);
  CHECK(space.trials_to(0.95) == 8);
  CHECK(space.trials_to(0.99) == 16);
  CHECK(space.trials_to(1) == 50);
  CHECK(space.range() == study::TrialRange{2, 8});
  CHECK(space.range().size() == 7);

  // The optimum twice and a failure: only the optimum is within 95 %, so the place before it counts.
  const study::RandomSearch twice({10, 8, 7, 4, 3, 2, 1, 1, std::nan("")});
  CHECK(twice.trials_to(0) == 1);
  CHECK(twice.trials_to(0.25) == 2);
  CHECK(twice.trials_to(0.95) == 2);
  CHECK(twice.trials_to(1) == 2);
  // By hand: 95 % of the way is 1.075, which only place 3, the optimum, reaches. Place 2 takes ceil(2 / (5 - 2)) trials,
  // place 3 ceil(3 / (5 - 3)).
  const study::RandomSearch four({4, 3, 2, 1});
  CHECK(four.trials_to(0.95) == 1);
  CHECK(four.trials_to(1) == 2);
}

TEST_CASE("a short range is widened") {
  // By hand. The reference program says that trials_to of these are 2 and 2 of 3, then 0 and 0 of 1.
  std::vector<double> seven(7);
  std::iota(seven.begin(), seven.end(), 1.0);
  CHECK(study::RandomSearch(seven).range() == study::TrialRange{1, 3});
  CHECK(study::RandomSearch({3, 1}).range() == study::TrialRange{0, 1});
  // Shares 0 and 0.25 are reached after 1 and 2 trials, and the optimum after 50.
  CHECK(squares().range(0, 0.25) == study::TrialRange{0, 3});
  // 0.75 and 0.8 are reached after 3 and 4 trials.
  CHECK(squares().range(0.75, 0.8) == study::TrialRange{2, 5});
  CHECK(squares().range(0.75, 0.85) == study::TrialRange{3, 5});
}

TEST_CASE("spaces and shares that leave nothing to search are named") {
  const study::RandomSearch same({4, 4, 4});
  CHECK(test::refusal([&] { return same.trials_to(0.5); }).find("all 3 valid configurations take 4 s") == 0);
  CHECK(same.trials_to(1) == 0);
  CHECK(test::refusal([] { return squares().latency_at(1.5); }).find("share 1.5") == 0);
  CHECK_THROWS_AS(static_cast<void>(squares().trials_to(-0.1)), std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(squares().trials_to(std::nan(""))), std::invalid_argument);
  CHECK(test::refusal([] { return squares().range(0.9, 0.5); }).find("from share 0.9") != std::string::npos);
}

TEST_CASE("a latency is looked up by its value") {
  const study::RandomSearch space({5e-6, 2e-6, 2e-6, 9e-6});
  CHECK(space.faster_than(2e-6) == 0);
  CHECK(space.faster_than(5e-6) == 2);
  CHECK(space.faster_than(9e-6) == 3);
  CHECK(test::refusal([&] { return space.faster_than(4e-6); }).find("latency of 4e-06 s") != std::string::npos);
  CHECK_THROWS_AS(static_cast<void>(space.faster_than(1e-6)), std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(space.faster_than(10e-6)), std::invalid_argument);
}

TEST_CASE("random searches without replacement are on average where the curve says") {
  // The best of M draws without replacement from N is expected at place (N + 1) / (M + 1) from the best, counted from
  // 1. Its standard deviation is below that, so the standard error of 4,000 searches is below 1.6 %. The published
  // curve is one place better and rounds to a place.
  constexpr std::size_t configurations = 200, searches = 4000;
  std::vector<double> latencies(configurations);
  std::iota(latencies.begin(), latencies.end(), 1.0);
  const study::RandomSearch space(latencies);
  std::vector<double> sum_of_best(31, 0.0);
  for (std::size_t search = 0; search < searches; ++search) {
    Rng rng = Rng(11).split(search);
    rng.shuffle(std::span(latencies));
    double best = std::numeric_limits<double>::infinity();
    for (std::size_t m = 1; m < sum_of_best.size(); ++m) sum_of_best[m] += best = std::min(best, latencies[m - 1]);
  }
  for (const std::size_t m : {std::size_t{1}, std::size_t{2}, std::size_t{5}, std::size_t{10}, std::size_t{30}}) {
    const double mean_place = sum_of_best[m] / searches;
    CHECK(std::abs(mean_place - space.best_after(m)) < 1.5 + 0.05 * mean_place);
  }
}

TEST_CASE("trials_to inverts the curve") {
  // The place after M trials is rounded, so the curve may be there a trial earlier.
  const study::RandomSearch space = squares();
  for (int percent = 0; percent < 99; percent += 5) {
    const double share = percent / 100.0;
    const std::size_t trials = space.trials_to(share);
    CHECK(space.best_after(trials) <= space.latency_at(share));
    if (trials > 1) CHECK(space.best_after(trials - 2) > space.latency_at(share));
  }
}
