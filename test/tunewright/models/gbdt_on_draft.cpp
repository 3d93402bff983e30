// SPDX-License-Identifier: Apache-2.0
#include "tunewright/models/gbdt_on_draft.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/predicted.hpp"

using namespace tunewright;
using models::Gbdt;
using models::GbdtOnDraft;
using test::predicted;

static_assert(CostModel<GbdtOnDraft> && EmbeddingCostModel<GbdtOnDraft> && PersistentCostModel<GbdtOnDraft>);

namespace {

/// Programs of one row: whether they have a copy, and the estimate of a draft that knows nothing of copies.
struct Lesson {
  FeatureBatch x{2};
  std::vector<float> y;
  std::vector<std::uint32_t> task;

  void add(float copies, float estimate, float label, std::uint32_t of = 0) {
    x.append_program(std::vector<float>{copies, estimate});
    y.push_back(label);
    task.push_back(of);
  }
};

GbdtOnDraft stump() {
  GbdtOnDraft model;
  model.trees.rounds = 1;
  model.trees.max_depth = 1;
  model.trees.learning_rate = 1;
  model.trees.lambda = 0;
  return model;
}

}  // namespace

TEST_CASE("one tree corrects an estimate, by hand") {
  // Logarithms of the labels are 0, -1, -2 and -3. Calibrated by their mean difference, weighted by the labels, the
  // estimates are off by the same for both programs with a copy, which the tree makes up for.
  Lesson lesson;
  lesson.add(0, 10, 1);
  lesson.add(0, 9, 0.5F);
  lesson.add(1, 9, 0.25F);
  lesson.add(1, 8, 0.125F);
  GbdtOnDraft model = stump();
  CHECK_FALSE(model.trained());
  model.fit(lesson.x, lesson.y, {});
  CHECK(model.trained());
  const std::vector<float> score = predicted(model, lesson.x);
  CHECK(score[0] - score[1] == doctest::Approx(1));
  CHECK(score[1] - score[2] == doctest::Approx(1));  // the draft knows no difference
  CHECK(score[2] - score[3] == doctest::Approx(1));
  // What no measured program reached is still ranked by the estimate.
  Lesson unseen;
  unseen.add(0, 12, 0);
  unseen.add(1, 12, 0);
  const std::vector<float> beyond = predicted(model, unseen.x);
  CHECK(beyond[0] - score[0] == doctest::Approx(2));
  CHECK(beyond[0] - beyond[1] == doctest::Approx(1));
}

TEST_CASE("where the estimate is right there is nothing to learn") {
  Lesson lesson;
  for (int i = 0; i < 8; ++i)
    lesson.add(static_cast<float>(i % 3), static_cast<float>(30 - i), std::exp2(-static_cast<float>(i)));
  GbdtOnDraft model;
  model.fit(lesson.x, lesson.y, {});
  const std::vector<float> score = predicted(model, lesson.x);
  for (std::size_t i = 1; i < score.size(); ++i) CHECK(score[i - 1] - score[i] == doctest::Approx(1).epsilon(1e-4));
}

TEST_CASE("the unit of an estimate may differ between tasks") {
  const auto scores = [](float shift) {
    Lesson lesson;
    for (int i = 0; i < 12; ++i) {
      const float copies = static_cast<float>(i % 2), estimate = static_cast<float>(i) / 4;
      const float label = std::exp2(estimate - copies - 3);
      lesson.add(copies, estimate, label);
      lesson.add(copies, estimate + shift, label, 1);
    }
    GbdtOnDraft model = stump();
    model.fit(lesson.x, lesson.y, lesson.task);
    return predicted(model, lesson.x);
  };
  const std::vector<float> same = scores(0), other = scores(16);
  for (std::size_t p = 0; p < same.size(); ++p)
    CHECK(other[p] == doctest::Approx(same[p] + (p % 2 == 1 ? 16.0F : 0.0F)).epsilon(1e-4));
}

TEST_CASE("failed programs teach nothing, and a task of failures alone is ranked by the estimate") {
  Lesson lesson;
  lesson.add(0, 4, 0, 7);
  lesson.add(1, 5, 0, 7);
  GbdtOnDraft model;
  model.fit(lesson.x, lesson.y, lesson.task);
  CHECK(predicted(model, lesson.x) == std::vector<float>{4, 5});
}

TEST_CASE("an estimate that is no number, or infinite, counts as the least or the greatest") {
  constexpr float infinite = std::numeric_limits<float>::infinity();
  Lesson lesson;
  lesson.add(0, 1, 1);
  lesson.add(0, 0, 0.5F);
  GbdtOnDraft model;
  model.fit(lesson.x, lesson.y, {});
  Lesson odd;
  odd.add(0, infinite, 0);
  odd.add(0, -infinite, 0);
  odd.add(0, std::numeric_limits<float>::quiet_NaN(), 0);
  const std::vector<float> score = predicted(model, odd.x);
  CHECK(std::isfinite(score[0]));
  CHECK(score[0] - score[1] == doctest::Approx(256).epsilon(0.01));
  CHECK(score[2] == score[1]);
}

TEST_CASE("a kept model predicts the same bits, and is no plain Gbdt") {
  Lesson lesson;
  for (int i = 0; i < 20; ++i)
    lesson.add(static_cast<float>(i % 5), static_cast<float>(i % 7), 1 / (1 + static_cast<float>(i)));
  GbdtOnDraft model;
  model.fit(lesson.x, lesson.y, {});
  std::stringstream file;
  model.save(file, 3);
  GbdtOnDraft loaded;
  loaded.load(file, 3);
  CHECK(predicted(loaded, lesson.x) == predicted(model, lesson.x));
  file.clear();
  file.seekg(0);
  CHECK_THROWS_AS(Gbdt{}.load(file, 3), std::runtime_error);
}

TEST_CASE("misuse of first scores is named") {
  Lesson lesson;
  lesson.add(0, 1, 1);
  lesson.add(0, 0, 0.5F);
  Gbdt trees;
  CHECK_THROWS_WITH_AS(trees.fit_from(std::vector<float>{1}, lesson.x, lesson.y, {}),
                       "models::Gbdt::fit_from: 1 first scores for 2 programs; give one a program, or none",
                       std::invalid_argument);
  std::vector<float> score(1);
  CHECK_THROWS_AS(GbdtOnDraft{}.predict(lesson.x, score), std::invalid_argument);
  CHECK_THROWS_AS(GbdtOnDraft{}.fit(lesson.x, score, {}), std::invalid_argument);
}
