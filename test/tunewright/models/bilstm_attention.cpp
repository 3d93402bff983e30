// SPDX-License-Identifier: Apache-2.0
#include "tunewright/models/bilstm_attention.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "support/network_lessons.hpp"
#include "support/refusal.hpp"
#include "tunewright/core/rng.hpp"

using namespace tunewright;
using models::BiLstmAttention;

static_assert(FineTunableCostModel<BiLstmAttention> && EmbeddingCostModel<BiLstmAttention> &&
              PersistentCostModel<BiLstmAttention>);

TEST_CASE("learns what depends on the order of rows") {
  // Three rows hold 1, 2 and 3 in some order; throughput is higher the later 3 comes. Sums over rows see
  // nothing.
  test::NetworkLesson train{.x = FeatureBatch(1)}, held_out{.x = FeatureBatch(1)};
  Rng rng(4);
  for (int p = 0; p < 200; ++p) {
    std::vector<float> rows{1, 2, 3};
    rng.shuffle(std::span(rows));
    auto& lesson = p % 2 == 0 ? train : held_out;
    lesson.x.append_program(rows);
    lesson.y.push_back(rows[2] == 3 ? 1.0F : rows[1] == 3 ? 0.5F : 0.2F);
    lesson.group.push_back(0);
  }
  BiLstmAttention model{.width = 16, .layers = 1, .training = {.epochs = 40, .batch_programs = 50}};
  model.training.learning_rate = 5e-3F;
  model.fit(train.x, train.y, train.group);
  const auto score = test::predicted(model, held_out.x);
  for (std::size_t p = 0; p < score.size(); ++p)
    for (std::size_t q = 0; q < score.size(); ++q)
      if (held_out.y[p] > held_out.y[q]) CHECK(score[p] > score[q]);
}

TEST_CASE("misuse is refused by name") {
  const auto lesson = test::make_lesson(4, 1);
  const auto refused = [&](BiLstmAttention model) {
    return test::refusal([&] { model.fit(lesson.x, lesson.y, lesson.group); });
  };
  CHECK(refused({.width = 3}).find("width") != std::string::npos);
  CHECK(refused({.layers = 0}).find("layers") != std::string::npos);
  CHECK(refused({.attention_heads = 0}).find("attention_heads") != std::string::npos);
  CHECK(refused({.steps = 0}).find("steps") != std::string::npos);
  CHECK(refused({.steps = 1025}).find("steps") != std::string::npos);
}

TEST_CASE("the quick settings rank what they have not seen, from 128 programs") {
  const auto train = test::make_lesson(128, 1), held_out = test::make_lesson(300, 2);
  BiLstmAttention model = BiLstmAttention::quick();
  CHECK(model.width < BiLstmAttention{}.width);
  model.fit(train.x, train.y, train.group);
  CHECK(test::accuracy(model, held_out) > 0.8);
}
