// SPDX-License-Identifier: Apache-2.0
#include "tunewright/recipes/pruner.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "recipes/pretrained.hpp"
#include "tunewright/filters/static_limits.hpp"
#include "tunewright/recipes/ansor.hpp"
#include "tunewright/recipes/moa_pruner.hpp"

namespace {

using namespace tunewright;
using Pruner = recipes::Pruner<spaces::MultiLevelTiling, measurers::Simulated>;
using PrunerQuick = recipes::PrunerQuick<spaces::MultiLevelTiling, measurers::Simulated>;
using MoaPruner = recipes::MoaPruner<spaces::MultiLevelTiling, measurers::Simulated>;

template <class Recipe>
Parts<Recipe> small(std::uint64_t seed, unsigned threads) {
  Parts<Recipe> parts = test::small_parts<Recipe>(seed, threads);
  parts.explorer.size = 64;
  parts.explorer.explorer.population = 128;
  parts.model.hidden = 16;
  return parts;
}

TEST_CASE("Pruner: same seed, same history, with one and with two threads") {
  const Task task = test::small_matmul();
  const test::Trace one = test::searched_trace(small<Pruner>(5, 1), task);
  CHECK(one.size() == 16);
  CHECK(one == test::searched_trace(small<Pruner>(5, 2), task));
  CHECK(one != test::searched_trace(small<Pruner>(6, 1), task));
}

/// What the parts of a search were told, in order: candidates known at each training and the last of them, and what a
/// learning filter saw.
struct Told {
  std::vector<std::pair<std::size_t, float>> trainings;
  std::vector<std::uint64_t> learned;
  bool operator==(const Told&) const = default;
};

struct NotingTrainings : adaptations::IncrementalRefit {
  std::shared_ptr<Told> told{};
  template <class M>
  void update(M& model, const FeatureBatch& x, std::span<const float> y, std::span<const std::uint32_t> group) {
    told->trainings.emplace_back(y.size(), y.back());
    IncrementalRefit::update(model, x, y, group);
  }
};
struct NotingFilter : filters::StaticLimits {
  std::shared_ptr<Told> told{};
  template <SearchSpace S>
  void learn(const S& space, const Task&, std::span<const config_t<S>> configs, std::span<const Outcome> outcomes) {
    for (const config_t<S>& config : configs) told->learned.push_back(space.key(config));
    told->learned.push_back(outcomes.size());
  }
};
struct NotingPruner : PrunerQuick {
  using adaptation = NotingTrainings;
  using filter = NotingFilter;
};

TEST_CASE("Pruner tells its parts the same and rejects the same, with one and with three threads") {
  const auto searched = [](unsigned threads) {
    Parts<NotingPruner> parts = small<NotingPruner>(7, threads);
    parts.model.threads = threads;
    parts.explorer.mutated_factor = 4;
    const auto told = std::make_shared<Told>();
    parts.adaptation.told = parts.filter.told = told;
    const auto run = Tuner<NotingPruner>(std::move(parts)).run(test::small_conv2d(), {.trials = 24, .batch = 8});
    return std::tuple(test::trace(run), *told, run.status.rejected);
  };
  const auto one = searched(1);
  CHECK(std::get<0>(one).size() == 24);
  REQUIRE(std::get<1>(one).trainings.size() == 3);
  CHECK(std::get<1>(one).trainings[1].first == 16);
  CHECK(std::get<1>(one).learned.size() == 24 + 3);
  CHECK(one == searched(3));
}

TEST_CASE("Pruner's first batch is what its draft thinks best, far ahead of a random one") {
  const Task task = test::small_matmul();
  const auto first = test::searched_trace(small<Pruner>(5, 1), task, 8);
  double best_s = 1, random_s = 1;
  for (const auto& [key, cost_s] : first) best_s = std::min(best_s, cost_s);
  const Parts<Pruner> parts = small<Pruner>(5, 1);
  Rng rng(1);
  for (std::size_t drawn = 0; drawn < 64;) {
    const auto config = parts.space.sample(task, rng);
    if (!config) continue;
    ++drawn;
    random_s = std::min(random_s, parts.measurer.latency(parts.space.lower(task, *config), task.target).count());
  }
  CHECK(best_s < random_s);  // 8 drafts against 64 at random
}

/// Judges configurations only, so that filter and ranking lower each for themselves.
struct LimitsOfConfigurations {
  template <SearchSpace S>
  [[nodiscard]] Kept keep(const S& space, const Task& task, std::span<const config_t<S>> pool) const {
    return filters::StaticLimits{}.keep(space, task, pool);
  }
};
template <class Recipe>
struct LoweredTwice : Recipe {
  using filter = LimitsOfConfigurations;
};

TEST_CASE("after a batch that failed Pruner still goes by its draft") {
  Parts<PrunerQuick> parts = small<PrunerQuick>(5, 1);
  Session<PrunerQuick> session(parts, test::small_matmul());
  const auto batch = session.ask(8);
  std::vector<Outcome> failures(batch.size());
  for (Outcome& outcome : failures) outcome.result = Failure{Fault::RunError, ""};
  session.tell(batch, failures);
  const auto next = session.ask(8);
  CHECK(next.size() == 8);
  for (const auto& candidate : next) CHECK_FALSE(std::isfinite(candidate.predicted));  // no network chose it
}

TEST_CASE("candidates that filter and ranking share lowered make the same history") {
  const Task task = test::small_conv2d();
  CHECK(test::searched_trace(small<Pruner>(5, 1), task) ==
        test::searched_trace(small<LoweredTwice<Pruner>>(5, 1), task));
  using Ansor = recipes::AnsorQuick<spaces::MultiLevelTiling, measurers::Simulated>;
  CHECK(test::searched_trace(test::small_parts<Ansor>(5, 1), task) ==
        test::searched_trace(test::small_parts<LoweredTwice<Ansor>>(5, 1), task));
}

TEST_CASE("MoA-Pruner starts from a model of another task: same seed, same history") {
  const auto searched = [](std::uint64_t seed, unsigned threads) {
    Parts<MoaPruner> parts = small<MoaPruner>(seed, threads);
    test::pretrain(parts, test::small_conv2d(), 32);
    return test::searched_trace(parts, test::small_matmul());
  };
  const test::Trace one = searched(5, 1);
  CHECK(one.size() == 16);
  CHECK(one == searched(5, 2));
  CHECK(one != searched(6, 1));
}

TEST_CASE("MoA-Pruner without a pretrained model says so") {
  CHECK_THROWS_WITH_AS(test::searched_trace(small<MoaPruner>(5, 1), test::small_matmul()),
                       doctest::Contains("has not learned anything yet"), std::invalid_argument);
}

}  // namespace
