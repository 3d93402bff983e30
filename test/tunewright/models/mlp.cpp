// SPDX-License-Identifier: Apache-2.0
#include "tunewright/models/mlp.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/network_lessons.hpp"
#include "support/refusal.hpp"

using namespace tunewright;
using models::Mlp;

static_assert(FineTunableCostModel<Mlp> && EmbeddingCostModel<Mlp> && PersistentCostModel<Mlp>);
static_assert(!UncertainCostModel<Mlp>);

TEST_CASE("as many parameters as TenSet's network") {
  // 174*256+256 + 256*256+256 + 2 (256*256+256) + 256+1
  CHECK(Mlp::Network(174, 256, 1).layout().size() == 242'433);
}

TEST_CASE("a network by hand") {
  // One column, one hidden unit; all weights 1 but the bias of the output, 0.5. Columns are divided by 4, the
  // largest: program {2, 4} has encodings 0.5 + 1 -> 1.5 + 1 = 2.5 and 1 + 1 -> 3 (biases are 1), the sum is
  // 5.5; each residual block makes 2 s + 1: 12, 25; score 25.5.
  Mlp model{.hidden = 1, .training = {.loss = nn::Loss::MeanSquared, .epochs = 1, .least_steps = 1}};
  FeatureBatch x(1);
  x.append_program(std::vector<float>{2, 4});
  model.fit(x, std::vector<float>{1}, {});
  const auto w = model.parameters();
  REQUIRE(w.size() == 10);
  for (float& value : w) value = 1;
  w[9] = 0.5F;
  CHECK(test::predicted(model, x)[0] == doctest::Approx(25.5));
  CHECK(model.embed(x).row(0)[0] == doctest::Approx(25));
}

TEST_CASE("learns what a product of two features makes of throughput") {
  const auto train = test::make_lesson(600, 1), held_out = test::make_lesson(300, 2);
  Mlp model{.hidden = 32, .training = {.epochs = 60, .batch_programs = 128, .learning_rate = 3e-3F}};
  model.fit(train.x, train.y, train.group);
  CHECK(test::accuracy(model, held_out) > 0.9);
}

TEST_CASE("training that diverges changes nothing, and a program beyond all others only leaves its mini-batches out") {
  const auto lesson = test::make_lesson(300, 1);
  Mlp model{.hidden = 16, .training = {.loss = nn::Loss::MeanSquared, .epochs = 3}};
  model.fit(lesson.x, lesson.y, lesson.group);
  const std::vector<float> before(model.parameters().begin(), model.parameters().end());
  nn::Training how = model.training;
  how.optimiser = nn::Optimiser::Sgd;
  how.clip_norm = 0;
  for (const float rate : {1e2F, 1e10F, 1e20F, 1e38F}) {
    CAPTURE(rate);
    how.learning_rate = rate;
    model.train_from_current(lesson.x, lesson.y, lesson.group, how, {});
    for (const float weight : model.parameters()) REQUIRE(std::isfinite(weight));
    std::copy(before.begin(), before.end(), model.parameters().begin());
  }
  auto odd = lesson;
  odd.x.append_program(std::vector<float>(odd.x.columns(), 3e38F));
  odd.y.push_back(1);
  odd.group.push_back(odd.group.back());
  how = model.training;
  how.batch_programs = 10;
  model.train_from_current(odd.x, odd.y, odd.group, how, {});
  CHECK(!std::equal(before.begin(), before.end(), model.parameters().begin()));
  for (const float weight : model.parameters()) REQUIRE(std::isfinite(weight));
}

TEST_CASE("learning on with frozen layers, as the manual shows") {
  const auto source = test::make_lesson(300, 1), target = test::make_lesson(100, 2);
  // [snippet-begin learn_on]
  models::Mlp model{.hidden = 32, .training = {.loss = nn::Loss::LambdaRank, .epochs = 10}};
  model.fit(source.x, source.y, source.group);

  nn::Training how = model.training;
  how.learning_rate *= 0.1F;
  how.epochs = 5;
  model.train_from_current(target.x, target.y, target.group, how, {.frozen = {"encoder"}});
  // [snippet-end learn_on]
  CHECK(test::accuracy(model, target) > 0.7);
}

TEST_CASE("every loss teaches") {
  const auto train = test::make_lesson(300, 1), held_out = test::make_lesson(200, 2);
  for (const auto loss :
       {nn::Loss::Pairwise, nn::Loss::MeanSquared, nn::Loss::WeightedMeanSquared, nn::Loss::Quantile}) {
    CAPTURE(static_cast<int>(loss));
    Mlp model{.hidden = 16, .training = {.loss = loss, .epochs = 30, .batch_programs = 64, .learning_rate = 5e-3F}};
    model.fit(train.x, train.y, train.group);
    CHECK(test::accuracy(model, held_out) > 0.8);
  }
  Mlp by_task{.hidden = 16,
              .training = {.across_tasks = false, .epochs = 30, .batch_programs = 64, .learning_rate = 5e-3F}};
  by_task.fit(train.x, train.y, train.group);
  CHECK(test::accuracy(by_task, held_out) > 0.8);
}

TEST_CASE("training on teaches the first head alone") {
  const auto lesson = test::make_lesson(60, 1);
  std::vector<float> labels;
  for (const float y : lesson.y) labels.insert(labels.end(), {y, 1 - y});
  Mlp model{.hidden = 8, .heads = 2, .training = {.epochs = 1, .least_steps = 5}};
  model.fit_heads(lesson.x, labels, lesson.group);
  const std::vector<float> before(model.parameters().begin(), model.parameters().end());
  model.train_from_current(lesson.x, lesson.y, lesson.group, model.training);
  for (const auto& block : model.blocks()) {
    if (!block.name.starts_with("output")) continue;
    CAPTURE(block.name);
    for (std::size_t i = 0; i < block.size(); ++i) {
      const std::size_t at = block.first + i;
      CHECK((model.parameters()[at] == before[at]) == (i % 2 == 1));  // the second column of two
    }
  }
}

TEST_CASE("mini-batches of equal labels are left out") {
  // Only the first task has two programs. In mini-batches of two of 200 programs they meet once in 199 epochs.
  FeatureBatch x(1);
  std::vector<float> y;
  std::vector<std::uint32_t> group;
  for (std::uint32_t p = 0; p < 200; ++p) {
    x.append_program(std::vector<float>{static_cast<float>(p)});
    y.push_back(p == 0 ? 0.25F : 0.75F);
    group.push_back(p < 2 ? 0U : p);
  }
  Mlp model{.hidden = 4, .training = {.across_tasks = false, .epochs = 1, .least_steps = 1}};
  model.fit(x, y, group);
  const auto weights_after = [&](std::size_t programs_a_batch) {
    Mlp other = model;
    nn::Training how = model.training;
    how.batch_programs = programs_a_batch;
    other.train_from_current(x, y, group, how);
    return std::vector<float>(other.parameters().begin(), other.parameters().end());
  };
  const std::vector<float> before(model.parameters().begin(), model.parameters().end());
  CHECK(weights_after(2) == before);
  CHECK(weights_after(200) != before);
}

TEST_CASE("options out of range are refused by name") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const auto lesson = test::make_lesson(4, 1);
  const auto refused = [&](Mlp model) { return test::refusal([&] { model.fit(lesson.x, lesson.y, lesson.group); }); };
  CHECK(refused({.hidden = 0}).find("models::Mlp: hidden is 0") == 0);
  CHECK(refused({.dropout = 1}).find("dropout") != std::string::npos);
  CHECK(refused({.training = {.quantile = 1}}).find("quantile") != std::string::npos);
  CHECK(refused({.training = {.epochs = 0}}).find("epochs") != std::string::npos);
  CHECK(refused({.training = {.batch_programs = 0}}).find("batch_programs") != std::string::npos);
  CHECK(refused({.training = {.batch_programs = 1}}).find("at least 2") != std::string::npos);
  CHECK(refused({.training = {.loss = nn::Loss::MeanSquared, .batch_programs = 0}}).find("at least 1") !=
        std::string::npos);
  CHECK(refused({.training = {.loss = nn::Loss::MeanSquared, .batch_programs = 1}}) == "nothing was thrown");
  CHECK(refused({.training = {.learning_rate = 0}}).find("learning_rate") != std::string::npos);
  CHECK(refused({.training = {.learning_rate = infinity}}).find("learning_rate is inf") != std::string::npos);
  CHECK(refused({.training = {.momentum = 1}}).find("momentum") != std::string::npos);
  CHECK(refused({.training = {.weight_decay = -1}}).find("weight_decay") != std::string::npos);
  CHECK(refused({.training = {.weight_decay = infinity}}).find("weight_decay is inf") != std::string::npos);
  CHECK(refused({.training = {.clip_norm = -1}}).find("clip_norm") != std::string::npos);
  CHECK(refused({.training = {.step_epochs = 0}}).find("step_epochs") != std::string::npos);
  CHECK(refused({.training = {.step_factor = 0}}).find("step_factor") != std::string::npos);
}

TEST_CASE("a mini-batch without a limit has all programs") {
  const auto lesson = test::make_lesson(40, 1);
  const auto scores = [&](std::size_t batch_programs) {
    Mlp model{.hidden = 4, .training = {.epochs = 2, .least_steps = 1, .batch_programs = batch_programs}};
    model.fit(lesson.x, lesson.y, lesson.group);
    return test::predicted(model, lesson.x);
  };
  CHECK(scores(std::numeric_limits<std::size_t>::max()) == scores(40));
}

TEST_CASE("the quick settings rank what they have not seen, from 128 programs") {
  const auto train = test::make_lesson(128, 1), held_out = test::make_lesson(300, 2);
  Mlp model = Mlp::quick();
  CHECK(model.hidden < Mlp{}.hidden);
  model.fit(train.x, train.y, train.group);
  CHECK(test::accuracy(model, held_out) > 0.8);
}
