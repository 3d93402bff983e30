// SPDX-License-Identifier: Apache-2.0
#include "tunewright/models/linear.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "support/predicted.hpp"
#include "tunewright/core/rng.hpp"

using namespace tunewright;
using models::Linear;
using models::RowsAs;
using test::predicted;

static_assert(CostModel<Linear> && UncertainCostModel<Linear> && EmbeddingCostModel<Linear> &&
              PersistentCostModel<Linear>);

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

FeatureBatch programs(const std::vector<std::vector<float>>& rows, std::size_t columns = 1) {
  FeatureBatch x(columns);
  for (const auto& program : rows) x.append_program(program);
  return x;
}

}  // namespace

TEST_CASE("linear: a line through three points, by hand") {
  // x = 0, 1, 2: mean 1, deviation sqrt(2/3); z = -q, 0, q with q = sqrt(3/2). y = 0, 0.5, 0.7: mean 0.4.
  // 1/n z.y = 0.7 q / 3; A = 1 + lambda. With lambda = 0, w = 0.7 q / 3 and slope w / deviation = 0.35.
  const FeatureBatch x = programs({{0}, {1}, {2}});
  const std::vector<float> y{0, 0.5F, 0.7F};
  Linear model{.lambda = 0};
  model.fit(x, y, {});
  auto score = predicted(model, programs({{0}, {1}, {2}, {3}}));
  CHECK(score[0] == doctest::Approx(0.05));
  CHECK(score[1] == doctest::Approx(0.4));
  CHECK(score[3] == doctest::Approx(1.1));

  // Residuals -0.05, 0.1, -0.05: 0.015; freedom 3 - 1 - 1; s^2 = 0.015. deviation^2 = s^2 / 3 (1 + z^2):
  // at x = 1 sqrt(0.005), at x = 2 sqrt(0.005 * 2.5), the textbook standard errors of a regression line.
  std::vector<float> deviation(4);
  model.predict_with_deviation(programs({{0}, {1}, {2}, {3}}), score, deviation);
  CHECK(deviation[1] == doctest::Approx(std::sqrt(0.005)));
  CHECK(deviation[2] == doctest::Approx(std::sqrt(0.0125)));
  CHECK(deviation[0] == doctest::Approx(deviation[2]));
  CHECK(deviation[3] == doctest::Approx(std::sqrt(0.005 * (1 + 4 * 1.5))));
  CHECK(score[3] == predicted(model, programs({{3}}))[0]);

  // lambda = 1 halves the weight.
  model.lambda = 1;
  model.fit(x, y, {});
  CHECK(predicted(model, x)[2] == doctest::Approx(0.4 + 0.175));
  CHECK(model.embed(x).row(2)[0] == doctest::Approx(0.175));
  CHECK(model.embed(x).row(1)[0] == doctest::Approx(0));
}

TEST_CASE("linear: rows are summed or averaged") {
  // Sums 2 and 4, means 2 and 2: only the sums tell the programs apart.
  const FeatureBatch x = programs({{2}, {1, 3}});
  Linear sum{.lambda = 0}, mean{.lambda = 0, .rows = RowsAs::Mean};
  sum.fit(x, std::vector<float>{0.25F, 0.75F}, {});
  mean.fit(x, std::vector<float>{0.25F, 0.75F}, {});
  CHECK(predicted(sum, x)[0] == doctest::Approx(0.25));
  CHECK(predicted(sum, x)[1] == doctest::Approx(0.75));
  CHECK(predicted(mean, x)[0] == 0.5F);
  CHECK(predicted(mean, x)[1] == 0.5F);
}

TEST_CASE("linear: finds the weights of noisy data and says how sure it is") {
  Rng rng(3);
  FeatureBatch x(3);
  std::vector<float> y;
  for (int p = 0; p < 2000; ++p) {
    const double a = rng.uniform(), b = rng.uniform();
    x.append_program(std::vector<float>{static_cast<float>(a), static_cast<float>(b), 7});
    y.push_back(static_cast<float>(0.3 + 0.4 * a + 0.1 * b + 0.05 * rng.normal()));
    y.back() = std::max(y.back(), 0.0F);
  }
  Linear model{.lambda = 1e-9};
  model.fit(x, y, {});
  std::vector<float> score(1), deviation(1);
  model.predict_with_deviation(programs({{0.5F, 0.5F, 7}}, 3), score, deviation);
  CHECK(score[0] == doctest::Approx(0.55).epsilon(0.01));
  CHECK(deviation[0] == doctest::Approx(0.05 / std::sqrt(2000.0)).epsilon(0.1));
  model.predict_with_deviation(programs({{1, 0, 7}}, 3), score, deviation);
  CHECK(score[0] == doctest::Approx(0.7).epsilon(0.02));
}

TEST_CASE("linear: equal labels leave no residual, and yet a deviation") {
  // s^2 = 1e-6. A column of one value tells nothing: deviation^2 = s^2 / 1.
  std::vector<float> score(2), deviation(2);
  Linear model{.lambda = 0};
  model.fit(programs({{3}}), std::vector<float>{0.5F}, {});
  model.predict_with_deviation(programs({{3}, {9}}), score, deviation);
  CHECK(score == std::vector<float>{0.5F, 0.5F});
  CHECK(deviation[0] == doctest::Approx(1e-3));
  CHECK(deviation[1] == doctest::Approx(1e-3));
  // x = 0 to 4: mean 2, deviation sqrt(2). At 2 deviation^2 = s^2 / 5, at 4 z^2 = 2 and it is s^2 / 5 (1 + 2).
  for (const float label : {0.0F, 0.1F, 0.5F}) {
    model.fit(programs({{0}, {1}, {2}, {3}, {4}}), std::vector<float>(5, label), {});
    model.predict_with_deviation(programs({{2}, {4}}), score, deviation);
    CHECK(score[1] == doctest::Approx(label));
    CHECK(deviation[0] == doctest::Approx(std::sqrt(2e-7)));
    CHECK(deviation[1] == doctest::Approx(std::sqrt(6e-7)));
  }
}

TEST_CASE("linear: laws of every model") {
  FeatureBatch x(2);
  x.append_program(std::vector<float>{1, 2});
  x.close_program();
  x.append_program(std::vector<float>{infinity, 0});
  Linear model;
  CHECK(predicted(model, x) == std::vector<float>{0, -infinity, 0});
  std::vector<float> score(3), deviation(3);
  model.predict_with_deviation(x, score, deviation);
  CHECK(deviation == std::vector<float>{1, infinity, 1});
  model.fit(x, std::vector<float>{0.5F, 0.1F, 0.9F}, {});
  model.predict_with_deviation(x, score, deviation);
  CHECK(score[1] == -infinity);
  CHECK(deviation[1] == infinity);
  CHECK(std::isfinite(score[2]));
  CHECK(model.embed(x).programs() == 3);
  CHECK(model.embed(x).row(1)[0] == 0);
  model.fit(FeatureBatch(2), {}, {});
  CHECK(predicted(model, x)[0] == 0);
}

TEST_CASE("linear: misuse is named") {
  Linear model{.lambda = 0};
  const FeatureBatch x = programs({{1, 1}, {2, 2}, {3, 3}}, 2);
  const std::vector<float> y{0, 0.5F, 1};
  CHECK_THROWS_WITH_AS(model.fit(x, y, {}),
                       "models::Linear::fit: lambda = 0, but columns depend on each other; choose lambda above 0",
                       std::invalid_argument);
  model.lambda = 1e-3;
  model.fit(x, y, {});
  std::vector<float> score(1);
  CHECK_THROWS_WITH_AS(model.predict(programs({{1}}), score),
                       "models::Linear::predict: rows of 1 features, but the model was trained on 2; use the "
                       "featurizer it was trained with",
                       std::invalid_argument);
  CHECK_THROWS_AS(model.predict(x, score), std::invalid_argument);
  CHECK_THROWS_AS(model.fit(x, std::vector<float>{1}, {}), std::invalid_argument);
  CHECK_THROWS_AS(model.fit(x, std::vector<float>{1, -1, 0}, {}), std::invalid_argument);
  CHECK_THROWS_AS(model.fit(programs({{std::nanf("")}}), std::vector<float>{1}, {}), std::invalid_argument);
  CHECK_THROWS_AS(model.fit(FeatureBatch(5000), {}, {}), std::invalid_argument);
  for (const double wrong : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    model.lambda = wrong;
    CHECK_THROWS_WITH_AS(model.fit(x, y, {}), doctest::Contains("lambda is"), std::invalid_argument);
  }
}

TEST_CASE("linear: a kept model predicts the same bits") {
  const FeatureBatch x = programs({{1, 5}, {2, 2}, {3, 4, 1, 1}}, 2);
  Linear model{.rows = RowsAs::Mean}, loaded;
  model.fit(x, std::vector<float>{0, 0.5F, 1}, {});
  std::stringstream file;
  model.save(file, 3);
  const std::string text = file.str();
  loaded.load(file, 3);
  std::vector<float> score(3), deviation(3), other_score(3), other_deviation(3);
  model.predict_with_deviation(x, score, deviation);
  loaded.predict_with_deviation(x, other_score, other_deviation);
  CHECK(score == other_score);
  CHECK(deviation == other_deviation);
  std::istringstream wrong(text), shorter(text.substr(0, text.size() - 1));
  CHECK_THROWS_AS(loaded.load(wrong, 4), std::runtime_error);
  CHECK_THROWS_AS(loaded.load(shorter, 3), std::runtime_error);
  CHECK(predicted(loaded, x) == score);
}
