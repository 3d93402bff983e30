// SPDX-License-Identifier: Apache-2.0
#include "tunewright/adaptations/refit.hpp"

#include <doctest/doctest.h>

#include <array>
#include <vector>

#include "tunewright/adaptations/none.hpp"

using namespace tunewright;

namespace {

struct Counting {
  std::vector<std::size_t> fits{};
  void predict(const FeatureBatch&, std::span<float>) const {}
  void fit(const FeatureBatch&, std::span<const float> y, std::span<const std::uint32_t>) { fits.push_back(y.size()); }
};

void feed(auto& adaptation, Counting& model, std::initializer_list<std::size_t> sizes) {
  for (const std::size_t n : sizes) {
    FeatureBatch x(1);
    for (std::size_t i = 0; i < n; ++i) x.append_program(std::array{0.0F});
    adaptation.update(model, x, std::vector<float>(n), std::vector<std::uint32_t>(n));
  }
}

}  // namespace

TEST_CASE("by default every batch is followed by a fit on everything") {
  Counting model;
  adaptations::Refit refit;
  feed(refit, model, {64, 128, 129});
  CHECK(model.fits == std::vector<std::size_t>{64, 128, 129});
}

TEST_CASE("adaptive training waits for a fifth more candidates") {
  Counting model;
  adaptations::Refit refit{.min_growth = 0.2};
  feed(refit, model, {100, 119, 120, 143, 144, 20});  // 144 = 120 * 1.2; 20 are the first of another session
  CHECK(model.fits == std::vector<std::size_t>{100, 120, 144, 20});
}

TEST_CASE("a task that the last fit had nothing of is fitted at once") {
  Counting model;
  adaptations::Refit refit{.min_growth = 1};
  const auto feed_groups = [&](const std::vector<std::uint32_t>& group) {
    FeatureBatch x(1);
    for (std::size_t i = 0; i < group.size(); ++i) x.append_program(std::array{0.0F});
    refit.update(model, x, std::vector<float>(group.size()), group);
  };
  feed_groups({0, 0, 0, 0});
  feed_groups({0, 0, 0, 0, 0});
  CHECK(model.fits == std::vector<std::size_t>{4});
  feed_groups({0, 0, 0, 0, 0, 1});
  CHECK(model.fits == std::vector<std::size_t>{4, 6});
}

TEST_CASE("nothing is fitted during the warm-up, whose candidates are part of the first fit") {
  Counting model;
  adaptations::Refit refit{.warmup_candidates = 100};
  feed(refit, model, {64, 100, 101, 110});
  CHECK(model.fits == std::vector<std::size_t>{101, 110});
}

TEST_CASE("a negative share is refused") {
  Counting model;
  adaptations::Refit refit{.min_growth = -0.5};
  CHECK_THROWS_WITH_AS(feed(refit, model, {1}), doctest::Contains("-0.5"), std::invalid_argument);
}

TEST_CASE("no adaptation leaves the model alone") {
  Counting model;
  adaptations::None none;
  feed(none, model, {64});
  CHECK(model.fits.empty());
}
