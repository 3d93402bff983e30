// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "recipes/recorded_tasks.hpp"
#include "tunewright/stats/ranking.hpp"

namespace tunewright::test {

/// Throughput of every configuration of a recorded space / that of the best one, 0 where it failed.
inline std::vector<float> recorded_labels(const spaces::RecordedTable& space) {
  double best_s = std::numeric_limits<double>::infinity();
  for (std::size_t row = 0; row < space.size(); ++row) best_s = std::min(best_s, space.table().cost_s(row));
  std::vector<float> labels;
  for (std::size_t row = 0; row < space.size(); ++row)
    labels.push_back(static_cast<float>(best_s / space.table().cost_s(row)));
  return labels;
}

/// What a search of a recorded space came to.
struct RecordedSearch {
  double best = 0;       ///< of the space / best found
  double mean_best = 0;  ///< the same, mean over the trials: how soon it was found
  double failures = 0;
  double seconds = 0;   ///< of compiling and running, failures included
  double accuracy = 0;  ///< pairwise, of the model at the end, over the configurations that were not measured
  double top5 = 0;      ///< of the space / best of the five predicted best of the whole space
};

/// Searches with settings for a small space: annealing with 32 chains of 50 steps.
template <class Recipe>
RecordedSearch searched_recorded(const RecordedTask& source, std::uint64_t seed, std::size_t trials,
                                 std::size_t batch) {
  Parts<Recipe> parts{.space = source.space, .measurer = source.replay, .seed = seed, .clock = source.replay.clock};
  if constexpr (requires { parts.explorer.chains; }) {
    parts.explorer.chains = 32;
    parts.explorer.steps = 50;
  }
  if constexpr (requires { parts.model.threads; }) parts.model.threads = 1;
  Tuner<Recipe> tuner(std::move(parts));
  const auto run = tuner.run(source.task, {.trials = trials, .batch = batch});

  const std::vector<float> labels = recorded_labels(source.space);
  RecordedSearch found;
  std::vector<bool> measured(labels.size());
  for (const auto& trial : run.history.trials()) {
    const std::size_t row = trial.candidate.config.row;
    measured[row] = true;
    found.best = std::max(found.best, double{labels[row]});
    found.mean_best += found.best / static_cast<double>(trials);
    found.failures += trial.outcome.valid() ? 0 : 1;
    found.seconds += (trial.outcome.compile_time + trial.outcome.run_time).count();
  }

  std::vector<spaces::TableRow> rows;
  for (std::size_t row = 0; row < labels.size(); ++row) rows.push_back(source.space.at(row));
  std::vector<float> score(labels.size()), open_score, open_label;
  tuner.parts().model.predict(
      tuner.parts().featurizer.extract(source.space, source.task, std::span<const spaces::TableRow>(rows)), score);
  for (std::size_t row = 0; row < labels.size(); ++row) {
    if (measured[row]) continue;
    open_score.push_back(score[row]);
    open_label.push_back(labels[row]);
  }
  found.accuracy = stats::pairwise_accuracy(open_score, open_label);
  found.top5 = stats::top_k_score(score, labels, 5);
  return found;
}

}  // namespace tunewright::test
