// SPDX-License-Identifier: Apache-2.0
#include "tunewright/data/xgboost_model.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <fstream>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/data_file.hpp"
#include "support/refusal.hpp"

using namespace tunewright;
using data::XgboostEnsemble;

namespace {

constexpr float missing_value = std::numeric_limits<float>::quiet_NaN();

XgboostEnsemble read(const std::string& text) {
  std::istringstream in(text);
  return data::read_xgboost_model(in);
}
XgboostEnsemble read_file(const char* name) {
  std::ifstream in(support::data_file(name));
  return data::read_xgboost_model(in);
}

// Two trees on two features: x0 < 0.5 ? 1 : (x1 < 2 ? 10 : 20), missing x0 right, missing x1 left; and -1.
struct Parts {
  std::string booster = "gbtree", objective = "reg:squarederror", base = "5E-1", classes = "0", features = "2";
  std::string left = "[1,-1,3,-1,-1]", right = "[2,-1,4,-1,-1]", condition = "[0.5,1,2,10,20]";
  std::string indices = "[0,0,1,0,0]", type = "[0,0,0,0,0]", missing = "[0,0,1,0,0]";
  [[nodiscard]] std::string text() const {
    return R"({"learner":{"learner_model_param":{"base_score":")" + base + R"(","num_class":")" + classes +
           R"(","num_feature":")" + features + R"("},"objective":{"name":")" + objective +
           R"("},"gradient_booster":{"name":")" + booster + R"(","model":{"trees":[{"left_children":)" + left +
           R"(,"right_children":)" + right + R"(,"split_conditions":)" + condition + R"(,"split_indices":)" + indices +
           R"(,"split_type":)" + type + R"(,"default_left":)" + missing +
           R"(},{"left_children":[-1],"right_children":[-1],"split_conditions":[-1],"split_indices":[0],)" +
           R"("default_left":[false]}]}}}})";
  }
};

std::string why_refused(const std::string& text) {
  return test::refusal<std::runtime_error>([&] { (void)read(text); });
}

// Rows that XGBoost 1.7.4 was asked about, of 4 features.
const std::vector<std::vector<float>> rows{{0.0204026699F, missing_value, 0.543155789F, 2},
                                           {missing_value, 0.548348844F, 0.596100092F, 3},
                                           {0.965809345F, 0.0736675262F, 0.699606895F, 1},
                                           {0.406125247F, 0.952764153F, 0.993678331F, 2},
                                           {missing_value, 0.423302352F, 0.675318718F, 0},
                                           {0.311562598F, 0.00707060099F, 0.462667108F, 1},
                                           {0.0154653788F, 0.779755175F, 0.302247822F, 1},
                                           {0.667262077F, 0.656964779F, 0.623416245F, 0},
                                           {0.457067013F, 0.725679755F, 0.331772983F, 2},
                                           {0.442738295F, 0.205965757F, 0.456951022F, 2},
                                           {0.391604006F, 0.925642729F, 0.742251337F, 0},
                                           {missing_value, 0.793137074F, 0.796610951F, 0},
                                           {0.874549448F, 0.723475039F, 0.535832107F, 0},
                                           {missing_value, missing_value, missing_value, missing_value},
                                           {0, 0, 0, 0},
                                           {0.5F, 0.5F, 0.5F, 2}};

}  // namespace

TEST_CASE("xgboost: by hand: below goes left, missing where the node says, base_score is added") {
  const XgboostEnsemble model = read(Parts{}.text());
  CHECK(model.columns == 2);
  CHECK(model.margin(std::vector<float>{0.25F, 9}) == 0.5F);  // 0.5 + 1 - 1
  CHECK(model.margin(std::vector<float>{0.5F, 1}) == 9.5F);   // not below: right
  CHECK(model.margin(std::vector<float>{0.5F, 2}) == 19.5F);
  CHECK(model.margin(std::vector<float>{missing_value, 2}) == 19.5F);
  CHECK(model.margin(std::vector<float>{missing_value, missing_value}) == 9.5F);
  CHECK(model.value(std::vector<float>{missing_value, missing_value}) == 9.5F);
  CHECK_THROWS_WITH_AS((void)model.margin(std::vector<float>{1}),
                       "data::XgboostEnsemble: a row of 1 features, but the model was trained on 2",
                       std::invalid_argument);

  // base_score is a probability: log(0.2 / 0.8); 1 - 1 is added.
  const XgboostEnsemble odds = read(Parts{.objective = "binary:logistic", .base = "[2E-1]"}.text());
  CHECK(odds.margin(std::vector<float>{0, 0}) == doctest::Approx(std::log(0.25)));
  CHECK(odds.value(std::vector<float>{0, 0}) == doctest::Approx(0.2));
  const XgboostEnsemble rate = read(Parts{.objective = "count:poisson", .base = "2"}.text());
  CHECK(rate.value(std::vector<float>{0, 0}) == doctest::Approx(2));
}

TEST_CASE("xgboost: what it predicts is what XGBoost predicts") {
  const std::vector<float> squared{0.38311553F,  1.04245663F,  0.324675232F,  0.737665117F, 0.564235866F, 0.220980704F,
                                   0.347414047F, 0.491490722F, 0.645184815F,  0.525356829F, 0.45290029F,  0.881512821F,
                                   0.491490722F, 0.469680965F, 0.0903357491F, 0.525356829F};
  const std::vector<float> margin{-2.09218884F, 1.97813487F,   -1.79295635F, 0.570402384F, 1.12629795F,  -2.69539213F,
                                  -2.22622132F, -2.22622132F,  0.570402384F, -0.23969689F, -1.92910922F, 1.43725789F,
                                  0.520823717F, -0.542741537F, -2.69539213F, 1.26433599F};
  const std::vector<float> probability{
      0.109858342F, 0.878482163F, 0.142710656F, 0.638856053F, 0.755155027F, 0.0632458031F, 0.0974203944F, 0.0974203944F,
      0.638856053F, 0.440361023F, 0.126849204F, 0.808029592F, 0.627340317F, 0.367550045F,  0.0632458031F, 0.779771566F};
  const XgboostEnsemble first = read_file("xgboost_squared.json"), second = read_file("xgboost_logistic.json");
  for (std::size_t r = 0; r < rows.size(); ++r) {
    CHECK(first.margin(rows[r]) == squared[r]);
    CHECK(second.margin(rows[r]) == margin[r]);
    CHECK(second.value(rows[r]) == doctest::Approx(probability[r]).epsilon(1e-6));
  }
}

TEST_CASE("xgboost: what cannot be read is refused with the reason") {
  const auto refused = [](const Parts& parts, const char* reason) {
    CHECK(why_refused(parts.text()) == std::string("not an XGBoost model in JSON that can be read: ") + reason);
  };
  refused({.booster = "gblinear"}, "the booster is 'gblinear', not gbtree");
  refused({.objective = "multi:softmax"},
          "objective 'multi:softmax' is not known here; give a model with another, such as reg:squarederror or "
          "rank:pairwise");
  refused({.base = "much"}, "base_score is 'much', not a number");
  refused({.objective = "binary:logistic", .base = "1"}, "base_score is out of the range of its objective");
  refused({.classes = "3"}, "num_class is above 1; models with one score a row can be read");
  refused({.features = "1"}, "node 2 splits on feature 1 of 1");
  refused({.left = "[1,-1,0,-1,-1]"}, "the children of node 2 are not sound");
  refused({.left = "[1,-1,9,-1,-1]"}, "the children of node 2 are not sound");
  refused({.left = "[1,1,3,-1,-1]", .right = "[2,2,4,-1,-1]"}, "the children of node 2 are not sound");
  refused({.right = "[2,-1]"}, "'right_children' does not hold one number a node");
  refused({.condition = "[1e99,1,2,10,20]"}, "node 0 holds no finite number");
  refused({.left = "[1e99,-1,3,-1,-1]"}, "'left_children' holds 1e+99, no whole number of its range");
  refused({.type = "[1,0,0,0,0]"}, "there are splits by category");
  CHECK(why_refused("{}").substr(0, 20) == "not an XGBoost model");
  const std::string whole = Parts{}.text();
  for (std::size_t length = 0; length < whole.size(); length += 37)
    CHECK(why_refused(whole.substr(0, length)).substr(0, 20) == "not an XGBoost model");
}
