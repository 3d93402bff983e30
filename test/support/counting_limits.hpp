// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "support/toy_space.hpp"
#include "tunewright/filters/static_limits.hpp"

namespace toy {

/// `filters::StaticLimits` that counts what it rejects.
struct CountingLimits : tunewright::filters::StaticLimits {
  std::size_t* rejected;
  tunewright::Kept keep(const Space& space, const tunewright::Task& task, std::span<const Tiles> pool) const {
    tunewright::Kept kept = StaticLimits::keep(space, task, pool);
    *rejected += pool.size() - kept.indices.size();
    return kept;
  }
};

}  // namespace toy
