// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/models/concept.hpp"

namespace tunewright::test {

/// What an uncertain model says of programs.
struct Answer {
  std::vector<float> score, deviation;
  bool operator==(const Answer&) const = default;
};
template <UncertainCostModel M>
Answer ask(const M& model, const FeatureBatch& x) {
  Answer out{std::vector<float>(x.programs()), std::vector<float>(x.programs())};
  model.predict_with_deviation(x, out.score, out.deviation);
  return out;
}

}  // namespace tunewright::test
