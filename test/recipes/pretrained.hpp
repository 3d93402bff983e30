// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "recipes/simulated_tasks.hpp"

namespace tunewright::test {

/// Parts on a simulated machine, small enough for tests.
template <class Recipe>
Parts<Recipe> small_parts(std::uint64_t seed, unsigned threads) {
  const measurers::Simulated machine;
  Parts<Recipe> parts{.measurer = machine, .seed = seed, .threads = threads, .clock = machine.clock};
  if constexpr (requires { parts.explorer.population; }) parts.explorer.population = 64;
  if constexpr (requires { parts.explorer.chains; }) {
    parts.explorer.chains = 8;
    parts.explorer.steps = 10;
  }
  if constexpr (requires { parts.model.training; }) {
    parts.model.training.epochs = 2;
    parts.model.training.least_steps = 20;
  }
  return parts;
}

/// Fits the model on random programs of `task`.
template <class Recipe>
void pretrain(Parts<Recipe>& parts, const Task& task, std::size_t programs = 64) {
  using Config = config_t<typename Recipe::space>;
  Rng rng(99);
  std::vector<Config> configs;
  std::vector<program_t<typename Recipe::space>> lowered;
  while (configs.size() < programs) {
    if (auto config = parts.space.sample(task, rng); config && parts.space.feasible(task, *config)) {
      lowered.push_back(parts.space.lower(task, *config));
      configs.push_back(std::move(*config));
    }
  }
  const auto outcomes = parts.measurer.measure(task, lowered);
  double best = std::numeric_limits<double>::infinity();
  for (const Outcome& outcome : outcomes) best = std::min(best, cost_s(outcome));
  std::vector<float> y;
  for (const Outcome& outcome : outcomes) y.push_back(static_cast<float>(best / cost_s(outcome)));
  parts.model.fit(parts.featurizer.extract(parts.space, task, std::span<const Config>(configs)), y, {});
}

/// Trace of a search of `trials` in batches of 8.
template <class Recipe>
Trace searched_trace(Parts<Recipe> parts, const Task& task, std::size_t trials = 16) {
  return trace(Tuner<Recipe>(std::move(parts)).run(task, {.trials = trials, .batch = 8}));
}

}  // namespace tunewright::test
