// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/core/clock.hpp"

namespace tunewright::bench {

/// The clock by which what a measurer does takes time: its own, where its machine is simulated, or the real one.
template <class Measurer>
Clock clock_of(const Measurer& measurer) {
  if constexpr (requires { measurer.clock; })
    return measurer.clock;
  else
    return steady_seconds();
}

}  // namespace tunewright::bench
