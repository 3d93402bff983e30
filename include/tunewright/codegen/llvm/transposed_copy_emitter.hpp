// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llvm/ADT/SmallVector.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "tunewright/codegen/llvm/loop_chain.hpp"
#include "tunewright/codegen/llvm/statement_emitter.hpp"
#include "tunewright/loops/tensor_operands.hpp"

/// Square tiles whose operands are transposed relative to their target.
namespace tunewright::codegen::llvm_backend {

/// A vectorised loop with strided reads needs one load per lane. If the surrounding loop runs along the rows of the
/// operand, and both loops have as many iterations as a vector has lanes, the tile is instead computed row by row of
/// its operands, transposed in registers, and stored row by row of its target: for eight lanes, 8 loads, 24 shuffles
/// and 8 stores instead of 64 loads, 56 insertions and 8 stores. The vectorised loop may also have a few vectors: so
/// many squares are transposed, and each row of the target is stored at once, which completes its cache lines.
class TransposedCopyEmitter : EmissionParts {
 public:
  using EmissionParts::EmissionParts;

  /// Emits `loop` and the vectorised loop inside it. Returns false, without emitting anything, if they are not such a
  /// tile.
  [[nodiscard]] bool emit(const loops::Loop& loop) {
    const loops::Statement* s = only_statement(loop);
    if (s == nullptr || s->kind != loops::Statement::Kind::Assign || context_.lanes != 1) return false;
    const std::vector<const loops::Loop*> both = chain(loop);
    if (both.size() != 2 || loop.kind == loops::LoopKind::Parallel || both[1]->kind != loops::LoopKind::Vectorized)
      return false;
    const loops::Var along_operand = loop.var, along_target = both[1]->var;
    if (!is_tile(*s, along_operand, along_target)) return false;

    const auto lanes = static_cast<unsigned>(lanes_of_float());
    const auto width = static_cast<unsigned>(plan_.extent(along_target));
    const Binding saved_operand = context_.bindings[along_operand], saved_target = context_.bindings[along_target];
    context_.lanes = lanes;
    context_.bindings[along_operand] = context_.lanes_from(0);
    llvm::SmallVector<Rows, 4> squares;
    for (unsigned start = 0; start < width; start += lanes) {
      Rows rows;
      for (unsigned row = 0; row < lanes; ++row) {
        context_.bindings[along_target] = context_.constant(start + row);
        rows.push_back(values_.widen(expressions_.evaluate(*s, false, {})));
      }
      squares.push_back(transposed(rows));
    }
    const StatementPlan& plan = plan_.of(*s);
    for (unsigned column = 0; column < lanes; ++column) {
      context_.bindings[along_operand] = context_.constant(column);
      for (unsigned square = 0; square < squares.size(); ++square) {
        context_.bindings[along_target] = context_.lanes_from(square * lanes);
        memory_.store(s->target, values_.affine(plan.target.offset), squares[square][column], nullptr,
                      plan.bypasses_caches);
      }
    }
    context_.lanes = 1;
    context_.bindings[along_operand] = saved_operand;
    context_.bindings[along_target] = saved_target;
    return true;
  }

 private:
  using Rows = llvm::SmallVector<llvm::Value*, 16>;
  static constexpr unsigned block = 4;  ///< lanes of 128 bits, within which most shuffles operate

  [[nodiscard]] std::int64_t lanes_of_float() const { return context_.target.vector_lanes(sizeof(float)); }

  [[nodiscard]] bool is_tile(const loops::Statement& s, loops::Var along_operand, loops::Var along_target) const {
    const program::ScalarType type = nest_.buffers[s.target].type;
    const std::int64_t lanes = lanes_of_float(), width = plan_.extent(along_target);
    if (type != program::ScalarType::Float32 || width % lanes != 0 || width > loops::most_transposed_squares * lanes ||
        plan_.extent(along_operand) != lanes ||
        loops::stride(plan_.of(s).target.offset, along_target) != std::optional<std::int64_t>(1))
      return false;
    bool across = false;
    for (const auto& [node, access] : plan_.of(s).loads) {
      const auto here = loops::stride(access.offset, along_operand), there = loops::stride(access.offset, along_target);
      if (!here || !there || *here < 0 || *here > 1 || nest_.buffers[access.buffer].type != type) return false;
      across = across || loops::runs_across(access.offset, along_operand, along_target);
    }
    return across && values_.always_holds(s.guards);
  }

  /// Interleaves two vectors in groups of `unit` lanes within each block: the first halves of their blocks, or the
  /// second.
  [[nodiscard]] llvm::Value* interleaved(llvm::Value* a, llvm::Value* b, unsigned unit, bool second) {
    llvm::SmallVector<int, 16> mask;
    const unsigned lanes = context_.lanes;
    for (unsigned start = second ? block / 2 : 0; start < lanes; start += block) {
      for (unsigned part = 0; part < block / 2; part += unit) {
        for (const unsigned from : {0U, lanes}) {
          for (unsigned lane = 0; lane < unit; ++lane) mask.push_back(static_cast<int>(from + start + part + lane));
        }
      }
    }
    return builder_.CreateShuffleVector(a, b, mask);
  }

  /// Block number `index` of the vectors `first`, `first` + `step`, ...
  [[nodiscard]] llvm::Value* gathered_blocks(const Rows& vectors, unsigned first, unsigned step, unsigned index) {
    const auto block_of = [&](unsigned v) {
      llvm::SmallVector<int, block> mask;
      for (unsigned lane = 0; lane < block; ++lane) mask.push_back(static_cast<int>(index * block + lane));
      return builder_.CreateShuffleVector(vectors[v], mask);
    };
    Rows parts{block_of(first)};
    for (unsigned v = first + step; v < vectors.size(); v += step) parts.push_back(block_of(v));
    while (parts.size() > 1) {
      Rows joined;
      for (std::size_t p = 0; p < parts.size(); p += 2) {
        llvm::SmallVector<int, 16> mask;
        const auto lanes = llvm::cast<llvm::FixedVectorType>(parts[p]->getType())->getNumElements();
        for (unsigned lane = 0; lane < 2 * lanes; ++lane) mask.push_back(static_cast<int>(lane));
        joined.push_back(builder_.CreateShuffleVector(parts[p], parts[p + 1], mask));
      }
      parts = std::move(joined);
    }
    return parts.front();
  }

  /// Groups of four rows become the columns of their blocks; then blocks of one column are joined.
  [[nodiscard]] Rows transposed(const Rows& rows) {
    Rows columns_of_blocks;
    for (std::size_t r = 0; r < rows.size(); r += block) {
      llvm::Value* low_01 = interleaved(rows[r], rows[r + 1], 1, false);
      llvm::Value* high_01 = interleaved(rows[r], rows[r + 1], 1, true);
      llvm::Value* low_23 = interleaved(rows[r + 2], rows[r + 3], 1, false);
      llvm::Value* high_23 = interleaved(rows[r + 2], rows[r + 3], 1, true);
      columns_of_blocks.push_back(interleaved(low_01, low_23, 2, false));
      columns_of_blocks.push_back(interleaved(low_01, low_23, 2, true));
      columns_of_blocks.push_back(interleaved(high_01, high_23, 2, false));
      columns_of_blocks.push_back(interleaved(high_01, high_23, 2, true));
    }
    Rows columns;
    for (unsigned column = 0; column < rows.size(); ++column)
      columns.push_back(gathered_blocks(columns_of_blocks, column % block, block, column / block));
    return columns;
  }
};

}  // namespace tunewright::codegen::llvm_backend
