// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/adaptations/concept.hpp"

namespace tunewright::adaptations {

/// Leaves the model unchanged, for pretrained models and models that do not learn.
struct None {
  template <CostModel M>
  void update(M&, const FeatureBatch&, std::span<const float>, std::span<const std::uint32_t>) const {}
};

}  // namespace tunewright::adaptations
