// SPDX-License-Identifier: Apache-2.0
#include "tunewright/models/with_dropout.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "support/refusal.hpp"
#include "tunewright/models/random.hpp"

using namespace tunewright;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// The thinned network of pass k scores every program 1000 + k; the second is not described.
struct Counting {
  float dropout = 0;
  float fitted_with = -1;

  void predict(const FeatureBatch&, std::span<float>) const {}
  void predict_with_dropout(const FeatureBatch&, float, std::uint64_t pass, std::span<float> score) const {
    for (float& one : score) one = 1000.0F + static_cast<float>(pass);
    score[1] = -infinity;
  }
  void fit(const FeatureBatch&, std::span<const float>, std::span<const std::uint32_t>) { fitted_with = dropout; }
};

using Model = models::WithDropout<Counting>;

static_assert(UncertainCostModel<Model> && !EmbeddingCostModel<Model> && !PersistentCostModel<Model>);
static_assert(!models::DropoutCostModel<models::Random>);

FeatureBatch two_programs() {
  FeatureBatch x(1);
  x.append_program(std::vector<float>{1});
  x.close_program();
  return x;
}

}  // namespace

TEST_CASE("mean and deviation over passes by hand") {
  const Model model{.passes = 4};  // 0, 1, 2, 3: mean 1.5, variance 5 / 3
  std::vector<float> score(2), deviation(2), mean(2);
  model.predict_with_deviation(two_programs(), score, deviation);
  CHECK(score[0] == doctest::Approx(1001.5));
  CHECK(deviation[0] == doctest::Approx(std::sqrt(5.0 / 3)));
  CHECK(score[1] == -infinity);
  CHECK(deviation[1] == infinity);
  model.predict(two_programs(), mean);
  CHECK(mean == score);
}

TEST_CASE("the model is trained with the share that is left out") {
  Model model{.dropout = 0.25F};
  model.fit(two_programs(), std::vector<float>{1, 0}, {});
  CHECK(model.model.fitted_with == 0.25F);
}

TEST_CASE("misuse is refused by name") {
  std::vector<float> score(2), deviation(2);
  const auto refused = [&](Model model) {
    return test::refusal([&] { model.predict_with_deviation(two_programs(), score, deviation); });
  };
  CHECK(refused({.dropout = 0}).find("models::WithDropout: dropout") == 0);
  CHECK(refused({.passes = 1}).find("passes") != std::string::npos);
  deviation.resize(1);
  CHECK(refused({}).find("1 scores") != std::string::npos);
}
