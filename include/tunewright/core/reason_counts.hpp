// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <string>

namespace tunewright {

/// How often something was turned down, by reason.
using ReasonCounts = std::map<std::string, std::size_t>;

inline void add_counts(ReasonCounts& to, const ReasonCounts& more) {
  for (const auto& [reason, count] : more) to[reason] += count;
}

}  // namespace tunewright
