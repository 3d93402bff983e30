// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <optional>

#include "tunewright/core/outcome.hpp"

namespace tunewright {

/// Whether `time` may be a time that something took: it is 0 or more, and finite.
[[nodiscard]] inline bool is_duration(Seconds time) noexcept {
  return time >= Seconds(0) && std::isfinite(time.count());
}

/// The median of a measured `outcome` if it is not positive or not finite, and so cannot be a latency; empty for valid
/// latencies and for failures.
[[nodiscard]] inline std::optional<Seconds> impossible_latency(const Outcome& outcome) noexcept {
  const Timing* timing = outcome.timing();
  if (timing == nullptr || (timing->median > Seconds(0) && std::isfinite(timing->median.count()))) return std::nullopt;
  return timing->median;
}

/// The best latency so far once `outcome` is known: 0 if there is none, as in `BestAwareMeasurer`.
[[nodiscard]] inline Seconds best_with(Seconds best, const Outcome& outcome) noexcept {
  const Timing* timing = outcome.timing();
  return timing != nullptr && (best == Seconds(0) || timing->median < best) ? timing->median : best;
}

}  // namespace tunewright
