// SPDX-License-Identifier: Apache-2.0
#include "tunewright/models/primitive_attention.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "support/network_lessons.hpp"
#include "support/refusal.hpp"

using namespace tunewright;
using models::PrimitiveAttention;

static_assert(FineTunableCostModel<PrimitiveAttention> && EmbeddingCostModel<PrimitiveAttention> &&
              PersistentCostModel<PrimitiveAttention> && MultiHeadCostModel<PrimitiveAttention>);

namespace {

constexpr float missing = std::numeric_limits<float>::quiet_NaN();

std::vector<float> scores_of(const PrimitiveAttention& model, const FeatureBatch& x, std::size_t head) {
  std::vector<float> score(x.programs());
  model.predict_head(x, head, score);
  return score;
}

}  // namespace

TEST_CASE("two platforms: each head learns its own labels, of which many are missing") {
  const auto train = test::make_lesson(400, 1), held_out = test::make_lesson(200, 2);
  std::vector<float> labels, opposite;
  for (std::size_t p = 0; p < train.y.size(); ++p) {
    labels.push_back(p % 4 == 0 ? train.y[p] : missing);  // the target knows a quarter
    labels.push_back(1 - train.y[p]);                     // and the other platform likes the contrary
  }
  for (const float y : held_out.y) opposite.push_back(1 - y);
  PrimitiveAttention model{.width = 32,
                           .attention_heads = 4,
                           .heads = 2,
                           .training = {.epochs = 30, .batch_programs = 100, .learning_rate = 3e-3F}};
  model.fit_heads(train.x, labels, train.group);
  CHECK(test::accuracy(model, held_out) > 0.8);
  CHECK(stats::pairwise_accuracy(scores_of(model, held_out.x, 1), opposite, held_out.group) > 0.8);
  CHECK(scores_of(model, held_out.x, 0) == test::predicted(model, held_out.x));

  std::stringstream file;
  model.save(file, 1);
  PrimitiveAttention loaded;
  loaded.load(file, 1);
  CHECK(scores_of(loaded, held_out.x, 1) == scores_of(model, held_out.x, 1));
}

TEST_CASE("the quick settings rank what they have not seen, from 128 programs") {
  const auto train = test::make_lesson(128, 1), held_out = test::make_lesson(300, 2);
  PrimitiveAttention model = PrimitiveAttention::quick();
  CHECK(model.width < PrimitiveAttention{}.width);
  model.fit(train.x, train.y, train.group);
  CHECK(test::accuracy(model, held_out) > 0.75);
}

TEST_CASE("fit teaches the first head alone") {
  const auto lesson = test::make_lesson(60, 1);
  PrimitiveAttention model{.width = 16, .attention_heads = 2, .heads = 2};
  model.training.epochs = model.training.least_steps = 1;
  model.fit(lesson.x, lesson.y, lesson.group);
  const std::vector<float> before(model.parameters().begin(), model.parameters().end());
  model.train_from_current(lesson.x, lesson.y, lesson.group, model.training);
  for (const auto& block : model.blocks()) {
    if (!block.name.starts_with("head.1")) continue;
    CAPTURE(block.name);
    CHECK(std::equal(before.begin() + static_cast<std::ptrdiff_t>(block.first),
                     before.begin() + static_cast<std::ptrdiff_t>(block.first + block.size()),
                     model.parameters().begin() + static_cast<std::ptrdiff_t>(block.first)));
  }
}

TEST_CASE("misuse is refused by name") {
  const auto lesson = test::make_lesson(4, 1);
  const auto refused = [&](PrimitiveAttention model) {
    return test::refusal([&] { model.fit(lesson.x, lesson.y, lesson.group); });
  };
  CHECK(refused({.width = 18}).find("width") != std::string::npos);
  CHECK(refused({.attention_heads = 0}).find("attention_heads") != std::string::npos);
  CHECK(refused({.heads = 0}).find("heads is 0") != std::string::npos);
  PrimitiveAttention two{.width = 16, .heads = 2};
  CHECK(test::refusal([&] { two.fit_heads(lesson.x, std::vector<float>(7), {}); }).find("7 labels") !=
        std::string::npos);
  CHECK(test::refusal([&] { (void)scores_of(two, lesson.x, 2); }).find("head 2") != std::string::npos);
  CHECK(test::refusal([&] { two.fit(lesson.x, std::vector<float>(4, missing), {}); }).find("label nan") !=
        std::string::npos);
}
