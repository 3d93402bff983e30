// SPDX-License-Identifier: Apache-2.0
// The adaptations that look into a network, with a real one.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "support/network_lessons.hpp"
#include "support/refusal.hpp"
#include "tunewright/adaptations/fine_tune.hpp"
#include "tunewright/adaptations/momentum.hpp"
#include "tunewright/adaptations/shared_trunk.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/models/pattern_aware.hpp"
#include "tunewright/models/primitive_attention.hpp"

using namespace tunewright;
using adaptations::LabelledPrograms;
using models::PrimitiveAttention;

static_assert(AdaptationFor<adaptations::FineTune, PrimitiveAttention>);
static_assert(AdaptationFor<adaptations::Momentum, PrimitiveAttention>);
static_assert(AdaptationFor<adaptations::SharedTrunk, PrimitiveAttention>);

namespace {

/// Two rows a program; y follows the mean of their first columns, as `sign` says.
LabelledPrograms measured(std::size_t n, std::uint64_t seed, float sign) {
  LabelledPrograms data{FeatureBatch(3), {}, {}};
  Rng rng(seed);
  for (std::size_t p = 0; p < n; ++p) {
    std::vector<float> rows(6);
    for (float& value : rows) value = static_cast<float>(rng.uniform());
    data.x.append_program(rows);
    const float mean = (rows[0] + rows[3]) / 2;
    data.y.push_back(sign > 0 ? mean : 1 - mean);
  }
  return data;
}

PrimitiveAttention network(std::size_t heads = 1) {
  return {.width = 16,
          .attention_heads = 2,
          .heads = heads,
          .training = {.loss = nn::Loss::MeanSquared, .epochs = 1, .least_steps = 60, .learning_rate = 1e-2F},
          .threads = 1};
}
PrimitiveAttention trained_elsewhere() {
  PrimitiveAttention model = network();
  const LabelledPrograms source = measured(64, 1, 1);
  model.fit(source.x, source.y, {});
  return model;
}
std::vector<float> weights(PrimitiveAttention& model) { return {model.parameters().begin(), model.parameters().end()}; }

}  // namespace

TEST_CASE("fine-tuning the attention head leaves the encoder bit for bit") {
  PrimitiveAttention model = trained_elsewhere();
  const std::vector<float> before = weights(model);
  const LabelledPrograms own = measured(16, 2, -1);
  adaptations::FineTune tune{.trained = {"attention", "head"}};
  tune.update(model, own.x, own.y, own.group);
  const std::vector<float> after = weights(model);
  bool any_moved = false;
  for (const nn::ParameterBlock& block : model.blocks()) {
    const auto first = static_cast<std::ptrdiff_t>(block.first);
    const auto last = first + static_cast<std::ptrdiff_t>(block.size());
    const bool same = std::equal(before.begin() + first, before.begin() + last, after.begin() + first);
    const bool free = block.name.starts_with("attention") || block.name.starts_with("head");
    if (!free) CHECK(same);
    any_moved = any_moved || !same;
  }
  CHECK(any_moved);
  tune.update(model, own.x, own.y, own.group);  // starts at the source's weights once more
  CHECK(weights(model) == after);
}

TEST_CASE("momentum starts each training at the slow weights") {
  PrimitiveAttention model = trained_elsewhere();
  const std::vector<float> source = weights(model);
  const LabelledPrograms own = measured(16, 3, -1);
  adaptations::Momentum frozen{.momentum = 1, .every = 1};
  frozen.update(model, own.x, own.y, own.group);
  const std::vector<float> once = weights(model);
  CHECK(once != source);
  CHECK(frozen.slow == source);
  frozen.update(model, own.x, own.y, own.group);
  CHECK(weights(model) == once);
}

TEST_CASE("a shared trunk learns each device at its head") {
  PrimitiveAttention model = network(2);
  model.training.least_steps = 400;
  const LabelledPrograms own = measured(24, 4, -1);
  adaptations::SharedTrunk shared{.sources = {measured(96, 5, 1)}};
  shared.update(model, own.x, own.y, own.group);
  const LabelledPrograms unseen = measured(64, 6, 1);
  std::vector<float> here(64), there(64);
  model.predict_head(unseen.x, 0, here);
  model.predict_head(unseen.x, 1, there);
  // Both know what counts, and in which direction on their device.
  int agree = 0;
  for (std::size_t i = 0; i < 64; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      agree += (here[i] > here[j]) == (unseen.y[i] < unseen.y[j]) ? 1 : 0;
      agree += (there[i] > there[j]) == (unseen.y[i] > unseen.y[j]) ? 1 : 0;
    }
  }
  CHECK(agree > 64 * 63 * 0.7);
  PrimitiveAttention one = network(1);
  CHECK(test::refusal([&] { shared.update(one, own.x, own.y, own.group); }).find("need 2 heads, but the model has 1") !=
        std::string::npos);
}

TEST_CASE("a first batch of failures leaves the source as it is, by every network adaptation") {
  const LabelledPrograms own = measured(16, 7, 1);
  const std::vector<float> failed(16, 0.0F);
  const auto stays = [&](auto adaptation) {
    PrimitiveAttention model = network();
    model.training.loss = nn::Loss::LambdaRank;
    const LabelledPrograms source = measured(64, 1, 1);
    model.fit(source.x, source.y, {});
    const std::vector<float> before = weights(model);
    adaptation.update(model, own.x, failed, {});
    CHECK(weights(model) == before);
    adaptation.update(model, own.x, own.y, {});
    CHECK(weights(model) != before);
  };
  stays(adaptations::FineTune{});
  stays(adaptations::Momentum{});
}

namespace {

models::PatternAware normalised(const test::NetworkLesson& lesson) {
  models::PatternAware model{
      .hidden = 16, .dataflow_columns = 2, .training = {.epochs = 2, .least_steps = 8}, .threads = 1};
  model.fit(lesson.x, lesson.y, lesson.group);
  return model;
}
std::vector<float> statistics(models::PatternAware& model) {
  return {model.statistics().begin(), model.statistics().end()};
}

/// Updates twice with the same measurements, each time from the same weights.
template <class Adaptation>
void check_same_twice(Adaptation adaptation) {
  models::PatternAware model = normalised(test::make_lesson(100, 3));
  const std::vector<float> source = statistics(model);
  const auto own = test::make_lesson(40, 4);
  adaptation.update(model, own.x, own.y, own.group);
  const std::vector<float> once = statistics(model), score = test::predicted(model, own.x);
  CHECK(once != source);
  adaptation.update(model, own.x, own.y, own.group);
  CHECK(statistics(model) == once);
  CHECK(test::predicted(model, own.x) == score);
}

}  // namespace

TEST_CASE("running averages of batch normalisation start at the source's with each training") {
  check_same_twice(adaptations::FineTune{});
  check_same_twice(adaptations::Momentum{.momentum = 1, .every = 1});
}

TEST_CASE("running averages of a frozen layer stay") {
  models::PatternAware model = normalised(test::make_lesson(100, 3));
  const std::vector<float> source = statistics(model);
  const auto own = test::make_lesson(40, 4);
  adaptations::FineTune{.trained = {"output"}}.update(model, own.x, own.y, own.group);
  CHECK(statistics(model) == source);
  adaptations::FineTune{.frozen = {"norm.gain"}}.update(model, own.x, own.y, own.group);  // a part of the layer
  CHECK(statistics(model) != source);
}
