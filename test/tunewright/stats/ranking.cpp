// SPDX-License-Identifier: Apache-2.0
#include "tunewright/stats/ranking.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include "tunewright/core/rng.hpp"

using namespace tunewright;
using namespace tunewright::stats;

using Values = std::vector<float>;

constexpr float infinity = std::numeric_limits<float>::infinity();

TEST_CASE("root mean squared error and R2") {
  // Errors 1, 1, 2: sqrt(6 / 3). Truth 1, 2, 6 has mean 3 and squares 4 + 1 + 9 = 14: 1 - 6 / 14.
  CHECK(rmse(Values{2, 3, 4}, Values{1, 2, 6}) == doctest::Approx(std::sqrt(2.0)));
  CHECK(r2(Values{2, 3, 4}, Values{1, 2, 6}) == doctest::Approx(8.0 / 14));
  CHECK(r2(Values{3, 3, 3}, Values{1, 2, 6}) == doctest::Approx(0));
  CHECK(r2(Values{9}, Values{1}) == 1);
  // Truth 0, 0.01 varies by 5e-5, of which errors of 0.01 are 2e-4; 0, 0.001 by 5e-7, which is as good as not.
  CHECK(r2(Values{0.01F, 0}, Values{0, 0.01F}) == doctest::Approx(-3));
  CHECK(r2(Values{0.001F, 0}, Values{0, 0.001F}) == 1);
  CHECK(rmse(Values{}, Values{}) == 0);
}

TEST_CASE("pairwise accuracy by hand") {
  // Truth 1 2 3, scores 1 3 2: (1,2) right, (1,3) right, (2,3) wrong.
  CHECK(pairwise_accuracy(Values{1, 3, 2}, Values{1, 2, 3}) == doctest::Approx(2.0 / 3));
  CHECK(pairwise_accuracy(Values{3, 2, 1}, Values{1, 2, 3}) == 0);
  // Equal scores: half right.
  CHECK(pairwise_accuracy(Values{1, 1, 2}, Values{1, 2, 3}) == doctest::Approx(2.5 / 3));
  // Equal truth is not asked: pairs (1,2) and (1,2') remain, one right, one wrong.
  CHECK(pairwise_accuracy(Values{2, 1, 3}, Values{1, 2, 2}) == 0.5);
  CHECK(pairwise_accuracy(Values{}, Values{}) == 0.5);
  CHECK(pairwise_accuracy(Values{1, 2}, Values{1, 1}) == 0.5);
  CHECK(pairwise_accuracy(Values{-infinity, 0}, Values{0, 1}) == 1);
}

TEST_CASE("pairwise accuracy agrees with counting pairs") {
  Rng rng(11);
  for (int trial = 0; trial < 50; ++trial) {
    Values p, y;
    const std::size_t n = 2 + rng.below(40);
    for (std::size_t i = 0; i < n; ++i) {
      p.push_back(static_cast<float>(rng.below(10)));
      y.push_back(static_cast<float>(rng.below(10)));
    }
    double right = 0, pairs = 0;
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        if (!(y[i] < y[j])) continue;
        ++pairs;
        right += p[i] < p[j] ? 1 : p[i] == p[j] ? 0.5 : 0;
      }
    }
    CHECK(pairwise_accuracy(p, y) == doctest::Approx(pairs == 0 ? 0.5 : right / pairs));
  }
}

TEST_CASE("pairwise accuracy over tasks weighs by programs and never crosses") {
  // Task 0: 2 programs, right. Task 1: 3 programs, 2 of 3 pairs right. (2 * 1 + 3 * 2/3) / 5.
  const std::vector<std::uint32_t> group{0, 1, 1, 1, 0};
  CHECK(pairwise_accuracy(Values{10, 1, 3, 2, 20}, Values{1, 1, 2, 3, 2}, group) == doctest::Approx(4.0 / 5));
  CHECK(pairwise_accuracy(Values{}, Values{}, {}) == 0.5);  // no pair: as chance
  CHECK_THROWS_AS((void)pairwise_accuracy(Values{1}, Values{1}, group), std::invalid_argument);
}

TEST_CASE("what the k best predicted would find") {
  const Values truth{0.5F, 1, 0.8F, 0}, score{3, 1, 2, 4};  // order: failed, 0.5, 0.8, 1
  CHECK(top_k_score(score, truth, 1) == 0);
  CHECK(top_k_score(score, truth, 2) == 0.5);
  CHECK(top_k_score(score, truth, 3) == doctest::Approx(0.8));
  CHECK(top_k_score(score, truth, 9) == 1);
  CHECK(average_top_k_score(score, truth, 4) == doctest::Approx((0 + 0.5 + 0.8 + 1) / 4));
  CHECK(average_top_k_score(score, truth, 5) == doctest::Approx((0 + 0.5 + 0.8 + 1 + 1) / 5));
  // (0 + 0.5 + 0.8 + (k - 3)) / k, without counting to k.
  CHECK(average_top_k_score(score, truth, std::size_t{1} << 60) == doctest::Approx(1));
  CHECK(average_top_k_score({}, {}, std::size_t{1} << 60) == 1);
  CHECK(top_k_score(Values{1, 1, 1}, Values{1, 0.5F, 0.25F}, 1) == 0.25);  // no luck from the order of records
  CHECK(top_k_score(Values{1, 2}, Values{0, 0}, 1) == 1);
  CHECK_THROWS_AS((void)top_k_score(score, truth, 0), std::invalid_argument);
}

TEST_CASE("recall of the truly best") {
  const Values truth{5, 4, 3, 2, 1};
  CHECK(recall(Values{5, 1, 4, 3, 2}, truth, 2) == 0.5);  // picks 0 and 2, the best are 0 and 1
  CHECK(recall(Values{5, 1, 4, 3, 2}, truth, 3) == doctest::Approx(2.0 / 3));
  CHECK(recall(truth, truth, 5) == 1);
  CHECK(recall(truth, truth, 50) == 1);
  CHECK(recall(Values{1, 2}, Values{3, 3}, 1) == 1);
}

TEST_CASE("Spearman's correlation by hand") {
  CHECK(spearman(Values{1, 2, 3}, Values{10, 20, 30}) == doctest::Approx(1));
  CHECK(spearman(Values{3, 2, 1}, Values{10, 20, 30}) == doctest::Approx(-1));
  // Without ties 1 - 6 sum d^2 / (n (n^2 - 1)): ranks 1 2 3 4 5 against 2 1 4 3 5, sum d^2 = 4: 1 - 24 / 120.
  CHECK(spearman(Values{1, 2, 3, 4, 5}, Values{2, 1, 4, 3, 5}) == doctest::Approx(0.8));
  // Ranks 1.5 1.5 3 against 1 2 3, each less 2: products 0.5 + 0 + 1, squares 1.5 and 2: 1.5 / sqrt(1.5 * 2).
  CHECK(spearman(Values{7, 7, 9}, Values{1, 2, 3}) == doctest::Approx(1.5 / std::sqrt(3.0)));
  CHECK(spearman(Values{1, 1}, Values{1, 2}) == 0);
}

TEST_CASE("scores of a network") {
  const Values score_a{1, 2, 3}, latency_a{1, 4, 2}, score_b{5, 4}, latency_b{infinity, 10};
  const std::array tasks{RankedTask{score_a, latency_a, 2}, RankedTask{score_b, latency_b, 1}};
  // Best: 2 * 1 + 10 = 12. Top 2: a finds 2, b finds 10: 14. Top 1: b finds only the failed one, 1e5 * 10.
  CHECK(network_top_k_score(tasks, 2) == doctest::Approx(12.0 / 14));
  CHECK(1 / network_top_k_score(tasks, 1) == doctest::Approx((4 + 1e6) / 12));
  CHECK(network_top_k_score(tasks, 3) == 1);
  // Of the 2 best predicted, a keeps latencies 2 and 4, b infinity and 10.
  CHECK(network_best_k_score(tasks, 2, 1) == doctest::Approx(12.0 / 14));
  CHECK(1 / network_best_k_score(tasks, 2, 2) == doctest::Approx((8 + 1e6) / 12));
  CHECK(1 / network_best_k_score(tasks, 3, 2) == doctest::Approx((4 + 1e6) / 12));
  CHECK_THROWS_AS((void)network_best_k_score(tasks, 1, 2), std::invalid_argument);
  const Values failed{infinity}, any{1};
  CHECK(network_top_k_score(std::array{RankedTask{any, failed, 1}}, 1) == 1);
}

TEST_CASE("bad input is named") {
  CHECK_THROWS_WITH_AS((void)rmse(Values{1}, Values{1, 2}),
                       "1 predictions for 2 true values; give one of each a program", std::invalid_argument);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK_THROWS_AS((void)pairwise_accuracy(Values{nan}, Values{1}), std::invalid_argument);
  CHECK_THROWS_AS((void)spearman(Values{1}, Values{nan}), std::invalid_argument);
}

TEST_CASE("overestimation is the share of slow programs among the best predicted") {
  // By prediction: 0.2 (slow), 1.0, 0.4 (slow), 0.6; the best truth is 1, so slow is below 0.5.
  const std::vector<float> prediction{0.9F, 0.8F, 0.7F, 0.6F}, truth{0.2F, 1.0F, 0.4F, 0.6F};
  CHECK(overestimation(prediction, truth, 0.25) == 1);
  CHECK(overestimation(prediction, truth, 0.5) == 0.5);
  CHECK(overestimation(prediction, truth, 0.75) == doctest::Approx(2.0 / 3));
  CHECK(overestimation(prediction, truth, 1.0) == 0.5);
  CHECK(overestimation(prediction, truth, 0.01) == 1);             // one program at least
  CHECK(overestimation(prediction, truth, 0.4) == 0.5);            // 1.6 of 4 programs are 2
  CHECK(overestimation(Values{2, 1}, Values{0.5F, 1}, 0.5) == 0);  // half as fast as the best is not slower than half
  CHECK(overestimation(prediction, truth, 0.25, 0.1) == 0);
  const std::vector<float> doubled{0.4F, 2.0F, 0.8F, 1.2F};  // relative to the best: any throughput will do
  CHECK(overestimation(prediction, doubled, 0.75) == doctest::Approx(2.0 / 3));
  const std::vector<float> tied(4, 1.0F);
  CHECK(overestimation(tied, truth, 0.25) == 1);  // the slowest of equal ones counts as first
  CHECK(overestimation({}, {}) == 0);
  CHECK_THROWS_AS((void)overestimation(prediction, truth, 0), std::invalid_argument);
}

TEST_CASE("low bias is the mean error on slow programs") {
  const std::vector<float> prediction{0.5F, 0.9F, 0.3F, -INFINITY}, truth{0.25F, 1.0F, 0.4F, 0.0F};
  CHECK(low_bias(prediction, truth) == doctest::Approx((0.25 - 0.1) / 2));
  CHECK(low_bias(prediction, truth, 0.3) == doctest::Approx(0.25));
  CHECK(low_bias(prediction, truth, 0.25) == 0);  // 0.25 is not below that
  CHECK(low_bias(prediction, truth, 0.0) == 0);
}

TEST_CASE("a mean over tasks counts each alike, whatever its size and order") {
  const std::vector<float> prediction{3, 9, 2, 1}, truth{0.5F, 1, 1, 0.25F};
  const std::vector<std::uint32_t> group{7, 2, 7, 7};
  const auto top_1 = [](auto p, auto y) { return top_k_score(p, y, 1); };
  CHECK(mean_over_tasks(prediction, truth, group, top_1) == doctest::Approx(0.75));
  CHECK(mean_over_tasks({}, {}, {}, top_1) == 0);
  CHECK_THROWS_WITH_AS((void)mean_over_tasks(prediction, truth, {}, top_1), doctest::Contains("0 group numbers"),
                       std::invalid_argument);
}
