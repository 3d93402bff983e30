// SPDX-License-Identifier: Apache-2.0
#include "tunewright/features/factor_products.hpp"

#include <doctest/doctest.h>

#include <limits>

#include "support/refusal.hpp"
#include "support/toy_space.hpp"

using namespace tunewright;
using features::FactorProducts;
using test::refusal;

namespace {

// The toy's tiles as two parts of an axis, one of another and an axis of its own.
struct SplitToy : toy::Space {
  std::vector<Knob> names{
      {"y.0", KnobScale::Log2}, {"y.1", KnobScale::Log2}, {"x.1", KnobScale::Log2}, {"unroll", KnobScale::Log2}};
  [[nodiscard]] std::vector<Knob> knobs() const { return names; }
  [[nodiscard]] std::vector<double> knob_values(const toy::Tiles& tiles) const {
    std::vector<double> factors;
    for (const auto tile : tiles) factors.push_back(static_cast<double>(tile));
    return factors;
  }
};
static_assert(FeaturizerFor<FactorProducts, SplitToy>);
static_assert(!FeaturizerFor<FactorProducts, toy::Space>);
static_assert(OneRowFeaturizer<FactorProducts>);

std::vector<float> row(const FactorProducts& featurizer, toy::Tiles tiles, const SplitToy& space = {},
                       const Task& task = toy::task()) {
  const FeatureBatch batch = featurizer.extract(space, task, std::span<const toy::Tiles>(&tiles, 1));
  REQUIRE(batch.programs() == 1);
  return {batch.program(0).begin(), batch.program(0).end()};
}

}  // namespace

TEST_CASE("logarithms of products over parts, over axes and over sets of axes") {
  const FactorProducts featurizer{.axes = {"y", "x", "unroll"}, .parts = 2, .task_numbers = 0};
  // y = 2 x 8, x.1 = 4, unroll = 32. Part 0: 2; part 1: 8 x 4. Tiles: 16, 4, 32.
  // y x: 64; y unroll: 512; x unroll: 128; all three: 2048
  const std::vector<float> expected{1, 5, 4, 2, 5, 6, 9, 7, 11};
  CHECK(row(featurizer, {2, 8, 4, 32}) == expected);
  CHECK(featurizer.width() == expected.size());
  const FeatureSchema schema = featurizer.schema();
  REQUIRE(schema.columns.size() == expected.size());
  CHECK(schema.columns[1].name == "part 1");
  CHECK(schema.columns[2].name == "tile of y");
  CHECK(schema.columns[6].name == "tile of y x unroll");
}

TEST_CASE("a factor below 1 is the rest of a split and counts as 1") {
  const FactorProducts featurizer{.axes = {"y"}, .parts = 1, .task_numbers = 0};
  CHECK(row(featurizer, {-1, 8, 4, 32}) == std::vector<float>{0, 3});
  CHECK(row(featurizer, {0, 8, 4, 32}) == std::vector<float>{0, 3});
}

TEST_CASE("sizes are the whole numbers in the task's name") {
  Task task = toy::task();
  task.name = "conv 7x1023, float";
  const FactorProducts featurizer{.axes = {"y"}, .parts = 0, .task_numbers = 3};
  CHECK(row(featurizer, {1, 1, 1, 1}, {}, task) == std::vector<float>{0, 3, 10, 0});
}

TEST_CASE("axes are those of splits and of knobs on a logarithmic scale, each once") {
  const std::vector<Knob> knobs{{"tile_y.0", KnobScale::Log2},
                                {"tile_y.1", KnobScale::Linear},
                                {"order", KnobScale::Category, {0, 1}, {"a", "b"}},
                                {"vector", KnobScale::Log2},
                                {"flag", KnobScale::Linear},
                                {"v1.x", KnobScale::Linear}};
  CHECK(FactorProducts::axes_of(knobs) == std::vector<std::string>{"tile_y", "vector"});
}

TEST_CASE("products of more than 4 tiles, and of axes beyond the eighth, are no columns") {
  FactorProducts featurizer{.axes = {"a", "b", "c", "d", "e"}, .parts = 0, .task_numbers = 0};
  CHECK(featurizer.width() == 5 + 10 + 10 + 5);  // 5 tiles; 5 over 2, over 3 and over 4
  featurizer.axes = {"a", "b", "c", "d", "e", "f", "g", "h", "i"};
  CHECK(featurizer.width() == 9 + 28 + 56 + 70);
}

TEST_CASE("numbers of categories are no factors, and a value that is not finite leaves no row") {
  SplitToy space;
  space.names[1] = {"y.1", KnobScale::Category, {8}};
  const FactorProducts featurizer{.axes = {"y"}, .parts = 0, .task_numbers = 0};
  CHECK(row(featurizer, {2, 8, 4, 32}, space) == std::vector<float>{1});

  struct Infinite : SplitToy {
    [[nodiscard]] std::vector<double> knob_values(const toy::Tiles&) const {
      return {std::numeric_limits<double>::infinity(), 1, 1, 1};
    }
  };
  const toy::Tiles tiles{};
  const FeatureBatch batch = featurizer.extract(Infinite{}, toy::task(), std::span<const toy::Tiles>(&tiles, 1));
  CHECK(batch.programs() == 1);
  CHECK(batch.rows() == 0);
}

TEST_CASE("axes that cannot be columns are refused by name") {
  const auto extract = [](const FactorProducts& featurizer) {
    return refusal([&] { (void)row(featurizer, {1, 1, 1, 1}); });
  };
  CHECK(extract({}).find("it has no axes; give it {.axes = ") != std::string::npos);
  CHECK(extract({.axes = {"y", "y"}}) == "features::FactorProducts: axis 'y' is named twice; name it once");
  CHECK(extract({.axes = {"z"}}).find("none of its axes ('z', ...) has a factor among the knobs ('y.0', ...)") !=
        std::string::npos);
  struct Short : SplitToy {
    [[nodiscard]] std::vector<double> knob_values(const toy::Tiles&) const { return {1}; }
  };
  const toy::Tiles tiles{};
  CHECK(refusal([&] {
          (void)FactorProducts{.axes = {"y"}}.extract(Short{}, toy::task(), std::span<const toy::Tiles>(&tiles, 1));
        }).find("has 1 values for 4 knobs") != std::string::npos);
}
