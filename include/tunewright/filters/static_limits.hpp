// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tunewright/filters/concept.hpp"

namespace tunewright::filters {

/// Keeps what the space itself calls feasible: limits that can be checked without compiling, such as registers, stack and
/// shared memory bytes, threads a block, unrolled statements.
///
/// Counts by `space.why_infeasible(task, config)` where the space has it, else under "infeasible".
/// Cost: one `feasible` a candidate.
struct StaticLimits {
  template <SearchSpace S>
  [[nodiscard]] Kept keep(const S& space, const Task& task, std::span<const config_t<S>> pool) const {
    Kept kept;
    for (std::size_t i = 0; i < pool.size(); ++i) {
      if (space.feasible(task, pool[i])) {
        kept.indices.push_back(i);
      } else if constexpr (requires { std::string(space.why_infeasible(task, pool[i])); }) {
        ++kept.rejected[std::string(space.why_infeasible(task, pool[i]))];
      } else {
        ++kept.rejected["infeasible"];
      }
    }
    return kept;
  }
};

}  // namespace tunewright::filters
