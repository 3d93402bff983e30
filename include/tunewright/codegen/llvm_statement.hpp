// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "tunewright/codegen/llvm_expression.hpp"

/// Statements in LLVM IR: guards, and register tiles that stand for parts of a target while it is reduced
/// into.
namespace tunewright::codegen::detail {

/// Elements of a target that live in registers across reduction loops: offset relative to the first, and
/// lanes.
struct RegisterTile {
  const loops::Statement* statement = nullptr;
  std::vector<const loops::Loop*> loops;  ///< around the statement, outermost first
  bool partial = false;                   ///< a vectorised loop reduces: several registers add up to one element
  std::map<std::pair<std::int64_t, unsigned>, llvm::AllocaInst*> registers;
};

class StatementEmitter : public ExpressionEmitter {
 public:
  using ExpressionEmitter::ExpressionEmitter;

 protected:
  /// Conditions of a statement at the current bindings.
  struct Conditions {
    bool never = false;
    bool clamped = false;            ///< spatial guards are replaced by clamping
    llvm::Value* uniform = nullptr;  ///< to branch on
    llvm::Value* lanes = nullptr;    ///< to mask with
  };

  void emit_statement(const loops::Statement& s) {
    const StatementPlan& plan = plan_.of(s);
    const bool in_tile = tile_ != nullptr && tile_->statement == &s;
    const bool overcompute = s.may_overcompute && plan.target_holds_all;
    if (s.kind == loops::Statement::Kind::Initialise && overcompute) {
      perform(s, {}, false);
      return;
    }
    const Conditions c = conditions(s, (in_tile || overcompute) && plan.loads_can_be_clamped, false);
    if (!c.never) branch_on(c.uniform, [&] { perform(s, c, in_tile); });
    for (const loops::Var stand_in : plan.clamp_variables) {
      if (stand_in != no_variable) bindings_[stand_in] = {};
    }
  }

  /// Emits `then` where the condition holds; null stands for always.
  template <class F>
  void branch_on(llvm::Value* condition, const F& then) {
    if (condition == nullptr) {
      then();
      return;
    }
    llvm::Function* function = builder_.GetInsertBlock()->getParent();
    auto* inside = llvm::BasicBlock::Create(context_, "holds", function);
    auto* after = llvm::BasicBlock::Create(context_, "after", function);
    builder_.CreateCondBr(condition, inside, after);
    const Known before = known_;
    enter(inside);
    then();
    builder_.CreateBr(after);
    enter(after, before);
  }

  /// Decides every guard of `s` that is not known to hold. With `clamp`, clamp variables are bound instead of
  /// asking for spatial guards. With `spatial_only`, guards of reduction axes are left out.
  [[nodiscard]] Conditions conditions(const loops::Statement& s, bool clamp, bool spatial_only) {
    const StatementPlan& plan = plan_.of(s);
    const std::size_t rank = nest_.buffers[s.target].shape.size();
    Conditions result;
    for (std::size_t g = 0; g < s.guards.size(); ++g) {
      const loops::Guard& guard = s.guards[g];
      if (spatial_only && guard.axis >= rank) continue;
      llvm::Value* holds = is_satisfied(guard) ? nullptr : condition(guard);
      if (auto* decided = llvm::dyn_cast_or_null<llvm::Constant>(holds)) {
        if (decided->isNullValue()) result.never = true;
        if (decided->isAllOnesValue()) holds = nullptr;
      }
      if (result.never) return result;
      const bool clampable = clamp && plan.clamp_variables[g] != no_variable;
      if (clampable) {
        bind_clamped(plan.clamp_variables[g], guard, holds != nullptr);
        result.clamped = true;
      } else if (holds != nullptr && is_vector(holds)) {
        result.lanes = both(result.lanes, holds);
      } else if (holds != nullptr) {
        result.uniform = both(result.uniform, holds);
      }
    }
    return result;
  }

  [[nodiscard]] bool is_satisfied(const loops::Guard& guard) const {
    for (const loops::Guard* known : satisfied_) {
      if (known == &guard) return true;
    }
    return false;
  }

  /// Fills the tile's registers: with the identity when `fresh`, else with the target's elements.
  void open_tile(RegisterTile& tile, bool fresh) {
    const loops::Statement& s = *tile.statement;
    const program::ScalarType type = nest_.buffers[s.target].type;
    for_each_element(tile.loops, s, [&] {
      const Affine at = affine(plan_.of(s).target.offset);
      llvm::Type* register_type = vector_of(value_type(type), lanes_);
      llvm::AllocaInst* slot = stack_slot(register_type, register_bytes(type) * lanes_);
      tile.registers[{at.constant, lanes_}] = slot;
      llvm::Value* initial = widen(identity(s.op->combiner, type));
      if (!fresh && !tile.partial) {
        const Conditions c = target_conditions(s);
        if (!c.never) initial = load(s.target, at, {c.uniform, c.lanes});
      }
      builder_.CreateStore(widen(initial), slot);
    });
  }

  /// Writes the tile's registers back.
  void close_tile(const RegisterTile& tile, bool fresh) {
    const loops::Statement& s = *tile.statement;
    const program::ScalarType type = nest_.buffers[s.target].type;
    std::set<std::int64_t> written;
    std::set<const llvm::AllocaInst*> added;
    for_each_element(tile.loops, s, [&] {
      const Conditions c = target_conditions(s);
      if (c.never) return;
      const Affine at = affine(plan_.of(s).target.offset);
      // Vectors of one width that reduce into one element share a register.
      if (tile.partial && !added.insert(tile.registers.at({at.constant, lanes_})).second) return;
      branch_on(c.uniform, [&] {
        llvm::AllocaInst* slot = tile.registers.at({at.constant, lanes_});
        llvm::Value* value = builder_.CreateLoad(slot->getAllocatedType(), slot);
        if (tile.partial) {
          if (is_vector(value)) value = across_lanes(s.op->combiner, type, value);
          const bool first = written.insert(at.constant).second;
          if (!fresh || !first) value = combine(s.op->combiner, type, load(s.target, at, {}), value);
        }
        store(s.target, at, value, c.lanes);
      });
    });
  }

  /// Calls `f` with the loops that move the target, and vectorised ones, bound to each of their values.
  template <class F>
  void for_each_element(const std::vector<const loops::Loop*>& around, const loops::Statement& s, const F& f,
                        std::size_t from = 0) {
    if (from == around.size()) {
      f();
      return;
    }
    const loops::Loop& loop = *around[from];
    const bool vectorised = loop.kind == loops::LoopKind::Vectorized;
    const std::int64_t extent = plan_.extent(loop.var);
    if (extent > 1 && !vectorised && !plan_.of(s).target.offset.uses(loop.var)) {
      for_each_element(around, s, f, from + 1);
      return;
    }
    for_each_binding(loop, [&] { for_each_element(around, s, f, from + 1); });
  }

  /// Calls `f` with a static loop's variable bound to each constant or vector of lanes in turn.
  template <class F>
  void for_each_binding(const loops::Loop& loop, const F& f) {
    const Binding saved = bindings_[loop.var];
    Binding& binding = bindings_[loop.var];
    const std::int64_t extent = plan_.extent(loop.var);
    if (extent > 1 && loop.kind == loops::LoopKind::Vectorized) {
      for (const auto& [start, width] : Plan::chunks(extent, plan_.lanes(loop.body))) {
        lanes_ = static_cast<unsigned>(width);
        binding = {width > 1 ? Binding::Kind::Lanes : Binding::Kind::Constant, start, nullptr, false, depth_};
        f();
      }
      lanes_ = 1;
    } else {
      for (std::int64_t i = 0; i < extent; ++i) {
        binding = {Binding::Kind::Constant, i, nullptr, false, depth_};
        f();
      }
    }
    bindings_[loop.var] = saved;
  }

  ~StatementEmitter() = default;

  RegisterTile* tile_ = nullptr;                ///< open tile, if any
  std::vector<const loops::Guard*> satisfied_;  ///< guards that hold where code is being emitted

 private:
  /// What has to hold for elements of the target to be read and written.
  [[nodiscard]] Conditions target_conditions(const loops::Statement& s) {
    if (plan_.of(s).target_holds_all && s.may_overcompute) return {};
    return conditions(s, false, true);
  }

  void bind_clamped(loops::Var stand_in, const loops::Guard& guard, bool clamp) {
    const Affine a = affine(guard.value);
    if (a.is_constant() && !clamp) {
      bindings_[stand_in] = {Binding::Kind::Constant, a.constant, nullptr, false, depth_};
      return;
    }
    llvm::Value* value = emit(a);
    if (clamp && guard.above) {
      value = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, value,
                                             builder_.getInt64(static_cast<std::uint64_t>(guard.extent - 1)));
    }
    if (clamp && guard.below)
      value = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, value, builder_.getInt64(0));
    bindings_[stand_in] = {Binding::Kind::Scalar, 0, value, false, depth_};
  }

  void perform(const loops::Statement& s, const Conditions& c, bool in_tile) {
    const StatementPlan& plan = plan_.of(s);
    const Affine at = affine(plan.target.offset);
    const program::ScalarType type = nest_.buffers[s.target].type;
    llvm::Value* store_mask = s.may_overcompute && plan.target_holds_all ? nullptr : c.lanes;
    if (s.kind == loops::Statement::Kind::Initialise) {
      store(s.target, at, identity(s.op->combiner, type), store_mask);
      return;
    }
    llvm::Value* value = evaluate(s, c.clamped, {nullptr, c.lanes});
    if (s.kind == loops::Statement::Kind::Assign) {
      store(s.target, at, value, store_mask);
      return;
    }
    const bool across = lanes_ > 1 && at.uniform();  // the vectorised loop reduces
    const program::Combiner combiner = s.op->combiner;
    if (across) {
      value = widen(value);
      if (c.lanes != nullptr) value = builder_.CreateSelect(c.lanes, value, widen(identity(combiner, type)));
    }
    if (in_tile) {
      llvm::AllocaInst* slot = tile_->registers.at({at.constant, lanes_});
      llvm::Value* sum = builder_.CreateLoad(slot->getAllocatedType(), slot);
      builder_.CreateStore(combine(combiner, type, sum, value), slot);
      return;
    }
    if (across) value = across_lanes(combiner, type, value);
    llvm::Value* old = load(s.target, at, {nullptr, across || plan.target_holds_all ? nullptr : c.lanes});
    store(s.target, at, combine(combiner, type, old, value), across ? nullptr : store_mask);
  }
};

}  // namespace tunewright::codegen::detail
