// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <numeric>

#include "tunewright/filters/concept.hpp"

namespace tunewright::filters {

/// Lets everything through.
struct None {
  template <SearchSpace S>
  [[nodiscard]] Kept keep(const S&, const Task&, std::span<const config_t<S>> pool) const {
    Kept kept{.indices = std::vector<std::size_t>(pool.size()), .rejected = {}};
    std::iota(kept.indices.begin(), kept.indices.end(), std::size_t{0});
    return kept;
  }
};

}  // namespace tunewright::filters
