// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <ranges>
#include <span>
#include <utility>
#include <vector>

#include "tunewright/codegen/llvm/memory_emitter.hpp"
#include "tunewright/codegen/llvm/statement_emitter.hpp"
#include "tunewright/loops/tensor_operands.hpp"

/// The next block of a matrix on its way to L2 while register tiles use the present one.
namespace tunewright::codegen::llvm_backend {

/// Prefetches the block of a matrix that a loop copies next, or that tiles read in place next, while tiles use the
/// present one.
///
/// A product with few rows uses each element of its right operand a few times, so fetching it takes a large part of the
/// time, and between blocks memory is idle. So each of the R tiles that use a piece of a block first asks for an R-th
/// of the same piece of the next block, in rows as the matrix has them. What it gains: docs/studies/kernels.md.
///
/// L2 has to hold the next block beside the present one, and the thread of the present one has to use it. Tiles that
/// read a piece without others fetch it themselves, see `RowPrefetcher`; pieces that are contiguous are followed by
/// hardware, or packed constants, see `ConstantPrefetcher`.
class BlockPrefetcher {
 public:
  BlockPrefetcher(EmissionContext& context, ValueEmitter& values, MemoryEmitter& memory)
      : context_(context), plan_(context.plan), values_(values), memory_(memory) {
    loops::for_each_statement(plan_.nest().body, [&](const loops::Statement& s) {
      const bool copies = s.kind == loops::Statement::Kind::Assign && s.op->body->op == program::Op::Load;
      if (copies && plan_.nest().buffers[s.target].role == loops::BufferRole::Temporary) copies_.emplace(s.target, &s);
    });
  }

  /// To be called where a buffer is allocated inside so many loops.
  void is_allocated(loops::BufferId buffer, std::size_t loops_around) { loops_around_[buffer] = loops_around; }

  /// Emits the prefetches of a tile inside the loops `around`, outermost first; none if one of them is in vectors.
  void emit(const AccumulatorTile& tile, std::span<const loops::Loop* const> around) {
    if (context_.lanes > 1) return;
    for_each_read_buffer(tile, plan_, [&](const Access& access, const program::ExprNode& load) {
      if (std::optional<Operand> operand = operand_of(tile, access, load, around)) emit(tile, *operand);
    });
  }

 private:
  static constexpr std::int64_t most_lines = 128;  // of an operand, in one tile

  /// What the loops of a tile touch of a matrix together.
  struct Piece {
    std::int64_t width = 1;  ///< elements of a row
    std::int64_t rows = 1;
    std::int64_t row = 0;  ///< elements between rows
  };

  /// A matrix of which tiles use blocks, or copies of blocks.
  struct Operand {
    loops::BufferId matrix = 0;
    loops::IndexExpr offset{};                     ///< of the element in the matrix
    std::span<const loops::Loop* const> blocks{};  ///< outermost first; the innermost one goes from block to block
    std::span<const loops::Loop* const> tiles{};   ///< inside them, around the tile
    bool copied = false;
  };

  /// What the tile reads of a matrix that L2 does not hold in blocks that it does; empty if it reads nothing so.
  [[nodiscard]] std::optional<Operand> operand_of(const AccumulatorTile& tile, const Access& access,
                                                  const program::ExprNode& load,
                                                  std::span<const loops::Loop* const> around) {
    const auto copy = copies_.find(access.buffer);
    Operand operand{.matrix = access.buffer, .offset = access.offset, .copied = copy != copies_.end()};
    if (operand.copied) operand.matrix = plan_.nest().buffer_of[copy->second->op->body->tensor];
    const auto l2_bytes = static_cast<std::int64_t>(context_.target.l2_bytes);
    if (plan_.nest().buffers[operand.matrix].bytes() <= l2_bytes) return std::nullopt;
    std::size_t blocks = 0;
    if (operand.copied) {
      operand.offset = source_offset(*tile.statement, load, *copy->second);
      blocks = loops_around_[access.buffer];  // 0 at the top level
      while (blocks > 0 && plan_.extent(around[blocks - 1]->var) == 1) --blocks;
      if (blocks == 0 || !operand.offset.uses(around[blocks - 1]->var)) return std::nullopt;
    } else {
      for (blocks = around.size(); blocks > 0 && !operand.offset.uses(around[blocks - 1]->var);) --blocks;
      if (blocks == 0) return std::nullopt;
    }
    if (!context_.goes_on_in_thread(*around[blocks - 1])) return std::nullopt;
    operand.blocks = around.first(blocks);
    operand.tiles = around.subspan(blocks);
    const std::int64_t bytes = operand.copied ? plan_.nest().buffers[access.buffer].bytes() : bytes_of(tile, operand);
    return bytes <= loops::prefetched_block_bytes(l2_bytes) ? std::optional(operand) : std::nullopt;
  }

  void emit(const AccumulatorTile& tile, const Operand& operand) {
    const std::optional<Piece> piece = piece_of(operand.offset, tile.loops);
    if (!piece) return;
    loops::IndexExpr number;
    std::int64_t uses = 1;
    for (const loops::Loop* loop : operand.tiles) {
      if (operand.offset.uses(loop->var)) continue;
      number += uses * loops::IndexExpr::variable(loop->var);
      uses *= plan_.extent(loop->var);
    }
    if (uses == 1 && !operand.copied) return;
    const std::int64_t share = (piece->rows + uses - 1) / uses;
    if (share * uses > 2 * piece->rows) return;
    const loops::IndexExpr place = loops::at_first_iterations(operand.offset, tile.loops) + share * piece->row * number;
    const Affine first = in_next_iteration(operand, [&] { return values_.affine(place); });
    const std::int64_t line = line_bytes / memory_.element_bytes(operand.matrix);
    emit_rows(operand.matrix, first, *piece, share, loops::is_multiple(place, line) && piece->row % line == 0);
  }

  /// Bytes of the matrix that the loops of the tile touch.
  [[nodiscard]] std::int64_t bytes_of(const AccumulatorTile& tile, const Operand& operand) const {
    std::int64_t elements = 1;
    for (const loops::Loop* loop : tile.loops)
      if (operand.offset.uses(loop->var)) elements *= plan_.extent(loop->var);
    return elements * memory_.element_bytes(operand.matrix);
  }

  /// Element of the matrix, over loop variables, whose copy the load reads.
  [[nodiscard]] loops::IndexExpr source_offset(const loops::Statement& s, const program::ExprNode& load,
                                               const loops::Statement& copy) const {
    const loops::LoopNest& nest = plan_.nest();
    std::vector<loops::IndexExpr> copied, coordinates;
    for (const loops::IndexExpr& index : load.indices) copied.push_back(loops::over_loops(nest, s, index));
    for (const loops::IndexExpr& index : copy.op->body->indices)
      coordinates.push_back(index.substitute([&](loops::Var axis) -> const loops::IndexExpr& { return copied[axis]; },
                                             [&](loops::Var var) { return nest.range_of(var); }));
    const loops::Buffer& buffer = nest.buffers[nest.buffer_of[copy.op->body->tensor]];
    return loops::flatten(buffer, loops::physical_indices(nest, buffer, std::move(coordinates)));
  }

  /// Empty if it is not as many equally long pieces of rows.
  [[nodiscard]] std::optional<Piece> piece_of(const loops::IndexExpr& offset,
                                              const std::vector<const loops::Loop*>& inside) const {
    std::vector<std::pair<std::int64_t, std::int64_t>> moves;  // stride and extent
    for (const loops::Loop* loop : inside) {
      const std::optional<std::int64_t> stride = loops::stride(offset, loop->var);
      if (!stride || *stride < 0) return std::nullopt;
      if (*stride > 0 && plan_.extent(loop->var) > 1) moves.emplace_back(*stride, plan_.extent(loop->var));
    }
    std::ranges::sort(moves);
    Piece piece;
    for (const auto& [stride, extent] : moves) {
      if (piece.rows == 1 && stride == piece.width) {
        piece.width *= extent;
      } else if (piece.rows == 1) {
        piece.row = stride;
        piece.rows = extent;
      } else if (stride == piece.row * piece.rows) {
        piece.rows *= extent;
      } else {
        return std::nullopt;
      }
    }
    return piece.rows > 1 ? std::optional(piece) : std::nullopt;
  }

  /// What `f` returns while the loops that go from block to block are bound to their next iteration. After the last one
  /// comes the first, with the next iteration of the loop around it, and after the last of all, the first of the next
  /// run.
  template <class F>
  [[nodiscard]] Affine in_next_iteration(const Operand& operand, const F& f) {
    llvm::IRBuilder<>& builder = context_.builder;
    std::vector<std::pair<loops::Var, Binding>> saved;
    llvm::Value* carry = builder.getInt64(1);
    for (const loops::Loop* loop : std::views::reverse(operand.blocks)) {
      if (!operand.offset.uses(loop->var)) continue;
      Binding& binding = context_.bindings[loop->var];
      saved.emplace_back(loop->var, binding);
      llvm::Value* const next = builder.CreateAdd(values_.emit(loops::IndexExpr::variable(loop->var)), carry);
      llvm::Value* const last =
          builder.CreateICmpEQ(next, builder.getInt64(static_cast<std::uint64_t>(plan_.extent(loop->var))));
      binding = context_.scalar(builder.CreateSelect(last, builder.getInt64(0), next));
      carry = builder.CreateZExt(last, builder.getInt64Ty());
    }
    const Affine result = f();
    for (const auto& [var, binding] : saved) context_.bindings[var] = binding;
    return result;
  }

  /// `aligned`: each of the rows begins with a line.
  void emit_rows(loops::BufferId source, const Affine& first, const Piece& piece, std::int64_t rows, bool aligned) {
    const std::int64_t bytes = memory_.element_bytes(source);
    std::vector<std::int64_t> elements;
    for (std::int64_t e = 0; e < piece.width; e += line_bytes / bytes) elements.push_back(e);
    if (!aligned && piece.width > 1) elements.push_back(piece.width - 1);
    const auto lines = static_cast<std::int64_t>(elements.size());
    for (std::int64_t row = 0; row < rows && (row + 1) * lines <= most_lines; ++row) {
      for (const std::int64_t element : elements) {
        Affine at = first;
        at.constant += row * piece.row + element;
        memory_.prefetch(source, at, Cache::L2);
      }
    }
  }

  EmissionContext& context_;
  const EmissionPlan& plan_;
  ValueEmitter& values_;
  MemoryEmitter& memory_;
  std::map<loops::BufferId, const loops::Statement*> copies_;
  std::map<loops::BufferId, std::size_t> loops_around_;
};

}  // namespace tunewright::codegen::llvm_backend
