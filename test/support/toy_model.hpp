// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <vector>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/models/concept.hpp"

namespace toy {

/// A model that reads its opinion off the first row of a program: column 0 is the score, column 1 the
/// deviation, the rest the embedding. It learns nothing.
struct OpenBook {
  void predict(const tunewright::FeatureBatch& x, std::span<float> score) const {
    for (std::size_t p = 0; p < x.programs(); ++p)
      score[p] = x.program(p).empty() ? -std::numeric_limits<float>::infinity() : x.program(p)[0];
  }
  void predict_with_deviation(const tunewright::FeatureBatch& x, std::span<float> score,
                              std::span<float> deviation) const {
    predict(x, score);
    for (std::size_t p = 0; p < x.programs(); ++p)
      deviation[p] = x.program(p).empty() ? std::numeric_limits<float>::infinity() : std::abs(x.program(p)[1]);
  }
  [[nodiscard]] tunewright::FeatureBatch embed(const tunewright::FeatureBatch& x) const {
    tunewright::FeatureBatch result(x.columns() < 2 ? 0 : x.columns() - 2);
    for (std::size_t p = 0; p < x.programs(); ++p) {
      const std::span<float> row = result.append_row();
      for (std::size_t c = 0; c < row.size() && !x.program(p).empty(); ++c) row[c] = x.program(p)[c + 2];
      result.close_program();
    }
    return result;
  }
  void fit(const tunewright::FeatureBatch&, std::span<const float>, std::span<const std::uint32_t>) {}
};

/// Programs of one row each; an empty one has no rows.
inline tunewright::FeatureBatch programs(std::initializer_list<std::vector<float>> rows) {
  tunewright::FeatureBatch batch(rows.begin()->size());
  for (const std::vector<float>& row : rows) batch.append_program(row);
  return batch;
}

/// What `model` says of `x`.
template <class M>
std::vector<float> scores(const M& model, const tunewright::FeatureBatch& x) {
  std::vector<float> score(x.programs());
  model.predict(x, score);
  return score;
}

}  // namespace toy
