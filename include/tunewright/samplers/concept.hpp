// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/models/concept.hpp"

namespace tunewright {

/// Decides which of the explored candidates are measured.
///
/// `select(model, x, score, n, rng)` returns at most `n` distinct positions in the pool of P candidates, in
/// the order in which they should be measured. `x` holds the features of the pool, `score` [P] what the model
/// thinks of it: larger is better, -infinity for candidates that could not be described. Fewer than `n` come
/// back only from a pool smaller than `n`.
///
/// A sampler that needs more of the model than `CostModel` constrains its `select`; the slot check then names
/// the mismatch.
///
/// Semantics the compiler cannot see: the choice depends on the arguments alone.
template <class X, class M>
concept SamplerFor = CostModel<M> && requires(X& sampler, const M& model, const FeatureBatch& x,
                                              std::span<const float> score, std::size_t n, Rng& rng) {
  { sampler.select(model, x, score, n, rng) } -> std::same_as<std::vector<std::size_t>>;  // [B <= n]
};

namespace samplers {

/// Throws `std::logic_error` unless `chosen` holds at most `n` distinct positions in a pool of `pool`
/// candidates.
inline void check_selection(std::span<const std::size_t> chosen, std::size_t pool, std::size_t n) {
  if (chosen.size() > n) {
    throw std::logic_error("the sampler chose " + std::to_string(chosen.size()) +
                           " candidates where at most " + std::to_string(n) + " were asked for");
  }
  std::vector<bool> taken(pool);
  for (const std::size_t index : chosen) {
    if (index >= pool || taken[index]) {
      throw std::logic_error("the sampler chose position " + std::to_string(index) + " of a pool of " +
                             std::to_string(pool) + (index >= pool ? "; it is out of range" : " twice"));
    }
    taken[index] = true;
  }
}

}  // namespace samplers
}  // namespace tunewright
