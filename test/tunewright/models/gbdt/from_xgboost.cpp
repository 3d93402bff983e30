// SPDX-License-Identifier: Apache-2.0
#include "tunewright/models/gbdt/from_xgboost.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <stdexcept>
#include <vector>

using namespace tunewright;
using data::XgboostEnsemble;

TEST_CASE("trees of XGBoost, by hand") {
  // x1 < 0.5 ? 1 : 10, and -1; base 0.25. A program's score is the sum over its rows.
  XgboostEnsemble model{.columns = 2, .base_margin = 0.25F, .trees = {{{0.5F, 1, 1, 2, false}, {1}, {10}}, {{-1}}}};
  const models::gbdt::Ensemble trees = models::gbdt::from_xgboost(model);
  FeatureBatch x(2);
  x.append_program(std::vector<float>{9, 0.25F});
  x.append_program(std::vector<float>{9, 0.5F});  // not below
  x.append_program(std::vector<float>{9, 0, 9, 1});
  std::vector<float> score(3);
  trees.predict(x, 0, 3, score);
  CHECK(score == std::vector<float>{0.25F, 9.25F, 9.5F});

  CHECK_THROWS_WITH_AS((void)models::gbdt::from_xgboost(XgboostEnsemble{}),
                       "models::gbdt::from_xgboost: the model has no trees", std::invalid_argument);
  // A chain: node 2 i has the leaf 2 i + 1 and the next inner node 2 i + 2.
  XgboostEnsemble deep{.columns = 1, .trees = {{}}};
  for (std::uint32_t i = 0; i < 16; ++i) {
    deep.trees[0].push_back({0, 0, 2 * i + 1, 2 * i + 2, false});
    deep.trees[0].push_back({0, 0, 0, 0, false});
  }
  deep.trees[0].push_back({0, 0, 0, 0, false});
  CHECK_THROWS_WITH_AS((void)models::gbdt::from_xgboost(deep), "models::gbdt::from_xgboost: tree 0 is deeper than 15",
                       std::invalid_argument);
  CHECK_THROWS_AS((void)models::gbdt::from_xgboost(XgboostEnsemble{.columns = 70000, .trees = {{{1}}}}),
                  std::invalid_argument);
}
