// SPDX-License-Identifier: Apache-2.0
#include "tunewright/adaptations/momentum.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "support/descent_line.hpp"
#include "support/recording_model.hpp"
#include "support/refusal.hpp"

using namespace tunewright;
using adaptations::Momentum;
using test::DescentLine;
using test::one_column;
using test::refusal;
using Labels = std::vector<float>;

static_assert(FineTunableCostModel<DescentLine>);
static_assert(AdaptationFor<Momentum, DescentLine>);
static_assert(!AdaptationFor<Momentum, test::RecordingModel>);

namespace {

DescentLine source(float slope = 0, float bias = 0) {
  DescentLine model;
  model.weights = {slope, bias};
  return model;
}

}  // namespace

TEST_CASE("the released form by hand: train a copy, follow half of the way") {
  // One program (1, 1), one step of rate 0.5:  w + 0.5 (1 - score), for slope and bias alike.
  DescentLine model = source();
  Momentum moa{.momentum = 0.5, .every = 1};
  moa.update(model, one_column({1}), Labels{1}, {});
  CHECK(model.weights == Labels{0.5F, 0.5F});
  CHECK(moa.slow == Labels{0.25F, 0.25F});
  moa.update(model, one_column({1}), Labels{1}, {});  // from 0.25: the score is 0.5
  CHECK(model.weights == Labels{0.5F, 0.5F});
  CHECK(moa.slow == Labels{0.375F, 0.375F});
}

TEST_CASE("each training begins at the slow weights, not where the last one ended") {
  // Steps of rate 0.25: from 0 to 0.25, and from 0.125, where the score is 0.25, to 0.125 + 0.25 * 0.75.
  DescentLine model = source();
  Momentum moa{.momentum = 0.5, .every = 1, .training = DescentLine::steps(1, 0.25F)};
  moa.update(model, one_column({1}), Labels{1}, {});
  CHECK(model.weights == Labels{0.25F, 0.25F});
  moa.update(model, one_column({1}), Labels{1}, {});
  CHECK(model.weights == Labels{0.3125F, 0.3125F});
}

TEST_CASE("the printed form by hand: what training changed is added to shrunk weights") {
  DescentLine model = source();
  Momentum moa{.form = Momentum::Form::Printed, .momentum = 0.5, .every = 1};
  moa.update(model, one_column({1}), Labels{1}, {});
  CHECK(moa.slow == Labels{0.25F, 0.25F});
  moa.update(model, one_column({1}), Labels{1}, {});  // 0.5 * 0.25 + 0.5 * (0.5 - 0.25)
  CHECK(model.weights == Labels{0.5F, 0.5F});
  CHECK(moa.slow == Labels{0.25F, 0.25F});
}

TEST_CASE("m = 1 leaves the slow weights, m = 0 copies") {
  DescentLine model = source(0.125F, 0.25F);
  Momentum stays{.momentum = 1, .every = 1};
  stays.update(model, one_column({1}), Labels{1}, {});
  CHECK(stays.slow == Labels{0.125F, 0.25F});
  CHECK(model.weights != stays.slow);
  Momentum copies{.momentum = 0, .every = 1};
  copies.update(model, one_column({1}), Labels{1}, {});
  CHECK(copies.slow == model.weights);
}

TEST_CASE("every fourth update trains, the first one included, and the scale of inputs is fitted again") {
  DescentLine model = source();
  Momentum moa;
  for (unsigned update = 1; update <= 9; ++update) {
    moa.update(model, one_column({1}), Labels{1}, {});
    CHECK(model.rescaled == (update + 3) / 4);
  }
  // Each of the three trainings ends at 0.5, and the slow weights go 0.01 of the way there.
  CHECK(moa.slow[0] == doctest::Approx(0.5 * (1 - 0.99 * 0.99 * 0.99)));
}

TEST_CASE("without measurements nothing happens; training may be chosen") {
  DescentLine model = source();
  Momentum moa{.training = DescentLine::steps(1, 1)};
  moa.update(model, FeatureBatch(1), Labels{}, {});
  CHECK(model.weights == Labels{0, 0});
  CHECK(moa.updates == 0);
  moa.update(model, one_column({1}), Labels{1}, {});
  CHECK(model.weights == Labels{1, 1});
}

TEST_CASE("equal labels under a ranking loss are no update, and do not count as one") {
  DescentLine model = source(0.5F, 0.5F);
  model.training.loss = nn::Loss::LambdaRank;
  Momentum moa{.momentum = 0.5};
  moa.update(model, one_column({1}), Labels{1}, {});
  moa.update(model, one_column({1, 2}), Labels{0, 0}, {});
  CHECK(model.weights == Labels{0.5F, 0.5F});
  CHECK(moa.slow == Labels{0.5F, 0.5F});
  CHECK(moa.updates == 0);
  moa.update(model, one_column({1, 2}), Labels{0, 1}, {});  // now the first
  CHECK(model.rescaled == 1);
  CHECK(moa.updates == 1);
  CHECK(moa.slow != Labels{0.5F, 0.5F});
}

TEST_CASE("a model without weights and options out of range are refused") {
  DescentLine empty, model = source();
  CHECK(refusal([&] { Momentum{}.update(empty, one_column({1}), Labels{1}, {}); }) ==
        "adaptations::Momentum: the model has not learned anything yet; fit it on the source or load it "
        "before");
  const auto update = [&](Momentum moa) { return refusal([&] { moa.update(model, one_column({1}), Labels{1}, {}); }); };
  CHECK(update({.momentum = 1.5}) == "Momentum: momentum is 1.5; give a share, 0 to 1");
  CHECK(update({.every = 0}) == "Momentum: every is 0; give at least 1");
  const Momentum backwards{.training = nn::Training{.learning_rate = -1}};
  CHECK(refusal([&] { backwards.check_options(); }).find("adaptations::Momentum: learning_rate") == 0);
  const std::vector<std::uint32_t> groups{1, 2};
  CHECK(refusal([&] { Momentum{}.update(model, one_column({1}), Labels{1}, groups); }) ==
        "adaptations::Momentum::fit: 2 group numbers for 1 programs; pass one a program, or none for a single task");
}
