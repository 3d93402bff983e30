// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tunewright/codegen/llvm/memory_emitter.hpp"
#include "tunewright/codegen/llvm/statement_emitter.hpp"
#include "tunewright/loops/tensor_operands.hpp"

/// Rows of a matrix on their way to L1 while earlier ones are used.
namespace tunewright::codegen::llvm_backend {

/// The prefetches of a buffer by a loop of a register tile.
struct RowPrefetch {
  const loops::Loop* loop = nullptr;
  loops::BufferId buffer = 0;
  loops::IndexExpr place;              ///< element ahead of the first that an iteration reads
  std::vector<std::int64_t> elements;  ///< one in each line, counted from `place`
};

/// Prefetches what a register tile reads some iterations later of the rows of a matrix.
///
/// A tile of a product reads a piece of each row of the right operand, one row an iteration of its sum. Where the
/// pieces are far apart, hardware does not fetch them ahead: its prefetchers follow accesses within a page. What it
/// gains: docs/studies/kernels.md.
///
/// Pieces that lie a multiple of a page apart begin in the same set of L1, where those fetched ahead would evict one
/// another. So only so many are on their way that two of them are in a set.
class RowPrefetcher {
 public:
  RowPrefetcher(EmissionContext& context, ValueEmitter& values, MemoryEmitter& memory)
      : context_(context), plan_(context.plan), values_(values), memory_(memory) {}

  /// The prefetches of a tile by the innermost of its loops that stays one.
  [[nodiscard]] std::vector<RowPrefetch> find(const AccumulatorTile& tile) const {
    std::vector<RowPrefetch> found;
    const auto innermost = std::find_if(tile.loops.rbegin(), tile.loops.rend(), [&](const loops::Loop* loop) {
      return loop->kind == loops::LoopKind::Serial && !plan_.is_static(*loop);
    });
    if (innermost == tile.loops.rend()) return found;
    const std::span inside(innermost.base(), tile.loops.end());
    for_each_read_buffer(tile, plan_, [&](const Access& access, const program::ExprNode&) {
      if (std::optional<RowPrefetch> prefetch = prefetch_of(access, **innermost, inside))
        found.push_back(std::move(*prefetch));
    });
    return found;
  }

  /// Emits the prefetches of the present iteration of `loop`.
  void emit(std::span<const RowPrefetch> prefetches, const loops::Loop& loop) {
    for (const RowPrefetch& prefetch : prefetches) {
      if (prefetch.loop != &loop) continue;
      const Affine place = values_.affine(prefetch.place);
      for (const std::int64_t element : prefetch.elements) {
        Affine at = place;
        at.constant += element;
        memory_.prefetch(prefetch.buffer, at, Cache::L1);
      }
    }
  }

 private:
  static constexpr std::int64_t page_bytes = 4096;
  static constexpr std::int64_t most_ahead = 16, least_ahead = 4;  // rows
  static constexpr std::int64_t most_lines = 16;                   // of an iteration

  /// What the loops inside an iteration read of a buffer.
  struct Pieces {
    std::vector<std::int64_t> offsets{0};  ///< of elements from the first one, ascending
    std::int64_t rows = 1;                 ///< of those that windows share, each time
    std::int64_t row_bytes = 0;            ///< least distance between rows
  };

  [[nodiscard]] std::optional<RowPrefetch> prefetch_of(const Access& access, const loops::Loop& loop,
                                                       std::span<const loops::Loop* const> inside) const {
    const loops::Buffer& buffer = plan_.nest().buffers[access.buffer];
    if (static_cast<std::uint64_t>(buffer.bytes()) <= context_.target.l1_bytes) return std::nullopt;
    const std::optional<std::int64_t> step = loops::stride(access.offset, loop.var);
    if (!step || *step == 0) return std::nullopt;
    const std::optional<Pieces> pieces = pieces_of(access, *step, inside);
    if (!pieces) return std::nullopt;
    // L1 has most of what windows share.
    const bool windows = std::ranges::adjacent_find(pieces->offsets) != pieces->offsets.end();
    if (windows && static_cast<std::uint64_t>(buffer.bytes()) <= context_.target.l2_bytes) return std::nullopt;
    const std::int64_t ahead = rows_ahead(pieces->row_bytes);
    const std::int64_t iterations = std::max<std::int64_t>(1, ahead / pieces->rows);
    if (ahead == 0 || plan_.extent(loop.var) < 2 * iterations) return std::nullopt;

    RowPrefetch prefetch{&loop, access.buffer, loops::at_first_iterations(access.offset, inside), {}};
    prefetch.place += iterations * *step;
    const std::int64_t bytes = memory_.element_bytes(access.buffer);
    for (const std::int64_t offset : pieces->offsets)
      if (prefetch.elements.empty() || (offset - prefetch.elements.back()) * bytes >= line_bytes)
        prefetch.elements.push_back(offset);
    // Pieces that follow one another closely are what hardware fetches by itself.
    const auto lines = static_cast<std::int64_t>(prefetch.elements.size());
    if (lines > most_lines || 2 * lines * line_bytes > std::abs(*step) * bytes) return std::nullopt;
    return prefetch;
  }

  /// Empty if the distance between iterations of a loop varies. Iterations of the loop around those `inside` are `step`
  /// elements apart.
  [[nodiscard]] std::optional<Pieces> pieces_of(const Access& access, std::int64_t step,
                                                std::span<const loops::Loop* const> inside) const {
    const std::int64_t bytes = memory_.element_bytes(access.buffer);
    Pieces pieces{.row_bytes = std::abs(step) * bytes};
    for (const loops::Loop* loop : inside) {
      const std::optional<std::int64_t> stride = loops::stride(access.offset, loop->var);
      if (!stride) return std::nullopt;
      if (*stride == 0) continue;
      pieces.offsets = repeated(pieces.offsets, *stride, plan_.extent(loop->var));
      const std::int64_t distance = std::abs(*stride) * bytes;
      if (distance <= line_bytes) continue;
      pieces.rows *= plan_.extent(loop->var);
      pieces.row_bytes = std::min(pieces.row_bytes, distance);
    }
    std::ranges::sort(pieces.offsets);
    return pieces;
  }

  /// How many rows that are so far apart are fetched ahead; 0 if hardware follows them, or if too few fit L1.
  [[nodiscard]] static std::int64_t rows_ahead(std::int64_t row_bytes) {
    if (most_ahead * row_bytes < page_bytes) return 0;
    const std::int64_t ahead = std::min(most_ahead, 2 * page_bytes / std::gcd(row_bytes, page_bytes));
    return ahead < least_ahead ? 0 : ahead;
  }

  /// Each offset `count` times, `stride` apart.
  [[nodiscard]] static std::vector<std::int64_t> repeated(const std::vector<std::int64_t>& offsets, std::int64_t stride,
                                                          std::int64_t count) {
    std::vector<std::int64_t> all;
    for (std::int64_t n = 0; n < count; ++n)
      for (const std::int64_t offset : offsets) all.push_back(offset + n * stride);
    return all;
  }

  EmissionContext& context_;
  const EmissionPlan& plan_;
  ValueEmitter& values_;
  MemoryEmitter& memory_;
};

}  // namespace tunewright::codegen::llvm_backend
