// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "tunewright/core/outcome.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright {

/// Standard error of a measured latency in seconds, from the spread of its repeats: that of a median of n normally
/// distributed values, sqrt(pi / 2) * 1.4826 * median absolute deviation / sqrt(n). 0 for a single repeat, whose spread
/// is unknown.
[[nodiscard]] inline double standard_error_s(const Timing& timing) {
  if (timing.repeats.size() < 2) return 0;
  return 1.2533 * 1.4826 * timing.median_absolute_deviation.count() /
         std::sqrt(static_cast<double>(timing.repeats.size()));
}

/// Whether two latencies differ by no more than twice the standard error of their difference.
[[nodiscard]] inline bool alike(const Timing& a, const Timing& b) {
  return std::abs((a.median - b.median).count()) <= 2 * std::hypot(standard_error_s(a), standard_error_s(b));
}

/// Whether measuring stopped because repeats or seconds were used up, not because the latency was precise.
[[nodiscard]] inline bool is_imprecise(const Timing& timing) {
  return timing.stopped == StopReason::Budget && timing.repeats.size() > 1;
}

/// The number of latencies that cannot be distinguished from the fastest; the fastest itself, the first among equals,
/// is not counted.
[[nodiscard]] std::size_t as_fast_as_best(std::span<const Timing* const> timings);

/// The same for the valid ones of `trials`.
template <class Trials>
[[nodiscard]] std::size_t as_fast_as_best(const Trials& trials) {
  std::vector<const Timing*> timings;
  for (const auto& trial : trials)
    if (const Timing* timing = trial.outcome.timing()) timings.push_back(timing);
  return as_fast_as_best(std::span<const Timing* const>(timings));
}

}  // namespace tunewright

#if TUNEWRIGHT_DEFINES(core)

namespace tunewright {

TUNEWRIGHT_INLINE std::size_t as_fast_as_best(std::span<const Timing* const> timings) {
  const Timing* best = nullptr;
  for (const Timing* timing : timings)
    if (best == nullptr || timing->median < best->median) best = timing;
  std::size_t count = 0;
  for (const Timing* timing : timings) count += timing != best && alike(*timing, *best) ? 1U : 0U;
  return count;
}

}  // namespace tunewright

#endif
