// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <utility>

#include "tunewright/detail/config.hpp"
#include "tunewright/loops/nest.hpp"

namespace tunewright::loops {

/// The nest from which code for CPUs is generated, after five passes: separate the last terms of sums that lanes do not
/// divide, skip terms of reductions that are padding, trim the last tiles of axes that tiles do not divide,
/// remove guards of statements that may overcompute, and separate interior tiles, which need no guards, from those at
/// the boundary. The simulated machine and the drafts use the same nest, because they estimate that code.
/// `vector_bytes` are those of the target's vector registers.
[[nodiscard]] LoopNest prepare_for_codegen(LoopNest nest, std::size_t vector_bytes);

}  // namespace tunewright::loops

#if TUNEWRIGHT_DEFINES(loops)

#include "tunewright/loops/eliminate_guards.hpp"
#include "tunewright/loops/eliminate_padding.hpp"
#include "tunewright/loops/partition.hpp"
#include "tunewright/loops/trim_boundaries.hpp"
#include "tunewright/loops/trim_reductions.hpp"

namespace tunewright::loops {

TUNEWRIGHT_INLINE LoopNest prepare_for_codegen(LoopNest nest, std::size_t vector_bytes) {
  return partition(
      eliminate_guards(trim_boundaries(eliminate_padding(trim_reductions(std::move(nest))), vector_bytes)));
}

}  // namespace tunewright::loops

#endif
