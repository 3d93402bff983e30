// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "tunewright/detail/config.hpp"

namespace tunewright::networks {

/// A piece of memory that is in use from step `first` to step `last`, both included.
struct Lifetime {
  std::size_t bytes = 0;
  std::size_t first = 0;
  std::size_t last = 0;
};

/// The position of each piece in one block of memory.
struct MemoryPlan {
  std::vector<std::size_t> offsets;  ///< one a piece, multiples of the alignment
  std::size_t bytes = 0;             ///< of the whole block
};

/// Places pieces such that pieces in use at the same step do not overlap: the largest first, each in the smallest gap
/// between the placed pieces whose lifetimes overlap with its own.
///
/// Paper: Pisarchyk and Lee, arXiv 2001.03288, "greedy by size for offset calculation".
/// Errors: `std::invalid_argument` for a piece that ends before it begins, pieces that would not fit into an address
///         space one behind the other, and an alignment that is not a power of two.
/// Cost:   quadratic in the number of pieces.
/// Determinism: a function of the arguments.
[[nodiscard]] MemoryPlan plan_memory(std::span<const Lifetime> pieces, std::size_t alignment = 64);

/// A lower bound of every plan: the maximum over steps of the memory in use, with each piece rounded up to the
/// alignment.
[[nodiscard]] std::size_t least_memory(std::span<const Lifetime> pieces, std::size_t alignment = 64);

}  // namespace tunewright::networks

#if TUNEWRIGHT_DEFINES(whole_networks)

#include <algorithm>
#include <bit>
#include <limits>
#include <stdexcept>
#include <string>

#include "tunewright/core/order.hpp"
#include "tunewright/core/rounded_up.hpp"

namespace tunewright::networks::detail {

TUNEWRIGHT_INLINE void check_lifetimes(std::span<const Lifetime> pieces, std::size_t alignment) {
  if (!std::has_single_bit(alignment)) {
    throw std::invalid_argument("plan_memory: alignment is " + std::to_string(alignment) + "; give a power of two");
  }
  std::size_t left = std::numeric_limits<std::size_t>::max() / alignment * alignment;
  for (std::size_t p = 0; p < pieces.size(); ++p) {
    if (pieces[p].bytes > left) {
      throw std::invalid_argument("plan_memory: piece " + std::to_string(p) + " has " +
                                  std::to_string(pieces[p].bytes) + " bytes, " + std::to_string(left) +
                                  " are left behind the pieces before it; give sizes that memory can hold");
    }
    left -= rounded_up(pieces[p].bytes, alignment);
    if (pieces[p].first <= pieces[p].last) continue;
    throw std::invalid_argument("plan_memory: piece " + std::to_string(p) + " lives from step " +
                                std::to_string(pieces[p].first) + " to step " + std::to_string(pieces[p].last) +
                                "; give the earlier step first");
  }
}

}  // namespace tunewright::networks::detail

namespace tunewright::networks {

TUNEWRIGHT_INLINE MemoryPlan plan_memory(std::span<const Lifetime> pieces, std::size_t alignment) {
  detail::check_lifetimes(pieces, alignment);
  const auto before = [&](std::size_t a, std::size_t b) {
    return pieces[a].bytes != pieces[b].bytes ? pieces[a].bytes > pieces[b].bytes : a < b;
  };
  const std::vector<std::size_t> order = first_in_order(positions(pieces.size()), pieces.size(), before);
  MemoryPlan plan{std::vector<std::size_t>(pieces.size(), 0), 0};
  std::vector<std::size_t> placed;  // by offset
  for (const std::size_t piece : order) {
    const std::size_t bytes = rounded_up(pieces[piece].bytes, alignment);
    std::size_t best = std::numeric_limits<std::size_t>::max();
    std::size_t smallest_gap = best;
    std::size_t end = 0;  // of those looked at that live with the piece
    for (const std::size_t other : placed) {
      if (pieces[other].last < pieces[piece].first || pieces[piece].last < pieces[other].first) continue;
      if (plan.offsets[other] >= end + bytes && plan.offsets[other] - end < smallest_gap) {
        smallest_gap = plan.offsets[other] - end;
        best = end;
      }
      end = std::max(end, plan.offsets[other] + rounded_up(pieces[other].bytes, alignment));
    }
    plan.offsets[piece] = best == std::numeric_limits<std::size_t>::max() ? end : best;
    plan.bytes = std::max(plan.bytes, plan.offsets[piece] + bytes);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), piece,
                                   [&](std::size_t a, std::size_t b) { return plan.offsets[a] < plan.offsets[b]; }),
                  piece);
  }
  return plan;
}

TUNEWRIGHT_INLINE std::size_t least_memory(std::span<const Lifetime> pieces, std::size_t alignment) {
  detail::check_lifetimes(pieces, alignment);
  std::size_t most = 0;
  for (const Lifetime& at : pieces) {  // the sum is largest at a step where some piece begins
    std::size_t sum = 0;
    for (const Lifetime& other : pieces)
      if (other.first <= at.first && at.first <= other.last) sum += rounded_up(other.bytes, alignment);
    most = std::max(most, sum);
  }
  return most;
}

}  // namespace tunewright::networks

#endif
