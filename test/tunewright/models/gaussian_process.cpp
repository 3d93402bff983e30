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
#include <string>
#include <utility>
#include <vector>

#include "support/model_answers.hpp"
#include "support/recording_model.hpp"
#include "support/refusal.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/data/safetensors.hpp"

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

TEST_CASE("gaussian process: every column counts, as the mean of the rows if told") {
  const double k = (1 + std::sqrt(5.0) + 5.0 / 3) * std::exp(-std::sqrt(5.0));  // the two programs above
  for (const std::size_t columns : {4U, 5U, 7U}) {
    for (std::size_t c = 0; c < columns; ++c) {
      CAPTURE(columns);
      CAPTURE(c);
      FeatureBatch x(columns);
      for (const float value : {0.0F, 2.0F}) {
        std::vector<float> row(columns, 7);
        row[c] = value;
        x.append_program(row);
      }
      GaussianProcess model{.length_scale = 2, .noise = 0.1};
      model.fit(x, std::vector<float>{0, 1}, {});
      CHECK(ask(model, x).score[1] == doctest::Approx(0.5 + 0.5 * (1 - k) / (1.1 - k)));
    }
  }
  FeatureBatch x(1);
  x.append_program(std::vector<float>{0});
  x.append_program(std::vector<float>{1, 3});  // mean 2
  GaussianProcess mean{.rows = models::RowsAs::Mean, .length_scale = 2, .noise = 0.1};
  mean.fit(x, std::vector<float>{0, 1}, {});
  CHECK(ask(mean, one_column({1})).score[0] == doctest::Approx(0.5));
}

TEST_CASE("gaussian process: the most likely length scale and noise of the grid, or of the rest of it") {
  // The logarithm of the likelihood of the two programs above is log((1 + noise - k) / (1 + noise + k)) / 2 and a
  // constant: it grows as k falls, so with the least length, 2 / 8, and as the noise grows.
  const FeatureBatch two = one_column({0, 2});
  const auto learned = [](GaussianProcess model, const FeatureBatch& x, const std::vector<float>& y) {
    model.fit(x, y, {});
    return std::pair(model.learned.length_scale, model.learned.noise);
  };
  CHECK(learned({}, two, {0, 1}) == std::pair(0.25, 0.5));
  CHECK(learned({.noise = 0.03}, two, {0, 1}) == std::pair(0.25, 0.03));
  CHECK(learned({.length_scale = 2}, two, {0, 1}) == std::pair(2.0, 0.5));
  // On a line. The six distances of 0 to 3 have an upper median of 2 or, in standard deviations, 4 / sqrt(5). The
  // likelihoods of the grid by Gaussian elimination: Matern 0.4895 at four times that, 0.4040 at twice, less elsewhere;
  // Rbf 1.3434 at twice, 0.4448 at four times; noise 0.001.
  const FeatureBatch line = one_column({0, 1, 2, 3});
  const std::vector<float> rising{0, 1.0F / 3, 2.0F / 3, 1};
  const auto smooth = learned({.kernel = Kernel::Matern52}, line, rising);
  CHECK(smooth.first == doctest::Approx(16 / std::sqrt(5.0)));
  CHECK(smooth.second == 1e-3);
  const auto smoother = learned({.kernel = Kernel::Rbf}, line, rising);
  CHECK(smoother.first == doctest::Approx(8 / std::sqrt(5.0)));
  CHECK(smoother.second == 1e-3);
}

TEST_CASE("gaussian process: equal labels have a small deviation far away") {
  GaussianProcess model{.kernel = Kernel::Rbf, .length_scale = 0.1, .noise = 0.1};
  model.fit(one_column({0, 2}), std::vector<float>{0.5F, 0.5F}, {});
  const Answer answer = ask(model, one_column({1}));  // 10 lengths from both
  CHECK(answer.score[0] == 0.5F);
  CHECK(answer.deviation[0] == doctest::Approx(1e-3));
}

TEST_CASE("gaussian process: the likelihood of labels closer together than the least signal") {
  // The two programs of the first test, with y - b = -1e-4 / 2, 1e-4 / 2, so that (y - b) . K^-1 (y - b) is
  // 1e-8 / 2 / (1.1 - k).
  const double k = std::exp(-0.5);
  GaussianProcess model{.kernel = Kernel::Rbf, .length_scale = 2, .noise = 0.1};
  model.fit(one_column({0, 2}), std::vector<float>{0.5F, 0.5001F}, {});
  CHECK(model.learned.signal == 1e-6);
  const double log_determinant = std::log(1.1 * 1.1 - k * k), square = 1e-8 / 2 / (1.1 - k);
  CHECK(model.learned.log_likelihood == doctest::Approx(-0.5 * (2 * std::log(1e-6) + log_determinant + square / 1e-6 +
                                                                2 * std::log(2 * std::numbers::pi)))
                                            .epsilon(1e-6));
}

TEST_CASE("gaussian process: a small curve has the length scale of a large one") {
  const auto learned = [](double height) {
    std::vector<float> at, y;
    for (int p = 0; p < 60; ++p) {
      at.push_back(static_cast<float>(p) / 60);
      y.push_back(static_cast<float>(0.5 + height * std::sin(40 * static_cast<double>(at.back()))));
    }
    GaussianProcess model;
    model.fit(one_column(at), y, {});
    return model.learned.length_scale;
  };
  CHECK(learned(4e-4) == learned(0.4));
}

TEST_CASE("gaussian process: rounding leaves deviations numbers, 0 or more") {
  // Programs this close leave a variance of the order of the noise, which is that of rounding: about a tenth of the
  // variances below come out negative.
  std::vector<float> at, y, between;
  for (int p = 0; p < 40; ++p) {
    at.push_back(static_cast<float>(p));
    y.push_back(static_cast<float>(p % 2));
    for (int tenth = 0; tenth < 10; ++tenth) between.push_back(at.back() + static_cast<float>(tenth) / 10);
  }
  GaussianProcess model{.kernel = Kernel::Rbf, .length_scale = 1, .noise = 1.5e-15};
  model.fit(one_column(at), y, {});
  for (const float deviation : ask(model, one_column(between)).deviation) CHECK(deviation >= 0);
}

TEST_CASE("gaussian process: a random sample of too many programs, with their labels") {
  std::vector<float> at, y;
  for (int p = 0; p < 1000; ++p) {
    at.push_back(static_cast<float>(p));
    y.push_back(static_cast<float>(p) / 1024);
  }
  GaussianProcess model{.length_scale = 1, .noise = 0.1, .most_programs = 100, .draw_when_more = true};
  model.fit(one_column(at), y, {});
  const GaussianProcess::Learned& learned = model.learned;
  REQUIRE(learned.inputs.size() == 100);
  const auto above = std::count_if(learned.inputs.begin(), learned.inputs.end(), [](double z) { return z > 0; });
  CHECK(above > 30);  // 50 are expected, with a standard deviation of 5
  CHECK(above < 70);
  // z = (p - 499.5) / sqrt((1000^2 - 1) / 12)
  const double deviation = std::sqrt(999'999.0 / 12);
  for (std::size_t i = 0; i < 100; ++i)
    CHECK(1024 * (learned.labels[i] + learned.mean) == doctest::Approx(499.5 + deviation * learned.inputs[i]));
}

TEST_CASE("gaussian process: a sample for the search keeps labels with programs") {
  std::vector<float> at, y;
  for (int p = 0; p < 450; ++p) {
    at.push_back(static_cast<float>(7 * p % 450));  // what is near is no neighbour in order
    y.push_back(0.5F + 0.4F * std::sin(at.back() * 0.02F));
  }
  GaussianProcess model{.length_scale = 0.5};
  model.fit(one_column(at), y, {});
  CHECK(model.learned.noise == 1e-3);  // the least of the grid: there is none
  for (std::size_t p = 0; p < 450; ++p) y[p] = static_cast<float>(static_cast<int>(at[p]) % 2);
  model.fit(one_column(at), y, {});
  CHECK(model.learned.noise == 0.5);  // the most: neighbours tell nothing of each other
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

TEST_CASE(
    "gaussian process: a file whose tensors do not fit is refused, one of more programs than a fit takes is not") {
  GaussianProcess model;
  std::stringstream empty;
  model.save(empty, 3);
  model.fit(one_column({0, 1, 2, 3}), std::vector<float>{0, 0.5F, 0.2F, 1}, {});
  std::stringstream stream;
  model.save(stream, 3);
  GaussianProcess small{.most_programs = 3};
  std::stringstream copy(stream.str());
  small.load(copy, 3);
  CHECK(small.learned.labels.size() == 4);
  small.load(empty, 3);
  CHECK(small.learned.labels.empty());
  const data::TensorFile good = data::read_safetensors(stream);
  const auto why = [&](const std::string& name, const data::Tensor& instead) {
    data::TensorFile file = good;
    for (data::Tensor& tensor : file.tensors) {
      if (tensor.name == name) tensor = instead;
    }
    std::stringstream changed;
    data::write_safetensors(changed, file.tensors, file.metadata);
    return test::refusal<std::runtime_error>([&] { small.load(changed, 3); });
  };
  const auto numbers = [](std::vector<double> values) { return data::Tensor::of("numbers", values); };
  const std::string foreign = "do not belong to one model", range = "is out of range";
  CHECK(why("kernel", data::Tensor::of("kernel", std::vector<std::uint8_t>{2})).find(foreign) != std::string::npos);
  CHECK(why("numbers", numbers({1, 0.1})).find(foreign) != std::string::npos);
  CHECK(why("labels", data::Tensor::of("labels", std::vector<double>(3))).find(foreign) != std::string::npos);
  CHECK(why("numbers", numbers({0, 0.1, 0})).find(range) != std::string::npos);
  CHECK(why("numbers", numbers({1, -0.1, 0})).find(range) != std::string::npos);
  CHECK(why("numbers", numbers({1, 0.1, std::nan("")})).find("not finite") != std::string::npos);
  CHECK(small.learned.labels.empty());
}

TEST_CASE("gaussian process: misuse is named, and too many programs") {
  const FeatureBatch x = one_column({1, 2, 3, 4});
  const std::vector<float> y{0, 0.5F, 0.2F, 1};
  GaussianProcess model{.most_programs = 3};
  CHECK_THROWS_WITH_AS(model.fit(x, y, {}),
                       "models::GaussianProcess::fit: 4 programs where most_programs = 3; raise it (time grows "
                       "with the cube) or set draw_when_more",
                       std::invalid_argument);
  model.fit(one_column({1, 2, 3}), std::vector<float>{0, 0.5F, 1}, {});
  CHECK(model.learned.labels.size() == 3);
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
       {GaussianProcess{.length_scale = -1}, GaussianProcess{.noise = -1}, GaussianProcess{.length_scale = infinity},
        GaussianProcess{.noise = infinity}, GaussianProcess{.most_programs = 0},
        GaussianProcess{.kernel = Kernel::Rbf, .length_scale = 1e9, .noise = 1e-30}}) {
    GaussianProcess copy = wrong;
    CHECK_THROWS_AS(copy.fit(x, y, {}), std::invalid_argument);
  }
}
