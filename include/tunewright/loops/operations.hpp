// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/loops/nest.hpp"

namespace tunewright::loops {

/// Operations of one evaluation of a statement's body, including its combiner; of a factored sum, of a term that is not
/// padding, since `trim_sums` separates the others.
struct BodyOperations {
  double simple = 0;  ///< additions, multiplications, comparisons, ...
  double divisions = 0;
  double functions = 0;       ///< exp, tanh, ...
  double arithmetic = 0;      ///< additions, subtractions, multiplications and divisions of floats only
  bool multiply_add = false;  ///< the combiner's addition can be fused with the body's multiplication
  /// The simple operations that pad factors of a sum with zeros; `eliminate_padding` removes them if padding does not
  /// differ between lanes.
  double padding = 0;
  std::uint64_t padding_axes = 0;  ///< axes that determine the padding, by bit; bit 63: any axis from the 64th on
  [[nodiscard]] double all() const noexcept { return simple + divisions + functions; }
  /// The number of simple operations if a multiply-add counts as one.
  [[nodiscard]] double simple_fused() const noexcept { return simple - (multiply_add ? 1 : 0); }
};

namespace detail {

void count_padding(const program::Expr& body, BodyOperations& count);

}  // namespace detail

[[nodiscard]] BodyOperations operations(const Statement& statement);

}  // namespace tunewright::loops

#if TUNEWRIGHT_DEFINES(loops)

#include "tunewright/loops/eliminate_padding.hpp"
#include "tunewright/loops/trim_sums.hpp"

namespace tunewright::loops::detail {

TUNEWRIGHT_INLINE void count_padding(const program::Expr& body, BodyOperations& count) {
  std::vector<program::Expr> factors;
  add_factors(body, factors);
  for (const program::Expr& factor : factors) {
    const auto conditions = padding_conditions(factor);
    if (!conditions) continue;
    count.padding += 2 * static_cast<double>(conditions->size());  // comparisons, conjunctions, and the select
    for (const program::IndexExpr& condition : *conditions) {
      program::for_each_variable(
          condition, [&](program::Var axis) { count.padding_axes |= std::uint64_t{1} << (axis < 63 ? axis : 63); });
    }
  }
}

}  // namespace tunewright::loops::detail

namespace tunewright::loops {

TUNEWRIGHT_INLINE BodyOperations operations(const Statement& statement) {
  using program::Op;
  BodyOperations count;
  const program::Operator& op = *statement.op;
  if (statement.kind == Statement::Kind::Initialise || !op.body) return count;
  const std::optional<LastTerms> last = statement.kind == Statement::Kind::Update ? last_terms(op) : std::nullopt;
  const program::Expr& body = last ? last->term : op.body;
  program::visit(body, [&](const program::ExprNode& node) {
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
    count.multiply_add = sum && body->op == Op::Multiply;
    if (sum) detail::count_padding(body, count);
  }
  return count;
}

}  // namespace tunewright::loops

#endif
