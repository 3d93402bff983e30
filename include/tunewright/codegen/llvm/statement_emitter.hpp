// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tunewright/codegen/llvm/emission_parts.hpp"

/// Statements in LLVM IR, under their guards. Their targets are in memory or, during reductions, in registers.
namespace tunewright::codegen::llvm_backend {

/// The sum of a factor that all rows of a tile share, see `TensorEmitter::shared_columns`.
struct ColumnSum {
  llvm::AllocaInst* slot = nullptr;
  bool is_added_here = false;  ///< by this register's products, for all registers of the same columns
};

/// Elements of a target that are in registers across reduction loops; key: the constant part of the offset, and the
/// number of lanes.
struct AccumulatorTile {
  const loops::Statement* statement = nullptr;
  std::vector<const loops::Loop*> loops;  ///< around the statement, outermost first
  bool partial = false;  ///< a vectorised loop reduces: several registers are combined into one element
  std::map<std::pair<std::int64_t, unsigned>, llvm::AllocaInst*> registers;
  const loops::IndexExpr* shared_columns = nullptr;  ///< offset of the factor whose sums are kept beside the registers
  std::map<std::pair<std::int64_t, unsigned>, ColumnSum> column_sums;  ///< of the registers
};

/// Calls `f(access, load)` once for each buffer that the statement of a tile reads, with the first of its loads.
template <class F>
void for_each_read_buffer(const AccumulatorTile& tile, const EmissionPlan& plan, const F& f) {
  std::vector<loops::BufferId> seen;
  program::visit(tile.statement->op->body, [&](const program::ExprNode& node) {
    if (node.op != program::Op::Load) return;
    const Access& access = plan.of(*tile.statement).loads.at(&node);
    if (std::find(seen.begin(), seen.end(), access.buffer) != seen.end()) return;
    seen.push_back(access.buffer);
    f(access, node);
  });
}

/// Conditions of a statement at the current bindings.
struct StatementConditions {
  bool never = false;
  bool clamped = false;            ///< clamping replaces spatial guards
  llvm::Value* uniform = nullptr;  ///< for a branch
  llvm::Value* lanes = nullptr;    ///< for a mask
};

/// What becomes of a statement's guards that are not known to hold.
enum class GuardUse : std::uint8_t {
  Evaluate,      ///< every one decides whether the statement is executed
  ClampSpatial,  ///< spatial ones are replaced by binding clamp variables
  OfTargetAlone  ///< those that do not decide which elements of the target are computed are skipped
};

class StatementEmitter : EmissionParts {
 public:
  using EmissionParts::EmissionParts;

  /// Lets updates of the tile's statement add to its registers; null: to memory.
  void use_registers(const AccumulatorTile* tile) { tile_ = tile; }
  [[nodiscard]] bool uses_registers() const { return tile_ != nullptr; }
  [[nodiscard]] bool uses_registers_for(const loops::Statement& s) const {
    return tile_ != nullptr && tile_->statement == &s;
  }
  /// The register of the elements to which an update adds, at the current bindings.
  [[nodiscard]] llvm::AllocaInst* register_at(const Affine& at) const {
    return tile_->registers.at({at.constant, context_.lanes});
  }
  /// The sum of their columns; null where none is kept.
  [[nodiscard]] const ColumnSum* column_sum_at(const Affine& at) const {
    return tile_->shared_columns == nullptr ? nullptr : &tile_->column_sums.at({at.constant, context_.lanes});
  }

  void emit(const loops::Statement& s) {
    const StatementPlan& plan = plan_.of(s);
    const bool in_tile = uses_registers_for(s);
    const bool overcompute = may_write_all(s);
    if (s.kind == loops::Statement::Kind::Initialise && overcompute) {
      perform(s, {}, false);
      return;
    }
    const bool clamp = (in_tile || overcompute) && plan.loads_can_be_clamped;
    const StatementConditions c = conditions(s, clamp ? GuardUse::ClampSpatial : GuardUse::Evaluate);
    if (!c.never) branch_on(c.uniform, [&] { perform(s, c, in_tile); });
    release_clamped(s);
  }

  /// Whether the statement may write all elements of its vector, whatever its guards say.
  [[nodiscard]] bool may_write_all(const loops::Statement& s) const {
    return s.may_overcompute && plan_.of(s).target_holds_all && context_.idle_lanes == 0;
  }

  /// Emits `then` under the condition; null means always.
  template <class F>
  void branch_on(llvm::Value* condition, const F& then) {
    if (condition == nullptr) {
      then();
      return;
    }
    llvm::BasicBlock* inside = context_.add_block("holds");
    llvm::BasicBlock* after = context_.add_block("after");
    builder_.CreateCondBr(condition, inside, after);
    const KnownValues before = context_.known;
    context_.enter(inside);
    then();
    builder_.CreateBr(after);
    context_.enter(after, before);
  }

  /// The conditions that the guards of `s` make at the current bindings. In a tile whose registers share the sums of
  /// columns, a statement whose guards are replaced is always executed: one of them adds to the sums for all.
  [[nodiscard]] StatementConditions conditions(const loops::Statement& s, GuardUse use) {
    const StatementPlan& plan = plan_.of(s);
    const bool shares_sums = uses_registers_for(s) && tile_->shared_columns != nullptr;
    StatementConditions result;
    if (context_.idle_lanes > 0) result.lanes = values_.first_lanes(context_.lanes - context_.idle_lanes);
    for (std::size_t g = 0; g < s.guards.size(); ++g) {
      const loops::Guard& guard = s.guards[g];
      if (use == GuardUse::OfTargetAlone && !plan.guards_target[g]) continue;
      const bool clampable = use == GuardUse::ClampSpatial && plan.clamp_variables[g] != no_variable;
      llvm::Value* holds = context_.is_satisfied(guard) ? nullptr : values_.condition(guard);
      if (auto* decided = llvm::dyn_cast_or_null<llvm::Constant>(holds)) {
        if (decided->isNullValue()) result.never = !(clampable && shares_sums);
        if (decided->isAllOnesValue()) holds = nullptr;
      }
      if (result.never) return result;
      if (clampable) {
        bind_clamped(plan.clamp_variables[g], guard, holds != nullptr);
        result.clamped = true;
      } else if (holds != nullptr && is_vector(holds)) {
        result.lanes = values_.both(result.lanes, holds);
      } else if (holds != nullptr) {
        result.uniform = values_.both(result.uniform, holds);
      }
    }
    return result;
  }

  /// Unbinds the clamp variables that `conditions` bound.
  void release_clamped(const loops::Statement& s) {
    for (const loops::Var stand_in : plan_.of(s).clamp_variables) {
      if (stand_in != no_variable) context_.bindings[stand_in] = {};
    }
  }

 private:
  void bind_clamped(loops::Var stand_in, const loops::Guard& guard, bool clamp) {
    const Affine a = values_.affine(guard.value);
    if (a.is_constant() && !clamp) {
      context_.bindings[stand_in] = context_.constant(a.constant);
      return;
    }
    llvm::Value* value = values_.emit(a);
    if (clamp && guard.above) {
      value = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, value,
                                             builder_.getInt64(static_cast<std::uint64_t>(guard.extent - 1)));
    }
    if (clamp && guard.below)
      value = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, value, builder_.getInt64(0));
    context_.bindings[stand_in] = context_.scalar(value);
  }

  void perform(const loops::Statement& s, const StatementConditions& c, bool in_tile) {
    const StatementPlan& plan = plan_.of(s);
    const Affine at = values_.affine(plan.target.offset);
    const program::ScalarType type = nest_.buffers[s.target].type;
    llvm::Value* store_mask = may_write_all(s) ? nullptr : c.lanes;
    if (s.kind == loops::Statement::Kind::Initialise) {
      memory_.store(s.target, at, expressions_.identity(s.op->combiner, type), store_mask);
      return;
    }
    llvm::Value* value = expressions_.evaluate(s, c.clamped, {nullptr, c.lanes});
    if (s.kind == loops::Statement::Kind::Assign) {
      memory_.store(s.target, at, value, store_mask, plan.bypasses_caches);
      return;
    }
    const bool across = context_.lanes > 1 && at.uniform();  // the vectorised loop is a reduction
    const program::Combiner combiner = s.op->combiner;
    if (across) {
      value = values_.widen(value);
      if (c.lanes != nullptr)
        value = builder_.CreateSelect(c.lanes, value, values_.widen(expressions_.identity(combiner, type)));
    }
    if (in_tile) {
      if (tile_->shared_columns != nullptr) throw std::logic_error("an instruction was expected for this statement");
      llvm::AllocaInst* slot = register_at(at);
      llvm::Value* sum = builder_.CreateLoad(slot->getAllocatedType(), slot);
      builder_.CreateStore(expressions_.combine(combiner, type, sum, value), slot);
      return;
    }
    if (across) value = expressions_.across_lanes(combiner, type, value);
    const bool holds_all = plan.target_holds_all && context_.idle_lanes == 0;
    llvm::Value* old = memory_.load(s.target, at, {nullptr, across || holds_all ? nullptr : c.lanes});
    memory_.store(s.target, at, expressions_.combine(combiner, type, old, value), across ? nullptr : store_mask);
  }

  const AccumulatorTile* tile_ = nullptr;  ///< open tile, if any
};

}  // namespace tunewright::codegen::llvm_backend
