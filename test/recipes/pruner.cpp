// SPDX-License-Identifier: Apache-2.0
#include "tunewright/recipes/pruner.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <span>
#include <vector>

#include "recipes/pretrained.hpp"
#include "tunewright/filters/static_limits.hpp"
#include "tunewright/recipes/ansor.hpp"
#include "tunewright/recipes/moa_pruner.hpp"

namespace {

using namespace tunewright;
using Pruner = recipes::Pruner<spaces::MultiLevelTiling, measurers::Simulated>;
using MoaPruner = recipes::MoaPruner<spaces::MultiLevelTiling, measurers::Simulated>;

template <class Recipe>
Parts<Recipe> small(std::uint64_t seed, unsigned threads) {
  Parts<Recipe> parts = test::small_parts<Recipe>(seed, threads);
  parts.sampler = recipes::pruner_sampler();
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
    random_s =
        std::min(random_s, parts.measurer.latency(parts.space.lower(task, *config), task.target).count());
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

TEST_CASE("candidates that filter and ranking share lowered make the same history") {
  const Task task = test::small_conv2d();
  CHECK(test::searched_trace(small<Pruner>(5, 1), task) ==
        test::searched_trace(small<LoweredTwice<Pruner>>(5, 1), task));
  using Ansor = recipes::Ansor<spaces::MultiLevelTiling, measurers::Simulated>;
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
