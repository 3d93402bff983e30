// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "tunewright/core/target.hpp"
#include "tunewright/measurers/stream_bandwidth.hpp"

namespace tunewright::bench {

/// Bytes a second of the target's threads over as many bytes; nothing of too few to measure it: a kernel that small is
/// compared with libraries alone. Throws as `measurers::stream_bytes_per_second` otherwise.
inline std::optional<double> bandwidth_of(const Target& target, std::uint64_t bytes, measurers::Traffic traffic) {
  if (bytes / target.threads < measurers::stream::least_bytes_per_thread) return std::nullopt;
  return measurers::stream_bytes_per_second(target, bytes, {.seconds_per_repeat = 0.005, .repeats = 3}, traffic);
}

}  // namespace tunewright::bench
