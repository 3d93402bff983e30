// SPDX-License-Identifier: Apache-2.0
#include "tunewright/study/performance_score.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/refusal.hpp"
#include "support/square_latencies.hpp"
#include "tunewright/core/rng.hpp"

using namespace tunewright;
using test::squares;

namespace {

// Place p of `squares`, counted from the best at 0, is (p + 1)^2 / 100, and its range is trials 2 to 8.

study::Course search(std::vector<study::Improvement> improvements, std::size_t trials = 9) {
  return {.improvements = std::move(improvements), .trials = trials};
}

const study::Course early = search({{1, 0, 36}, {4, 0, 1}, {7, 0, 0.04}});  // places 59, 9, 1
const study::Course steady = search({{2, 0, 25}, {3, 0, 9}, {8, 0, 4}});    // places 49, 29, 19
const study::Course late = search({{5, 0, 0.25}});                          // place 4

std::vector<double> median_curve(std::span<const study::Course> runs, study::TrialRange trials) {
  const study::ScoredRuns scored(squares(), runs, trials);
  return scored.median_curve(scored.all());
}
std::vector<double> standardised_curve(const study::RandomSearch& space, std::span<const study::Course> runs,
                                       study::TrialRange trials) {
  const study::ScoredRuns scored(space, runs, trials);
  return scored.standardised_curve(scored.all());
}

}  // namespace

TEST_CASE("the curve is the latency at the median place") {
  // By hand. Places of an odd number of searches at trials 2 to 8, those without a valid trial left out:
  // {59 49} {59 29} {9 29} {9 29 4} {9 29 4} {1 29 4} {1 19 4}
  const std::vector<study::Course> three{early, steady, late};
  CHECK(median_curve(three, {2, 8}) == std::vector<double>{30.25, 20.25, 4, 1, 1, 0.25, 0.25});
  // Places 1 and 2 have their middle at 1.5, 2 and 3 at 2.5: both round to 2.
  const std::vector<study::Course> low{search({{1, 0, 0.04}}), search({{1, 0, 0.09}})};
  const std::vector<study::Course> high{search({{1, 0, 0.09}}), search({{1, 0, 0.16}})};
  CHECK(median_curve(low, {1, 1}) == std::vector<double>{0.09});
  CHECK(median_curve(high, {1, 1}) == std::vector<double>{0.09});
}

TEST_CASE("searches that found nothing yet or ended keep the worst or their last latency") {
  const std::vector<study::Course> one{search({{3, 0, 9}, {4, 0, 4}}, 4)};
  CHECK(median_curve(one, {0, 7}) == std::vector<double>{100, 100, 100, 9, 4, 4, 4, 4});
}

TEST_CASE("scores have the reference program's values") {
  // by autotuning_methodology 1.1.0, through bench/study/compare_with_methodology.py
  const study::RandomSearch space = squares();
  const auto score = [&](const std::vector<study::Course>& runs) { return study::performance_score(space, runs); };
  constexpr double digits = 1e-11;
  CHECK(score({early, steady, late}) == doctest::Approx(-0.256503216671).epsilon(digits));
  CHECK(score({early, steady}) == doctest::Approx(-1.048969853676).epsilon(digits));
  CHECK(score({search({{4, 0, 1}})}) == doctest::Approx(-3.217807324435).epsilon(digits));
  CHECK(score({search({})}) == doctest::Approx(-45.286788763164).epsilon(digits));
}

TEST_CASE("random search scores 0 and the optimum 1") {
  const study::RandomSearch space = squares();
  study::Course random{}, best{};
  for (std::size_t trial = 1; trial <= 8; ++trial) random.add(space.best_after(trial), 0);
  best.add(space.optimum_s(), 0);
  CHECK(standardised_curve(space, std::span(&random, 1), {1, 8}) == std::vector<double>(8, 0.0));
  CHECK(study::performance_score(space, std::span(&random, 1)) == 0);
  CHECK(study::performance_score(space, std::span(&best, 1)) == 1);
  // By hand at trial 2: random search is at 10.89, so 5.45 is halfway to 0.01; the space has 5.29.
  const study::Course halfway = search({{1, 0, 5.29}});
  CHECK(standardised_curve(space, std::span(&halfway, 1), {2, 2}).front() == doctest::Approx(5.6 / 10.88));
}

TEST_CASE("the order of the searches does not matter and a faster one never lowers the score") {
  const study::RandomSearch space = squares();
  Rng rng(3);
  for (int repetition = 0; repetition < 50; ++repetition) {
    std::vector<study::Course> runs(5);
    for (study::Course& run : runs)
      for (int trial = 0; trial < 10; ++trial) run.add(space.ascending()[rng.below(100)], 0);
    const double score = study::performance_score(space, runs);
    std::reverse(runs.begin(), runs.end());
    CHECK(study::performance_score(space, runs) == score);
    const std::size_t mended = rng.below(runs.size());
    runs[mended] = {};
    runs[mended].add(space.optimum_s(), 0);
    CHECK(study::performance_score(space, runs) >= score);
  }
}

TEST_CASE("what has no score is named") {
  const study::RandomSearch space = squares();
  const std::vector<study::Course> stranger{early, search({{2, 0, 0.5}})};
  CHECK(test::refusal([&] { return study::performance_score(space, stranger); }).find("the latency of 0.5 s") !=
        std::string::npos);
  CHECK(test::refusal([&] { return study::performance_score(space, {}); }).find("0 searches") != std::string::npos);
  const std::span<const study::Course> one(&early, 1);
  CHECK(test::refusal([&] { return study::performance_score(space, one, {5, 4}); }).find("from trial 5 to trial 4") !=
        std::string::npos);
  const study::ScoredRuns scored(space, one, {2, 8});
  CHECK(test::refusal([&] { return scored.score(std::vector<std::size_t>{}); }).find("0 searches") !=
        std::string::npos);
  CHECK(test::refusal<std::out_of_range>([&] {
          return scored.score(std::vector<std::size_t>{1});
        }).find("search 1 of 1") == 0);
  // After 67 trials random search is expected at round(67 * 101 / 68) = 100 of the places 0 to 99.
  CHECK(test::refusal([&] { return study::performance_score(space, one, {2, 70}); }).find("100 valid configurations") !=
        std::string::npos);
}

TEST_CASE("a score may name some searches, and some of them twice") {
  const std::vector<study::Course> all{early, steady, late};
  const std::vector<study::Course> twice{early, early, late};
  const study::ScoredRuns scored(squares(), all, {2, 8});
  CHECK(scored.score() == study::performance_score(squares(), all));
  CHECK(scored.score(std::vector<std::size_t>{0, 2, 0}) == study::performance_score(squares(), twice));
}

namespace {

// Searches with times, and costs of which the mean is 1.8 s and the median 1 s.
const study::Course soon = search({{1, 1.5, 36}, {4, 5, 1}});  // places 59, 9
const study::Course even = search({{2, 3, 25}, {3, 6, 9}});    // places 49, 29
const study::Course slow = search({{5, 7, 0.25}});             // place 4

study::TrialCosts costs() {
  std::vector<double> costs_s(60, 1.0);
  costs_s.resize(100, 3.0);
  return {squares().ascending(), costs_s};
}

}  // namespace

TEST_CASE(
    "over seconds a search without a valid trial is at the worst place, and random search has an axis of its own") {
  // By hand, places at 2, 4, 6 and 8 s: {59 99 99} {59 49 99} {9 29 99} {9 29 4}.
  const std::vector<study::Course> three{soon, even, slow};
  const study::ScoredRuns scored(squares(), costs(), three, {2, 8, 4});
  CHECK(scored.median_curve(scored.all()) == std::vector<double>{100, 36, 9, 1});
  // Random search has made 1, 2, 3 and 4 trials by then: 25, 10.89, 5.76 and 3.61.
  const double by_hand = ((100 - 25) / (0.01 - 25) + (36 - 10.89) / (0.01 - 10.89) + (9 - 5.76) / (0.01 - 5.76) +
                          (1 - 3.61) / (0.01 - 3.61)) /
                         4;
  CHECK(scored.score() == doctest::Approx(by_hand).epsilon(1e-12));
  CHECK(scored.score(std::vector<std::size_t>{0, 0}) ==
        study::ScoredRuns(squares(), costs(), std::vector<study::Course>{soon}, {2, 8, 4}).score());
}

TEST_CASE("over seconds the worst place is that of the fastest of the configurations that share the worst latency") {
  const std::vector<double> costs_s(9, 1.0), latencies_s{1, 2, 3, 4, 5, 10, 10, 10, 10};
  const study::RandomSearch space(latencies_s);
  const std::vector<study::Course> both{search({}), search({{1, 0, 1}})};
  // Places 5 and 0, of which the mean, 2.5, rounds to 2.
  const study::ScoredRuns scored(space, study::TrialCosts(latencies_s, costs_s), both, {1, 2, 2});
  CHECK(scored.median_curve(scored.all()) == std::vector<double>{3, 3});
}

TEST_CASE("over seconds random search is at the optimum where its trials are, however latencies are rounded") {
  for (int unit = 1; unit <= 50; ++unit) {
    std::vector<double> latencies_s;
    for (int i = 1; i <= 9; ++i) latencies_s.push_back(0.1 * unit * i * i);
    const study::RandomSearch space(latencies_s);
    const study::TrialCosts one_second_each(latencies_s, std::vector<double>(9, 1.0));
    const std::vector<study::Course> one{search({})};
    REQUIRE(space.best_after(3) == space.optimum_s());
    CHECK(test::refusal([&] {
            return study::ScoredRuns(space, one_second_each, one, {1, 3, 7}).score();
          }).find("at the optimum of the 9 valid configurations after 3 s") != std::string::npos);
  }
}

TEST_CASE("scores over seconds have the reference program's values") {
  // by autotuning_methodology 1.1.0, through bench/study/compare_with_methodology.py --seconds
  const auto score = [&](const std::vector<study::Course>& runs) {
    return study::performance_score_over_seconds(squares(), costs(), runs);
  };
  constexpr double digits = 1e-11;
  CHECK(score({soon, even, slow}) == doctest::Approx(-1.900379881888).epsilon(digits));
  CHECK(score({soon}) == doctest::Approx(-0.505819245098).epsilon(digits));
  CHECK(score({search({})}) == doctest::Approx(-13.023194202719).epsilon(digits));
}

TEST_CASE("over seconds the optimum scores 1, and what has no score is named") {
  const study::RandomSearch space = squares();
  const std::vector<study::Course> best{search({{1, 0, 0.01}})};
  CHECK(study::performance_score_over_seconds(space, costs(), best) == doctest::Approx(1).epsilon(1e-15));
  const auto refusal = [&](std::span<const study::Course> runs, study::SecondsRange seconds) {
    return test::refusal([&] { return study::ScoredRuns(space, costs(), runs, seconds).score(); });
  };
  CHECK(refusal({}, {2, 8, 4}).find("0 searches") != std::string::npos);
  CHECK(refusal(best, {8, 2, 4}).find("the smaller number first") != std::string::npos);
  CHECK(refusal(best, {2, 8, 1}).find("at least 2 points") != std::string::npos);
  // After 70 trials, 126 s, random search is expected at the optimum.
  CHECK(refusal(best, {2, 126, 10}).find("100 valid configurations after") != std::string::npos);
}
