// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tunewright/codegen/llvm/memory_emitter.hpp"
#include "tunewright/codegen/llvm/statement_emitter.hpp"
#include "tunewright/loops/tensor_operands.hpp"

/// Weights on their way from memory while earlier ones are used.
namespace tunewright::codegen::llvm_backend {

/// The prefetches of a constant by a loop of a register tile.
struct ConstantPrefetch {
  const loops::Loop* loop = nullptr;
  loops::BufferId buffer = 0;
  loops::IndexExpr place;  ///< first element that an iteration fetches
  std::int64_t elements_per_iteration = 0;
};

/// Prefetches the next piece of a constant into L2 while a register tile uses the present one.
///
/// A tile of a product reads a piece of the weights, and the tiles beside it read the same one again. In a network,
/// where weights come from memory, the first of them waits, and during the others the memory is idle. So each of the R
/// tiles that use a piece fetches an R-th of the next one, or up to twice as much where shares are rounded up, evenly
/// over its own reduction. What it gains, and costs where all weights are in the cache: docs/whole_networks.md.
///
/// A piece is what the loops of a tile touch together. It has to be contiguous, and the next one has to follow it, as
/// in a constant that is packed in the order of its use.
class ConstantPrefetcher {
 public:
  ConstantPrefetcher(EmissionContext& context, ValueEmitter& values, MemoryEmitter& memory)
      : context_(context), plan_(context.plan), values_(values), memory_(memory) {}

  /// The prefetches of a tile inside the loops `around`, outermost first.
  [[nodiscard]] std::vector<ConstantPrefetch> find(const AccumulatorTile& tile,
                                                   std::span<const loops::Loop* const> around) const {
    std::vector<ConstantPrefetch> found;
    for_each_read_buffer(tile, plan_, [&](const Access& access, const program::ExprNode&) {
      const loops::Buffer& buffer = plan_.nest().buffers[access.buffer];
      if (buffer.role != loops::BufferRole::Constant || buffer.bytes() < least_constant_bytes) return;
      const std::optional<std::int64_t> piece = piece_of(tile, access);
      const std::optional<Uses> uses = piece ? uses_of(access, *piece, around) : std::nullopt;
      if (uses) add(found, tile, access, *piece, *uses);
    });
    return found;
  }

  /// Emits the prefetches of a step of `iterations` iterations of `loop`.
  void emit(std::span<const ConstantPrefetch> prefetches, const loops::Loop& loop, std::int64_t iterations) {
    for (const ConstantPrefetch& prefetch : prefetches) {
      if (prefetch.loop != &loop) continue;
      Affine at = values_.affine(prefetch.place);
      const std::int64_t end = at.constant + iterations * prefetch.elements_per_iteration;
      for (; at.constant < end; at.constant += line_bytes / memory_.element_bytes(prefetch.buffer))
        memory_.prefetch(prefetch.buffer, at, Cache::L2);
    }
  }

 private:
  static constexpr std::int64_t least_constant_bytes = 64 << 10;  // a smaller one may stay in L2 from run to run
  static constexpr std::int64_t least_piece_bytes = 4 << 10;      // hardware fetches as much ahead by itself
  static constexpr std::int64_t most_uses = 64;                   // the first of more hardly counts

  /// The tiles that use a piece one after the other.
  struct Uses {
    std::int64_t count = 1;
    loops::IndexExpr number;  ///< of the present one
  };

  /// Elements of the piece that the loops of the tile touch; empty if it is not as long as they are many, or is too
  /// small or too large.
  [[nodiscard]] std::optional<std::int64_t> piece_of(const AccumulatorTile& tile, const Access& access) const {
    std::int64_t elements = 1, reach = 1;
    for (const loops::Loop* loop : tile.loops) {
      if (!access.offset.uses(loop->var)) continue;
      const std::optional<std::int64_t> stride = loops::stride(access.offset, loop->var);
      if (!stride || *stride <= 0) return std::nullopt;
      const std::int64_t extent = plan_.extent(loop->var);
      elements *= extent;
      reach += *stride * (extent - 1);
    }
    const std::int64_t bytes = elements * memory_.element_bytes(access.buffer);
    // L2 also holds the present piece and what the tile reads and writes besides.
    const bool fits = bytes >= least_piece_bytes && bytes <= static_cast<std::int64_t>(context_.target.l2_bytes) / 4;
    return fits && reach == elements ? std::optional(elements) : std::nullopt;
  }

  /// The uses of a piece by the loops `around`; empty if they are too few or too many, or if the next piece does not
  /// follow it.
  [[nodiscard]] std::optional<Uses> uses_of(const Access& access, std::int64_t piece,
                                            std::span<const loops::Loop* const> around) const {
    Uses uses;
    auto next = around.rbegin();
    for (; next != around.rend() && !access.offset.uses((*next)->var); ++next) {
      const loops::LoopKind kind = (*next)->kind;
      if (kind == loops::LoopKind::Parallel || kind == loops::LoopKind::Vectorized) return std::nullopt;
      uses.number += uses.count * loops::IndexExpr::variable((*next)->var);
      uses.count *= plan_.extent((*next)->var);
    }
    const bool several = uses.count > 1 && uses.count <= most_uses;
    if (!several || next == around.rend() || loops::stride(access.offset, (*next)->var) != piece ||
        !context_.goes_on_in_thread(**next))
      return std::nullopt;
    return uses;
  }

  /// Adds the prefetches by the innermost loop that stays one.
  void add(std::vector<ConstantPrefetch>& found, const AccumulatorTile& tile, const Access& access, std::int64_t piece,
           const Uses& uses) const {
    const auto innermost = std::find_if(tile.loops.rbegin(), tile.loops.rend(), [&](const loops::Loop* loop) {
      return loop->kind == loops::LoopKind::Serial && !plan_.is_static(*loop) && access.offset.uses(loop->var);
    });
    if (innermost == tile.loops.rend()) return;
    const auto stride_of = [&](const loops::Loop& loop) { return *loops::stride(access.offset, loop.var); };
    const auto share = [&](std::int64_t elements) { return (elements + uses.count - 1) / uses.count; };
    const std::int64_t step = stride_of(**innermost);
    if (share(step) * uses.count > 2 * step) return;

    loops::IndexExpr place = access.offset;
    place += piece;
    place += share(piece) * uses.number;
    for (auto loop = tile.loops.begin(); loop != tile.loops.end(); ++loop) {
      if (!access.offset.uses((*loop)->var)) continue;
      const std::int64_t stride = stride_of(**loop);
      const std::int64_t fetched = loop < innermost.base() ? share(stride) : 0;
      place += (fetched - stride) * loops::IndexExpr::variable((*loop)->var);
    }
    found.push_back({*innermost, access.buffer, std::move(place), share(step)});
  }

  EmissionContext& context_;
  const EmissionPlan& plan_;
  ValueEmitter& values_;
  MemoryEmitter& memory_;
};

}  // namespace tunewright::codegen::llvm_backend
