// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "tunewright/adaptations/labelled_programs.hpp"
#include "tunewright/core/gpu_targets.hpp"
#include "tunewright/measurers/simulated.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"
#include "tunewright/stats/ranking.hpp"
#include "tunewright/tuner.hpp"

/// Matrix products on a simulated A100: programs to learn from, and searches.
namespace tunewright::test {

using SimulatedSpace = spaces::MultiLevelTiling;

inline Task gpu_product(std::int64_t m, std::int64_t n, std::int64_t k, const Target& target = gpu_target("A100")) {
  return program::make_task("matmul", program::operators::matmul_graph({.m = m, .n = n, .k = k}), target);
}

/// The product that is searched for; none of `other_products` is like it.
inline Task searched_product() { return gpu_product(256, 1024, 256); }
inline std::vector<Task> other_products() {
  return {gpu_product(512, 512, 512),  gpu_product(128, 768, 1024), gpu_product(64, 1024, 256),
          gpu_product(256, 256, 1024), gpu_product(1024, 128, 128), gpu_product(384, 384, 96),
          gpu_product(512, 64, 512),   gpu_product(192, 320, 640)};
}

/// `count` random programs of each task, described and measured; a group a task.
template <class Featurizer>
adaptations::LabelledPrograms random_programs(std::span<const Task> tasks, std::size_t count, std::uint64_t seed,
                                              const Featurizer& featurizer) {
  using Config = config_t<SimulatedSpace>;
  const SimulatedSpace space;
  const measurers::Simulated machine;
  adaptations::LabelledPrograms all;
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    Rng rng = Rng(seed).split(t);
    std::vector<Config> configs;
    std::vector<program_t<SimulatedSpace>> lowered;
    while (configs.size() < count) {
      auto config = space.sample(tasks[t], rng);
      if (!config || !space.feasible(tasks[t], *config)) continue;
      lowered.push_back(space.lower(tasks[t], *config));
      configs.push_back(*std::move(config));
    }
    const auto outcomes = machine.measure(tasks[t], lowered);
    double best_s = std::numeric_limits<double>::infinity();
    for (const Outcome& outcome : outcomes) best_s = std::min(best_s, cost_s(outcome));
    std::vector<float> labels;
    for (const Outcome& outcome : outcomes) labels.push_back(static_cast<float>(best_s / cost_s(outcome)));
    const FeatureBatch x = featurizer.extract(space, tasks[t], std::span<const Config>(configs));
    if (t == 0) all.x = FeatureBatch(x.columns());
    all.append_apart(x, labels, {});
  }
  return all;
}

/// Pairwise accuracy of a model on programs, within their tasks.
template <class Model>
double accuracy_of(const Model& model, const adaptations::LabelledPrograms& programs) {
  std::vector<float> score(programs.size());
  model.predict(programs.x, score);
  return stats::pairwise_accuracy(score, programs.y, programs.group);
}

/// What a search on the simulated machine came to. Latencies as log2 of 1/s, so that 1 is twice as fast.
struct SimulatedSearch {
  double first_batch = 0;  ///< best of the first batch
  double best = 0;
  double mean_best = 0;       ///< best so far, mean over the trials
  double median_of_rest = 0;  ///< of what was measured after the first batch
};

template <class Recipe>
SimulatedSearch searched_simulated(Parts<Recipe> parts, const Task& task, std::uint64_t seed, std::size_t trials,
                                   std::size_t batch) {
  const measurers::Simulated machine;
  parts.measurer = machine;
  parts.clock = machine.clock;
  parts.seed = seed;
  if constexpr (requires { parts.model.threads; }) parts.model.threads = 1;
  const auto run = Tuner<Recipe>(std::move(parts)).run(task, {.trials = trials, .batch = batch});
  SimulatedSearch found;
  std::vector<double> speeds;
  for (const auto& trial : run.history.trials()) {
    speeds.push_back(-std::log2(trial.cost_s()));
    found.best = speeds.size() == 1 ? speeds.back() : std::max(found.best, speeds.back());
    found.mean_best += found.best / static_cast<double>(trials);
    if (speeds.size() == batch) found.first_batch = found.best;
  }
  if (speeds.size() > batch) {
    const std::span<double> rest = std::span(speeds).subspan(batch);
    std::nth_element(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(rest.size() / 2), rest.end());
    found.median_of_rest = rest[rest.size() / 2];
  }
  return found;
}

}  // namespace tunewright::test
