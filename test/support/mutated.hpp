// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/core/rng.hpp"
#include "tunewright/core/task.hpp"

namespace tunewright::test {

/// A change of `config` where the space makes one that is feasible, otherwise `config`.
template <class Space, class Config>
[[nodiscard]] Config mutated(const Space& space, const Task& task, const Config& config, Rng& rng) {
  auto mutant = space.mutate(task, config, rng);
  return mutant && space.feasible(task, *mutant) ? *mutant : config;
}

}  // namespace tunewright::test
