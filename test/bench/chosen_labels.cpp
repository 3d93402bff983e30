// SPDX-License-Identifier: Apache-2.0
#include "../../bench/study/chosen_labels.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <stdexcept>
#include <vector>

#include "support/toy_model.hpp"

using namespace tunewright;
using study::Indices;

namespace {

/// The models of a study have a seed.
struct Seeded : toy::OpenBook {
  std::uint64_t seed = 0;
};

/// Chooses at most `most`, the first ones, and notes in which rounds the programs it is shown were chosen.
struct AtMost {
  std::size_t most = 3;
  std::vector<std::set<std::uint32_t>>* rounds = nullptr;
  template <CostModel M>
  [[nodiscard]] Indices select(const M&, const FeatureBatch&, std::span<const float> score, std::size_t n, Rng&,
                               const samplers::Labelled& labelled = {}) const {
    if (rounds != nullptr) rounds->emplace_back(labelled.round.begin(), labelled.round.end());
    Indices chosen;
    for (std::size_t p = 0; p < std::min({most, n, score.size()}); ++p) chosen.push_back(p);
    return chosen;
  }
};

study::Programs hundred_programs() {
  study::Programs all;
  all.x = FeatureBatch(2);
  for (std::size_t i = 0; i < 100; ++i) {
    all.x.append_program(std::vector<float>{static_cast<float>(i), 0});
    all.cost_s.push_back(static_cast<double>(i + 1));
    all.group.push_back(0);
    all.pool.push_back(i);
  }
  return all;
}

std::vector<Indices> labelled_by(const AtMost& sampler) {
  std::vector<Indices> steps;
  study::label(hundred_programs(), study::Model(Seeded{}), sampler, {.05, .06, .15, 1}, 5, 7,
               [&](const study::Model&, const Indices& labelled) { steps.push_back(labelled); });
  return steps;
}

}  // namespace

TEST_CASE("a step labels its share, however few the sampler chooses at a time") {
  std::vector<std::set<std::uint32_t>> rounds;
  const std::vector<Indices> steps = labelled_by({.most = 3, .rounds = &rounds});
  REQUIRE(steps.size() == 4);
  CHECK(steps[0].size() == 5);
  CHECK(steps[1].size() == 6);
  CHECK(steps[2].size() == 15);
  CHECK(std::set<std::size_t>(steps[3].begin(), steps[3].end()).size() == 100);
  // One round to the second step and three to the third; each knows those before it.
  REQUIRE(rounds.size() > 4);
  CHECK(rounds[0] == std::set<std::uint32_t>{0});
  CHECK(rounds[4] == std::set<std::uint32_t>{0, 1, 2, 3, 4});
  // The sampler that fills every step at once chooses the same, since both take the first ones.
  const std::vector<Indices> at_once = labelled_by({.most = 100});
  for (std::size_t step = 0; step < steps.size(); ++step) CHECK(at_once[step] == steps[step]);
}

TEST_CASE("the start rounds in every group, so that it may be more than its share of the pool") {
  study::Programs all = hundred_programs();
  for (std::size_t i = 90; i < 100; ++i) all.group[i] = 1;
  const auto parts = study::start(all, .05, 2, Rng(7));
  CHECK(parts.first.size() == 5 + 2);  // of 4.5 and 0.5
  CHECK(parts.second.size() == 93);
  // A step that it exceeds has as many.
  std::vector<std::size_t> labels;
  study::label(all, study::Model(Seeded{}), AtMost{}, {.05, .06, .08}, 2, 7,
               [&](const study::Model&, const Indices& labelled) { labels.push_back(labelled.size()); });
  CHECK(labels == std::vector<std::size_t>{7, 7, 8});
}

TEST_CASE("a sampler that chooses nothing is an error, not an endless step") {
  CHECK_THROWS_AS(labelled_by({.most = 0}), std::logic_error);
}
