// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/core/order.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/data/dataset.hpp"
#include "tunewright/data/read_journals.hpp"
#include "tunewright/data/splits.hpp"
#include "tunewright/features/concept.hpp"
#include "tunewright/models/concept.hpp"
#include "tunewright/spaces/concept.hpp"
#include "tunewright/stats/ranking.hpp"

namespace tunewright::models {

/// Ranking accuracy of a model on held-out programs.
struct RankingScores {
  std::size_t programs = 0;      ///< evaluated programs; if 0, the rest is 0
  double pairwise_accuracy = 0;  ///< share of correctly ordered pairs within tasks; 0.5 is chance
  double top_1 = 0, top_5 = 0;   ///< best of this many ranked first / best, mean over tasks
};

/// The result of training on journals.
template <CostModel Model>
struct TrainedModel {
  Model model{};
  data::JournalDataset journals{};
  data::Split split{};  ///< of `journals.dataset`
  RankingScores scores{};
};

/// What to hold out, and what to read.
struct JournalTraining {
  /// `data::within_task`, `data::by_task`, `data::by_target`, or another split.
  data::Split (*split)(const data::Dataset& dataset, double test_share, const Rng& rng) = data::within_task;
  double test_share = 0.2;  ///< share of the records held out for evaluation; 0: train on all, without evaluation
  std::uint64_t seed = 0;   ///< of the split
  data::JournalSelection read{};
};

/// Trains a model on some records of a dataset. Labels are relative to the best of their group in the whole dataset.
template <CostModel Model>
void fit(Model& model, const data::Dataset& dataset, std::span<const std::size_t> records) {
  model.fit(dataset.subset(records).x, data::pick(dataset.labels(), records), data::pick(dataset.groups(), records));
}

/// Ranking accuracy of a model on some records of a dataset, within their groups.
template <CostModel Model>
[[nodiscard]] RankingScores judge(const Model& model, const data::Dataset& dataset,
                                  std::span<const std::size_t> records) {
  if (records.empty()) return {};
  const std::vector<float> y = data::pick(dataset.labels(), records);
  const std::vector<std::uint32_t> group = data::pick(dataset.groups(), records);
  std::vector<float> score(records.size());
  model.predict(dataset.subset(records).x, score);
  const auto top = [&](std::size_t k) {
    return stats::mean_over_tasks(score, y, group, [k](auto s, auto truth) { return stats::top_k_score(s, truth, k); });
  };
  return {records.size(), stats::pairwise_accuracy(score, y, group), top(1), top(5)};
}

/// Trains a model on journals in one call: reads them (`data::read_journals`), holds records out, trains on the others
/// and evaluates on the held-out ones.
///
///   auto trained = models::train_on_journals(models::Mlp::quick(), {"a.jsonl", "b.jsonl"}, space, featurizer,
///                                            {.split = data::by_task, .test_share = 0.3});
///   models::save_model("model.safetensors", trained.model, featurizer);
///
/// For a search that starts from such a model, train on everything with a test share of 0 once the scores are good
/// enough.
///
/// Throws the errors of `data::read_journals`, the split and the model: a split with an empty side is an error.
/// Determinism: that of the model; the split depends on `seed` alone.
template <CostModel Model, SearchSpace Space, FeaturizerFor<Space> Featurizer>
[[nodiscard]] TrainedModel<Model> train_on_journals(Model model, const std::vector<std::string>& paths,
                                                    const Space& space, const Featurizer& featurizer,
                                                    const JournalTraining& training = {}) {
  if (training.split == nullptr) {
    throw std::invalid_argument("train_on_journals: split is missing; give data::within_task, by_task or by_target");
  }
  TrainedModel<Model> trained{.model = std::move(model),
                              .journals = data::read_journals(paths, space, featurizer, training.read)};
  const data::Dataset& dataset = trained.journals.dataset;
  if (training.test_share == 0)
    trained.split.train = positions(dataset.size());
  else
    trained.split = training.split(dataset, training.test_share, Rng(training.seed));
  fit(trained.model, dataset, trained.split.train);
  trained.scores = judge(trained.model, dataset, trained.split.test);
  return trained;
}

}  // namespace tunewright::models
