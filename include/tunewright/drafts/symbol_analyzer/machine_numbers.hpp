// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "tunewright/core/require.hpp"

/// Checks of the numbers that describe a machine to a draft.
namespace tunewright::drafts {

/// Throws `std::invalid_argument`, which names `who` and `what`, unless `value` is above 0; infinity is a rate.
inline void require_rate(double value, const char* who, const char* what) {
  require(value > 0, who, what, value, "a rate above 0");
}

/// Throws `std::invalid_argument`, which names `who` and `what`, unless `value` is finite and at least 0.
inline void require_cost(double value, const char* who, const char* what) {
  require(std::isfinite(value) && value >= 0, who, what, value, "a finite number of at least 0");
}

}  // namespace tunewright::drafts
