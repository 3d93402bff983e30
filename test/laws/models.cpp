// SPDX-License-Identifier: Apache-2.0
// What every model owes, whatever it is: see models/concept.hpp. test/laws/networks.cpp asks more of networks.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "support/network_lessons.hpp"
#include "tunewright/data/safetensors.hpp"
#include "tunewright/models/committee.hpp"
#include "tunewright/models/gaussian_process.hpp"
#include "tunewright/models/gbdt.hpp"
#include "tunewright/models/gbdt_on_draft.hpp"
#include "tunewright/models/linear.hpp"
#include "tunewright/models/mlp.hpp"
#include "tunewright/models/random.hpp"
#include "tunewright/models/with_dropout.hpp"

using namespace tunewright;
using test::NetworkLesson;

namespace {

constexpr float nothing = -std::numeric_limits<float>::infinity();

/// Trees that draw pairs of each task, and shares of programs and columns.
struct RankingTrees : models::Gbdt {
  RankingTrees() {
    objective = models::gbdt::Objective::RankPairwise;
    pairs_per_program = 2;
    program_share = 0.8F;
    column_share = 0.8F;
  }
};
using TreeCommittee = models::Committee<RankingTrees, 3>;
using ThinnedMlp = models::WithDropout<models::Mlp>;

models::Mlp small_network() {
  models::Mlp model{};
  model.hidden = 16;
  model.training.epochs = 2;
  model.training.least_steps = 5;
  return model;
}

template <class Model>
Model small() {
  Model model{};
  if constexpr (requires { model.rounds; }) model.rounds = 12;
  if constexpr (requires { model.trees.rounds; }) model.trees.rounds = 12;
  if constexpr (requires { model.member.rounds; }) model.member.rounds = 8;
  if constexpr (std::same_as<Model, models::Mlp>) model = small_network();
  if constexpr (std::same_as<Model, ThinnedMlp>) model.model = small_network(), model.passes = 3;
  return model;
}
template <class Model>
void set_threads(Model& model, unsigned threads) {
  if constexpr (requires { model.threads; }) model.threads = threads;
  if constexpr (requires { model.trees.threads; }) model.trees.threads = threads;
  if constexpr (requires { model.model.threads; }) model.model.threads = threads;
}
template <class Model>
Model fitted(const NetworkLesson& lesson, unsigned threads = 1) {
  Model model = small<Model>();
  set_threads(model, threads);
  model.fit(lesson.x, lesson.y, lesson.group);
  return model;
}

template <class Model>
constexpr bool learns = !std::same_as<Model, models::Random>;

std::vector<float> repeated(const FeatureBatch& x, float score) {
  std::vector<float> all;
  for (std::size_t p = 0; p < x.programs(); ++p) all.push_back(x.program(p).empty() ? nothing : score);
  return all;
}

/// The programs at `places`, in that order.
FeatureBatch picked(const FeatureBatch& x, std::span<const std::size_t> places) {
  FeatureBatch out(x.columns());
  for (const std::size_t p : places) out.append_program(x.program(p));
  return out;
}

template <class Model>
bool refuses_to_fit(Model& model, const FeatureBatch& x, const std::vector<float>& y,
                    const std::vector<std::uint32_t>& group) {
  try {
    model.fit(x, y, group);
  } catch (const std::invalid_argument&) {
    return true;
  }
  return false;
}

}  // namespace

#define MODELS                                                                                              \
  models::Random, models::Linear, models::GaussianProcess, models::Gbdt, RankingTrees, models::GbdtOnDraft, \
      TreeCommittee, models::Mlp, ThinnedMlp

TEST_CASE_TEMPLATE("scores follow their programs when batches are reordered, split and joined", Model, MODELS) {
  const auto lesson = test::make_lesson(100, 3);
  const Model model = fitted<Model>(lesson);
  const std::vector<float> score = test::predicted(model, lesson.x);
  std::vector<std::size_t> places(100);
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::reverse(places.begin(), places.end());
  std::rotate(places.begin(), places.begin() + 37, places.end());
  places.push_back(5);  // and one of them twice
  const std::vector<float> moved = test::predicted(model, picked(lesson.x, places));
  for (std::size_t i = 0; i < places.size(); ++i) CHECK(moved[i] == score[places[i]]);
  for (const std::size_t p : {0U, 49U, 98U}) {
    CHECK(test::predicted(model, picked(lesson.x, std::vector<std::size_t>{p}))[0] == score[p]);
  }
}

TEST_CASE_TEMPLATE("before the first fit all described programs score alike, and nothing is too little", Model,
                   MODELS) {
  const auto lesson = test::make_lesson(60, 3);
  const Model model = small<Model>();
  const auto score = test::predicted(model, lesson.x);
  if constexpr (learns<Model>) CHECK(score == repeated(lesson.x, score[0]));
  CHECK(std::isfinite(score[0]));
  CHECK(score[49] == nothing);
  for (const Model& asked : {model, fitted<Model>(lesson)}) {
    CHECK(test::predicted(asked, FeatureBatch(6)).empty());
    CHECK(test::predicted(asked, FeatureBatch()).empty());
    FeatureBatch undescribed(6);
    undescribed.close_program();
    CHECK(test::predicted(asked, undescribed) == std::vector<float>{nothing});
  }
}

TEST_CASE_TEMPLATE("programs without rows rank last and teach nothing", Model, MODELS) {
  auto lesson = test::make_lesson(100, 3);
  const auto score = test::predicted(fitted<Model>(lesson), lesson.x);
  for (std::size_t p = 0; p < 100; ++p) CHECK(std::isinf(score[p]) == (p % 50 == 49));
  CHECK(score[49] == nothing);
  lesson.y[49] = 1;
  lesson.y[99] = 0;
  CHECK(test::predicted(fitted<Model>(lesson), lesson.x) == score);
  NetworkLesson undescribed;
  for (int i = 0; i < 3; ++i) undescribed.x.close_program();
  undescribed.y = {1, 0.5F, 0};
  const Model model = fitted<Model>(undescribed);
  if constexpr (learns<Model>) {
    const auto of_nothing = test::predicted(model, lesson.x);
    CHECK(of_nothing == repeated(lesson.x, of_nothing[0]));
  }
}

TEST_CASE_TEMPLATE("the same data and seed give the same bits at any number of threads", Model, MODELS) {
  const auto lesson = test::make_lesson(300, 3);
  const auto one = test::predicted(fitted<Model>(lesson, 1), lesson.x);
  CHECK(test::predicted(fitted<Model>(lesson, 1), lesson.x) == one);
  CHECK(test::predicted(fitted<Model>(lesson, 3), lesson.x) == one);
}

TEST_CASE_TEMPLATE("of the numbers of groups only equality counts", Model, MODELS) {
  auto lesson = test::make_lesson(150, 3);
  const auto score = test::predicted(fitted<Model>(lesson), lesson.x);
  for (std::uint32_t& group : lesson.group) group = 4000000000U - 7 * group;
  CHECK(test::predicted(fitted<Model>(lesson), lesson.x) == score);
  lesson.group.assign(150, 9);
  const auto of_one = test::predicted(fitted<Model>(lesson), lesson.x);
  lesson.group.clear();
  CHECK(test::predicted(fitted<Model>(lesson), lesson.x) == of_one);
}

TEST_CASE_TEMPLATE("fit starts afresh, and forgets with no programs", Model, MODELS) {
  const auto lesson = test::make_lesson(80, 3), other = test::make_lesson(60, 4);
  Model model = fitted<Model>(other);
  model.fit(lesson.x, lesson.y, lesson.group);
  CHECK(test::predicted(model, lesson.x) == test::predicted(fitted<Model>(lesson), lesson.x));
  model.fit(FeatureBatch(6), {}, {});
  CHECK(test::predicted(model, lesson.x) == test::predicted(small<Model>(), lesson.x));
  model.fit(FeatureBatch(), {}, {});
  CHECK(test::predicted(model, lesson.x) == test::predicted(small<Model>(), lesson.x));
}

TEST_CASE_TEMPLATE("a model is a value: its copy scores alike and learns alone", Model, MODELS) {
  const auto lesson = test::make_lesson(80, 3), other = test::make_lesson(60, 4);
  const Model model = fitted<Model>(lesson);
  const auto score = test::predicted(model, lesson.x);
  Model copy = model;
  CHECK(test::predicted(copy, lesson.x) == score);
  copy.fit(other.x, other.y, other.group);
  CHECK(test::predicted(model, lesson.x) == score);
}

TEST_CASE_TEMPLATE("several threads may ask one model at once", Model, MODELS) {
  const auto lesson = test::make_lesson(100, 3);
  const Model model = fitted<Model>(lesson);
  const auto score = test::predicted(model, lesson.x);
  std::vector<float> here, there;
  std::thread other([&] { there = test::predicted(model, lesson.x); });
  here = test::predicted(model, lesson.x);
  other.join();
  CHECK(here == score);
  CHECK(there == score);
}

TEST_CASE_TEMPLATE("what does not fit together is refused and changes nothing", Model, MODELS) {
  const auto lesson = test::make_lesson(60, 3);
  Model model = fitted<Model>(lesson);
  const auto score = test::predicted(model, lesson.x);
  CHECK(refuses_to_fit(model, lesson.x, std::vector<float>(59), {}));
  CHECK(refuses_to_fit(model, lesson.x, std::vector<float>(61), {}));
  CHECK(refuses_to_fit(model, lesson.x, lesson.y, {1, 2}));
  FeatureBatch nan(6);
  nan.append_program(std::vector<float>{0, 2, std::numeric_limits<float>::quiet_NaN(), 4, 5, 6});
  CHECK(refuses_to_fit(model, nan, {1}, {}));
  for (const float label : {-1.0F, 65.0F, std::numeric_limits<float>::max(), -nothing, std::nanf("")})
    CHECK(refuses_to_fit(model, lesson.x, std::vector<float>(60, label), {}));
  std::vector<float> short_score(59);
  CHECK_THROWS_AS(model.predict(lesson.x, short_score), std::invalid_argument);
  FeatureBatch wide(7);
  wide.append_program(std::vector<float>(7, 1.0F));
  if constexpr (learns<Model>) CHECK_THROWS_AS(test::predicted(model, wide), std::invalid_argument);
  CHECK(test::predicted(model, lesson.x) == score);
}

TEST_CASE_TEMPLATE("infinite features and batches that all failed are learned from", Model, MODELS) {
  auto lesson = test::make_lesson(60, 3);
  std::vector<float> row(6, std::numeric_limits<float>::infinity());
  row[0] = 0;
  row[5] = nothing;
  lesson.x.append_program(row);
  lesson.y.push_back(0.5F);
  lesson.group.push_back(0);
  CHECK(std::isfinite(test::predicted(fitted<Model>(lesson), lesson.x)[60]));
  lesson.y.assign(61, 0);
  for (const float score : test::predicted(fitted<Model>(lesson), lesson.x)) CHECK(!std::isnan(score));
}

TEST_CASE_TEMPLATE("a batch that failed leaves a model that says whether it has learned untrained", Model, models::Gbdt,
                   RankingTrees, TreeCommittee, models::Mlp, ThinnedMlp) {
  const auto lesson = test::make_lesson(60, 3);
  Model model = fitted<Model>(lesson);
  REQUIRE(model.trained());
  model.fit(lesson.x, std::vector<float>(60, 0.0F), lesson.group);
  CHECK_FALSE(model.trained());
  CHECK(test::predicted(model, lesson.x) == test::predicted(small<Model>(), lesson.x));
}

TEST_CASE_TEMPLATE("with the largest label that is taken, scores are numbers", Model, MODELS) {
  auto lesson = test::make_lesson(60, 3);
  for (std::size_t p = 0; p < 60; ++p) lesson.y[p] = p % 2 == 0 ? 64.0F : 0.0F;
  const auto score = test::predicted(fitted<Model>(lesson), lesson.x);
  for (std::size_t p = 0; p < 49; ++p) CHECK(std::isfinite(score[p]));
}

TEST_CASE_TEMPLATE("deviations are in the unit of the score and follow their programs", Model, models::Linear,
                   models::GaussianProcess, TreeCommittee, ThinnedMlp) {
  static_assert(UncertainCostModel<Model>);
  const auto lesson = test::make_lesson(100, 3);
  for (const Model& model : {small<Model>(), fitted<Model>(lesson)}) {
    std::vector<float> score(100), deviation(100), score_alone(1), deviation_alone(1);
    model.predict_with_deviation(lesson.x, score, deviation);
    CHECK(score == test::predicted(model, lesson.x));
    for (std::size_t p = 0; p < 100; ++p) {
      CHECK(deviation[p] >= 0);
      CHECK(std::isinf(deviation[p]) == std::isinf(score[p]));
    }
    for (const std::size_t p : {3U, 49U, 98U}) {
      model.predict_with_deviation(picked(lesson.x, std::vector<std::size_t>{p}), score_alone, deviation_alone);
      CHECK(score_alone[0] == score[p]);
      CHECK(deviation_alone[0] == deviation[p]);
    }
    std::vector<float> short_deviation(99);
    CHECK_THROWS_AS(model.predict_with_deviation(lesson.x, score, short_deviation), std::invalid_argument);
  }
}

TEST_CASE_TEMPLATE("a model that has learned nothing is sure of nothing", Model, models::Linear,
                   models::GaussianProcess, TreeCommittee, ThinnedMlp) {
  const auto lesson = test::make_lesson(60, 3);
  Model model = small<Model>();
  std::vector<float> score(60), deviation(60);
  const auto check_unsure = [&] {
    model.predict_with_deviation(lesson.x, score, deviation);
    for (std::size_t p = 0; p < 60; ++p) CHECK(deviation[p] == (p == 49 ? -nothing : 1));
  };
  check_unsure();
  if constexpr (requires { model.trained(); }) {
    model.fit(lesson.x, std::vector<float>(60, 0.0F), lesson.group);
    check_unsure();
  }
}

TEST_CASE_TEMPLATE("an embedding is one row a program, from its own rows alone", Model, models::Linear,
                   models::GaussianProcess, models::Gbdt, TreeCommittee, models::Mlp, ThinnedMlp) {
  static_assert(EmbeddingCostModel<Model>);
  const auto lesson = test::make_lesson(100, 3);
  for (const Model& model : {small<Model>(), fitted<Model>(lesson)}) {
    const FeatureBatch points = model.embed(lesson.x);
    REQUIRE(points.programs() == 100);
    REQUIRE(points.rows() == 100);
    CHECK(std::ranges::all_of(points.row(49), [](float value) { return value == 0; }));
    for (const std::size_t p : {3U, 98U}) {
      const FeatureBatch alone = model.embed(picked(lesson.x, std::vector<std::size_t>{p}));
      CHECK(std::ranges::equal(alone.row(0), points.row(p)));
    }
  }
}

TEST_CASE_TEMPLATE("saved and loaded, the same bits; what is not the file that was saved is refused", Model,
                   models::Linear, models::GaussianProcess, models::Gbdt, TreeCommittee, models::Mlp, ThinnedMlp) {
  static_assert(PersistentCostModel<Model>);
  const auto lesson = test::make_lesson(80, 3);
  const Model model = fitted<Model>(lesson);
  const auto score = test::predicted(model, lesson.x);
  std::ostringstream file;
  model.save(file, 7);
  const std::string bytes = file.str();
  Model loaded = small<Model>();
  const auto load = [&](const std::string& text, std::uint64_t schema) {
    std::istringstream in(text);
    loaded.load(in, schema);
  };
  load(bytes, 7);
  CHECK(test::predicted(loaded, lesson.x) == score);
  CHECK_THROWS_AS(load(bytes, 8), std::runtime_error);
  CHECK_THROWS_AS(load(bytes.substr(0, bytes.size() / 2), 7), std::runtime_error);
  CHECK_THROWS_AS(load("", 7), std::runtime_error);
  CHECK(test::predicted(loaded, lesson.x) == score);
  std::ostringstream empty;
  small<Model>().save(empty, 7);
  load(empty.str(), 7);
  CHECK(test::predicted(loaded, lesson.x) == test::predicted(small<Model>(), lesson.x));
}

TEST_CASE("a thinned network is stored with what decides its masks, in a file of the network") {
  const auto lesson = test::make_lesson(80, 3);
  ThinnedMlp model{.model = small_network(), .dropout = 0.3F, .passes = 3};
  model.model.seed = 7;
  model.fit(lesson.x, lesson.y, lesson.group);
  std::stringstream file;
  model.save(file, 7);
  const std::string bytes = file.str();
  const auto load = [&](auto loaded, const std::string& text) {
    std::istringstream in(text);
    loaded.load(in, 7);
    return loaded;
  };
  CHECK(test::predicted(load(ThinnedMlp{}, bytes), lesson.x) == test::predicted(model, lesson.x));
  CHECK(test::predicted(load(models::Mlp{}, bytes), lesson.x) == test::predicted(model.model, lesson.x));
  std::ostringstream alone;
  model.model.save(alone, 7);
  const ThinnedMlp thinned = load(ThinnedMlp{.dropout = 0.2F, .passes = 4}, alone.str());
  CHECK(thinned.dropout == 0.2F);
  CHECK(thinned.passes == 4);
  CHECK(test::predicted(thinned.model, lesson.x) == test::predicted(model.model, lesson.x));
  for (const auto& [option, value, reason] : {std::tuple{"with_dropout.passes", "1", "passes is 1"},
                                              {"with_dropout.dropout", "nan", "dropout is nan"},
                                              {"with_dropout.passes", "3x", "'3x' is no with_dropout.passes"}}) {
    std::istringstream in(bytes);
    data::TensorFile damaged = data::read_safetensors(in);
    damaged.metadata[option] = value;
    std::ostringstream out;
    data::write_safetensors(out, damaged.tensors, damaged.metadata);
    CHECK_THROWS_WITH_AS(load(ThinnedMlp{}, out.str()), doctest::Contains(reason), std::runtime_error);
  }
}
