// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/loops/nest.hpp"

namespace tunewright::loops {

/// Operations of one evaluation of a statement's body, its combiner included.
struct BodyOperations {
  double simple = 0;  ///< additions, multiplications, comparisons, ..
  double divisions = 0;
  double functions = 0;       ///< exp, tanh, ..
  double arithmetic = 0;      ///< additions, subtractions, multiplications and divisions of floats alone
  bool multiply_add = false;  ///< the combiner's addition comes with the body's multiplication
  [[nodiscard]] double all() const noexcept { return simple + divisions + functions; }
  /// The simple ones where a multiply-add is one.
  [[nodiscard]] double simple_fused() const noexcept { return simple - (multiply_add ? 1 : 0); }
};

[[nodiscard]] inline BodyOperations operations(const Statement& statement) {
  using program::Op;
  BodyOperations count;
  const program::Operator& op = *statement.op;
  if (statement.kind == Statement::Kind::Initialise || !op.body) return count;
  program::visit(op.body, [&](const program::ExprNode& node) {
    switch (node.op) {
      case Op::Constant:
      case Op::Index:
      case Op::Load:
      case Op::Cast: return;
      case Op::Divide:
      case Op::Sqrt: ++count.divisions; break;
      case Op::Exp:
      case Op::Log:
      case Op::Tanh:
      case Op::Erf: ++count.functions; break;
      default: ++count.simple;
    }
    const bool counts =
        node.op == Op::Add || node.op == Op::Subtract || node.op == Op::Multiply || node.op == Op::Divide;
    if (counts && program::is_float(node.type)) ++count.arithmetic;
  });
  if (statement.kind == Statement::Kind::Update) {
    ++count.simple;
    const bool sum = op.combiner == program::Combiner::Sum;
    if ((sum || op.combiner == program::Combiner::Product) && program::is_float(op.type)) ++count.arithmetic;
    count.multiply_add = sum && op.body->op == Op::Multiply;
  }
  return count;
}

}  // namespace tunewright::loops
