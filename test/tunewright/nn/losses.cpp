// SPDX-License-Identifier: Apache-2.0
#include "tunewright/nn/losses.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "support/gradient_check.hpp"

using namespace tunewright;
using doctest::Approx;

namespace {

struct Value {
  double loss;
  std::vector<double> gradient;
};

Value of(const nn::Training& training, const std::vector<double>& score, const std::vector<double>& y,
         const std::vector<std::uint32_t>& group = {}) {
  Value value{0, std::vector<double>(score.size(), 0.0)};
  value.loss = nn::loss_of<double>(training, score, y, group, value.gradient);
  return value;
}

constexpr double log2_e = 1.4426950408889634;

}  // namespace

TEST_CASE("LambdaRank of two programs by hand") {
  // Ranks 1 and 2: 1/D = 1, 1/log2(3) = 0.63093; the best DCG is 1, gains 1 and 0; the pair weighs 0.36907.
  const auto even = of({}, {0, 0}, {1, 0});
  CHECK(even.loss == Approx(0.36907));
  CHECK(even.gradient[0] == Approx(-0.36907 * log2_e / 2));
  CHECK(even.gradient[1] == Approx(0.36907 * log2_e / 2));
  const auto wrong = of({}, {0, std::log(3.0)}, {1, 0});  // sigmoid(-ln 3) = 1/4
  CHECK(wrong.loss == Approx(2 * 0.36907));
  CHECK(wrong.gradient[0] == Approx(-0.36907 * log2_e * 0.75));
}

TEST_CASE("LambdaRank of three programs by hand") {
  // 1/D = 1, 0.63093, 0.5; best DCG 1 + 0.414214 * 0.63093 = 1.26134; gains 0.792808, 0.328392, 0;
  // weights 0.171402 (0, 1), 0.396404 (0, 2), 0.042996 (1, 2); log2 sigmoid(0) = -1.
  CHECK(of({}, {0, 0, 0}, {1, 0.5, 0}).loss == Approx(0.610802));
  CHECK(of({}, {3, 2, 1}, {0, 0, 0}).loss == 0);  // nothing to gain
  const auto equal = of({}, {5, 0}, {1, 1});
  CHECK(equal.loss == 0);
  CHECK(equal.gradient[0] == 0);
}

TEST_CASE("pairs, squares and quantiles by hand") {
  const auto pairs = of({.loss = nn::Loss::Pairwise}, {0, 0, 0}, {1, 0.5, 0});
  CHECK(pairs.loss == Approx(1));  // three pairs of log2 2
  CHECK(pairs.gradient[0] == Approx(-log2_e / 3));
  CHECK(pairs.gradient[1] == Approx(0));
  const auto squares = of({.loss = nn::Loss::MeanSquared}, {1, 0.5}, {0.5, 1});
  CHECK(squares.loss == Approx(0.25));
  CHECK(squares.gradient == std::vector<double>{0.5, -0.5});
  const auto weighted = of({.loss = nn::Loss::WeightedMeanSquared}, {1, 0.5}, {0.5, 1});
  CHECK(weighted.loss == Approx(0.1875));
  CHECK(weighted.gradient == std::vector<double>{0.25, -0.5});
  const auto quantile = of({.loss = nn::Loss::Quantile, .quantile = 0.75F}, {1, 0.5}, {0.5, 1});
  CHECK(quantile.loss == Approx((0.25 * 0.5 + 0.75 * 0.5) / 2));
  CHECK(quantile.gradient == std::vector<double>{0.125, -0.375});
}

TEST_CASE("tasks apart, and labels that are missing") {
  const std::vector<double> y{1, 1, 0, 0}, score{0, 0, 0, 0};
  const auto apart = of({.across_tasks = false}, score, y, {0, 1, 0, 1});
  CHECK(apart.loss == Approx(2 * 0.36907));
  CHECK(apart.gradient[1] == Approx(-0.36907 * log2_e / 2));
  // One list: 1/D = 1, 0.63093, 0.5, 0.43068; pairs weigh 0.5, 0.56932, 0.13093, 0.20025, over a best DCG of 1.63093.
  const auto across = of({.across_tasks = true}, score, y, {0, 1, 0, 1});
  CHECK(across.loss == Approx(0.858716));
  // Pairs that count are those of one task, one each; squares know no tasks.
  CHECK(of({.loss = nn::Loss::Pairwise, .across_tasks = false}, score, y, {0, 1, 0, 1}).loss == Approx(2));
  CHECK(of({.loss = nn::Loss::MeanSquared, .across_tasks = false}, {1, 0.5}, {0.5, 1}, {0, 1}).loss == Approx(0.25));
  // Equal scores of a task are ranked in the given order: the loss of the three programs above.
  CHECK(of({.across_tasks = false}, score, {1, 0.3, 0.5, 0}, {0, 1, 0, 0}).loss == Approx(0.610802));
  const double missing = std::numeric_limits<double>::quiet_NaN();
  const auto fewer = of({}, {0, 9, 0}, {1, missing, 0});
  CHECK(fewer.loss == Approx(0.36907));
  CHECK(fewer.gradient[1] == 0);
  CHECK(of({}, {1}, {missing}).loss == 0);
}

TEST_CASE("slopes are added to what is there") {
  // The slopes are those of two programs by hand, above; the third has no label.
  const double missing = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> gradient{1, 2, 3};
  nn::loss_of<double>({.loss = nn::Loss::MeanSquared}, std::vector<double>{1, 0.5, 0},
                      std::vector<double>{0.5, 1, missing}, {}, gradient);
  CHECK(gradient == std::vector<double>{1.5, 1.5, 3});
  const std::vector<double> score{0, 0}, y{1, 0};
  std::vector<double> slope{1, 2};
  nn::losses::lambda_rank<double>(score, y, slope);
  CHECK(slope[0] == Approx(1 - 0.36907 * log2_e / 2));
  CHECK(slope[1] == Approx(2 + 0.36907 * log2_e / 2));
  nn::losses::pairwise<double>(score, y, slope);
  CHECK(slope[0] == Approx(1 - 0.36907 * log2_e / 2 - log2_e / 2));
  std::vector<double> square{1, 2};
  nn::losses::mean_squared<double>(score, y, false, square);
  CHECK(square == std::vector<double>{0, 2});  // 2 (0 - 1) / 2
  nn::losses::pinball<double>(score, y, 0.75, square);
  CHECK(square == std::vector<double>{-0.375, 2.125});  // -0.75 / 2 and 0.25 / 2
}

TEST_CASE("large scores stay finite") {
  for (const auto loss : {nn::Loss::LambdaRank, nn::Loss::Pairwise}) {
    const auto value = of({.loss = loss}, {-1e4, 1e4}, {1, 0});
    CHECK(std::isfinite(value.loss));
    CHECK(std::isfinite(value.gradient[0]));
    CHECK(value.gradient[0] < 0);
  }
}

TEST_CASE("scores that are no numbers rank last, in their order") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> score{nan, 1, nan, 2, -3};
  CHECK(nn::losses::descending(std::span<const double>(score)) == std::vector<std::uint32_t>{3, 1, 4, 0, 2});
}

TEST_CASE("gradients against finite differences") {
  std::vector<double> score{0.3, -0.7, 1.1, 0.9, -0.2, 2.0, 0.1};
  const std::vector<double> y{0.5, 0.2, 0.9, 1.0, 0.2, 0.0, 0.7};
  const std::vector<std::uint32_t> group{0, 1, 0, 1, 0, 1, 0};
  for (const bool across : {true, false}) {
    for (const auto loss : {nn::Loss::LambdaRank, nn::Loss::Pairwise, nn::Loss::MeanSquared,
                            nn::Loss::WeightedMeanSquared, nn::Loss::Quantile}) {
      CAPTURE(static_cast<int>(loss));
      const nn::Training training{.loss = loss, .quantile = 0.3F, .across_tasks = across};
      const auto value = of(training, score, y, group);
      CHECK(test::gradient_error(score, value.gradient, [&] { return of(training, score, y, group).loss; }) < 1e-8);
    }
  }
}
