// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace tunewright::adaptations {

/// Whether there are enough new programs for another fit, when there were `fitted` at the last one and there are `now`:
///
///   now - fitted >= share * fitted
///
/// Fewer programs than at the last fit are another session's, and always enough. With an infinite share only the first
/// fit takes place.
[[nodiscard]] inline bool has_grown(std::size_t now, std::size_t fitted, double share) {
  return now < fitted || !(static_cast<double>(now - fitted) < share * static_cast<double>(fitted));
}

}  // namespace tunewright::adaptations
