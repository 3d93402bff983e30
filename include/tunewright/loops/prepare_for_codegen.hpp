// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "tunewright/detail/config.hpp"
#include "tunewright/loops/nest.hpp"

namespace tunewright::loops {

/// The nest that code for CPUs is generated from. It lets four passes run: terms that padding makes zero are left out
/// of sums, last tiles of axes that tiles do not divide are trimmed, guards of statements that may compute more than is
/// asked for are dropped, and tiles in the interior are parted from those at the boundary, so that they need no guards.
/// The simulated machine and the drafts look at the same nest, since they foretell that code.
[[nodiscard]] LoopNest prepare_for_codegen(LoopNest nest);

}  // namespace tunewright::loops

#if TUNEWRIGHT_DEFINES(loops)

#include "tunewright/loops/eliminate_guards.hpp"
#include "tunewright/loops/eliminate_padding.hpp"
#include "tunewright/loops/partition.hpp"
#include "tunewright/loops/trim_boundaries.hpp"

namespace tunewright::loops {

TUNEWRIGHT_INLINE LoopNest prepare_for_codegen(LoopNest nest) {
  return partition(eliminate_guards(trim_boundaries(eliminate_padding(std::move(nest)))));
}

}  // namespace tunewright::loops

#endif
