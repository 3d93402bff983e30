// SPDX-License-Identifier: Apache-2.0
#include "tunewright/explorers/adaptive_exploration.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "support/toy_knob_space.hpp"

using namespace tunewright;
using explorers::AdaptiveExploration;

namespace {

const auto by_speed = [](std::span<const toy::Tiles> configs, std::span<float> score) {
  for (std::size_t i = 0; i < configs.size(); ++i) score[i] = static_cast<float>(1e-3 / toy::cost_s(configs[i]));
};
const KeySet nothing_measured;
Guidance<toy::Tiles> guidance(std::size_t wanted) {
  return {.rank = by_speed, .seeds = {}, .measured = nothing_measured, .wanted = wanted};
}

// Half of the configurations are missing, so that two knobs can only be moved together.
struct Holes : toy::KnobbedSpace {
  [[nodiscard]] static bool there(const toy::Tiles& tiles) { return (tiles[0] + tiles[1]) % 2 == 0; }
  [[nodiscard]] std::optional<toy::Tiles> sample(const Task& task, Rng& rng) const {
    auto tiles = Space::sample(task, rng);
    return there(*tiles) ? tiles : std::nullopt;
  }
  [[nodiscard]] std::optional<toy::Tiles> at_knobs(const Task& task, const std::vector<double>& numbers) const {
    const auto tiles = KnobbedSpace::at_knobs(task, numbers);
    return there(*tiles) ? tiles : std::nullopt;
  }
};

}  // namespace

TEST_CASE("agents that are told the speed find the optimum among 4096") {
  AdaptiveExploration exploration{.episodes = 64, .steps = 100, .learning_rate = 1e-2};
  std::vector<toy::Tiles> pool;
  for (unsigned round = 0; round < 3; ++round) {
    Rng rng = Rng(3).split(round);
    pool = exploration.explore(toy::KnobbedSpace{}, toy::task(), guidance(8), rng);
  }
  REQUIRE(pool.size() == 16);
  CHECK(pool.front() == toy::best);
  CHECK(exploration.agent.has_value());
}

TEST_CASE("a policy that is rewarded for one knob raises it") {
  const auto first_tile = [](std::span<const toy::Tiles> configs, std::span<float> score) {
    for (std::size_t i = 0; i < configs.size(); ++i) score[i] = static_cast<float>(configs[i][0]) / 7;
  };
  const Guidance<toy::Tiles> guided{.rank = first_tile, .seeds = {}, .measured = nothing_measured, .wanted = 4};
  AdaptiveExploration exploration{.episodes = 200, .steps = 30, .settled_share = 1, .learning_rate = 1e-2};
  exploration.loss.entropy = 0;
  Rng rng(5);
  (void)exploration.explore(toy::KnobbedSpace{}, toy::task(), guided, rng);
  explorers::PolicyNetwork<float>::Trace trace;
  trace.state.resize(1, 4);
  std::fill_n(trace.state.data(), 4, 0.5F);
  exploration.agent->network.forward(exploration.agent->parameters.data(), trace);
  CHECK(trace.probability.data()[2] > 0.8F);  // of one value up
}

TEST_CASE("a policy that goes one way, or stays, leads there by single values of each knob") {
  for (const bool up : {false, true}) {
    std::vector<toy::Tiles> seen;
    const auto remember = [&](std::span<const toy::Tiles> configs, std::span<float> score) {
      seen.insert(seen.end(), configs.begin(), configs.end());
      std::fill(score.begin(), score.end(), 0.0F);
    };
    const Guidance<toy::Tiles> guided{.rank = remember, .seeds = {}, .measured = nothing_measured, .wanted = 1};
    AdaptiveExploration exploration{.episodes = 1, .steps = 60, .settled_share = 1, .updates = 0};
    Rng rng(4);
    (void)exploration.explore(toy::KnobbedSpace{}, toy::task(), guided, rng);
    // Only one bias remains: moving back has the probability exp(-10) / 2, moving on and staying one half each.
    auto& agent = *exploration.agent;
    std::fill(agent.parameters.begin(), agent.parameters.end(), 0.0F);
    for (const nn::ParameterBlock& block : agent.network.layout().blocks()) {
      if (block.name.starts_with("knob.") && block.name.ends_with(".1.bias"))
        agent.parameters[block.first + (up ? 0 : 2)] = -9;
    }
    bool arrived = false;
    for (unsigned round = 0; round < 40; ++round) {
      seen.clear();
      Rng own(round);
      (void)exploration.explore(toy::KnobbedSpace{}, toy::task(), guided, own);
      for (std::size_t i = 1; i < seen.size(); ++i) {
        for (std::size_t k = 0; k < 4; ++k) {
          const int move = seen[i][k] - seen[i - 1][k];
          CHECK((move == 0 || move == (up ? 1 : -1)));
        }
      }
      arrived = arrived || seen.back() == (up ? toy::Tiles{7, 7, 7, 7} : toy::Tiles{0, 0, 0, 0});
    }
    CHECK(arrived);
  }
}

TEST_CASE("a single move tells the policy nothing, as its standardised advantage is 0, but the values") {
  const auto agent_after = [](std::size_t updates) {
    AdaptiveExploration exploration{.episodes = 4, .steps = 1, .updates = updates, .learning_rate = 1e-2};
    exploration.loss.entropy = 0;
    Rng rng(5);
    (void)exploration.explore(toy::KnobbedSpace{}, toy::task(), guidance(4), rng);
    explorers::PolicyNetwork<float>::Trace trace;
    trace.state.resize(1, 4);
    std::fill_n(trace.state.data(), 4, 0.5F);
    exploration.agent->network.forward(exploration.agent->parameters.data(), trace);
    return trace;
  };
  const auto untaught = agent_after(0), once = agent_after(1), thrice = agent_after(3);
  for (std::size_t i = 0; i < 12; ++i) CHECK(thrice.probability.data()[i] == untaught.probability.data()[i]);
  CHECK(once.value.data()[0] != untaught.value.data()[0]);
  CHECK(thrice.value.data()[0] != once.value.data()[0]);
}

TEST_CASE("another number of knobs gets another agent") {
  struct Three : toy::KnobbedSpace {
    [[nodiscard]] std::vector<Knob> knobs() const {
      auto all = KnobbedSpace::knobs();
      all.pop_back();
      return all;
    }
    [[nodiscard]] std::optional<toy::Tiles> at_knobs(const Task& task, std::vector<double> numbers) const {
      numbers.push_back(0);
      return KnobbedSpace::at_knobs(task, numbers);
    }
  };
  AdaptiveExploration exploration{.episodes = 2, .steps = 3};
  Rng rng(6);
  (void)exploration.explore(toy::KnobbedSpace{}, toy::task(), guidance(4), rng);
  CHECK(exploration.agent->network.knobs() == 4);
  (void)exploration.explore(Three{}, toy::task(), guidance(4), rng);
  CHECK(exploration.agent->network.knobs() == 3);
}

TEST_CASE("the space may have holes; nothing outside it comes back") {
  AdaptiveExploration exploration{.episodes = 32, .steps = 50};
  Rng rng(2);
  const auto pool = exploration.explore(Holes{}, toy::task(), guidance(64), rng);
  CHECK(pool.size() >= 64);
  CHECK(std::all_of(pool.begin(), pool.end(), [](const toy::Tiles& tiles) { return Holes::there(tiles); }));
}

TEST_CASE("measured and refused configurations do not come back, and the same generator gives the same pool") {
  const auto refusing = [](std::span<const toy::Tiles> configs, std::span<float> score) {
    for (std::size_t i = 0; i < configs.size(); ++i)
      score[i] = configs[i][2] == 7 ? -std::numeric_limits<float>::infinity() : static_cast<float>(configs[i][1]);
  };
  const toy::KnobbedSpace space;
  KeySet measured;
  for (int unroll = 0; unroll < 8; ++unroll)
    for (int rows = 0; rows < 8; ++rows) measured.insert(space.key({rows, 7, 3, unroll}));
  const auto explored = [&](std::uint64_t seed, unsigned threads) {
    AdaptiveExploration exploration{.episodes = 16, .steps = 40};
    std::vector<toy::Tiles> all;
    for (unsigned round = 0; round < 2; ++round) {
      Rng rng = Rng(seed).split(round);
      const auto pool = exploration.explore(
          space, toy::task(),
          Guidance<toy::Tiles>{.rank = refusing, .seeds = {}, .measured = measured, .wanted = 32, .threads = threads},
          rng);
      all.insert(all.end(), pool.begin(), pool.end());
      for (const float weight : exploration.agent->parameters) CHECK(std::isfinite(weight));  // refusals count as 0
    }
    return all;
  };
  const auto all = explored(4, 1);
  CHECK(all.size() >= 64);
  for (const toy::Tiles& tiles : all) {
    CHECK(tiles[2] != 7);
    CHECK(measured.count(space.key(tiles)) == 0);
  }
  CHECK(all == explored(4, 2));
  CHECK(all != explored(5, 1));
}

TEST_CASE("options out of range, and knobs whose values are not known, are refused") {
  Rng rng(1);
  const auto run = [&](AdaptiveExploration exploration) {
    (void)exploration.explore(toy::KnobbedSpace{}, toy::task(), guidance(8), rng);
  };
  CHECK_THROWS_WITH_AS(run({.episodes = 0}), doctest::Contains("episodes"), std::invalid_argument);
  CHECK_THROWS_AS(run({.steps = 0}), std::invalid_argument);
  CHECK_THROWS_AS(run({.settled_share = 0}), std::invalid_argument);
  CHECK_THROWS_AS(run({.temperature = 0}), std::invalid_argument);
  CHECK_THROWS_AS(run({.discount = 1}), std::invalid_argument);
  CHECK_THROWS_AS(run({.lambda = 1.5}), std::invalid_argument);
  CHECK_THROWS_AS(run({.batch = 0}), std::invalid_argument);
  CHECK_THROWS_AS(run({.learning_rate = -1}), std::invalid_argument);
  CHECK_THROWS_WITH_AS(run({.loss = {.clip = 1}}), doctest::Contains("loss.clip"), std::invalid_argument);
  CHECK_THROWS_AS(run({.loss = {.entropy = -1}}), std::invalid_argument);
  CHECK_THROWS_AS(run({.loss = {.value = -1}}), std::invalid_argument);
  CHECK_THROWS_AS(run({.elite_factor = 0}), std::invalid_argument);
  CHECK_THROWS_WITH_AS((void)AdaptiveExploration{.elite_factor = -1}.pool_bound(8),
                       doctest::Contains("elite_factor is -1"), std::invalid_argument);
  struct Unknown : toy::KnobbedSpace {
    [[nodiscard]] std::vector<Knob> knobs() const { return {{.name = "rows"}, {}, {}, {}}; }
  };
  AdaptiveExploration exploration;
  CHECK_THROWS_WITH_AS((void)exploration.explore(Unknown{}, toy::task(), guidance(8), rng),
                       doctest::Contains("knob 'rows'"), std::invalid_argument);
}
