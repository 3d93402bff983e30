// SPDX-License-Identifier: Apache-2.0
#include "tunewright/adaptations/aligned.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "support/recording_model.hpp"
#include "support/refusal.hpp"
#include "tunewright/adaptations/feature_map.hpp"
#include "tunewright/adaptations/mapped.hpp"

using namespace tunewright;
using test::one_column;
using test::RecordingModel;
using test::refusal;

using Labels = std::vector<float>;
using Groups = std::vector<std::uint32_t>;

static_assert(AdaptationFor<adaptations::FeatureMap, RecordingModel>);
static_assert(CostModel<adaptations::Mapped<RecordingModel, adaptations::alignment::Columns>>);

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
