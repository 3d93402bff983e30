// SPDX-License-Identifier: Apache-2.0
#include "tunewright/nn/training.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "tunewright/nn/optimiser.hpp"
#include "tunewright/nn/parameters.hpp"

using namespace tunewright;
using doctest::Approx;

TEST_CASE("learning rates by epoch") {
  nn::Training training{.learning_rate = 0.1F, .step_epochs = 3, .step_factor = 0.5F};
  CHECK(training.learning_rate_in(40, 50) == 0.1F);
  training.schedule = nn::Schedule::Step;
  CHECK(training.learning_rate_in(2, 50) == Approx(0.1));
  CHECK(training.learning_rate_in(3, 50) == Approx(0.05));
  CHECK(training.learning_rate_in(6, 50) == Approx(0.025));
  training.schedule = nn::Schedule::Cosine;
  CHECK(training.learning_rate_in(0, 50) == Approx(0.1));
  CHECK(training.learning_rate_in(25, 50) == Approx(0.05));
}

TEST_CASE("few mini-batches an epoch make more epochs") {
  const nn::Training training{.epochs = 50, .least_steps = 300};
  CHECK(training.epochs_of(1) == 300);
  CHECK(training.epochs_of(4) == 75);
  CHECK(training.epochs_of(7) == 50);
}

TEST_CASE("stopping early: the smoothed loss has no new minimum") {
  nn::EarlyStopping stop(2);
  stop.batch(1);
  CHECK_FALSE(stop.epoch());
  stop.batch(1);
  CHECK_FALSE(stop.epoch());  // 1 again
  stop.batch(0);
  CHECK_FALSE(stop.epoch());  // 0.95: better
  stop.batch(2);
  CHECK_FALSE(stop.epoch());
  stop.batch(2);
  CHECK(stop.epoch());
  nn::EarlyStopping never(0);
  never.batch(1);
  for (int i = 0; i < 5; ++i) CHECK_FALSE(never.epoch());
}

TEST_CASE("steps by hand") {
  const auto after = [](nn::Training training, std::vector<double> slopes, double norm = 0) {
    nn::Stepper<double> stepper(training, 1);
    std::vector<double> w{1};
    for (const double slope : slopes) {
      stepper.begin(0.125F, norm);
      stepper.step({0, 1}, std::vector<double>{slope}, w);
    }
    return w[0];
  };
  const nn::Training sgd{.optimiser = nn::Optimiser::Sgd, .weight_decay = 0};
  CHECK(after(sgd, {2}) == Approx(0.75));
  CHECK(after(sgd, {2}, 4) == Approx(1 - 0.125 * 2 * 0.5 / 4));  // shortened from 4 to 0.5
  CHECK(after(sgd, {2}, 0.25) == Approx(0.75));                  // a short gradient is not lengthened
  nn::Training unlimited = sgd;
  unlimited.clip_norm = 0;
  CHECK(after(unlimited, {2}, 4) == Approx(0.75));
  nn::Training momentum = sgd;
  momentum.momentum = 0.5F;
  CHECK(after(momentum, {2, 2}) == Approx(1 - 0.125 * (2 + 3)));
  CHECK(after(momentum, {2, 2}, 4) == Approx(1 - 0.125 * (0.25 + 0.375)));
  nn::Training decay = sgd;
  decay.weight_decay = 0.5F;
  CHECK(after(decay, {2}) == Approx(1 - 0.125 * 2.5));
  decay.momentum = 0.5F;
  // v = 2.5, w = 0.6875; v = 1.25 + 2 + 0.34375 = 3.59375
  CHECK(after(decay, {2, 2}) == Approx(0.6875 - 0.125 * 3.59375));
  decay.decoupled_decay = true;
  // v = 2, w = 0.9375 - 0.25 = 0.6875; v = 3
  CHECK(after(decay, {2, 2}) == Approx(0.9375 * 0.6875 - 0.125 * 3));
  decay.momentum = 0;
  CHECK(after(decay, {2}) == Approx(0.9375 - 0.125 * 2));
  nn::Training adam{.weight_decay = 0};
  CHECK(after(adam, {2}) == Approx(0.875));  // m / sqrt(v) is the sign at first
  // m = 0.18, v = 0.003996; unbiased 0.947368 and 1.998999; 0.125 * 0.670058
  CHECK(after(adam, {2, 0}) == Approx(0.875 - 0.125 * 0.670058));
  CHECK(after(adam, {2}, 4) == Approx(0.875));          // both moments are shortened
  CHECK(after(adam, {1e-8}) == Approx(1 - 0.125 / 2));  // 1e-8 / (1e-8 + 1e-8)
  adam.weight_decay = 0.5F;
  // g = 2.5: m = 0.25, v = 0.00625, w = 0.875; g = 0.4375: m = 0.26875, v = 0.00643516; unbiased 1.414474 and 3.219188
  CHECK(after(adam, {2, 0}) == Approx(0.875 - 0.125 * 0.788355));
  adam.decoupled_decay = true;
  CHECK(after(adam, {2}) == Approx(1 - 0.125 * 0.5 - 0.125));
}

TEST_CASE("a range has the gradient and the moments of its own weights") {
  const auto after = [](const nn::Training& training) {
    nn::Stepper<double> stepper(training, 2);
    std::vector<double> w{1, 1};
    stepper.begin(0.125F, 0);
    for (const std::size_t first : {0U, 1U}) stepper.step({first, first + 1}, std::vector<double>{2, -1}, w);
    return w;
  };
  const auto adam = after({.weight_decay = 0});
  CHECK(adam[0] == Approx(0.875));
  CHECK(adam[1] == Approx(1.125));
  const auto momentum = after({.optimiser = nn::Optimiser::Sgd, .momentum = 0.5F, .weight_decay = 0});
  CHECK(momentum[0] == Approx(0.75));
  CHECK(momentum[1] == Approx(1.125));
}

TEST_CASE("what is frozen is left out, and the rest is cut into pieces") {
  nn::ParameterLayout layout;
  layout.add("encoder.0.weight", 100, 200, -1, 1);
  layout.add("encoder.0.bias", 1, 200, 0, 0);
  layout.add("output.weight", 200, 1, 0.5F, 0.5F);
  using Ranges = std::vector<nn::ParameterRange>;
  CHECK(layout.without({}) == Ranges{{0, 20400}});
  const std::vector<std::string> bias{"encoder.0.bias"}, all{"encoder", "output"}, none{"trunk"};
  CHECK(layout.without(bias) == Ranges{{0, 20000}, {20200, 20400}});
  CHECK(layout.without(all).empty());
  CHECK_THROWS_WITH_AS((void)layout.without(none), doctest::Contains("output.weight"), std::invalid_argument);
  CHECK(layout.is_frozen("output", all));
  CHECK(layout.is_frozen("encoder.0", all));
  CHECK_FALSE(layout.is_frozen("encoder.0", bias));  // its weight is not
  CHECK(nn::pieces_of(layout.without(bias)) == Ranges{{0, 16384}, {16384, 20000}, {20200, 20400}});
  std::vector<double> w(layout.size());
  layout.initialise(Rng(1), std::span(w));
  CHECK(w[0] != w[1]);
  CHECK(w[20000] == 0);
  CHECK(w[20200] == 0.5);
}

TEST_CASE("labels that have no gradient") {
  constexpr float unknown = std::numeric_limits<float>::quiet_NaN();
  using Labels = std::vector<float>;
  using Groups = std::vector<std::uint32_t>;
  const auto teaches = [](nn::Training training, const Labels& y, const Groups& group = {}) {
    return nn::has_gradient<float>(training, y, group);
  };
  for (const auto loss : {nn::Loss::LambdaRank, nn::Loss::Pairwise}) {
    const nn::Training across{.loss = loss}, within{.loss = loss, .across_tasks = false};
    CHECK_FALSE(teaches(across, {}));
    CHECK_FALSE(teaches(across, {0.5F}));
    CHECK_FALSE(teaches(across, {0, 0, 0}));
    CHECK_FALSE(teaches(across, {0.5F, unknown, 0.5F}));
    CHECK(teaches(across, {0.5F, unknown, 0.25F}));
    CHECK(teaches(across, {0.5F, 0.25F}, {1, 2}));
    CHECK_FALSE(teaches(within, {0.5F, 0.25F}, {1, 2}));
    CHECK(teaches(within, {0.5F, 0.25F, 0.25F}, {1, 2, 1}));
    CHECK(teaches(within, {0.5F, 0.25F}));
  }
  CHECK_FALSE(teaches({}, {0, 1e-20F}));  // 2^y is alike
  CHECK(teaches({.loss = nn::Loss::Pairwise}, {0, 1e-20F}));
  for (const auto loss : {nn::Loss::MeanSquared, nn::Loss::Quantile}) {
    CHECK(teaches({.loss = loss}, {unknown, 0}));
    CHECK_FALSE(teaches({.loss = loss}, {unknown, unknown}));
  }
  CHECK(teaches({.loss = nn::Loss::WeightedMeanSquared}, {0, 0.5F}));
  CHECK_FALSE(teaches({.loss = nn::Loss::WeightedMeanSquared}, {0, unknown}));
}
