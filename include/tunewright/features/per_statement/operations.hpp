// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/features/per_statement/schema.hpp"
#include "tunewright/program/graph.hpp"

namespace tunewright::features::per_statement {

/// The operations of one evaluation of an operator's body.
struct Operations {
  std::array<double, operation_columns> counts{};   ///< by `Column`
  std::vector<const program::ExprNode*> loads;      ///< in the order of evaluation
  std::vector<const program::ExprNode*> positions;  ///< `Op::Index` nodes: loop positions used as numbers
};

/// Column that counts an operation, if any. Comparisons have Boolean type and count as integer operations; casts and
/// leaves do not count.
[[nodiscard]] constexpr std::optional<Column> column_of(program::Op op, program::ScalarType type) noexcept {
  const bool is_float = program::is_float(type);
  switch (op) {
    case program::Op::Negate:
    case program::Op::Add:
    case program::Op::Subtract: return is_float ? FloatAddSub : IntAddSub;
    case program::Op::Multiply: return is_float ? FloatMul : IntMul;
    case program::Op::Divide: return is_float ? FloatDivMod : IntDivMod;
    case program::Op::Min:
    case program::Op::Max:
    case program::Op::Less:
    case program::Op::LessEqual:
    case program::Op::Equal: return is_float ? FloatCompare : IntCompare;
    case program::Op::Abs:
    case program::Op::Exp:
    case program::Op::Log:
    case program::Op::Sqrt:
    case program::Op::Tanh:
    case program::Op::Erf: return is_float ? FloatMath : IntMath;
    case program::Op::Not:
    case program::Op::And:
    case program::Op::Or: return BoolOps;
    case program::Op::Select: return SelectOps;
    case program::Op::Constant:
    case program::Op::Index:
    case program::Op::Load:
    case program::Op::Cast: break;
  }
  return std::nullopt;
}

/// Column of the operation that combines a value with the running result of a reduction.
[[nodiscard]] constexpr std::optional<Column> column_of(program::Combiner combiner, program::ScalarType type) noexcept {
  switch (combiner) {
    case program::Combiner::Sum: return column_of(program::Op::Add, type);
    case program::Combiner::Product: return column_of(program::Op::Multiply, type);
    case program::Combiner::Max:
    case program::Combiner::Min: return column_of(program::Op::Max, type);
    case program::Combiner::None: break;
  }
  return std::nullopt;
}

/// Operations by operator, analysed once, because candidates of a task share their operators. Keeps the known operators
/// alive.
class OperationTable {
 public:
  /// A part of the body that is used several times is evaluated and counted once. Cost: a few pointer comparisons for a
  /// known operator, otherwise O(nodes of the body, squared). The result is valid until the next call.
  [[nodiscard]] const Operations& of(const std::shared_ptr<const program::Operator>& op);

 private:
  static constexpr std::size_t capacity = 32;  // operators of a task; schedules that inline create more

  struct Entry {
    std::shared_ptr<const program::Operator> op;
    Operations operations;
  };

  void analyse(const program::Expr& e, Operations& found);

  std::vector<Entry> entries_;
  std::vector<const program::ExprNode*> seen_;  // bodies have at most some tens of nodes
};

}  // namespace tunewright::features::per_statement

#if TUNEWRIGHT_DEFINES(program_features)

namespace tunewright::features::per_statement {

TUNEWRIGHT_INLINE const Operations& OperationTable::of(const std::shared_ptr<const program::Operator>& op) {
  for (const Entry& entry : entries_) {
    if (entry.op == op) return entry.operations;
  }
  if (entries_.size() == capacity) entries_.clear();
  Entry& entry = entries_.emplace_back(Entry{op, {}});
  seen_.clear();
  if (op->body) analyse(op->body, entry.operations);
  return entry.operations;
}

TUNEWRIGHT_INLINE void OperationTable::analyse(const program::Expr& e, Operations& found) {
  if (e->op == program::Op::Constant || std::find(seen_.begin(), seen_.end(), e.get()) != seen_.end()) return;
  seen_.push_back(e.get());
  for (const program::Expr& argument : e->args) analyse(argument, found);
  if (e->op == program::Op::Load) found.loads.push_back(e.get());
  if (e->op == program::Op::Index) found.positions.push_back(e.get());
  if (const auto column = column_of(e->op, e->type)) ++found.counts[*column];
}

}  // namespace tunewright::features::per_statement

#endif
