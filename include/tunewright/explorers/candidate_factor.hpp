// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/detail/config.hpp"

namespace tunewright::explorers {

/// Maximum number of candidates per wanted one. All of them may be drawn and ranked in every round.
inline constexpr int max_candidate_factor = 10000;

/// Checks an option that is a number of candidates per wanted one: throws `std::invalid_argument` unless `factor` is a
/// number from `least` to `max_candidate_factor`.
void require_candidate_factor(const char* policy, const char* option, double factor, int least);

}  // namespace tunewright::explorers

#if TUNEWRIGHT_DEFINES(core)

#include <string>

#include "tunewright/core/require.hpp"

namespace tunewright::explorers {

TUNEWRIGHT_INLINE void require_candidate_factor(const char* policy, const char* option, double factor, int least) {
  const std::string range =
      std::to_string(least) + " to " + std::to_string(max_candidate_factor) + " for each candidate wanted";
  require(factor >= least && factor <= max_candidate_factor, policy, option, factor, range.c_str());
}

}  // namespace tunewright::explorers

#endif
