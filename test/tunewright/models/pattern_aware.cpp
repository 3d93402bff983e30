// SPDX-License-Identifier: Apache-2.0
#include "tunewright/models/pattern_aware.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "support/network_lessons.hpp"
#include "support/refusal.hpp"

using namespace tunewright;
using models::PatternAware;

static_assert(FineTunableCostModel<PatternAware> && EmbeddingCostModel<PatternAware> &&
              PersistentCostModel<PatternAware> && !MultiHeadCostModel<PatternAware>);

TEST_CASE("learns, with rows of both kinds") {
  const auto train = test::make_lesson(400, 1), held_out = test::make_lesson(200, 2);
  PatternAware model{
      .hidden = 32, .dataflow_columns = 1, .training = {.epochs = 40, .batch_programs = 100, .learning_rate = 3e-3F}};
  model.fit(train.x, train.y, train.group);
  CHECK(test::accuracy(model, held_out) > 0.8);
}

TEST_CASE("columns of the other part are not read") {
  const auto lesson = test::make_lesson(60, 1);
  PatternAware model{.hidden = 16, .dataflow_columns = 2, .training = {.epochs = 2, .least_steps = 2}};
  model.fit(lesson.x, lesson.y, lesson.group);
  FeatureBatch changed(6);
  for (std::size_t p = 0; p < lesson.x.programs(); ++p) {
    const auto rows = lesson.x.program(p);
    std::vector<float> copy(rows.begin(), rows.end());
    for (std::size_t r = 0; r < copy.size(); r += 6) {
      const bool statement = copy[r] == 0;
      for (std::size_t c = statement ? 4 : 1; c < (statement ? 6U : 4U); ++c) copy[r + c] = 0.5F;
    }
    changed.append_program(copy);
  }
  CHECK(test::predicted(model, changed) == test::predicted(model, lesson.x));
}

TEST_CASE("misfitting options and widths are refused by name") {
  const auto lesson = test::make_lesson(4, 1);
  const auto refused = [&](PatternAware model) {
    return test::refusal([&] { model.fit(lesson.x, lesson.y, lesson.group); });
  };
  CHECK(refused({.hidden = 12}).find("hidden") != std::string::npos);
  CHECK(refused({.dataflow_columns = 0}).find("dataflow_columns") != std::string::npos);
  CHECK(refused({}).find("no room") != std::string::npos);
  CHECK(refused({.dataflow_columns = std::numeric_limits<std::size_t>::max()}).find("no room") != std::string::npos);
  CHECK(refused({.dropout = -1}).find("dropout") != std::string::npos);
}

TEST_CASE("rows of other kinds are refused by number and kind") {
  const auto lesson = test::make_lesson(20, 1);
  PatternAware model{.hidden = 16, .dataflow_columns = 2, .training = {.epochs = 1, .least_steps = 1}};
  model.fit(lesson.x, lesson.y, lesson.group);
  FeatureBatch moved(6);
  moved.append_program(std::vector<float>{0, 1, 2, 3, 4, 5, 0.75F, 1, 2, 3, 4, 5});
  std::vector<float> score(1);
  const std::string reason =
      ": column 0 of row 1, its kind, is 0.75; give 0 for a statement and 1 for a data movement: join both "
      "featurizers, statements first, and let no map of features change column 0";
  CHECK(test::refusal([&] { model.predict(moved, score); }) == "models::PatternAware::predict" + reason);
  CHECK(test::refusal([&] { model.predict_with_dropout(moved, 0.5F, 1, score); }) ==
        "models::PatternAware::predict_with_dropout" + reason);
  CHECK(test::refusal([&] { (void)model.embed(moved); }) == "models::PatternAware::embed" + reason);
  CHECK(test::refusal([&] { model.fit(moved, std::vector<float>{1}, {}); }) == "models::PatternAware::fit" + reason);
  CHECK(test::refusal([&] { model.train_from_current(moved, std::vector<float>{1}, {}, model.training); }) ==
        "models::PatternAware::train_from_current" + reason);
  FeatureBatch other(3);  // of another featurizer, whose first column is no kind
  other.append_program(std::vector<float>{0.3F, 1, 2});
  CHECK(test::refusal([&] {
          model.train_from_current(other, std::vector<float>{1}, {}, model.training);
        }).find("rows of 3 features") != std::string::npos);
}

TEST_CASE("a loaded network is trained on, whatever the columns of an untrained one would be") {
  const auto lesson = test::make_lesson(20, 1);
  PatternAware model{.hidden = 16, .dataflow_columns = 2, .training = {.epochs = 1, .least_steps = 1}}, loaded;
  model.fit(lesson.x, lesson.y, lesson.group);
  std::stringstream file;
  model.save(file, 7);
  loaded.load(file, 7);
  const auto before = test::predicted(loaded, lesson.x);
  loaded.train_from_current(lesson.x, lesson.y, lesson.group, model.training);
  CHECK(test::predicted(loaded, lesson.x) != before);
}
