// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llvm/IR/IntrinsicsX86.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tunewright/codegen/llvm_tiles.hpp"
#include "tunewright/schedule/intrinsics.hpp"

/// Tensor instructions of x86 in LLVM IR.
namespace tunewright::codegen::detail {

/// What LLVM must be told so that it selects the instructions of the target's tensor units.
[[nodiscard]] inline std::string tensor_features(const Target& target) {
  std::string features;
  const auto add = [&](TensorUnit unit, const char* text) {
    if (target.has(unit)) features += (features.empty() ? "" : ",") + std::string(text);
  };
  add(TensorUnit::Avx512Vnni, "+avx512vnni");
  add(TensorUnit::Avx512Bf16, "+avx512bf16");
  return features;
}

/// Dot products of short rows: each of 16 lanes of 32 bits adds the products of four bytes, or of two numbers of 16
/// bits, with those of its own column.
class TensorEmitter : public TileEmitter {
 public:
  using TileEmitter::TileEmitter;

 protected:
  /// Emits the instruction that stands for `loop`. False, with nothing emitted, where guards or layouts of operands
  /// do not allow it; the loops then run as they are.
  [[nodiscard]] bool emit_instruction(const loops::Loop& loop) {
    const loops::Statement* s = only_statement(loop);
    if (s == nullptr || lanes_ != 1) return false;
    const std::optional<schedule::Product> product = schedule::product_of(*s->op);
    if (!product) return false;
    const loops::Var column = loop.var;
    const loops::Var depth = chain(loop).back()->var;
    const StatementPlan& plan = plan_.of(*s);
    const bool in_tile = tile_ != nullptr && tile_->statement == s;
    const bool clamp = (in_tile || (s->may_overcompute && plan.target_holds_all)) && plan.loads_can_be_clamped;
    // Columns beyond an axis of the target may be computed as long as the first is not: nothing of them is stored.
    const std::size_t rank = nest_.buffers[s->target].shape.size();
    const bool whole = decided_at_first(*s, column, loop.intrinsic->n, 0);
    if ((!whole && !(clamp && decided_at_first(*s, column, loop.intrinsic->n, rank))) ||
        !decided_at_first(*s, depth, loop.intrinsic->k, 0))
      return false;
    const auto& loads = clamp ? plan.clamped_loads : plan.loads;
    const auto strides = [&](const program::ExprNode* read) {
      const Access& access = loads.at(read);
      return (access.inside && whole) || within_memory(access) ? Strides{stride(access.offset, column), stride(access.offset, depth)} : Strides{};
    };
    // The factor that is the same in all lanes is the row.
    const bool swapped = strides(product->first).column != 0;
    const program::ExprNode* row = swapped ? product->second : product->first;
    const program::ExprNode* columns = swapped ? product->first : product->second;
    const Strides of_row = strides(row);
    const Strides of_columns = strides(columns);
    const std::int64_t k = loop.intrinsic->k;
    if (of_row.column != 0 || of_row.depth != 1 || !of_columns.depth) return false;
    const bool stored_by_column = of_columns.column == k && of_columns.depth == 1;
    if (!stored_by_column && of_columns.column != 1) return false;
    if (!stride(plan.target.offset, column)) return false;

    const Binding saved_column = bindings_[column];
    const Binding saved_depth = bindings_[depth];
    const Binding first{Binding::Kind::Constant, 0, nullptr, false, depth_};
    bindings_[column] = bindings_[depth] = first;
    const Conditions c = conditions(*s, clamp, false);
    const auto emit_all = [&] {
      llvm::Value* a = splat_row(loads.at(row));
      llvm::Value* b = stored_by_column ? load_bits_at(loads.at(columns), words())
                                        : interleaved_rows(loads.at(columns), *of_columns.depth, k);
      lanes_ = static_cast<unsigned>(loop.intrinsic->n);
      bindings_[column] = {Binding::Kind::Lanes, 0, nullptr, false, depth_};
      const Affine at = affine(plan.target.offset);
      const auto add = [&](llvm::Value* sum) {
        return loop.intrinsic->unit == TensorUnit::Avx512Bf16 ? dot_of_pairs(sum, a, b)
                                                              : dot_of_bytes(sum, a, row->type, b, columns->type);
      };
      if (in_tile) {
        llvm::AllocaInst* slot = tile_->registers.at({at.constant, lanes_});
        builder_.CreateStore(add(builder_.CreateLoad(slot->getAllocatedType(), slot)), slot);
      } else {
        store(s->target, at, add(load(s->target, at, {})), nullptr);
      }
      lanes_ = 1;
      bindings_[column] = first;
    };
    if (!c.never) branch_on(c.uniform, emit_all);
    for (const loops::Var stand_in : plan.clamp_variables) {
      if (stand_in != no_variable) bindings_[stand_in] = {};
    }
    bindings_[column] = saved_column;
    bindings_[depth] = saved_depth;
    return true;
  }

  ~TensorEmitter() = default;

 private:
  /// Elements from one column, and one step of the sum, to the next; nothing where the distance varies.
  struct Strides {
    std::optional<std::int64_t> column;
    std::optional<std::int64_t> depth;
  };
  [[nodiscard]] static std::optional<std::int64_t> stride(const loops::IndexExpr& offset, loops::Var var) {
    for (const loops::IndexExpr::Term& term : offset.terms()) {
      if (term.kind != loops::IndexExpr::Kind::Variable && term.numerator->uses(var)) return std::nullopt;
    }
    return offset.coefficient(var);
  }
  /// Whether every guard that `var` takes part in holds for all of its `extent` values if for the first: always, or
  /// because the bound is a multiple of `extent`. Guards of the first `free_axes` axes are let off.
  [[nodiscard]] bool decided_at_first(const loops::Statement& s, loops::Var var, std::int64_t extent,
                                      std::size_t free_axes) const {
    for (const loops::Guard& guard : s.guards) {
      if (is_satisfied(guard) || !guard.value.uses(var)) continue;
      const program::Range values = range(guard.value);
      const bool below = guard.below && values.min < 0;
      if (!below && (!guard.above || values.max < guard.extent)) continue;
      const bool counts_up = !below && stride(guard.value, var) == std::optional<std::int64_t>(1);
      if (counts_up && guard.axis < free_axes) continue;
      if (!counts_up || guard.extent % extent != 0 || !is_multiple(guard.value, var, extent)) return false;
    }
    return true;
  }
  /// Whether all of `e` but `var` is a multiple of `factor`.
  [[nodiscard]] static bool is_multiple(const loops::IndexExpr& e, loops::Var var, std::int64_t factor) {
    if (e.constant() % factor != 0) return false;
    for (const loops::IndexExpr::Term& term : e.terms()) {
      const bool own = term.kind == loops::IndexExpr::Kind::Variable && term.var == var;
      if (!own && term.coefficient % factor != 0) return false;
    }
    return true;
  }
  /// Whether an access stays in its buffer's memory, though perhaps in elements that stand for nothing.
  [[nodiscard]] bool within_memory(const Access& access) const {
    const program::Range offsets = range(access.offset);
    return offsets.min >= 0 && offsets.max < nest_.buffers[access.buffer].elements();
  }

  [[nodiscard]] llvm::Type* words() { return llvm::FixedVectorType::get(builder_.getInt32Ty(), 16); }
  [[nodiscard]] llvm::Value* word_splat(std::uint32_t value) { return llvm::ConstantInt::get(words(), value); }

  [[nodiscard]] llvm::Value* load_bits_at(const Access& access, llvm::Type* type) {
    return load_bits(access.buffer, affine(access.offset), type);
  }
  /// Four bytes of a row, the same in every lane.
  [[nodiscard]] llvm::Value* splat_row(const Access& access) {
    return builder_.CreateVectorSplat(16, load_bits_at(access, builder_.getInt32Ty()));
  }
  /// Lane j gets element j of each of `k` rows that are `distance` elements apart.
  [[nodiscard]] llvm::Value* interleaved_rows(const Access& access, std::int64_t distance, std::int64_t k) {
    llvm::Type* row_type = llvm::FixedVectorType::get(memory_type(nest_.buffers[access.buffer].type), 16);
    std::vector<llvm::Value*> rows;
    for (std::int64_t r = 0; r < k; ++r) {
      Affine at = affine(access.offset);
      at.constant += r * distance;
      rows.push_back(load_bits(access.buffer, at, row_type));
    }
    llvm::SmallVector<int, 32> both;
    for (int lane = 0; lane < 32; ++lane) both.push_back(lane);
    llvm::SmallVector<int, 64> order;
    const int width = static_cast<int>(k);
    for (int place = 0; place < 16 * width; ++place) order.push_back(place % width * 16 + place / width);
    llvm::Value* mixed = nullptr;
    if (k == 2) {
      mixed = builder_.CreateShuffleVector(rows[0], rows[1], order);
    } else {
      mixed = builder_.CreateShuffleVector(builder_.CreateShuffleVector(rows[0], rows[1], both),
                                           builder_.CreateShuffleVector(rows[2], rows[3], both), order);
    }
    return builder_.CreateBitCast(mixed, words());
  }

  [[nodiscard]] llvm::Value* dot_of_pairs(llvm::Value* sum, llvm::Value* a, llvm::Value* b) {
    llvm::Type* pairs = llvm::FixedVectorType::get(builder_.getBFloatTy(), 32);
    return builder_.CreateIntrinsic(llvm::Intrinsic::x86_avx512bf16_dpbf16ps_512, {},
                                    {sum, builder_.CreateBitCast(a, pairs), builder_.CreateBitCast(b, pairs)});
  }

  /// The instruction multiplies bytes without a sign by bytes with one. Flipping the first bit adds 128 to a signed
  /// byte, or takes it from an unsigned one; 128 times the sum of the other factor makes up for it, and is the same
  /// for every row.
  [[nodiscard]] llvm::Value* dot_of_bytes(llvm::Value* sum, llvm::Value* a, program::ScalarType a_type, llvm::Value* b,
                                          program::ScalarType b_type) {
    const auto dot = [&](llvm::Value* onto, llvm::Value* without_sign, llvm::Value* with_sign) {
      return builder_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_vpdpbusd_512, {}, {onto, without_sign, with_sign});
    };
    const bool a_signed = a_type == program::ScalarType::Int8;
    const bool b_signed = b_type == program::ScalarType::Int8;
    if (a_signed != b_signed) return a_signed ? dot(sum, b, a) : dot(sum, a, b);
    llvm::Value* flipped = builder_.CreateXor(a, word_splat(0x80808080U));
    if (a_signed) {
      llvm::Value* excess = dot(word_splat(0), word_splat(0x80808080U), b);
      return builder_.CreateSub(dot(sum, flipped, b), excess);
    }
    llvm::Value* missing = builder_.CreateShl(dot(word_splat(0), b, word_splat(0x40404040U)), 1);
    return builder_.CreateAdd(dot(sum, b, flipped), missing);
  }
};

}  // namespace tunewright::codegen::detail
