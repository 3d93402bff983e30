// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/models/concept.hpp"

namespace tunewright::models {

/// Random scores: the baseline of every cost model, and what Ansor uses until it has data.
///
///   score(p) = uniform in [0, 1) from hash(seed, rows of p)
///
/// The score is a hash of the rows rather than the next number of a generator, so that it obeys the laws of models: it
/// depends only on the program, is independent of order and batching, and predict is const and concurrent. Equal rows
/// get equal scores. The price is that repeated predictions do not draw again; for another draw, use another seed.
///
/// Models:      CostModel. fit checks its arguments and learns nothing.
/// Cost:        one mix per feature, under a microsecond for a program of 4 x 164.
/// Determinism: bit-identical everywhere for the same seed.
struct Random {
  std::uint64_t seed = 0;

  void predict(const FeatureBatch& x, std::span<float> score) const;

  void fit(const FeatureBatch& x, std::span<const float> y, std::span<const std::uint32_t> group);
};

}  // namespace tunewright::models

#if TUNEWRIGHT_DEFINES(models)

#include "tunewright/core/hash.hpp"
#include "tunewright/models/labels.hpp"

namespace tunewright::models {

TUNEWRIGHT_INLINE void Random::predict(const FeatureBatch& x, std::span<float> score) const {
  check_predict_sizes("models::Random", x, score.size());
  for (std::size_t p = 0; p < x.programs(); ++p) {
    const std::span<const float> rows = x.program(p);  // (rows of p, D)
    if (rows.empty()) {
      score[p] = -std::numeric_limits<float>::infinity();
      continue;
    }
    std::uint64_t state = mix64(seed + 0x9e3779b97f4a7c15ULL);
    for (const float value : rows) {
      // All other models treat both zeros as one value.
      state = mix64(state + std::bit_cast<std::uint32_t>(value == 0.0F ? 0.0F : value) + 0x9e3779b97f4a7c15ULL);
    }
    score[p] = static_cast<float>(state >> 40) * 0x1.0p-24F;
  }
}

TUNEWRIGHT_INLINE void Random::fit(const FeatureBatch& x, std::span<const float> y,
                                   std::span<const std::uint32_t> group) {
  check_lesson("models::Random", x, y, 1, group);
}

}  // namespace tunewright::models

#endif
