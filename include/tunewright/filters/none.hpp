// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/core/order.hpp"
#include "tunewright/filters/concept.hpp"

namespace tunewright::filters {

/// Keeps everything.
struct None {
  template <SearchSpace S>
  [[nodiscard]] Kept keep(const S&, const Task&, std::span<const config_t<S>> pool) const {
    return {.indices = positions(pool.size()), .rejected = {}};
  }
};

}  // namespace tunewright::filters
