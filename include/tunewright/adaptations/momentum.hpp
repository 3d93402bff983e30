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

/// Trains a copy of a pretrained network, each time starting from slow weights that follow the trained ones: the
/// agreement of many measurements is kept, the effect of a few is lost at the next training.
///
///   net <- slow;   train net on all measurements of the search;   rank by net
///   Released   slow <- m slow + (1 - m) net                 m = momentum
///   Printed    slow <- m slow + (1 - m) (net - slow)
///
/// Paper:       Qiao et al., Pruner (MoA-Pruner), ASPLOS 2025. Printed is its formula, with the gradient of the trained
///              network interpreted as its change by training; Released is the code behind its measurements, an average
///              of weights. Printed shrinks the slow weights by m each time and does not copy for m = 0.
/// Models:      AdaptationFor<M> for every FineTunableCostModel M.
/// Cost:        one training in every `every` updates.
/// Determinism: that of the model.
/// Errors:      `std::invalid_argument` for an untrained model, for options out of range, and unless there is one label
///              and group number per program.
/// Deviates:    the first update trains, so that the first batch already counts; the code waits for the `every`-th.
///
/// Running averages of batch normalisation start each training at those of the source, as in the code, whose slow
/// network keeps them. Measurements without a gradient (`nn::has_gradient`), such as equal labels under a ranking loss,
/// are no update.
struct Momentum {
  enum class Form : std::uint8_t { Released, Printed };
  Form form = Form::Released;
  double momentum = 0.99;                  ///< m, in [0, 1]: 1 keeps the source forever, 0 forgets it
  unsigned every = 4;                      ///< updates per training, at least 1
  std::optional<nn::Training> training{};  ///< empty: the model's own
  bool refit_input_scale = true;           ///< scale inputs by the programs of the search, as the code does

  std::vector<float> slow{};  ///< run-time state: the slow weights; those of the model before the first update
  std::vector<float> source_statistics{};  ///< run-time state: `models::statistics_of` the model before that
  unsigned updates = 0;                    ///< run-time state

  /// Throws `std::invalid_argument` for options out of range.
  void check_options() const {
    require(momentum >= 0 && momentum <= 1, "Momentum", "momentum", momentum, "a share, 0 to 1");
    require(every > 0, "Momentum", "every", every, "at least 1");
    if (training) training->check("adaptations::Momentum");
  }

  /// Throws `std::invalid_argument` for options out of range and a model without weights.
  template <FineTunableCostModel M>
  void update(M& model, const FeatureBatch& x, std::span<const float> y, std::span<const std::uint32_t> group) {
    check_options();
    const std::span<float> weights = model.parameters();
    if (weights.empty()) {
      throw std::invalid_argument(
          "adaptations::Momentum: the model has not learned anything yet; fit it on the source or load it "
          "before");
    }
    models::check_fit_sizes("adaptations::Momentum", x, y.size(), group.size());
    const std::span<float> statistics = models::statistics_of(model);
    if (slow.size() != weights.size()) slow.assign(weights.begin(), weights.end());
    if (source_statistics.size() != statistics.size()) source_statistics.assign(statistics.begin(), statistics.end());
    const nn::Training how = training ? *training : nn::Training(model.training);
    if (!nn::has_gradient(how, x, y, group) || updates++ % every != 0) return;
    std::copy(slow.begin(), slow.end(), weights.begin());
    std::copy_n(source_statistics.begin(), statistics.size(), statistics.begin());
    model.train_from_current(x, y, group, how, nn::Continuation{.frozen = {}, .refit_input_scale = refit_input_scale});
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
