// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "tunewright/detail/config.hpp"
#include "tunewright/drafts/symbol_analyzer/statement_footprint.hpp"

/// How the threads of a warp meet memory, where they and the vectorized loops of a statement vary.
namespace tunewright::drafts {

/// What one instruction moves for a thread.
struct Together {
  double elements = 1;
  double unrolled = 1;  ///< of these, those of loops that are not vectorized
};

/// Elements from one row of a buffer to the next, padding included.
[[nodiscard]] std::int64_t row_elements(const loops::BufferSummary& buffer);

/// Elements of a vectorized loop among `tile`, 16 bytes at most; of shared memory also those of an unrolled one where
/// rows begin at whole vectors, which a compiler loads as such.
[[nodiscard]] Together moved_together(const NestReader& reader, const StatementFootprint& footprint,
                                      const StatementFootprint::Access& a, LoopSet tile);

/// Values of the innermost index of an access, and how many rows of the buffer it is in.
struct RowFootprint {
  IndexRange row;
  double rows = 1;
};
[[nodiscard]] RowFootprint row_footprint(const StatementFootprint& footprint, const StatementFootprint::Access& a);

inline constexpr double bytes_of_step = 128;  ///< a word of each of 32 banks

/// Steps that shared memory takes for what one instruction of a warp moves, a word of each bank in a step. What threads
/// touch is taken for runs of `together.unrolled` elements as far apart as they are in a row on the mean, or as rows
/// are where each has one: banks / gcd(distance, banks) of them begin in banks of their own. What threads share is
/// moved once.
[[nodiscard]] double bank_steps(const StatementFootprint& footprint, const StatementFootprint::Access& a,
                                const Together& together);

inline constexpr double sector_bytes = 32;  ///< of device memory, the least that is moved

/// Sectors that one instruction of a warp moves.
[[nodiscard]] double sectors(const StatementFootprint& footprint, const StatementFootprint::Access& a);

}  // namespace tunewright::drafts

#if TUNEWRIGHT_DEFINES(drafts)

namespace tunewright::drafts {

TUNEWRIGHT_INLINE std::int64_t row_elements(const loops::BufferSummary& buffer) {
  if (buffer.is_packed()) return buffer.packing.back().extent;
  return buffer.shape.empty() ? 1 : buffer.shape.back();
}

TUNEWRIGHT_INLINE Together moved_together(const NestReader& reader, const StatementFootprint& footprint,
                                          const StatementFootprint::Access& a, LoopSet tile) {
  const auto widest = static_cast<std::int64_t>(16 / footprint.element_bytes(a));
  const bool shared = a.scope == loops::Scope::Shared;
  const LoopSet vectorized = reader.loops_of(loops::LoopKind::Vectorized);
  Together together;
  for (LoopSet left = tile & a.moved_by & (shared ? ~LoopSet{0} : vectorized); left != 0; left &= left - 1) {
    const auto loop = static_cast<std::size_t>(std::countr_zero(left));
    if (!footprint.contiguous(a, loop)) continue;
    const std::int64_t extent = reader.open()[loop].extent;
    if ((vectorized >> loop & 1U) != 0) {
      together = {static_cast<double>(std::min(extent, widest)), 1};
    } else {
      together.elements = together.unrolled =
          static_cast<double>(std::gcd(std::gcd(extent, widest), row_elements(footprint.buffer(a))));
    }
  }
  return together;
}

TUNEWRIGHT_INLINE RowFootprint row_footprint(const StatementFootprint& footprint, const StatementFootprint::Access& a) {
  const loops::BufferSummary& buffer = footprint.buffer(a);
  if (buffer.shape.empty()) return {};
  const IndexRange row =
      footprint.index(a, buffer.is_packed() ? buffer.packing.back().dimension : buffer.shape.size() - 1);
  return {row, std::max(footprint.elements(a), 1.0) / row.count};
}

TUNEWRIGHT_INLINE double bank_steps(const StatementFootprint& footprint, const StatementFootprint::Access& a,
                                    const Together& together) {
  constexpr std::int64_t banks = 32;
  const auto [row, rows] = row_footprint(footprint, a);
  const double words_of_element = footprint.element_bytes(a) / 4;
  const double distance = row.count == 1 ? static_cast<double>(row_elements(footprint.buffer(a)))
                                         : static_cast<double>(row.span) / (row.count - 1);
  const auto apart = std::max<std::int64_t>(std::llround(distance * words_of_element), 1);
  const std::int64_t starts = banks / std::gcd(apart, banks);
  const double run = together.unrolled * words_of_element;
  const double reached = std::min<double>(banks, static_cast<double>(starts) * std::max(run, 1.0));
  return std::max(rows * row.count * run / reached, 1.0);
}

TUNEWRIGHT_INLINE double sectors(const StatementFootprint& footprint, const StatementFootprint::Access& a) {
  const auto [row, rows] = row_footprint(footprint, a);
  const double size = footprint.element_bytes(a);
  const double of_row = std::min(row.count * size / std::min(size, sector_bytes),
                                 std::ceil(static_cast<double>(row.span + 1) * size / sector_bytes));
  return std::max(rows * of_row, 1.0);
}

}  // namespace tunewright::drafts

#endif
