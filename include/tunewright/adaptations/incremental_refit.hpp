// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tunewright/adaptations/concept.hpp"
#include "tunewright/adaptations/growth.hpp"
#include "tunewright/core/require.hpp"
#include "tunewright/nn/training.hpp"

namespace tunewright::adaptations {

/// Continues training a network for a few steps after each batch, and occasionally trains it from scratch.
///
///   train when    candidates now - candidates at the last training >= min_growth * candidates at the last training
///   from scratch  the first time, and when candidates now >= renewal_factor * candidates at the last such training
///   continued     else: at least `steps` mini-batches, in whole passes over all measurements so far
///
/// If measuring a batch takes as long as some hundred mini-batches, training from scratch after each would dominate the
/// search. Continued training costs a few steps. Training from scratch whenever the data doubles costs at most twice
/// one training on all data, updates the scale of the inputs and discards the influence of the first few programs.
///
/// Models:      AdaptationFor<M> for every FineTunableCostModel M. The first update discards pretrained weights: see
///              `FineTune`.
/// Shapes:      x (R, D) in N candidates, y [N], group [N].
/// Cost:        one training, of the model's own length or of at least `steps` mini-batches.
/// Determinism: that of the model.
/// Errors:      `std::invalid_argument` for options out of range; errors of the model.
struct IncrementalRefit {
  unsigned steps = 20;        ///< mini-batches of a continued training, at least 1
  double renewal_factor = 2;  ///< at least 1, which is always from scratch; infinity: from scratch only once
  double min_growth = 0.1;    ///< share of new candidates that triggers training, at least 0

  std::size_t renewed_candidates = 0;  ///< run-time state: N at the last training from scratch
  std::size_t trained_candidates = 0;  ///< run-time state: N at the last training

  /// Throws `std::invalid_argument` for options out of range.
  void check_options() const {
    require(steps > 0, "IncrementalRefit", "steps", steps, "at least 1");
    require(renewal_factor >= 1, "IncrementalRefit", "renewal_factor", renewal_factor,
            "a factor, 1 to train always anew");
    require(min_growth >= 0, "IncrementalRefit", "min_growth", min_growth, "a share, 0 to train after every batch");
  }

  /// Throws `std::invalid_argument` for options out of range.
  template <FineTunableCostModel M>
  void update(M& model, const FeatureBatch& x, std::span<const float> y, std::span<const std::uint32_t> group) {
    check_options();
    if (!has_grown(y.size(), trained_candidates, min_growth)) return;
    const bool first = trained_candidates == 0 || y.size() < trained_candidates;  // fewer: another session's data
    if (first || static_cast<double>(y.size()) >= renewal_factor * static_cast<double>(renewed_candidates)) {
      model.fit(x, y, group);
      renewed_candidates = y.size();
    } else {
      nn::Training how = model.training;
      how.epochs = 1;
      how.least_steps = steps;
      model.train_from_current(x, y, group, how, nn::Continuation{});
    }
    trained_candidates = y.size();
  }
};

}  // namespace tunewright::adaptations
