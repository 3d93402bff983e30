// SPDX-License-Identifier: Apache-2.0
#include "tunewright/models/gaussian_process.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "support/model_answers.hpp"
#include "support/recording_model.hpp"
#include "tunewright/core/rng.hpp"

using namespace tunewright;
using models::GaussianProcess;
using models::Kernel;
using test::Answer;
using test::ask;
using test::one_column;

static_assert(CostModel<GaussianProcess> && UncertainCostModel<GaussianProcess> &&
              EmbeddingCostModel<GaussianProcess> && PersistentCostModel<GaussianProcess>);

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("gaussian process: two programs, by hand") {
  // x = 0, 2 becomes z = -1, 1, at distance 2. y - b = -1/2, 1/2. With l = 2 and noise 0.1 the matrix
  // (1.1, k; k, 1.1) has the eigenvalues 1.1 +- k, and y - b belongs to 1.1 - k.
  for (const Kernel kernel : {Kernel::Rbf, Kernel::Matern52}) {
    const double k = kernel == Kernel::Rbf ? std::exp(-0.5)                                               // 0.6065
                                           : (1 + std::sqrt(5.0) + 5.0 / 3) * std::exp(-std::sqrt(5.0));  // 0.5240
    GaussianProcess model{.kernel = kernel, .length_scale = 2, .noise = 0.1};
    model.fit(one_column({0, 2}), std::vector<float>{0, 1}, {});
    const Answer answer = ask(model, one_column({0, 1, 2, 1000}));
    CHECK(answer.score[2] == doctest::Approx(0.5 + 0.5 * (1 - k) / (1.1 - k)));
    CHECK(answer.score[0] == doctest::Approx(0.5 - 0.5 * (1 - k) / (1.1 - k)));
    CHECK(answer.score[1] == doctest::Approx(0.5));
    const double signal = 0.25 / (1.1 - k);
    CHECK(model.learned.signal == doctest::Approx(signal));
    const double known = (1 + k) * (1 + k) / (2 * (1.1 + k)) + (1 - k) * (1 - k) / (2 * (1.1 - k));
    CHECK(answer.deviation[2] == doctest::Approx(std::sqrt(signal * (1 - known))));
    CHECK(answer.deviation[3] > answer.deviation[1]);  // as far as it goes, 10 deviations
    CHECK(answer.deviation[3] == doctest::Approx(std::sqrt(signal)).epsilon(0.01));
    const double log_determinant = std::log(1.1 * 1.1 - k * k);
    CHECK(model.learned.log_likelihood ==
          doctest::Approx(-0.5 * (2 * std::log(signal) + log_determinant + 2 + 2 * std::log(2 * std::numbers::pi))));
    CHECK(model.embed(one_column({2})).row(0)[0] == 0.5F);  // z / l
  }
}

TEST_CASE("gaussian process: learns a curve, is sure near labels and unsure between") {
  std::vector<float> at, y;
  for (int i = 0; i < 40; ++i) {
    at.push_back(static_cast<float>(i < 20 ? i : i + 30));  // nothing between 19 and 50
    y.push_back(0.5F + 0.4F * std::sin(at.back() * 0.3F));
  }
  for (const Kernel kernel : {Kernel::Rbf, Kernel::Matern52}) {
    GaussianProcess model{.kernel = kernel};
    model.fit(one_column(at), y, {});
    const Answer answer = ask(model, one_column({7.5F, 35, 60.5F}));
    CHECK(answer.score[0] == doctest::Approx(0.5 + 0.4 * std::sin(7.5 * 0.3)).epsilon(0.05));
    CHECK(answer.score[2] == doctest::Approx(0.5 + 0.4 * std::sin(60.5 * 0.3)).epsilon(0.05));
    CHECK(answer.deviation[1] > 5 * answer.deviation[0]);
    CHECK(model.learned.noise == 1e-3);  // the least of the grid: there is none
  }
}

TEST_CASE("gaussian process: noise is found and not in the deviation") {
  Rng rng(8);
  std::vector<float> at, y;
  for (int i = 0; i < 300; ++i) {
    at.push_back(static_cast<float>(rng.uniform()));
    y.push_back(static_cast<float>(0.5 + 0.1 * at.back() + 0.1 * rng.normal()));
    y.back() = std::max(y.back(), 0.0F);
  }
  GaussianProcess model;
  model.fit(one_column(at), y, {});
  CHECK(model.learned.noise >= 0.1);
  const Answer answer = ask(model, one_column({0.5F}));
  CHECK(answer.score[0] == doctest::Approx(0.55).epsilon(0.1));
  CHECK(answer.deviation[0] < 0.05F);
}

TEST_CASE("gaussian process: the same bits at any number of threads, in any order, once kept") {
  Rng rng(9);
  FeatureBatch x(5), reversed(5);
  std::vector<float> y;
  for (int p = 0; p < 250; ++p) {
    std::vector<float> rows(5 * (1 + rng.below(3)));
    for (float& value : rows) value = static_cast<float>(rng.uniform());
    x.append_program(rows);
    y.push_back(static_cast<float>(rng.uniform()));
  }
  for (std::size_t p = 250; p-- > 0;) reversed.append_program(x.program(p));
  GaussianProcess one{.threads = 1}, three{.threads = 3}, loaded;
  one.fit(x, y, {});
  three.fit(x, y, {});
  const Answer answer = ask(one, x), backward = ask(one, reversed);
  CHECK(ask(three, x) == answer);
  for (std::size_t p = 0; p < 250; ++p) {
    CHECK(backward.score[249 - p] == answer.score[p]);
    CHECK(backward.deviation[249 - p] == answer.deviation[p]);
  }
  std::vector<float> score(250);
  one.predict(x, score);
  CHECK(score == answer.score);
  std::stringstream file;
  one.save(file, 3);
  const std::string text = file.str();
  loaded.load(file, 3);
  CHECK(ask(loaded, x) == answer);
  std::istringstream wrong(text), shorter(text.substr(0, text.size() - 1));
  CHECK_THROWS_AS(loaded.load(wrong, 4), std::runtime_error);
  CHECK_THROWS_AS(loaded.load(shorter, 3), std::runtime_error);
  CHECK(ask(loaded, x) == answer);
}

TEST_CASE("gaussian process: laws of every model") {
  FeatureBatch x(2);
  x.append_program(std::vector<float>{1, 2});
  x.close_program();
  x.append_program(std::vector<float>{infinity, 0});
  GaussianProcess model;
  CHECK(ask(model, x) == Answer{{0, -infinity, 0}, {1, infinity, 1}});
  CHECK(model.embed(x).rows() == 3);
  model.fit(x, std::vector<float>{0.5F, 0.1F, 0.9F}, {});
  const Answer answer = ask(model, x);
  CHECK(answer.score[1] == -infinity);
  CHECK(answer.deviation[1] == infinity);
  CHECK(answer.score[2] > answer.score[0]);
  CHECK(model.embed(x).row(1)[0] == 0);
  model.fit(one_column({1, 2, 3}), std::vector<float>(3, 0.0F), {});  // all failed
  CHECK(ask(model, one_column({2})).score[0] == 0);
  CHECK(std::isfinite(ask(model, one_column({2})).deviation[0]));
  model.fit(FeatureBatch(2), {}, {});
  CHECK(ask(model, x).score[0] == 0);
}

TEST_CASE("gaussian process: misuse is named, and too many programs") {
  const FeatureBatch x = one_column({1, 2, 3, 4});
  const std::vector<float> y{0, 0.5F, 0.2F, 1};
  GaussianProcess model{.most_programs = 3};
  CHECK_THROWS_WITH_AS(model.fit(x, y, {}),
                       "models::GaussianProcess::fit: 4 programs where most_programs = 3; raise it (time grows "
                       "with the cube) or set draw_when_more",
                       std::invalid_argument);
  model.draw_when_more = true;
  model.fit(x, y, {});
  CHECK(model.learned.labels.size() == 3);
  std::vector<float> score(1);
  FeatureBatch wide(2);
  wide.append_program(std::vector<float>{1, 2});
  CHECK_THROWS_AS(model.predict(wide, score), std::invalid_argument);
  CHECK_THROWS_AS((void)model.embed(wide), std::invalid_argument);
  CHECK_THROWS_AS(model.predict(x, score), std::invalid_argument);
  CHECK_THROWS_AS(model.fit(x, std::vector<float>{1}, {}), std::invalid_argument);
  for (const GaussianProcess& wrong :
       {GaussianProcess{.length_scale = -1}, GaussianProcess{.noise = -1}, GaussianProcess{.most_programs = 0},
        GaussianProcess{.kernel = Kernel::Rbf, .length_scale = 1e9, .noise = 1e-30}}) {
    GaussianProcess copy = wrong;
    CHECK_THROWS_AS(copy.fit(x, y, {}), std::invalid_argument);
  }
}
