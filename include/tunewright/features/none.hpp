// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>

#include "tunewright/features/concept.hpp"

namespace tunewright::features {

/// No features: one row with one zero, for recipes whose model and sampler ignore features.
struct None {
  static constexpr bool one_row = true;

  template <SearchSpace S>
  [[nodiscard]] FeatureBatch extract(const S&, const Task&, std::span<const config_t<S>> configs) const {
    FeatureBatch batch(1);
    for (std::size_t i = 0; i < configs.size(); ++i) batch.append_program(std::array{0.0F});
    return batch;  // (N, 1)
  }
  [[nodiscard]] FeatureSchema schema() const { return {"none", 1, {{"zero", "none", "Always zero."}}}; }
};

}  // namespace tunewright::features
