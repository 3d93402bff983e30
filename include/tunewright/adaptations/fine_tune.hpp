// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tunewright/adaptations/concept.hpp"
#include "tunewright/adaptations/growth.hpp"
#include "tunewright/core/feature_batch.hpp"
#include "tunewright/core/require.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/models/concept.hpp"
#include "tunewright/nn/parameters.hpp"
#include "tunewright/nn/training.hpp"

namespace tunewright::adaptations {

/// At least ten steps of stochastic gradient descent, in whole epochs, as in TenSet.
[[nodiscard]] nn::Training tenset_fine_tuning();

/// Ten epochs of stochastic gradient descent without weight decay and gradient clipping, the defaults of Pruner's code;
/// its experiments, with half a million programs, take 50.
[[nodiscard]] nn::Training pruner_fine_tuning();

/// Fine-tunes a pretrained network, or some of its layers, on the measurements of the search.
///
///   adaptations::FineTune{.trained = {"attention", "output"}}      all other layers keep their bits
///   adaptations::FineTune{.frozen = {"encoder"}}                   all others are trained
///
/// Layers are given by name prefix; `model.blocks()` lists them. Running averages of a frozen layer of normalisation
/// stay; those of others start every update at the source's, as the weights do.
///
/// Measurements without a gradient (`nn::has_gradient`), such as equal labels under a ranking loss, are no update: the
/// model stays until there are others.
///
/// Paper:       Zheng et al., TenSet, NeurIPS Datasets 2021 (all layers); Verma et al., arXiv 2304.05430 (only the
///              attention head).
/// Models:      AdaptationFor<M> for every FineTunableCostModel M.
/// Cost:        one training of the model by `training`.
/// Determinism: that of the model.
/// Errors:      `std::invalid_argument` for an untrained model, for unknown layers, for options out of range, and
///              unless there is one label and group number per program.
/// Deviates:    every update starts again at the source's weights, so that all measurements have the same weight; the
///              papers fine-tune once. The default is a tenth of the learning rate of the model's own training.
struct FineTune {
  std::vector<std::string> frozen{};       ///< layers that keep their weights
  std::vector<std::string> trained{};      ///< or the only layers to train; one of both must be empty
  std::optional<nn::Training> training{};  ///< empty: the model's own, at a tenth of its learning rate
  bool from_source = true;                 ///< start every update at the source's weights; false: at the latest ones
  bool refit_input_scale = false;          ///< scale inputs by the programs of the search instead of the source's
  double min_growth = 0;                   ///< share of new programs that makes it worth it, at least 0

  std::vector<float> source_weights{};     ///< run-time state: those of the first update
  std::vector<float> source_statistics{};  ///< run-time state: its `models::statistics_of`
  std::size_t fitted_candidates = 0;       ///< run-time state: programs of the last training

  /// Throws `std::invalid_argument` for options out of range.
  void check_options() const {
    require(min_growth >= 0, "FineTune", "min_growth", min_growth, "a share, 0 to train after every batch");
    if (training) training->check("adaptations::FineTune");
  }

  /// Throws `std::invalid_argument` for a model without weights and for unknown layers.
  template <FineTunableCostModel M>
  void update(M& model, const FeatureBatch& x, std::span<const float> y, std::span<const std::uint32_t> group) {
    check_options();
    const std::span<float> weights = model.parameters();
    if (weights.empty()) {
      throw std::invalid_argument(
          "adaptations::FineTune: the model has not learned anything yet; fit it on the source or load it "
          "before");
    }
    models::check_fit_sizes("adaptations::FineTune", x, y.size(), group.size());
    if (!has_grown(y.size(), fitted_candidates, min_growth)) return;
    nn::Training how = training ? *training : nn::Training(model.training);
    if (!training) how.learning_rate *= 0.1F;
    const nn::Continuation from{.frozen = frozen_layers(model.blocks()), .refit_input_scale = refit_input_scale};
    if (!nn::has_gradient(how, x, y, group)) return;
    const std::span<float> statistics = models::statistics_of(model);
    if (source_weights.size() != weights.size()) source_weights.assign(weights.begin(), weights.end());
    if (source_statistics.size() != statistics.size()) source_statistics.assign(statistics.begin(), statistics.end());
    if (from_source) {
      std::copy(source_weights.begin(), source_weights.end(), weights.begin());
      std::copy_n(source_statistics.begin(), statistics.size(), statistics.begin());
    }
    model.train_from_current(x, y, group, how, from);
    fitted_candidates = y.size();
  }

 private:
  [[nodiscard]] std::vector<std::string> frozen_layers(std::span<const nn::ParameterBlock> blocks) const;
};

}  // namespace tunewright::adaptations

#if TUNEWRIGHT_DEFINES(core)

namespace tunewright::adaptations {

TUNEWRIGHT_INLINE nn::Training tenset_fine_tuning() {
  nn::Training how;
  how.optimiser = nn::Optimiser::Sgd;
  how.learning_rate = 4e-2F;
  how.epochs = 1;
  how.least_steps = 10;
  how.weight_decay = 0;
  return how;
}

TUNEWRIGHT_INLINE nn::Training pruner_fine_tuning() {
  nn::Training how;
  how.optimiser = nn::Optimiser::Sgd;
  how.learning_rate = 7e-4F;
  how.epochs = 10;
  how.least_steps = 0;
  how.weight_decay = 0;
  how.clip_norm = 0;
  return how;
}

TUNEWRIGHT_INLINE std::vector<std::string> FineTune::frozen_layers(std::span<const nn::ParameterBlock> blocks) const {
  if (trained.empty()) return frozen;
  if (!frozen.empty()) {
    throw std::invalid_argument("adaptations::FineTune: both 'frozen' ('" + frozen.front() +
                                "', ...) and 'trained' ('" + trained.front() +
                                "', ...) are given; name the smaller set");
  }
  for (const std::string& prefix : trained) {
    if (std::any_of(blocks.begin(), blocks.end(), [&](const auto& b) { return b.name.starts_with(prefix); })) continue;
    std::string names;
    for (const nn::ParameterBlock& block : blocks) names += (names.empty() ? "" : ", ") + block.name;
    throw std::invalid_argument("adaptations::FineTune: no layer is called '" + prefix + "...'; the model has " +
                                names);
  }
  std::vector<std::string> others;
  for (const nn::ParameterBlock& block : blocks) {
    if (std::none_of(trained.begin(), trained.end(),
                     [&](const std::string& prefix) { return block.name.starts_with(prefix); }))
      others.push_back(block.name);
  }
  return others;
}

}  // namespace tunewright::adaptations

#endif
