// SPDX-License-Identifier: Apache-2.0
#include "tunewright/adaptations/shared_trunk.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "support/recording_model.hpp"
#include "support/refusal.hpp"

using namespace tunewright;
using adaptations::SharedTrunk;
using test::one_column;
using test::refusal;
using Labels = std::vector<float>;
using Groups = std::vector<std::uint32_t>;

namespace {

struct Heads : test::RecordingModel {
  std::size_t heads = 3;
  void fit_heads(const FeatureBatch& programs, std::span<const float> labels, std::span<const std::uint32_t> groups) {
    fit(programs, labels, groups);
  }
  void predict_head(const FeatureBatch& programs, std::size_t, std::span<float> score) const {
    predict(programs, score);
  }
};
static_assert(MultiHeadCostModel<Heads>);
static_assert(AdaptationFor<SharedTrunk, Heads>);
static_assert(!AdaptationFor<SharedTrunk, test::RecordingModel>);

SharedTrunk two_sources() { return {.sources = {{one_column({5, 6}), {0.5F, 1}, {0, 1}}, {one_column({7}), {1}, {}}}}; }

}  // namespace

TEST_CASE("each program has a label at the head of its device and none at the others") {
  SharedTrunk shared = two_sources();
  Heads model;
  shared.update(model, one_column({1, 2}), Labels{1, 0}, Groups{3, 4});
  CHECK(std::vector<float>(model.x.values().begin(), model.x.values().end()) == std::vector<float>{1, 2, 5, 6, 7});
  CHECK(model.group == Groups{3, 4, 5, 6, 7});
  REQUIRE(model.y.size() == 5 * 3);
  const Labels known{1, -1, -1, 0, -1, -1, -1, 0.5F, -1, -1, 1, -1, -1, -1, 1};  // -1: not a number
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (known[i] < 0)
      CHECK(std::isnan(model.y[i]));
    else
      CHECK(model.y[i] == known[i]);
  }
}

TEST_CASE("without own measurements nothing is trained; few more are not worth it") {
  SharedTrunk shared = two_sources();
  shared.min_growth = 1;
  Heads model;
  shared.update(model, FeatureBatch(1), Labels{}, {});
  CHECK(model.fits == 0);
  shared.update(model, one_column({1, 2}), Labels{1, 0}, {});
  shared.update(model, one_column({1, 2, 3}), Labels{1, 0, 1}, {});
  CHECK(model.fits == 1);
}

TEST_CASE("heads and sources must go together") {
  SharedTrunk shared = two_sources();
  Heads model;
  model.heads = 2;
  CHECK(refusal([&] { shared.update(model, one_column({1}), Labels{1}, {}); }) ==
        "adaptations::SharedTrunk: 2 sources and the own device need 3 heads, but the model has 2; set its "
        "member 'heads'");
  model.heads = 3;
  CHECK(refusal([&] {
          shared.update(model, one_column({1, 2}), Labels{1, 0}, Groups{1});
        }).find("adaptations::SharedTrunk::fit: 1 group numbers for 2 programs") == 0);
  shared.sources[1] = {};
  CHECK(refusal([&] {
          shared.update(model, one_column({1}), Labels{1}, {});
        }).find("adaptations::SharedTrunk: the source has 0 programs") == 0);
}
