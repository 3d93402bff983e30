// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "tunewright/explorers/concept.hpp"
#include "tunewright/spaces/draw.hpp"

namespace tunewright::explorers {

/// Proposes random candidates without ranking: the pool of random search and of active learning.
///
/// Models:      ExplorerFor<S> for every SearchSpace S, BoundedExplorer.
/// Shapes:      pool [max(wanted, `pool`)], fewer only if the space has no more.
/// Cost:        one `sample` per candidate.
/// Determinism: the same generator gives the same pool, at any number of threads.
struct Uniform {
  std::size_t pool = 0;  ///< candidates per round, at least the batch size

  [[nodiscard]] PoolBound pool_bound(std::size_t wanted) const { return {std::max(pool, wanted), "pool"}; }

  template <SearchSpace S>
  [[nodiscard]] std::vector<config_t<S>> explore(const S& space, const Task& task,
                                                 const Guidance<config_t<S>>& guidance, Rng& rng) const {
    return spaces::draw(space, task, std::max(pool, guidance.wanted), guidance.measured, guidance.threads, rng);
  }
};

}  // namespace tunewright::explorers
