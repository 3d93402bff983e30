// SPDX-License-Identifier: Apache-2.0
#include "tunewright/features/knobs.hpp"

#include <doctest/doctest.h>

#include "support/refusal.hpp"
#include "support/toy_space.hpp"

using namespace tunewright;
using test::refusal;

namespace {

// The toy's tiles as knobs: one on each scale, and one that is left as it is.
struct KnobbedToy : toy::Space {
  [[nodiscard]] std::vector<Knob> knobs() const {
    return {{"rows", KnobScale::Linear},
            {"columns", KnobScale::Log2},
            {"order", KnobScale::Category, {0, 1, 2}, {"ijk", "ikj", "kij"}},
            {"unroll", KnobScale::Category, {0, 0.5, 7}}};
  }
  [[nodiscard]] std::vector<double> knob_values(const toy::Tiles& tiles) const {
    return {static_cast<double>(tiles[0]), static_cast<double>(tiles[1]), static_cast<double>(tiles[2]),
            static_cast<double>(tiles[3])};
  }
};
static_assert(KnobSpace<KnobbedToy>);
static_assert(!KnobSpace<toy::Space>);
static_assert(FeaturizerFor<features::Knobs, KnobbedToy>);
static_assert(!FeaturizerFor<features::Knobs, toy::Space>);
static_assert(OneRowFeaturizer<features::Knobs>);
static_assert(!OneRowFeaturizer<toy::Features>);

std::vector<float> row(const features::Knobs& featurizer, toy::Tiles tiles) {
  const FeatureBatch batch = featurizer.extract(KnobbedToy{}, toy::task(), std::span<const toy::Tiles>(&tiles, 1));
  REQUIRE(batch.programs() == 1);
  return {batch.program(0).begin(), batch.program(0).end()};
}

}  // namespace

TEST_CASE("a column a knob on its scale, a column a category") {
  const features::Knobs featurizer{.knobs = KnobbedToy{}.knobs()};
  // 5 as it is; log2(7 + 1) = 3; the second of three orders; the last of three unrolls
  CHECK(row(featurizer, {5, 7, 1, 7}) == std::vector<float>{5, 3, 0, 1, 0, 0, 0, 1});
  // log2(0 + 1) = 0, log2(1 + 1) = 1; negative values mirror positive ones
  CHECK(row(featurizer, {0, 0, 0, 0}) == std::vector<float>{0, 0, 1, 0, 0, 1, 0, 0});
  CHECK(row(featurizer, {-2, -3, 0, 0})[1] == -2);

  const FeatureSchema schema = featurizer.schema();
  CHECK(schema.name == "knobs");
  REQUIRE(schema.columns.size() == 8);
  CHECK(schema.columns[3].name == "order=ikj");
  CHECK(schema.columns[6].name == "unroll=0.500000");
  CHECK(schema.columns[7].name == "unroll=7");
}

TEST_CASE("a value that no column stands for leaves the program without rows") {
  const features::Knobs featurizer{.knobs = KnobbedToy{}.knobs()};
  CHECK(row(featurizer, {1, 1, 5, 7}).empty());
  CHECK(row(featurizer, {1, 1, 1, 3}).empty());
}

TEST_CASE("knobs are found by name: a choice of them in any order, and some of other spaces") {
  const features::Knobs some{.knobs = {{"elsewhere"}, {"columns"}, {"rows", KnobScale::Log2}}};
  CHECK(row(some, {3, 6, 9, 9}) == std::vector<float>{0, 6, 2});
  CHECK(some.schema().columns[0].name == "elsewhere");
}

TEST_CASE("records without a space are described by names and values") {
  const features::Knobs featurizer{.knobs = {{"b", KnobScale::Log2}, {"a"}}};
  FeatureBatch batch(featurizer.width());
  const std::vector<std::string> names{"a", "unused", "b"};
  featurizer.describe(featurizer.places(names), std::vector<double>{-1, 2, 15}, batch);
  CHECK(std::vector<float>(batch.values().begin(), batch.values().end()) == std::vector<float>{4, -1});
}

TEST_CASE("what cannot be described is refused by name") {
  const std::vector<toy::Tiles> tiles(1);
  const auto extract = [&](const features::Knobs& f) {
    return refusal([&] { (void)f.extract(KnobbedToy{}, toy::task(), std::span<const toy::Tiles>(tiles)); });
  };
  CHECK(extract({}) == "features::Knobs: it has no knobs; give it {.knobs = space.knobs()}");
  CHECK(extract({.knobs = {{"tile_x"}}}) ==
        "features::Knobs: none of its knobs ('tile_x', ...) is one of the configurations' ('rows', ...); give "
        "it {.knobs = space.knobs()}");
  CHECK(extract({.knobs = {{"rows", KnobScale::Category}}}).find("'rows' lists no values") != std::string::npos);
  CHECK(extract({.knobs = {{"rows", KnobScale::Category, {1, 2}, {"one"}}}}).find("1 names for 2 values") !=
        std::string::npos);
  FeatureBatch narrow(1);
  const features::Knobs two{.knobs = {{"a"}, {"b"}}};
  CHECK(refusal([&] {
          two.describe(std::vector<std::size_t>{0, 1}, std::vector<double>{1, 2}, narrow);
        }).find("a batch of 1 columns for 2 knobs in 2 columns") != std::string::npos);
  FeatureBatch fitting(2);
  CHECK(refusal([&] {
          two.describe(std::vector<std::size_t>{0, 1}, std::vector<double>{1}, fitting);
        }).find("has 1 values, but knob 'b' is number 1") != std::string::npos);
}

TEST_CASE("a scale that suits numbers") {
  CHECK(suitable_scale(std::vector<double>{1, 16, 1024}) == KnobScale::Log2);
  CHECK(suitable_scale(std::vector<double>{0, 1}) == KnobScale::Linear);
  CHECK(suitable_scale(std::vector<double>{-1, 64}) == KnobScale::Linear);
  CHECK(suitable_scale({}) == KnobScale::Linear);
}

TEST_CASE("a schema's key follows its meaning, not its wording") {
  FeatureSchema schema{"s", 1, {{"a", "count", "Once."}}};
  const std::uint64_t key = stable_hash(schema);
  schema.columns[0].meaning = "Worded anew.";
  CHECK(stable_hash(schema) == key);
  schema.columns[0].unit = "log2(count + 1)";
  CHECK(stable_hash(schema) != key);
  schema.columns[0].unit = "count";
  schema.version = 2;
  CHECK(stable_hash(schema) != key);
}
