// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tunewright/adaptations/concept.hpp"
#include "tunewright/adaptations/growth.hpp"
#include "tunewright/adaptations/labelled_programs.hpp"
#include "tunewright/core/require.hpp"
#include "tunewright/models/concept.hpp"

namespace tunewright::adaptations {

/// Trains one network jointly on several devices, with shared layers and one head per device.
///
///   loss = sum over heads of the loss on the programs measured there;  head 0 is this device, head i sources[i - 1]
///
///   struct R : recipes::Tlp<...> { using adaptation = adaptations::SharedTrunk; };
///   Tuner<R> tuner{{.model = {.heads = 2}, .adaptation = {.sources = {measured_on_t4}}}};
///
/// Paper:       Zhai et al., TLP, ASPLOS 2023 (MTL-TLP).
/// Models:      AdaptationFor<M> for every MultiHeadCostModel M.
/// Shapes:      sources and own programs have the same columns; their groups stay separate.
/// Cost:        one training on all programs.
/// Determinism: that of the model.
/// Errors:      `std::invalid_argument` unless there is one head more than sources, for empty or inconsistent sources,
///              and for options out of range.
/// Deviates:    MTL-TLP needs each program measured on every device, with one row of labels; here programs may differ,
///              and a program measured on two devices appears twice. That costs time, and draws mini-batches from more
///              programs: each has fewer labels of a device, so losses that compare programs compare other pairs.
///
/// Without own measurements the model is unchanged.
struct SharedTrunk {
  std::vector<LabelledPrograms> sources{};  ///< measured on other devices, one per head from head 1 on
  double min_growth = 0;                    ///< share of new programs that triggers training, at least 0

  std::size_t fitted_candidates = 0;  ///< run-time state: own programs of the last training

  /// Throws `std::invalid_argument` for options out of range.
  void check_options() const {
    require(min_growth >= 0, "SharedTrunk", "min_growth", min_growth, "a share, 0 to train after every batch");
  }

  /// Throws `std::invalid_argument` unless the model has exactly one head more than sources, and for inconsistent
  /// sources.
  template <MultiHeadCostModel M>
  void update(M& model, const FeatureBatch& x, std::span<const float> y, std::span<const std::uint32_t> group) {
    check_options();
    const std::size_t heads = sources.size() + 1;
    if (static_cast<std::size_t>(model.heads) != heads) {
      throw std::invalid_argument("adaptations::SharedTrunk: " + std::to_string(sources.size()) +
                                  " sources and the own device need " + std::to_string(heads) +
                                  " heads, but the model has " + std::to_string(model.heads) +
                                  "; set its member 'heads'");
    }
    for (const LabelledPrograms& source : sources) source.check("adaptations::SharedTrunk");
    models::check_fit_sizes("adaptations::SharedTrunk", x, y.size(), group.size());
    if (y.empty() || !has_grown(y.size(), fitted_candidates, min_growth)) return;
    LabelledPrograms all{x, {y.begin(), y.end()}, {group.begin(), group.end()}};
    for (const LabelledPrograms& source : sources) all.append_apart(source.x, source.y, source.group);
    std::vector<float> labels(all.size() * heads, std::numeric_limits<float>::quiet_NaN());  // (N, heads)
    std::size_t next = 0;
    const auto measured_on = [&](std::size_t head, std::size_t programs) {
      for (const std::size_t last = next + programs; next < last; ++next) labels[next * heads + head] = all.y[next];
    };
    measured_on(0, y.size());
    for (std::size_t s = 0; s < sources.size(); ++s) measured_on(s + 1, sources[s].size());
    model.fit_heads(all.x, labels, all.group);
    fitted_candidates = y.size();
  }
};

}  // namespace tunewright::adaptations
