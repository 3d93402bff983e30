// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/models/concept.hpp"

namespace tunewright {

namespace samplers {

/// A batch without programs.
const FeatureBatch& no_programs();

/// The L programs measured so far, and the tasks of the P candidates. A view: the data must outlive it. Every member
/// may be omitted; members [L] and [P] are empty or of that length.
struct Labelled {
  const FeatureBatch& x = no_programs();       ///< (R, D) in L programs
  std::span<const float> y{};                  ///< [L] training labels: best of task / cost, failed = 0
  std::span<const std::uint32_t> task{};       ///< [L] number of its task; empty: all of one
  std::span<const std::uint32_t> round{};      ///< [L] round of its task in which it was chosen
  std::span<const float> predicted{};          ///< [L] prediction of the model when it was chosen, NaN if none
  std::span<const std::uint32_t> pool_task{};  ///< [P] number of its task, as in `task`; empty: all of one

  [[nodiscard]] std::size_t size() const noexcept { return x.programs(); }  // L
  [[nodiscard]] std::uint32_t task_of(std::size_t l) const { return task.empty() ? 0 : task[l]; }
  [[nodiscard]] std::uint32_t pool_task_of(std::size_t p) const { return pool_task.empty() ? 0 : pool_task[p]; }
};

/// Writes a number for each program of `x`, larger is better. Several threads call it at once.
using Guide = std::function<void(const FeatureBatch& x, std::span<float> value)>;

}  // namespace samplers

/// Decides which of the explored candidates are measured.
///
/// `select(model, x, score, n, rng)` returns at most `n` distinct positions in the pool of P candidates, in measurement
/// order. `x` has the features of the pool, `score` [P] the model's scores: larger is better, -infinity (or NaN) for
/// candidates that could not be described; these are chosen last. The result has fewer than `n` positions if the pool
/// is smaller than `n`, or if the sampler considers more of the batch not worth measuring; but at least one if the pool
/// has one.
///
/// A sampler that needs more of the model than `CostModel` constrains its `select`; the slot check then names the
/// mismatch.
///
/// Semantics the compiler cannot see: the choice depends only on the arguments.
template <class X, class M>
concept SamplerFor = CostModel<M> && requires(X& sampler, const M& model, const FeatureBatch& x,
                                              std::span<const float> score, std::size_t n, Rng& rng) {
  { sampler.select(model, x, score, n, rng) } -> std::same_as<std::vector<std::size_t>>;  // [B <= n]
};

/// Refinement, detected: a sampler that also uses the measurements so far, or chooses from a pool of several tasks.
/// Without the last argument, nothing has been measured and all candidates belong to one task, so one function with
/// `const samplers::Labelled& labelled = {}` at its end serves both.
template <class X, class M>
concept LabelAwareSamplerFor =
    SamplerFor<X, M> && requires(X& sampler, const M& model, const FeatureBatch& x, std::span<const float> score,
                                 std::size_t n, Rng& rng, const samplers::Labelled& labelled) {
      { sampler.select(model, x, score, n, rng, labelled) } -> std::same_as<std::vector<std::size_t>>;
    };

/// Refinement, found by detection: a sampler that does not always choose by the score, and says what exploration should
/// look for in the coming round. A session whose recipe has no draft then explores by `guide(model, labelled, rng)`, or
/// by the score of the model where that is an empty function. `labelled.pool_task` has the number of the one task that
/// is explored. `select` is given a generator in the same state. The guide may refer to the arguments as long as the
/// exploration lasts.
template <class X, class M>
concept GuidingSamplerFor = LabelAwareSamplerFor<X, M> &&
                            requires(const X& sampler, const M& model, const samplers::Labelled& labelled, Rng& rng) {
                              { sampler.guide(model, labelled, rng) } -> std::same_as<samplers::Guide>;
                            };

/// Refinement, found by detection: a sampler that does not look at the pool, and says so by `static constexpr bool
/// is_indifferent = true`. It needs no pool that is larger than the batch.
template <class X>
concept IndifferentSampler = requires { requires X::is_indifferent; };

namespace samplers {

/// Throws `std::logic_error` unless `chosen` has at most `n` distinct positions in a pool of `pool` candidates, and at
/// least one if neither number is 0: an empty batch would end the search as if the space were used up.
void check_selection(std::span<const std::size_t> chosen, std::size_t pool, std::size_t n);

}  // namespace samplers
}  // namespace tunewright

#if TUNEWRIGHT_DEFINES(core)

namespace tunewright::samplers {

TUNEWRIGHT_INLINE const FeatureBatch& no_programs() {
  static const FeatureBatch none;
  return none;
}

TUNEWRIGHT_INLINE void check_selection(std::span<const std::size_t> chosen, std::size_t pool, std::size_t n) {
  if (chosen.size() > n) {
    throw std::logic_error("the sampler chose " + std::to_string(chosen.size()) + " candidates where at most " +
                           std::to_string(n) + " were asked for");
  }
  if (chosen.empty() && n > 0 && pool > 0) {
    throw std::logic_error("the sampler chose none of " + std::to_string(pool) +
                           " candidates; its select must return at least 1 position of a pool that has one");
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

}  // namespace tunewright::samplers

#endif
