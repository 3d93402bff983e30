// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
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
    program::visit(tile.statement->op->body, [&](const program::ExprNode& node) {
      if (node.op != program::Op::Load) return;
      const Access& access = plan_.of(*tile.statement).loads.at(&node);
      const bool known =
          std::ranges::any_of(found, [&](const RowPrefetch& other) { return other.buffer == access.buffer; });
      if (known) return;
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
  static constexpr std::int64_t line_bytes = 64;
  static constexpr std::int64_t page_bytes = 4096;
  static constexpr std::int64_t most_ahead = 16, least_ahead = 4;  // rows
  static constexpr std::size_t most_lines = 16;                    // of an iteration

  [[nodiscard]] std::optional<RowPrefetch> prefetch_of(const Access& access, const loops::Loop& loop,
                                                       std::span<const loops::Loop* const> inside) const {
    const loops::Buffer& buffer = plan_.nest().buffers[access.buffer];
    if (static_cast<std::uint64_t>(buffer.bytes()) <= context_.target.l1_bytes) return std::nullopt;
    const std::optional<std::int64_t> step = loops::stride(access.offset, loop.var);
    if (!step || *step == 0) return std::nullopt;
    const auto element_bytes = static_cast<std::int64_t>(program::size_in_bytes(buffer.type));
    const std::int64_t step_bytes = std::abs(*step) * element_bytes;

    RowPrefetch prefetch{&loop, access.buffer, access.offset, {}};
    std::vector<std::int64_t> offsets{0};
    std::int64_t rows = 1, row_bytes = step_bytes;
    for (const loops::Loop* inner : inside) {
      const std::optional<std::int64_t> stride = loops::stride(access.offset, inner->var);
      if (!stride) return std::nullopt;
      if (*stride == 0) continue;
      prefetch.place += -*stride * loops::IndexExpr::variable(inner->var);
      offsets = repeated(offsets, *stride, plan_.extent(inner->var));
      if (const std::int64_t distance = std::abs(*stride) * element_bytes; distance > line_bytes) {
        rows *= plan_.extent(inner->var);
        row_bytes = std::min(row_bytes, distance);
      }
    }
    const std::int64_t ahead = std::min(most_ahead, 2 * page_bytes / std::gcd(row_bytes, page_bytes));
    const std::int64_t iterations = std::max<std::int64_t>(1, ahead / rows);
    const bool is_long = plan_.extent(loop.var) >= 2 * iterations;
    if (!is_long || ahead < least_ahead || most_ahead * row_bytes < page_bytes) return std::nullopt;
    prefetch.place += iterations * *step;

    std::ranges::sort(offsets);
    // L1 has most of what windows share.
    const bool windows = std::ranges::adjacent_find(offsets) != offsets.end();
    if (windows && static_cast<std::uint64_t>(buffer.bytes()) <= context_.target.l2_bytes) return std::nullopt;
    for (const std::int64_t offset : offsets)
      if (prefetch.elements.empty() || (offset - prefetch.elements.back()) * element_bytes >= line_bytes)
        prefetch.elements.push_back(offset);
    // Pieces that follow one another closely are what hardware fetches by itself.
    if (prefetch.elements.size() > most_lines ||
        2 * static_cast<std::int64_t>(prefetch.elements.size()) * line_bytes > step_bytes)
      return std::nullopt;
    return prefetch;
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
