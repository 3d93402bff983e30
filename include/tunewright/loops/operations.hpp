// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tunewright/detail/config.hpp"
#include "tunewright/loops/nest.hpp"

namespace tunewright::loops {

/// Operations of one evaluation of a statement's body, including its combiner; of a factored reduction, of a term that
/// is not padding, since `trim_reductions` separates the others. Equal parts of a body count once, because compilers
/// evaluate them once.
struct BodyOperations {
  double simple = 0;  ///< additions, multiplications, comparisons, ...
  double divisions = 0;
  double functions = 0;       ///< exp, tanh, ...
  double arithmetic = 0;      ///< additions, subtractions, multiplications and divisions of floats only
  bool multiply_add = false;  ///< the combiner's addition can be fused with the body's multiplication
  /// The simple operations that take no vectors if they do not differ between lanes: conditions of selections by
  /// indices, which are computed once for all lanes, and selections that pad the terms of a reduction.
  double conditions = 0;
  std::uint64_t condition_axes = 0;  ///< axes that determine them, by bit; bit 63: any axis from the 64th on
  bool skips_padding = false;        ///< `eliminate_padding` leaves out terms, and their conditions
  [[nodiscard]] double all() const noexcept { return simple + divisions + functions; }
  /// The number of simple operations if a multiply-add counts as one.
  [[nodiscard]] double simple_fused() const noexcept { return simple - (multiply_add ? 1 : 0); }
};

namespace detail {

/// `combiner` is `None` unless `body` is the term of an update.
void count_conditions(const program::Expr& body, program::Combiner combiner, BodyOperations& count);

}  // namespace detail

[[nodiscard]] BodyOperations operations(const Statement& statement);

}  // namespace tunewright::loops

#if TUNEWRIGHT_DEFINES(loops)

#include "tunewright/loops/eliminate_padding.hpp"
#include "tunewright/loops/trim_reductions.hpp"

namespace tunewright::loops::detail {

TUNEWRIGHT_INLINE void count_conditions(const program::Expr& body, program::Combiner combiner, BodyOperations& count) {
  using program::Op;
  program::DistinctParts of_conditions, of_padding;
  program::DistinctParts().visit(body, [&](const program::ExprNode& node) {
    if (node.op != Op::Select) return;
    bool depends_on_data = false;
    program::DistinctParts().visit(
        node.args[0], [&](const program::ExprNode& part) { depends_on_data = depends_on_data || part.op == Op::Load; });
    if (depends_on_data) return;
    of_conditions.visit(node.args[0], [&](const program::ExprNode& part) {
      if (part.op != Op::Constant && part.op != Op::Cast && part.op != Op::Index) ++count.conditions;
      program::for_each_variable(
          part.index, [&](program::Var axis) { count.condition_axes |= std::uint64_t{1} << (axis < 63 ? axis : 63); });
    });
  });
  if (combiner == program::Combiner::None) return;
  for (const program::Expr& part : parts_of_term(body, combiner)) {
    if (!padding_conditions(part, combiner)) continue;
    count.skips_padding = true;
    of_padding.visit(part, [&](const program::ExprNode& node) {
      if (&node == part.get()) ++count.conditions;  // the selection
    });
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
  program::DistinctParts().visit(body, [&](const program::ExprNode& node) {
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
  const bool update = statement.kind == Statement::Kind::Update;
  if (update) {
    const bool sum = op.combiner == program::Combiner::Sum;
    ++count.simple;
    if ((sum || op.combiner == program::Combiner::Product) && program::is_float(op.type)) ++count.arithmetic;
    count.multiply_add = sum && body->op == Op::Multiply;
  }
  detail::count_conditions(body, update ? op.combiner : program::Combiner::None, count);
  return count;
}

}  // namespace tunewright::loops

#endif
