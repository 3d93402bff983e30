// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <optional>
#include <string>

#include "tunewright/core/outcome.hpp"
#include "tunewright/detail/config.hpp"

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

/// The first number of `outcome` that cannot have been measured, such as "a latency of -1 s"; empty if there is none.
[[nodiscard]] std::string impossible_number(const Outcome& outcome);

/// The best latency so far once `outcome` is known: 0 if there is none, as in `BestAwareMeasurer`.
[[nodiscard]] inline Seconds best_with(Seconds best, const Outcome& outcome) noexcept {
  const Timing* timing = outcome.timing();
  return timing != nullptr && (best == Seconds(0) || timing->median < best) ? timing->median : best;
}

}  // namespace tunewright

#if TUNEWRIGHT_DEFINES(core)

#include "tunewright/core/number_text.hpp"

namespace tunewright {

TUNEWRIGHT_INLINE std::string impossible_number(const Outcome& outcome) {
  const auto text = [](const char* what, Seconds time) { return what + number_text(time.count()) + " s"; };
  if (const auto latency = impossible_latency(outcome)) return text("a latency of ", *latency);
  if (!is_duration(outcome.compile_time)) return text("compiling for ", outcome.compile_time);
  if (!is_duration(outcome.run_time)) return text("running for ", outcome.run_time);
  const Timing* timing = outcome.timing();
  if (timing == nullptr) return {};
  if (!is_duration(timing->median_absolute_deviation))
    return text("a deviation of ", timing->median_absolute_deviation);
  for (const Seconds repeat : timing->repeats)
    if (!is_duration(repeat)) return text("a repeat of ", repeat);
  return {};
}

}  // namespace tunewright

#endif
