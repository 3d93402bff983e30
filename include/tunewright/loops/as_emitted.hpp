// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "tunewright/loops/nest.hpp"
#include "tunewright/loops/partition.hpp"
#include "tunewright/loops/relax.hpp"
#include "tunewright/loops/skip_zeros.hpp"

namespace tunewright::loops {

/// The nest that code for CPUs is generated for, which those who foretell that code look at too: zeros of padding are
/// left out of sums, guards are let off where more may be computed, and interiors do without any.
[[nodiscard]] inline LoopNest as_emitted(LoopNest nest) { return partition(relax(skip_zeros(std::move(nest)))); }

}  // namespace tunewright::loops
