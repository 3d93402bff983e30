// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "tunewright/codegen/llvm/loop_chain.hpp"
#include "tunewright/codegen/llvm/statement_emitter.hpp"
#include "tunewright/loops/tensor_operands.hpp"
#include "tunewright/schedule/intrinsics.hpp"

/// Tensor instructions of x86 in LLVM IR.
namespace tunewright::codegen::llvm_backend {

/// Dot products of short rows: each lane of 32 bits, 16 or 8 of them, adds the products of four bytes, or of two 16-bit
/// numbers, with those of its own column.
class TensorEmitter : EmissionParts {
 public:
  TensorEmitter(EmissionContext& context, ValueEmitter& values, MemoryEmitter& memory, ExpressionEmitter& expressions,
                StatementEmitter& statements)
      : EmissionParts(context, values, memory, expressions), statements_(statements) {}

  /// Emits the instruction for `loop`. Returns false, without emitting anything, if guards or layouts of operands do
  /// not allow it; the loops are then emitted as loops.
  [[nodiscard]] bool emit(const loops::Loop& loop) {
    if (loop.intrinsic->m != 1) return false;
    const std::optional<RowProduct> product = row_product(loop);
    if (!product) return false;
    const loops::Statement& s = *product->statement;
    const Binding saved_column = std::exchange(context_.bindings[product->column], context_.first_value());
    const Binding saved_depth = std::exchange(context_.bindings[product->depth], context_.first_value());
    const StatementConditions c =
        statements_.conditions(s, product->clamp ? GuardUse::ClampSpatial : GuardUse::Evaluate);
    if (!c.never) statements_.branch_on(c.uniform, [&] { add_row(*loop.intrinsic, *product); });
    statements_.release_clamped(s);
    context_.bindings[product->column] = saved_column;
    context_.bindings[product->depth] = saved_depth;
    return true;
  }

  /// The offset of the factor that all rows of an open tile share, if its products can leave out what the flipped bits
  /// of the other factor add (see `dot_of_bytes`) until the tile is closed; otherwise null. The same statements then
  /// compute all rows: none may be skipped, as at the border of an image.
  [[nodiscard]] const loops::IndexExpr* shared_columns(const AccumulatorTile& tile) const {
    const loops::Statement& s = *tile.statement;
    const StatementPlan& plan = plan_.of(s);
    const auto loop = std::find_if(tile.loops.begin(), tile.loops.end(),
                                   [this](const loops::Loop* l) { return plan_.has_instruction(*l); });
    if (tile.partial || loop == tile.loops.end() || (*loop)->intrinsic->unit != TensorUnit::Avx512Vnni) return nullptr;
    const std::optional<RowProduct> product = row_product(**loop);
    if (!product || product->row->type != product->columns->type) return nullptr;
    for (std::size_t g = 0; g < s.guards.size(); ++g) {
      const bool is_clamped = product->clamp && plan.clamp_variables[g] != no_variable;
      const bool is_of_term = s.guards[g].axis != loops::Guard::padding && !plan.guards_target[g];
      if (!is_clamped && !is_of_term && !context_.is_satisfied(s.guards[g])) return nullptr;
    }
    return &access(*product, product->columns).offset;
  }

  /// Stores a copy of columns in the order in which an instruction reads them: the elements of a column that meet in
  /// one product are adjacent and have 32 bits together; those of the next column follow. Returns false, without
  /// emitting anything, if `loop` does something else or guards cut it.
  [[nodiscard]] bool emit_interleaved(const loops::Loop& loop) {
    const loops::Statement* copied = only_statement(loop);
    if (copied == nullptr || copied->kind != loops::Statement::Kind::Assign || context_.lanes != 1) return false;
    const loops::Statement& s = *copied;
    const std::vector<const loops::Loop*> both = chain(loop);
    if (both.size() != 2 || loop.kind == loops::LoopKind::Parallel) return false;
    const loops::Var depth = both[1]->var;
    const std::int64_t count = plan_.extent(depth);
    const auto size = static_cast<std::int64_t>(program::size_in_bytes(nest_.buffers[s.target].type));
    const loops::IndexExpr& offset = plan_.of(s).target.offset;
    if (size == 4 || count * size != 4 || !schedule::reads_columns(plan_.extent(loop.var)) ||
        loops::stride(offset, depth) != std::optional<std::int64_t>(1) ||
        loops::stride(offset, loop.var) != std::optional<std::int64_t>(count))
      return false;
    if (!values_.always_holds(s.guards)) return false;
    const Binding saved_column = std::exchange(context_.bindings[loop.var], context_.first_value());
    const Binding saved_depth = std::exchange(context_.bindings[depth], context_.first_value());
    const Affine at = values_.affine(plan_.of(s).target.offset);
    context_.lanes = static_cast<unsigned>(plan_.extent(loop.var));
    context_.bindings[loop.var] = context_.lanes_from(0);
    std::vector<llvm::Value*> rows;
    for (std::int64_t r = 0; r < count; ++r) {
      context_.bindings[depth] = context_.constant(r);
      rows.push_back(
          numbers_.to_memory(values_.widen(expressions_.evaluate(s, false, {})), nest_.buffers[s.target].type));
    }
    context_.lanes = 1;
    context_.bindings[loop.var] = saved_column;
    context_.bindings[depth] = saved_depth;
    memory_.store_bits(s.target, at, interleaved(rows));
    return true;
  }

 private:
  /// A row of a product that one instruction computes.
  struct RowProduct {
    const loops::Statement* statement = nullptr;
    loops::Var column = 0;
    loops::Var depth = 0;
    bool clamp = false;  ///< reads beyond the end of an axis read its last element
    const program::ExprNode* row = nullptr;
    const program::ExprNode* columns = nullptr;
    bool stored_by_column = false;  ///< otherwise, terms of `columns` are `term_distance` elements apart
    std::int64_t term_distance = 0;
  };
  [[nodiscard]] const Access& access(const RowProduct& p, const program::ExprNode* read) const {
    const StatementPlan& plan = plan_.of(*p.statement);
    return (p.clamp ? plan.clamped_loads : plan.loads).at(read);
  }

  /// The product that `loop` computes; empty if the instruction cannot replace the loops.
  [[nodiscard]] std::optional<RowProduct> row_product(const loops::Loop& loop) const {
    const loops::Statement* s = only_statement(loop);
    if (s == nullptr || context_.lanes != 1) return std::nullopt;
    const std::optional<schedule::Product> factors = schedule::product_of(*s->op);
    if (!factors) return std::nullopt;
    const schedule::TensorIntrinsic& intrinsic = *loop.intrinsic;
    const StatementPlan& plan = plan_.of(*s);
    RowProduct p;
    p.statement = s;
    p.column = loop.var;
    p.depth = chain(loop).back()->var;
    p.clamp = (statements_.uses_registers_for(*s) || (s->may_overcompute && plan.target_holds_all)) &&
              plan.loads_can_be_clamped;
    // Columns beyond the end of an axis of the target may be computed if the first column is inside: they are not
    // stored.
    const std::size_t rank = nest_.buffers[s->target].shape.size();
    const bool whole = decided_at_first(*s, p.column, intrinsic.n, 0);
    if ((!whole && !(p.clamp && decided_at_first(*s, p.column, intrinsic.n, rank))) ||
        !decided_at_first(*s, p.depth, intrinsic.k, 0))
      return std::nullopt;
    // Nothing is executed if a guard fails, so everything that is read exists.
    const bool meets_guards = !p.clamp || s->guards.empty();
    const auto stride_of = [&](const program::ExprNode* read, loops::Var var) -> std::optional<std::int64_t> {
      const Access& read_at = access(p, read);
      if (!(whole && (read_at.inside || meets_guards)) && !within_memory(read_at)) return std::nullopt;
      return loops::stride(read_at.offset, var);
    };
    // The factor that is equal in all lanes is the row.
    const bool swapped = stride_of(factors->first, p.column) != 0;
    p.row = swapped ? factors->second : factors->first;
    p.columns = swapped ? factors->first : factors->second;
    const std::optional<std::int64_t> term_distance = stride_of(p.columns, p.depth);
    if (stride_of(p.row, p.column) != 0 || stride_of(p.row, p.depth) != 1 || !term_distance) return std::nullopt;
    p.term_distance = *term_distance;
    const std::optional<std::int64_t> column_distance = stride_of(p.columns, p.column);
    p.stored_by_column = column_distance == intrinsic.k && term_distance == 1;
    if (!p.stored_by_column && column_distance != 1) return std::nullopt;
    if (!loops::stride(plan.target.offset, p.column)) return std::nullopt;
    return p;
  }

  /// Adds a row of products to the target in registers or in memory.
  void add_row(const schedule::TensorIntrinsic& intrinsic, const RowProduct& p) {
    const loops::Statement& s = *p.statement;
    const Access& columns = access(p, p.columns);
    llvm::Value* a = splat_row(access(p, p.row), intrinsic);
    llvm::Value* b = p.stored_by_column ? load_bits_at(columns, words(intrinsic.n))
                                        : interleaved_rows(columns, p.term_distance, intrinsic);
    context_.lanes = static_cast<unsigned>(intrinsic.n);
    context_.bindings[p.column] = context_.lanes_from(0);
    const Affine at = values_.affine(plan_.of(s).target.offset);
    const auto add = [&](llvm::Value* sum) {
      switch (intrinsic.unit) {
        case TensorUnit::Avx512Bf16: return dot_of_pairs(sum, a, b);
        case TensorUnit::Avx2: return dot_of_widened_bytes(sum, a, p.row->type, b, p.columns->type);
        default: return dot_of_bytes(sum, a, p.row->type, b, p.columns->type);
      }
    };
    const ColumnSum* kept = statements_.uses_registers_for(s) ? statements_.column_sum_at(at) : nullptr;
    if (kept != nullptr) {
      const bool has_sign = p.row->type == program::ScalarType::Int8;
      const auto update = [&](llvm::AllocaInst* slot, llvm::Value* row) {
        llvm::Value* sum = builder_.CreateLoad(slot->getAllocatedType(), slot);
        builder_.CreateStore(has_sign ? dot(sum, row, b) : dot(sum, b, row), slot);
      };
      update(statements_.register_at(at), builder_.CreateXor(a, sign_bits()));
      if (kept->is_added_here) update(kept->slot, sign_bits());
    } else if (statements_.uses_registers_for(s)) {
      llvm::AllocaInst* slot = statements_.register_at(at);
      builder_.CreateStore(add(builder_.CreateLoad(slot->getAllocatedType(), slot)), slot);
    } else {
      memory_.store(s.target, at, add(memory_.load(s.target, at, {})), nullptr);
    }
    context_.lanes = 1;
    context_.bindings[p.column] = context_.first_value();
  }

  /// Whether every guard that depends on `var` holds for all of its `extent` values if it holds for the first. Values
  /// beyond the ends of the first `free_axes` axes are harmless.
  [[nodiscard]] bool decided_at_first(const loops::Statement& s, loops::Var var, std::int64_t extent,
                                      std::size_t free_axes) const {
    return std::all_of(s.guards.begin(), s.guards.end(), [&](const loops::Guard& guard) {
      return context_.is_satisfied(guard) ||
             loops::decided_at_first(guard, var, extent, guard.axis < free_axes,
                                     [this](loops::Var v) { return values_.range_of(v); });
    });
  }
  /// Whether an access stays in its buffer's memory, possibly at meaningless elements.
  [[nodiscard]] bool within_memory(const Access& access) const {
    const program::Range offsets = values_.range(access.offset);
    return offsets.min >= 0 && offsets.max < nest_.buffers[access.buffer].elements();
  }

  [[nodiscard]] llvm::Type* words(std::int64_t count) {
    return llvm::FixedVectorType::get(builder_.getInt32Ty(), static_cast<unsigned>(count));
  }

  [[nodiscard]] llvm::Value* load_bits_at(const Access& access, llvm::Type* type) {
    return memory_.load_bits(access.buffer, values_.affine(access.offset), type);
  }
  /// Four bytes of a row, equal in every lane.
  [[nodiscard]] llvm::Value* splat_row(const Access& access, const schedule::TensorIntrinsic& intrinsic) {
    return builder_.CreateVectorSplat(static_cast<unsigned>(intrinsic.n), load_bits_at(access, builder_.getInt32Ty()));
  }
  /// Lane j gets element j of each of k rows, which are `distance` elements apart.
  [[nodiscard]] llvm::Value* interleaved_rows(const Access& access, std::int64_t distance,
                                              const schedule::TensorIntrinsic& intrinsic) {
    llvm::Type* row_type = llvm::FixedVectorType::get(numbers_.memory_type(nest_.buffers[access.buffer].type),
                                                      static_cast<unsigned>(intrinsic.n));
    std::vector<llvm::Value*> rows;
    for (std::int64_t r = 0; r < intrinsic.k; ++r) {
      Affine at = values_.affine(access.offset);
      at.constant += r * distance;
      rows.push_back(memory_.load_bits(access.buffer, at, row_type));
    }
    return builder_.CreateBitCast(interleaved(rows), words(intrinsic.n));
  }
  /// Element j of each of two or four rows, then element j + 1 of each.
  [[nodiscard]] llvm::Value* interleaved(const std::vector<llvm::Value*>& rows) {
    const auto columns = static_cast<int>(llvm::cast<llvm::FixedVectorType>(rows[0]->getType())->getNumElements());
    const auto count = static_cast<int>(rows.size());
    llvm::SmallVector<int, 32> both;
    for (int lane = 0; lane < 2 * columns; ++lane) both.push_back(lane);
    llvm::SmallVector<int, 64> order;
    for (int place = 0; place < columns * count; ++place) order.push_back(place % count * columns + place / count);
    if (count == 2) return builder_.CreateShuffleVector(rows[0], rows[1], order);
    return builder_.CreateShuffleVector(builder_.CreateShuffleVector(rows[0], rows[1], both),
                                        builder_.CreateShuffleVector(rows[2], rows[3], both), order);
  }

  [[nodiscard]] llvm::Value* dot_of_pairs(llvm::Value* sum, llvm::Value* a, llvm::Value* b) {
    llvm::Type* pairs = llvm::FixedVectorType::get(builder_.getBFloatTy(), 32);
    return builder_.CreateIntrinsic(llvm::Intrinsic::x86_avx512bf16_dpbf16ps_512, {},
                                    {sum, builder_.CreateBitCast(a, pairs), builder_.CreateBitCast(b, pairs)});
  }

  [[nodiscard]] llvm::Value* dot(llvm::Value* onto, llvm::Value* without_sign, llvm::Value* with_sign) {
    return builder_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_vpdpbusd_512, {}, {onto, without_sign, with_sign});
  }
  /// The first bit of each byte: 128 without, -128 with a sign.
  [[nodiscard]] llvm::Value* sign_bits() { return llvm::ConstantInt::get(words(16), 0x80808080U); }

  /// The instruction multiplies unsigned by signed bytes. Flipping the first bit adds 128 to a signed byte, or
  /// subtracts it from an unsigned one, and so as many times the sum of the other factor to the product, which is the
  /// same for every row.
  [[nodiscard]] llvm::Value* dot_of_bytes(llvm::Value* sum, llvm::Value* a, program::ScalarType a_type, llvm::Value* b,
                                          program::ScalarType b_type) {
    const bool a_signed = a_type == program::ScalarType::Int8;
    const bool b_signed = b_type == program::ScalarType::Int8;
    if (a_signed != b_signed) return a_signed ? dot(sum, b, a) : dot(sum, a, b);
    llvm::Value* flipped = builder_.CreateXor(a, sign_bits());
    llvm::Value* none = llvm::Constant::getNullValue(words(16));
    if (a_signed) return builder_.CreateSub(dot(sum, flipped, b), dot(none, sign_bits(), b));
    return builder_.CreateSub(dot(sum, b, flipped), dot(none, b, sign_bits()));
  }

  /// `vpmaddwd` multiplies pairs of 16-bit integers and adds both products, which is exact for bytes: bytes of even
  /// place are one factor, those of odd place another. Both are widened once for all products they take part in.
  [[nodiscard]] llvm::Value* dot_of_widened_bytes(llvm::Value* sum, llvm::Value* a, program::ScalarType a_type,
                                                  llvm::Value* b, program::ScalarType b_type) {
    for (const bool odd : {false, true}) {
      llvm::Value* products = builder_.CreateIntrinsic(llvm::Intrinsic::x86_avx2_pmadd_wd, {},
                                                       {widened(a, a_type, odd), widened(b, b_type, odd)});
      sum = builder_.CreateAdd(sum, products);
    }
    return sum;
  }
  /// Every second byte as a 16-bit integer: `schedule::widening_operations` for both halves.
  [[nodiscard]] llvm::Value* widened(llvm::Value* bytes, program::ScalarType type, bool odd) {
    llvm::Value* pairs = builder_.CreateBitCast(bytes, llvm::FixedVectorType::get(builder_.getInt16Ty(), 16));
    if (type == program::ScalarType::UInt8) {
      if (odd) return builder_.CreateLShr(pairs, 8);
      return builder_.CreateAnd(pairs, llvm::ConstantInt::get(pairs->getType(), 0xFF));
    }
    return builder_.CreateAShr(odd ? pairs : builder_.CreateShl(pairs, 8), 8);
  }

  StatementEmitter& statements_;
};

}  // namespace tunewright::codegen::llvm_backend
