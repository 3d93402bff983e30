// SPDX-License-Identifier: Apache-2.0
#include "tunewright/adaptations/incremental_refit.hpp"

#include <doctest/doctest.h>

#include <array>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tunewright/core/feature_batch.hpp"

using namespace tunewright;

namespace {

/// Writes down how it is trained.
struct Diary {
  nn::Training training{};
  std::vector<std::string> entries{};
  std::vector<float> weights{};

  void predict(const FeatureBatch&, std::span<float>) const {}
  void fit(const FeatureBatch&, std::span<const float> y, std::span<const std::uint32_t>) {
    entries.push_back("anew " + std::to_string(y.size()));
  }
  void train_from_current(const FeatureBatch&, std::span<const float> y, std::span<const std::uint32_t>,
                          const nn::Training& how, const nn::Continuation&) {
    entries.push_back(std::to_string(how.epochs_of(1)) + " steps " + std::to_string(y.size()));
  }
  std::span<float> parameters() { return weights; }
  [[nodiscard]] std::span<const nn::ParameterBlock> blocks() const { return {}; }
};

std::vector<std::string> diary(adaptations::IncrementalRefit how, std::initializer_list<std::size_t> sizes) {
  Diary model;
  for (const std::size_t n : sizes) {
    FeatureBatch x(1);
    for (std::size_t i = 0; i < n; ++i) x.append_program(std::array{0.0F});
    how.update(model, x, std::vector<float>(n), std::vector<std::uint32_t>(n));
  }
  return model.entries;
}

}  // namespace

TEST_CASE("a network is trained anew at doublings and a few steps in between") {
  const std::vector<std::string> wanted{"anew 10",    "anew 20",    "5 steps 30", "anew 40",
                                        "5 steps 50", "5 steps 60", "anew 80",    "anew 10"};
  CHECK(diary({.steps = 5, .renewal_factor = 2, .min_growth = 0.1}, {10, 20, 30, 40, 41, 50, 60, 80, 10}) ==
        wanted);  // 41 is too little news; the last 10 are another session's
}

TEST_CASE("as many new candidates as the share says are enough") {
  CHECK(diary({.steps = 5, .min_growth = 0.25}, {8, 9, 10}) == std::vector<std::string>{"anew 8", "5 steps 10"});
}

TEST_CASE("without renewals a network is trained anew only once") {
  const std::vector<std::string> wanted{"anew 10", "3 steps 20", "3 steps 80"};
  CHECK(diary({.steps = 3, .renewal_factor = std::numeric_limits<double>::infinity(), .min_growth = 0}, {10, 20, 80}) ==
        wanted);
}

TEST_CASE("a factor of 1 trains always anew, as Pruner's released code does") {
  const std::vector<std::string> wanted{"anew 10", "anew 20", "anew 30"};
  CHECK(diary({.renewal_factor = 1, .min_growth = 0}, {10, 20, 30}) == wanted);
}

TEST_CASE("options out of range are named") {
  CHECK_THROWS_WITH_AS(diary({.steps = 0}, {1}), doctest::Contains("steps"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(diary({.renewal_factor = 0.5}, {1}), doctest::Contains("renewal_factor"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(diary({.min_growth = -0.1}, {1}), doctest::Contains("-0.1"), std::invalid_argument);
}
