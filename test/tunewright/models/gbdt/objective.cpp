// SPDX-License-Identifier: Apache-2.0
#include "tunewright/models/gbdt/objective.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

using namespace tunewright;
using models::gbdt::Objective;
using models::gbdt::ObjectiveRules;
using models::gbdt::RankingGroups;
using models::gbdt::Slope;

namespace {

std::vector<Slope> slopes_of(const ObjectiveRules& rules, const std::vector<float>& score, const std::vector<float>& y,
                             const std::vector<std::uint32_t>& group = {}, std::uint64_t seed = 1,
                             unsigned threads = 1) {
  std::vector<Slope> out(y.size(), Slope{99, 99});
  ThreadTeam team(threads);
  std::vector<std::uint32_t> rows(y.size() + 1);  // one a program
  std::iota(rows.begin(), rows.end(), 0U);
  models::gbdt::slopes(rules, score, y, RankingGroups::of(rows, y, group), Rng(seed), team, out);
  return out;
}

}  // namespace

TEST_CASE("squared: g = s - y, h = 1") {
  const auto slope = slopes_of({Objective::Squared}, {0.5F}, {0.75F});
  CHECK(slope[0].gradient == -0.25F);
  CHECK(slope[0].hessian == 1);
}

TEST_CASE("summed over statements: g = (s - y) y, h = y, and nothing from a failed program") {
  const auto slope = slopes_of({Objective::SummedOverStatements}, {0.5F, 0.5F}, {0.75F, 0});
  CHECK(slope[0].gradient == doctest::Approx(-0.1875));  // (0.5 - 0.75) * 0.75
  CHECK(slope[0].hessian == 0.75F);
  CHECK(slope[1].gradient == 0);
  CHECK(slope[1].hessian == 0);
}

TEST_CASE("summed logarithms: g = (s - log2 y) y, h = y, and nothing from a failed program") {
  const ObjectiveRules rules{Objective::SummedLogarithms};
  const auto slope = slopes_of(rules, {0.5F, 0.5F}, {0.25F, 0});
  CHECK(slope[0].gradient == 0.625F);  // (0.5 + 2) * 0.25
  CHECK(slope[0].hessian == 0.25F);
  CHECK(slope[1].gradient == 0);
  CHECK(slope[1].hessian == 0);
  // 0.25 * 2.5^2
  CHECK(models::gbdt::loss(rules, std::vector<float>{0.5F, 0.5F}, std::vector<float>{0.25F, 0}) ==
        doctest::Approx(1.5625));
}

TEST_CASE("quantile: -a below the label, 1 - a above, nothing on it, h = 1") {
  const ObjectiveRules rules{.objective = Objective::Quantile, .quantile = 0.75F};
  const auto slope = slopes_of(rules, {0.25F, 0.75F, 0.5F}, {0.5F, 0.5F, 0.5F});
  CHECK(slope[0].gradient == -0.75F);
  CHECK(slope[1].gradient == 0.25F);
  CHECK(slope[2].gradient == 0);
  CHECK(slope[0].hessian == 1);
  // 0.75 * 0.25 + 0.25 * 0.25 + 0
  CHECK(models::gbdt::loss(rules, std::vector<float>{0.25F, 0.75F, 0.5F}, std::vector<float>(3, 0.5F)) ==
        doctest::Approx(0.25));
}

TEST_CASE("logistic: g = w (p - y), h = w p (1 - p)") {
  // exp(log 3) = 3, so p = 3/4 of the third.
  const std::vector<float> score{0, 0, std::log(3.0F)}, y{0, 1, 1};
  const ObjectiveRules rules{.objective = Objective::Logistic, .positive_weight = 4};
  const auto slope = slopes_of(rules, score, y);
  CHECK(slope[0].gradient == 0.5F);
  CHECK(slope[0].hessian == 0.25F);
  CHECK(slope[1].gradient == -2.0F);
  CHECK(slope[1].hessian == 1.0F);
  CHECK(slope[2].gradient == doctest::Approx(-1));   // 4 (3/4 - 1)
  CHECK(slope[2].hessian == doctest::Approx(0.75));  // 4 * 3/16
  // log 2 + 4 log 2 + 4 log(4/3)
  CHECK(models::gbdt::loss(rules, score, y) == doctest::Approx(5 * std::log(2.0) + 4 * std::log(4.0 / 3)));
}

TEST_CASE("the loss of the sum over statements is y (s - y)^2, of the square (s - y)^2") {
  const std::vector<float> score{0.5F, 0.5F}, y{1, 0};
  CHECK(models::gbdt::loss({Objective::SummedOverStatements}, score, y) == 0.25);
  CHECK(models::gbdt::loss({Objective::Squared}, score, y) == 0.5);
}

TEST_CASE("pairwise: two programs with equal scores push each other by one half") {
  const auto slope = slopes_of({Objective::RankPairwise}, {0, 0}, {0, 1});
  CHECK(slope[1].gradient == -0.5F);  // -1 / (1 + e^0)
  CHECK(slope[0].gradient == 0.5F);
  CHECK(slope[0].hessian == 0.25F);  // 1/2 (1 - 1/2)
  CHECK(slope[1].hessian == 0.25F);
}

TEST_CASE("pairwise: three programs, each pair weighs 1 / (n - 1)") {
  // Scores 0: the worst loses twice, the best wins twice, half of it each.
  const auto slope = slopes_of({Objective::RankPairwise}, {0, 0, 0}, {0.5F, 0, 1});
  CHECK(slope[0].gradient == doctest::Approx(0));
  CHECK(slope[0].hessian == doctest::Approx(0.25));
  CHECK(slope[1].gradient == doctest::Approx(0.5));
  CHECK(slope[2].gradient == doctest::Approx(-0.5));
}

TEST_CASE("pairwise: programs of one label never meet, and take each other no part of their weight") {
  // Scores 0; y 0, 1, 1: two others for the first, one for each of the last, so that a pair weighs (1/2 + 1) / 2.
  const auto slope = slopes_of({Objective::RankPairwise}, {0, 0, 0}, {0, 1, 1});
  CHECK(slope[0].gradient == doctest::Approx(0.75));
  CHECK(slope[1].gradient == doctest::Approx(-0.375));
  CHECK(slope[2].gradient == doctest::Approx(-0.375));
  CHECK(slope[2].hessian == doctest::Approx(0.1875));
  for (const auto objective : {Objective::RankPairwise, Objective::LambdaRank}) {
    for (const Slope& alike : slopes_of({objective, 2}, std::vector<float>(50, 1.0F), std::vector<float>(50, 0.5F))) {
      CHECK(alike.gradient == 0);
      CHECK(alike.hessian == 0);
    }
  }
}

TEST_CASE("pairwise: every failed program is compared with as many others, however many failed") {
  // 58 of 64 failed. The 8 pairs of a failed program weigh 1/16 and lose by one half each; the other six may add some.
  std::vector<float> y(64, 0.0F);
  for (std::size_t p = 58; p < 64; ++p) y[p] = static_cast<float>(p - 57) / 6;
  const auto slope = slopes_of({Objective::RankPairwise, 8}, std::vector<float>(64, 0.0F), y);
  double mean = 0;
  for (std::size_t p = 0; p < 58; ++p) {
    CHECK(slope[p].gradient >= 0.25F);
    mean += static_cast<double>(slope[p].gradient) / 58;
  }
  // The six draw 48 others, 58 of 63 of which failed.
  CHECK(mean == doctest::Approx(0.25 + 48.0 * 58 / 63 / 58 / 32).epsilon(0.02));
}

TEST_CASE("pairwise: programs of different tasks never meet") {
  const auto slope = slopes_of({Objective::RankPairwise}, {0, 0}, {0, 1}, {3, 8});
  CHECK(slope[0].gradient == 0);
  CHECK(slope[1].hessian == 0);
}

TEST_CASE("lambda: pairs weigh what a swap changes in NDCG") {
  // Ranks by score: program 0 first, 1 second. Gains 2^y - 1: 0 and 1. Ideal DCG: 1 / log2(2) = 1. |delta
  // NDCG| = |1/log2(2) - 1/log2(3)| * 1 = 0.36907; times n = 2: 0.73814. The model is wrong with p = 1/(1 +
  // e^-1).
  const auto slope = slopes_of({Objective::LambdaRank}, {1, 0}, {0, 1});
  const double weight = 2 * (1 - 1 / std::log2(3.0)), wrong = 1 / (1 + std::exp(-1.0));
  CHECK(weight == doctest::Approx(0.73814).epsilon(1e-4));
  CHECK(slope[0].gradient == doctest::Approx(weight * wrong));
  CHECK(slope[1].gradient == doctest::Approx(-weight * wrong));
  CHECK(slope[0].hessian == doctest::Approx(weight * wrong * (1 - wrong)));
}

TEST_CASE("ranking gradients of a task add up to nothing, sampled or not") {
  std::vector<float> score, y;
  Rng rng(5);
  for (int i = 0; i < 100; ++i) {
    score.push_back(static_cast<float>(rng.uniform()));
    y.push_back(static_cast<float>(rng.uniform()));
  }
  for (const auto objective : {Objective::RankPairwise, Objective::LambdaRank}) {
    for (const unsigned pairs : {2U, 50U}) {
      double sum = 0, hessians = 0;
      for (const Slope& slope : slopes_of({objective, pairs}, score, y)) {
        sum += static_cast<double>(slope.gradient);
        hessians += static_cast<double>(slope.hessian);
      }
      CHECK(std::abs(sum) < 1e-4);
      CHECK(hessians > 1);
    }
  }
}

TEST_CASE("sampled pairs estimate all pairs") {
  // One program against 400 others that are all better: its gradient is 1/2 with all pairs, and every sample
  // agrees.
  std::vector<float> score(401, 0.0F), y(401);
  for (std::size_t p = 0; p < y.size(); ++p) y[p] = static_cast<float>(p) / 400;
  const auto all = slopes_of({Objective::RankPairwise, 300}, score, y);
  CHECK(all[0].gradient == doctest::Approx(0.5));
  double mean = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const auto out = slopes_of({Objective::RankPairwise, 8}, score, y, {}, seed);
    mean += static_cast<double>(out[0].gradient) / 200;
  }
  // Standard error: 8 of its 16 meetings are drawn by others, sqrt(8) / 32 / sqrt(200) = 0.006; five of them.
  CHECK(mean == doctest::Approx(0.5).epsilon(0.06));
}

TEST_CASE("sampled pairs estimate all pairs where labels are equal, too") {
  // A third each of 0, 1/2 and 1, whose scores say the contrary.
  std::vector<float> score(90), y(90);
  for (std::size_t p = 0; p < 90; ++p) {
    y[p] = static_cast<float>(p % 3) / 2;
    score[p] = 1 - y[p];
  }
  for (const auto objective : {Objective::RankPairwise, Objective::LambdaRank}) {
    const auto all = slopes_of({objective, 45}, score, y);
    double mean = 0;
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      for (std::size_t p = 2; p < 90; p += 3)
        mean += static_cast<double>(slopes_of({objective, 8}, score, y, {}, seed)[p].gradient) / 50;
    }
    double exact = 0;
    for (std::size_t p = 2; p < 90; p += 3) exact += static_cast<double>(all[p].gradient);
    CHECK(exact < -10);
    CHECK(mean == doctest::Approx(exact).epsilon(0.02));
  }
}

TEST_CASE("ranking groups stand in the order in which they appear, without programs that have no rows") {
  const std::vector<std::uint32_t> rows{0, 2, 3, 3, 4, 4, 6}, group{9, 4, 4, 9, 1, 4};
  const std::vector<float> alike(6, 1.0F);
  const RankingGroups groups = RankingGroups::of(rows, alike, group);
  CHECK(groups.members == std::vector<std::uint32_t>{0, 3, 1, 5});
  CHECK(groups.offsets == std::vector<std::uint32_t>{0, 2, 4});
  CHECK(RankingGroups::of(rows, alike, {}).members == std::vector<std::uint32_t>{0, 1, 3, 5});
  // Within a group by label.
  const std::vector<float> y{0.5F, 1, 0, 0.25F, 0, 0.75F};
  CHECK(RankingGroups::of(rows, y, group).members == std::vector<std::uint32_t>{3, 0, 5, 1});
  CHECK(RankingGroups::of(rows, y, {}).members == std::vector<std::uint32_t>{3, 0, 5, 1});
}

TEST_CASE("ranking groups are shared out among threads without a trace") {
  std::vector<float> score, y;
  std::vector<std::uint32_t> group;
  Rng rng(9);
  for (std::uint32_t i = 0; i < 400; ++i) {
    score.push_back(static_cast<float>(rng.uniform()));
    y.push_back(static_cast<float>(rng.uniform()));
    group.push_back(i % 7);
  }
  const auto one = slopes_of({Objective::LambdaRank}, score, y, group, 1, 1);
  const auto three = slopes_of({Objective::LambdaRank}, score, y, group, 1, 3);
  for (std::size_t i = 0; i < one.size(); ++i) {
    CHECK(one[i].gradient == three[i].gradient);
    CHECK(one[i].hessian == three[i].hessian);
  }
}
