// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

#include "tunewright/adaptations/concept.hpp"
#include "tunewright/core/feature_batch.hpp"
#include "tunewright/core/require.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/models/concept.hpp"
#include "tunewright/nn/training.hpp"

namespace tunewright::adaptations {

/// Trains a copy of a network that was trained elsewhere again and again from its source, which follows
/// slowly: what many measurements agree on stays, what few of them say is forgotten at the next training.
///
///   net <- slow;   train net on everything measured here;   rank by net
///   Released   slow <- m slow + (1 - m) net                 m = momentum
///   Printed    slow <- m slow + (1 - m) (net - slow)
///
/// Paper:       Qiao et al., Pruner (MoA-Pruner), ASPLOS 2025. Printed is its formula, in which the gradient of
///              the trained network takes the place of its weights, read as what training changed; Released is
///              the code that its measurements were made with, an average of weights. Printed makes the slow
///              weights smaller by m each time and does not copy for m = 0.
/// Models:      AdaptationFor<M> for every FineTunableCostModel M.
/// Cost:        one training in every `every` updates.
/// Determinism: that of the model.
/// Errors:      `std::invalid_argument` for a model that has learned nothing, and for options out of their range.
/// Deviates:    the first update trains, so that the first batch already counts; the code waits for the
///              `every`-th.
struct Momentum {
  enum class Form : std::uint8_t { Released, Printed };
  Form form = Form::Released;
  double momentum = 0.99;                  ///< m, in [0, 1]: 1 keeps the source for ever, 0 forgets it
  unsigned every = 4;                      ///< updates from one training to the next, at least 1
  std::optional<nn::Training> training{};  ///< nothing: the model's own
  bool refit_input_scale = true;           ///< scale inputs by what was measured here, as the code does

  std::vector<float> slow{};  ///< run-time state: the slow weights; those of the model before the first update
  unsigned updates = 0;       ///< run-time state

  /// Throws `std::invalid_argument` for options out of range and a model without weights.
  template <FineTunableCostModel M>
  void update(M& model, const FeatureBatch& x, std::span<const float> y, std::span<const std::uint32_t> group) {
    require(momentum >= 0 && momentum <= 1, "Momentum", "momentum", momentum, "a share, 0 to 1");
    require(every > 0, "Momentum", "every", every, "at least 1");
    const std::span<float> weights = model.parameters();
    if (weights.empty()) {
      throw std::invalid_argument(
          "adaptations::Momentum: the model has not learned anything yet; fit it on the source or load it "
          "before");
    }
    if (slow.size() != weights.size()) slow.assign(weights.begin(), weights.end());
    if (y.empty() || updates++ % every != 0) return;
    std::copy(slow.begin(), slow.end(), weights.begin());
    model.train_from_current(x, y, group, training ? *training : nn::Training(model.training),
                             nn::Continuation{.frozen = {}, .refit_input_scale = refit_input_scale});
    follow(model.parameters());
  }

 private:
  void follow(std::span<const float> net);
};

}  // namespace tunewright::adaptations

#if TUNEWRIGHT_DEFINES(core)

namespace tunewright::adaptations {

TUNEWRIGHT_INLINE void Momentum::follow(std::span<const float> net) {
  for (std::size_t i = 0; i < slow.size(); ++i) {
    const auto old = static_cast<double>(slow[i]), now = static_cast<double>(net[i]);
    const double towards = form == Form::Released ? now : now - old;
    slow[i] = static_cast<float>(momentum * old + (1 - momentum) * towards);
  }
}

}  // namespace tunewright::adaptations

#endif
