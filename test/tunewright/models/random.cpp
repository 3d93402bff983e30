// SPDX-License-Identifier: Apache-2.0
#include "tunewright/models/random.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <stdexcept>
#include <vector>

using namespace tunewright;

static_assert(CostModel<models::Random>);
static_assert(!PersistentCostModel<models::Random> && !ParametricCostModel<models::Random>);

TEST_CASE("random scores belong to the program and the seed") {
  FeatureBatch x(2), reversed(2);
  for (int p = 0; p < 1000; ++p) x.append_program(std::vector<float>{static_cast<float>(p), 1, 2, 3});
  for (std::size_t p = 1000; p-- > 0;) reversed.append_program(x.program(p));
  std::vector<float> score(1000), other(1000);
  models::Random{.seed = 1}.predict(x, score);
  models::Random{.seed = 1}.predict(reversed, other);
  double mean = 0;
  for (std::size_t p = 0; p < 1000; ++p) {
    CHECK(other[999 - p] == score[p]);
    CHECK(score[p] >= 0);
    CHECK(score[p] < 1);
    mean += static_cast<double>(score[p]) / 1000;
  }
  CHECK(mean == doctest::Approx(0.5).epsilon(0.1));  // standard error 0.009
  models::Random{.seed = 2}.predict(x, other);
  CHECK(other != score);
}

TEST_CASE("random: a program without rows is last, sizes are checked") {
  FeatureBatch x(2);
  x.close_program();
  std::vector<float> score(1);
  models::Random model;
  model.predict(x, score);
  CHECK(score[0] == -std::numeric_limits<float>::infinity());
  score.resize(2);
  CHECK_THROWS_AS(model.predict(x, score), std::invalid_argument);
  CHECK_THROWS_AS(model.fit(x, score, {}), std::invalid_argument);
}
