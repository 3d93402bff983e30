// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "tunewright/core/feature_batch.hpp"

namespace tunewright::test {

/// The score of each program.
template <class Model>
std::vector<float> predicted(const Model& model, const FeatureBatch& x) {
  std::vector<float> score(x.programs());
  model.predict(x, score);
  return score;
}

}  // namespace tunewright::test
