// SPDX-License-Identifier: Apache-2.0
#include "tunewright/adaptations/aligned.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <vector>

#include "support/network_lessons.hpp"
#include "support/recording_model.hpp"
#include "support/refusal.hpp"
#include "tunewright/adaptations/coral.hpp"
#include "tunewright/adaptations/feature_map.hpp"
#include "tunewright/adaptations/mapped.hpp"
#include "tunewright/adaptations/transferred.hpp"
#include "tunewright/core/feature_rows.hpp"
#include "tunewright/models/gbdt_on_draft.hpp"
#include "tunewright/models/pattern_aware.hpp"

using namespace tunewright;
using test::one_column;
using test::RecordingModel;
using test::refusal;

using Labels = std::vector<float>;
using Groups = std::vector<std::uint32_t>;

static_assert(AdaptationFor<adaptations::FeatureMap, RecordingModel>);
static_assert(CostModel<adaptations::Mapped<RecordingModel, adaptations::alignment::Columns>>);

using adaptations::alignment::ReadsRowKinds;
static_assert(ReadsRowKinds<models::PatternAware>);
static_assert(ReadsRowKinds<adaptations::Transferred<models::PatternAware>>);
static_assert(!ReadsRowKinds<RecordingModel>);
static_assert(!ReadsRowKinds<models::GbdtOnDraft>);

namespace {

struct ModelOfKinds : RecordingModel {
  template <class Featurizer>
  static constexpr bool reads_rows_of = row_kinds<Featurizer> == 2;
};

/// Programs of a row of kind 0, with numbers from `first` on, and as many rows of kind 1 as `movements` says.
FeatureBatch of_two_kinds(float first, std::initializer_list<std::size_t> movements) {
  FeatureBatch x(2);
  for (const std::size_t count : movements) {
    std::vector<float> rows{0, first};
    for (std::size_t row = 0; row < count; ++row) rows.insert(rows.end(), {1, 2 * first});
    x.append_program(rows);
    first += 1;
  }
  return x;
}
std::vector<float> kinds_of(const FeatureBatch& x) {
  std::vector<float> kinds;
  for (std::size_t r = 0; r < x.rows(); ++r) kinds.push_back(x.row(r)[0]);
  return kinds;
}

}  // namespace

TEST_CASE("the source is moved to one's own columns and keeps groups of its own") {
  // mean 2, deviation 1 moves to mean 10, deviation 3
  adaptations::FeatureMap adaptation{.source = {one_column({1, 3}), {0.5F, 1}, {0, 0}}};
  RecordingModel model;
  adaptation.update(model, one_column({7, 13}), Labels{1, 0.25F}, Groups{4, 2});
  CHECK(std::vector<float>(model.x.values().begin(), model.x.values().end()) == std::vector<float>{7, 13, 7, 13});
  CHECK(model.y == Labels{1, 0.25F, 0.5F, 1});
  CHECK(model.group == Groups{4, 2, 5, 5});
  adaptation.update(model, one_column({7, 13}), Labels{1, 0.25F}, {});  // one task without a number
  CHECK(model.group == Groups{0, 0, 1, 1});
}

TEST_CASE("no own data: the model stays; enough growth: it is trained") {
  adaptations::FeatureMap adaptation{.source = {one_column({1, 3}), {0.5F, 1}, {}}, .min_growth = 1};
  RecordingModel model;
  adaptation.update(model, FeatureBatch(1), Labels{}, {});
  CHECK(model.fits == 0);
  adaptation.update(model, one_column({1, 2}), Labels{1, 1}, {});
  adaptation.update(model, one_column({1, 2, 3}), Labels{1, 1, 1}, {});
  CHECK(model.fits == 1);
  adaptation.update(model, one_column({1, 2, 3, 4}), Labels{1, 1, 1, 1}, {});
  CHECK(model.fits == 2);
}

TEST_CASE("a share of the source, always the first of one order") {
  std::vector<float> values(50);
  for (std::size_t i = 0; i < 50; ++i) values[i] = static_cast<float>(i);
  adaptations::FeatureMap adaptation{.source = {one_column(values), values, {}}, .most_source_per_own = 4};
  RecordingModel few, more;
  adaptation.update(few, one_column({0, 49}), Labels{1, 1}, {});
  adaptation.update(more, one_column({0, 20, 49}), Labels{1, 1, 1}, {});
  REQUIRE(few.y.size() == 8 + 2);
  REQUIRE(more.y.size() == 12 + 3);
  for (std::size_t i = 2; i < few.y.size(); ++i)
    CHECK(std::find(more.y.begin() + 3, more.y.end(), few.y[i]) != more.y.end());
}

TEST_CASE("a source that does not fit together is refused") {
  RecordingModel model;
  adaptations::FeatureMap none;
  CHECK(refusal([&] {
          none.update(model, one_column({1}), Labels{1}, {});
        }).find("adaptations::Aligned: the source has 0 programs, 0 labels") == 0);
  adaptations::FeatureMap wrong{.source = {one_column({1}), {1}, {}}, .most_source_per_own = -1};
  CHECK(refusal([&] { wrong.update(model, one_column({1}), Labels{1}, {}); }).find("most_source_per_own") !=
        std::string::npos);
}

TEST_CASE("groups that do not fit together are refused") {
  RecordingModel model;
  adaptations::FeatureMap adaptation{.source = {one_column({1, 3}), {0.5F, 1}, {0, 0}}};
  CHECK(refusal([&] {
          adaptation.update(model, one_column({7, 13}), Labels{1, 0.25F}, Groups{4});
        }).find("adaptations::Aligned::fit: 1 group numbers for 2 programs") == 0);
  // The groups of the source come after the own ones.
  adaptation.source.group = {0, std::numeric_limits<std::uint32_t>::max()};
  CHECK(refusal([&] {
          adaptation.update(model, one_column({7, 13}), Labels{1, 0.25F}, Groups{4, 2});
        }).find("groups up to 4294967300 would keep the two sets apart") != std::string::npos);
  CHECK(model.fits == 0);
}

TEST_CASE("a mapped model sees new programs as old ones") {
  adaptations::Mapped<RecordingModel, adaptations::alignment::Columns> model;
  std::vector<float> score(2);
  model.predict(one_column({7, 13}), score);
  CHECK(score == std::vector<float>{7, 13});
  model.map.fit(one_column({7, 13}), one_column({1, 3}));
  model.predict(one_column({7, 13}), score);
  CHECK(score == std::vector<float>{1, 3});
  model.fit(one_column({7}), Labels{1}, {});
  CHECK(model.model.x.row(0)[0] == 1);
  CHECK(model.trained());
}

TEST_CASE_TEMPLATE("rows keep their kinds for a model that reads them", Adaptation, adaptations::FeatureMap,
                   adaptations::Coral) {
  // Three movements per statement there, one here: any map of column 0 moves it.
  const FeatureBatch there = of_two_kinds(1, {3, 2, 4}), here = of_two_kinds(10, {1, 1, 2});
  Adaptation adaptation{.source = {there, {0.5F, 1, 0.75F}, {}}};
  ModelOfKinds model;
  adaptation.update(model, here, Labels{1, 0.5F, 0.25F}, {});
  FeatureBatch both = here;
  both.append(there);
  CHECK(kinds_of(model.x) == kinds_of(both));
  CHECK(std::ranges::equal(model.x.offsets(), both.offsets()));
  CHECK(model.x.row(here.rows())[1] != there.row(0)[1]);
  RecordingModel any;  // knows no kinds
  adaptation.fitted_candidates = 0;
  adaptation.update(any, here, Labels{1, 0.5F, 0.25F}, {});
  CHECK(kinds_of(any.x) != kinds_of(both));
}

TEST_CASE("mapped rows keep their kinds for a model that reads them") {
  const FeatureBatch there = of_two_kinds(1, {3, 2, 4}), here = of_two_kinds(10, {1, 1, 2});
  adaptations::Mapped<ModelOfKinds, adaptations::alignment::Columns> model;
  model.map.fit(here, there);
  model.fit(here, Labels{1, 0.5F, 0.25F}, {});
  CHECK(kinds_of(model.model.x) == kinds_of(here));
  CHECK(model.model.x.row(0)[1] != here.row(0)[1]);
  std::vector<float> score(3);
  model.predict(here, score);
  CHECK(score[0] == score[1]);  // by column 0 of the first row
}

TEST_CASE("Pruner's network ranks programs of a device whose features are mapped to those it learned") {
  const auto learned = test::make_lesson(300, 1);
  auto here = test::make_lesson(200, 2);
  FeatureBatch in_other_units(6);
  for (std::size_t p = 0; p < here.x.programs(); ++p) {
    std::vector<float> rows(here.x.program(p).begin(), here.x.program(p).end());
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] *= i % 6 == 0 ? 1.0F : 50.0F;
    in_other_units.append_program(rows);
  }
  here.x = in_other_units;
  models::PatternAware network{
      .hidden = 16, .dataflow_columns = 1, .training = {.epochs = 20, .batch_programs = 64, .learning_rate = 3e-3F}};
  network.fit(learned.x, learned.y, learned.group);
  adaptations::Mapped<models::PatternAware, adaptations::alignment::Columns> model{.model = network};
  model.map.fit(here.x, learned.x);
  CHECK(test::accuracy(model, here) > 0.75);
}
