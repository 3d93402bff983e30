// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/core/target.hpp"

namespace tunewright::bench {

/// The CPU of simulated comparisons, the same on every machine.
inline Target two_cores() {
  Target target;
  target.name = "cores";
  target.isa = Isa::Avx512;
  target.threads = 2;
  target.l1_bytes = 48 << 10;
  target.l2_bytes = 2 << 20;
  target.l3_bytes = 32 << 20;
  return target;
}

}  // namespace tunewright::bench
