// SPDX-License-Identifier: Apache-2.0
// What every model that is a network owes: see models/concept.hpp.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/network_lessons.hpp"
#include "support/refusal.hpp"
#include "tunewright/models/bilstm_attention.hpp"
#include "tunewright/models/mlp.hpp"
#include "tunewright/models/pattern_aware.hpp"
#include "tunewright/models/primitive_attention.hpp"

using namespace tunewright;

namespace {

template <class Model>
Model small() {
  Model model{};
  if constexpr (requires { model.hidden; })
    model.hidden = 16;
  else
    model.width = 32;
  if constexpr (requires { model.dataflow_columns; }) model.dataflow_columns = 2;
  model.dropout = 0.1F;
  model.training.epochs = 2;
  model.training.least_steps = 5;
  model.training.batch_programs = 200;
  return model;
}

template <class Model>
Model fitted(const test::NetworkLesson& lesson, unsigned threads = 1) {
  Model model = small<Model>();
  model.threads = threads;
  model.fit(lesson.x, lesson.y, lesson.group);
  return model;
}

template <class Model>
std::vector<float> copy_of(Model& model) {
  const auto parameters = model.parameters();
  return {parameters.begin(), parameters.end()};
}

}  // namespace

#define NETWORKS models::Mlp, models::PatternAware, models::PrimitiveAttention, models::BiLstmAttention

TEST_CASE_TEMPLATE("before the first fit all described programs score alike", Model, NETWORKS) {
  const auto lesson = test::make_lesson(60, 3);
  const auto score = test::predicted(small<Model>(), lesson.x);
  for (std::size_t p = 0; p < score.size(); ++p)
    CHECK(score[p] == (p == 49 ? -std::numeric_limits<float>::infinity() : score[0]));
  CHECK(small<Model>().parameters().empty());
  CHECK(small<Model>().embed(lesson.x).programs() == 60);
}

TEST_CASE_TEMPLATE("bit-identical at any number of threads, and for another seed not", Model, NETWORKS) {
  const auto lesson = test::make_lesson(500, 3);
  auto one = fitted<Model>(lesson, 1), three = fitted<Model>(lesson, 3);
  CHECK(copy_of(one) == copy_of(three));
  CHECK(test::predicted(one, lesson.x) == test::predicted(three, lesson.x));
  Model other = small<Model>();
  other.seed = 44;
  other.fit(lesson.x, lesson.y, lesson.group);
  CHECK(copy_of(one) != copy_of(other));
}

TEST_CASE_TEMPLATE("a score and an embedding depend on the program alone", Model, NETWORKS) {
  const auto lesson = test::make_lesson(150, 3);
  const Model model = fitted<Model>(lesson);
  const auto together = test::predicted(model, lesson.x);
  const FeatureBatch embedded = model.embed(lesson.x);
  REQUIRE(embedded.rows() == 150);
  for (std::size_t p = 140; p < 150; ++p) {
    FeatureBatch alone(lesson.x.columns());
    alone.append_program(lesson.x.program(p));
    CHECK(test::predicted(model, alone)[0] == together[p]);
    const FeatureBatch point = model.embed(alone);
    CHECK(std::ranges::equal(point.row(0), embedded.row(p)));
  }
  CHECK(together[149] == -std::numeric_limits<float>::infinity());
  CHECK(std::ranges::all_of(embedded.row(149), [](float value) { return value == 0; }));
}

TEST_CASE_TEMPLATE("fit starts afresh, and forgets with no programs", Model, NETWORKS) {
  const auto lesson = test::make_lesson(100, 3), other = test::make_lesson(100, 4);
  Model twice = fitted<Model>(other), once = fitted<Model>(lesson);
  twice.fit(lesson.x, lesson.y, lesson.group);
  CHECK(copy_of(once) == copy_of(twice));
  twice.fit(FeatureBatch(6), {}, {});
  CHECK_FALSE(twice.trained());
}

TEST_CASE_TEMPLATE("what is frozen keeps its bits, the rest moves", Model, NETWORKS) {
  const auto lesson = test::make_lesson(100, 3), other = test::make_lesson(100, 4);
  Model model = fitted<Model>(lesson);
  const auto before = copy_of(model);
  const std::string first_layer = model.blocks()[0].name;
  const std::string frozen = first_layer.substr(0, first_layer.find('.'));
  const nn::Continuation from{.frozen = {frozen}};
  model.train_from_current(other.x, other.y, other.group, model.training, from);
  const auto after = copy_of(model);
  for (const auto& block : model.blocks()) {
    bool same = true;
    for (std::size_t i = block.first; i < block.first + block.size(); ++i) same = same && before[i] == after[i];
    CAPTURE(block.name);
    CHECK(same == block.name.starts_with(frozen));
  }
  CHECK_THROWS_WITH_AS(model.train_from_current(other.x, other.y, other.group, model.training, {.frozen = {"no such"}}),
                       doctest::Contains("no layer is called 'no such...'"), std::invalid_argument);
  CHECK(copy_of(model) == after);
}

TEST_CASE_TEMPLATE("labels without a gradient teach nothing, and take nothing away", Model, NETWORKS) {
  const auto lesson = test::make_lesson(100, 3), other = test::make_lesson(40, 4);
  Model model = fitted<Model>(lesson);
  const auto before = copy_of(model), score = test::predicted(model, lesson.x);
  nn::Training how = model.training;
  how.loss = nn::Loss::LambdaRank;
  model.train_from_current(other.x, std::vector<float>(40, 0.0F), other.group, how, {.refit_input_scale = true});
  CHECK(copy_of(model) == before);
  CHECK(test::predicted(model, lesson.x) == score);  // the scale and running averages stay, too
  how.loss = nn::Loss::WeightedMeanSquared;
  model.train_from_current(other.x, std::vector<float>(40, 0.0F), other.group, how, {});
  CHECK(copy_of(model) == before);
  how.loss = nn::Loss::MeanSquared;
  model.train_from_current(other.x, std::vector<float>(40, 0.0F), other.group, how, {});
  CHECK(copy_of(model) != before);
}

TEST_CASE_TEMPLATE("a fit on labels without a gradient leaves a network untrained", Model, NETWORKS) {
  const auto lesson = test::make_lesson(60, 3);
  for (const float label : {0.0F, 0.5F}) {
    Model model = small<Model>();
    model.training.loss = nn::Loss::LambdaRank;
    model.fit(lesson.x, lesson.y, lesson.group);
    REQUIRE(model.trained());
    model.fit(lesson.x, std::vector<float>(60, label), lesson.group);
    CHECK_FALSE(model.trained());
    CHECK(test::predicted(model, lesson.x) == test::predicted(small<Model>(), lesson.x));
    model.train_from_current(lesson.x, lesson.y, lesson.group, model.training);
    CHECK(model.trained());
  }
}

TEST_CASE_TEMPLATE("training on from nothing is fit", Model, NETWORKS) {
  const auto lesson = test::make_lesson(100, 3);
  Model once = fitted<Model>(lesson), on = small<Model>();
  on.threads = 1;
  on.train_from_current(lesson.x, lesson.y, lesson.group, on.training, {});
  CHECK(copy_of(on) == copy_of(once));
}

TEST_CASE_TEMPLATE("saved and loaded, the same bits; another schema or a damaged file is refused", Model, NETWORKS) {
  const auto lesson = test::make_lesson(100, 3);
  Model model = fitted<Model>(lesson);
  std::stringstream file;
  model.save(file, 7);
  Model loaded;
  loaded.load(file, 7);
  CHECK(test::predicted(loaded, lesson.x) == test::predicted(model, lesson.x));
  const std::string bytes = file.str();
  const auto load = [&](const std::string& text, std::uint64_t schema) {
    std::istringstream in(text);
    loaded.load(in, schema);
  };
  CHECK_THROWS_WITH_AS(load(bytes, 8), doctest::Contains("feature schema 7"), std::runtime_error);
  CHECK_THROWS_AS(load(bytes.substr(0, bytes.size() / 2), 7), std::runtime_error);
  CHECK_THROWS_AS(load("", 7), std::runtime_error);
  CHECK(copy_of(loaded) == copy_of(model));
  std::stringstream empty;
  small<Model>().save(empty, 7);
  loaded.load(empty, 7);
  CHECK_FALSE(loaded.trained());
}

TEST_CASE_TEMPLATE("misuse is refused and leaves the model as it was", Model, NETWORKS) {
  const auto lesson = test::make_lesson(60, 3);
  Model model = fitted<Model>(lesson);
  const auto before = copy_of(model);
  const auto refusal = [&](const FeatureBatch& x, std::vector<float> y, std::vector<std::uint32_t> group) {
    return test::refusal([&] { model.fit(x, y, group); });
  };
  CHECK(refusal(lesson.x, std::vector<float>(59), {}).find("59 labels") != std::string::npos);
  CHECK(refusal(lesson.x, lesson.y, {1, 2}).find("2 group numbers") != std::string::npos);
  auto y = lesson.y;
  y[3] = -1;
  CHECK(refusal(lesson.x, y, {}).find("program 3") != std::string::npos);
  FeatureBatch nan(6);
  nan.append_program(std::vector<float>{0, 2, std::numeric_limits<float>::quiet_NaN(), 4, 5, 6});
  CHECK(refusal(nan, {1}, {}).find("column 2 of row 0") != std::string::npos);
  FeatureBatch wide(7);
  wide.append_program(std::vector<float>(7, 1.0F));
  CHECK(test::refusal([&] { test::predicted(model, wide); }).find("rows of 7") != std::string::npos);
  CHECK(test::refusal([&] { (void)model.embed(wide); }).find("rows of 7") != std::string::npos);
  std::vector<float> short_score(3);
  CHECK(test::refusal([&] { model.predict(lesson.x, short_score); }).find("3 scores") != std::string::npos);
  std::vector<float> score(60);
  for (const float share : {1.0F, -0.5F, std::numeric_limits<float>::quiet_NaN()}) {
    const auto drop = [&] { model.predict_with_dropout(lesson.x, share, 1, score); };
    CHECK(test::refusal(drop).find("dropout is") != std::string::npos);
  }
  CHECK(copy_of(model) == before);
}

TEST_CASE_TEMPLATE("infinite features are learned from and predicted", Model, NETWORKS) {
  auto lesson = test::make_lesson(60, 3);
  std::vector<float> row(6, std::numeric_limits<float>::infinity());
  row[0] = 0;
  lesson.x.append_program(row);
  lesson.y.push_back(0);
  lesson.group.push_back(0);
  const Model model = fitted<Model>(lesson);
  const auto score = test::predicted(model, lesson.x);
  CHECK(std::isfinite(score[60]));
}

TEST_CASE_TEMPLATE("a thinned network is one network for all programs", Model, NETWORKS) {
  const auto lesson = test::make_lesson(100, 3);
  const Model model = fitted<Model>(lesson);
  std::vector<float> first(100), again(100), other(100);
  model.predict_with_dropout(lesson.x, 0.5F, 1, first);
  model.predict_with_dropout(lesson.x, 0.5F, 1, again);
  model.predict_with_dropout(lesson.x, 0.5F, 2, other);
  CHECK(first == again);
  CHECK(first != other);
  FeatureBatch last(6);
  last.append_program(lesson.x.program(98));
  std::vector<float> alone(1);
  model.predict_with_dropout(last, 0.5F, 1, alone);
  CHECK(alone[0] == first[98]);
}
