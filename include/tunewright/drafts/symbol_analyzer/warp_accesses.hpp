// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "tunewright/detail/config.hpp"
#include "tunewright/drafts/symbol_analyzer/statement_footprint.hpp"

/// Memory accesses of a warp, whose threads vary together with the vectorized loops of a statement.
namespace tunewright::drafts {

/// Elements that one instruction moves for a thread.
struct Together {
  double elements = 1;
  double unrolled = 1;  ///< of these: from loops that are not vectorized
};

/// Elements between the starts of two rows of a buffer, padding included.
[[nodiscard]] std::int64_t row_elements(const loops::BufferSummary& buffer);

/// Elements of a vectorized loop in `tile`, 16 bytes at most. In shared memory also elements of an unrolled loop if
/// rows begin at whole vectors, because compilers load these as vectors.
[[nodiscard]] Together moved_together(const NestReader& reader, const StatementFootprint& footprint,
                                      const StatementFootprint::Access& a, LoopSet tile);

/// Values of the innermost index of an access, and the number of rows that it touches.
struct RowFootprint {
  IndexRange row;
  double rows = 1;
};
[[nodiscard]] RowFootprint row_footprint(const StatementFootprint& footprint, const StatementFootprint::Access& a);

inline constexpr double bytes_of_step = 128;  ///< one word per bank of 32

/// Steps that shared memory needs for one instruction of a warp, with one word per bank and step. Accesses of threads
/// are modelled as runs of `together.unrolled` elements at their mean distance in a row, or at the distance of rows if
/// each row has one run: banks / gcd(distance, banks) of them begin in distinct banks. Elements that threads share are
/// moved once. Rows that are stored in pieces of 16 bytes, as core matrices, are counted piece by piece.
[[nodiscard]] double bank_steps(const StatementFootprint& footprint, const StatementFootprint::Access& a,
                                const Together& together);

/// The steps for `pieces` pieces of 16 bytes of each of `rows` rows: those of a row are `column` pieces apart, those of
/// neighbouring rows next to each other. The most that begin in the same of eight groups of four banks.
[[nodiscard]] double steps_of_pieces(std::int64_t pieces, std::int64_t rows, std::int64_t column);

inline constexpr double sector_bytes = 32;  ///< the smallest transaction of device memory

/// Sectors that one instruction of a warp transfers.
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

namespace detail {

/// Whether rows are stored in pieces of 16 bytes, each behind the same piece of the row before.
inline bool stored_in_pieces(const loops::BufferSummary& buffer) {
  constexpr double bytes = 16;
  if (!buffer.is_packed() || buffer.packing.size() < 3) return false;
  const auto& last = buffer.packing.back();
  return static_cast<double>(last.extent) * buffer.element_bytes == bytes &&
         std::any_of(buffer.packing.begin(), buffer.packing.end() - 1, [&](const auto& other) {
           return other.dimension == last.dimension && other.divisor == last.extent;
         });
}

}  // namespace detail

TUNEWRIGHT_INLINE double steps_of_pieces(std::int64_t pieces, std::int64_t rows, std::int64_t column) {
  constexpr std::int64_t places = 8;
  std::array<std::int64_t, places> taken{};
  for (std::int64_t piece = 0; piece < pieces; ++piece) {
    for (std::int64_t row = 0; row < rows; ++row) ++taken[static_cast<std::size_t>((piece * column + row) % places)];
  }
  return static_cast<double>(*std::max_element(taken.begin(), taken.end()));
}

TUNEWRIGHT_INLINE double bank_steps(const StatementFootprint& footprint, const StatementFootprint::Access& a,
                                    const Together& together) {
  constexpr std::int64_t banks = 32;
  const auto [row, rows] = row_footprint(footprint, a);
  if (const loops::BufferSummary& buffer = footprint.buffer(a); detail::stored_in_pieces(buffer)) {
    constexpr std::int64_t threads = 32;
    const std::int64_t pieces = std::min(row.span / buffer.packing.back().extent + 1, threads);
    return steps_of_pieces(pieces, std::min<std::int64_t>(std::llround(rows), threads),
                           (buffer.packing.end() - 2)->extent);
  }
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
