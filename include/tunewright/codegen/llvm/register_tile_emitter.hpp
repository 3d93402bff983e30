// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "tunewright/codegen/llvm/loop_bindings.hpp"
#include "tunewright/codegen/llvm/loop_chain.hpp"
#include "tunewright/codegen/llvm/statement_emitter.hpp"

/// Targets of reductions in vector registers.
namespace tunewright::codegen::llvm_backend {

/// A register tile holds the target of an update across loops that do not move it, or move it only in straight-line
/// code.
class RegisterTileEmitter : EmissionParts {
 public:
  RegisterTileEmitter(EmissionContext& context, ValueEmitter& values, MemoryEmitter& memory,
                      ExpressionEmitter& expressions, StatementEmitter& statements)
      : EmissionParts(context, values, memory, expressions), statements_(statements) {}

  using Elements = std::set<std::pair<std::int64_t, unsigned>>;  ///< offset and lanes

  /// Elements of the target that the loops write, if these are known and few; sets `at_first` to the address of the
  /// first one.
  [[nodiscard]] std::optional<Elements> elements_of(const std::vector<const loops::Loop*>& around,
                                                    const loops::Statement& s, std::optional<Affine>& at_first) {
    const loops::IndexExpr& offset = plan_.of(s).target.offset;
    std::int64_t count = 1;
    for (const loops::Loop* loop : around) {
      const bool vectorised = loop->kind == loops::LoopKind::Vectorized;
      if (loop->kind == loops::LoopKind::Parallel) return std::nullopt;
      if (!vectorised && !offset.uses(loop->var)) continue;
      if (!plan_.is_static(*loop)) return std::nullopt;
      const std::int64_t extent = plan_.extent(loop->var);
      count *= vectorised ? static_cast<std::int64_t>(plan_.chunks(*loop).size()) : extent;
    }
    if (count > 2 * static_cast<std::int64_t>(context_.target.vector_registers())) return std::nullopt;
    Elements elements;
    bool same_address = true;
    for_each_element(context_, around, s, [&] {
      const Affine at = values_.affine(offset);
      if (!at_first) at_first = at;
      same_address = same_address && at.terms == at_first->terms && at.lane_part == nullptr;
      elements.insert({at.constant, context_.lanes});
    });
    if (!same_address) return std::nullopt;
    return elements;
  }

  /// A tile for the target of the update in `loop`, without registers yet; empty if `loop` or its content does not
  /// allow one.
  [[nodiscard]] std::optional<AccumulatorTile> find(const loops::Loop& loop) {
    const loops::Statement* s = only_statement(loop);
    if (s == nullptr || s->kind != loops::Statement::Kind::Update) return std::nullopt;
    AccumulatorTile tile;
    tile.statement = s;
    tile.loops = chain(loop);
    const auto first =
        std::find_if(tile.loops.begin(), tile.loops.end(), [&](const auto* l) { return plan_.extent(l->var) > 1; });
    if (first == tile.loops.end() || plan_.of(*s).target.offset.uses((*first)->var)) return std::nullopt;
    std::optional<Affine> at;
    if (!elements_of(tile.loops, *s, at)) return std::nullopt;
    tile.partial = context_.lanes > 1 && at->uniform();
    for (const loops::Loop* l : tile.loops) {
      const bool vectorised = l->kind == loops::LoopKind::Vectorized && plan_.extent(l->var) > 1;
      tile.partial = tile.partial || (vectorised && !plan_.of(*s).target.offset.uses(l->var));
    }
    return tile;
  }

  /// Initialises the tile's registers: with the identity if `fresh`, otherwise with the target's elements.
  void open(AccumulatorTile& tile, bool fresh) {
    const loops::Statement& s = *tile.statement;
    const program::ScalarType type = nest_.buffers[s.target].type;
    std::map<std::vector<std::int64_t>, llvm::AllocaInst*> column_sums;  // by what moves the columns
    for_each_element(context_, tile.loops, s, [&] {
      const Affine at = values_.affine(plan_.of(s).target.offset);
      llvm::Type* register_type = vector_of(numbers_.value_type(type), context_.lanes);
      const auto new_register = [&] {
        return memory_.stack_slot(register_type, register_bytes(type) * context_.lanes);
      };
      llvm::AllocaInst* slot = new_register();
      if (tile.shared_columns != nullptr) {
        std::vector<std::int64_t> columns;
        for (const loops::Loop* loop : tile.loops)
          if (tile.shared_columns->uses(loop->var)) columns.push_back(context_.bindings[loop->var].constant);
        const auto [sum, is_new] = column_sums.try_emplace(std::move(columns), nullptr);
        if (is_new) {
          sum->second = new_register();
          builder_.CreateStore(llvm::Constant::getNullValue(register_type), sum->second);
        }
        tile.column_sums[{at.constant, context_.lanes}] = {sum->second, is_new};
      }
      tile.registers[{at.constant, context_.lanes}] = slot;
      llvm::Value* initial = values_.widen(expressions_.identity(s.op->combiner, type));
      if (!fresh && !tile.partial) {
        const StatementConditions c = target_conditions(s);
        if (!c.never) initial = memory_.load(s.target, at, {c.uniform, c.lanes});
      }
      builder_.CreateStore(values_.widen(initial), slot);
    });
  }

  /// Stores the tile's registers to the target.
  void close(const AccumulatorTile& tile, bool fresh) {
    const loops::Statement& s = *tile.statement;
    const program::ScalarType type = nest_.buffers[s.target].type;
    std::set<std::int64_t> written;
    std::set<const llvm::AllocaInst*> added;
    for_each_element(context_, tile.loops, s, [&] {
      const StatementConditions c = target_conditions(s);
      if (c.never) return;
      const Affine at = values_.affine(plan_.of(s).target.offset);
      // Vectors of one width that are reduced into one element share a register.
      if (tile.partial && !added.insert(tile.registers.at({at.constant, context_.lanes})).second) return;
      statements_.branch_on(c.uniform, [&] {
        llvm::AllocaInst* slot = tile.registers.at({at.constant, context_.lanes});
        llvm::Value* value = builder_.CreateLoad(slot->getAllocatedType(), slot);
        if (tile.shared_columns != nullptr) {
          llvm::AllocaInst* sum = tile.column_sums.at({at.constant, context_.lanes}).slot;
          value = builder_.CreateSub(value, builder_.CreateLoad(sum->getAllocatedType(), sum));
        }
        if (tile.partial) {
          if (is_vector(value)) value = expressions_.across_lanes(s.op->combiner, type, value);
          const bool first = written.insert(at.constant).second;
          if (!fresh || !first)
            value = expressions_.combine(s.op->combiner, type, memory_.load(s.target, at, {}), value);
        }
        memory_.store(s.target, at, value, c.lanes);
      });
    });
  }

 private:
  /// The conditions under which elements of the target may be read and written.
  [[nodiscard]] StatementConditions target_conditions(const loops::Statement& s) {
    if (statements_.may_write_all(s)) return {};
    return statements_.conditions(s, GuardUse::OfTargetAlone);
  }

  StatementEmitter& statements_;
};

}  // namespace tunewright::codegen::llvm_backend
