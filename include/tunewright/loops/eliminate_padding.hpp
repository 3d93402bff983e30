// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/loops/nest.hpp"

/// Padding elimination: skips the terms of reductions that change nothing because they are padding.
///
///   sum += select(0 <= h + r - 1 && ..., x[h + r - 1, ..], 0) * w[r, ..]
///
/// becomes a sum of products under guards. A guard is evaluated as soon as its variables are known, so it skips whole
/// iterations of outer loops, and straight-line code omits the terms: the padding is neither stored nor multiplied. The
/// same holds for a maximum over a window that is padded with minus infinity.
namespace tunewright::loops {

/// The parts of a reduction's terms that can be padding: the factors of products that are summed, looking through
/// conversions; the whole term of any other reduction.
[[nodiscard]] std::vector<program::Expr> parts_of_term(const program::Expr& term, program::Combiner combiner);

/// The condition under which `part` may change a reduction, as values over the operator's axes that must not be
/// negative; empty if it is not padding with the identity of the combiner, zero for a sum, or its condition has
/// another form.
[[nodiscard]] std::optional<std::vector<IndexExpr>> padding_conditions(const program::Expr& part,
                                                                       program::Combiner combiner);

/// The guards under which `part` of the terms of the reduction in `s` may change it; empty if it is not padding.
[[nodiscard]] std::optional<std::vector<Guard>> padding_guards(const LoopNest& nest, const Statement& s,
                                                               const program::Expr& part);

namespace detail {

/// The factors of a product, looking through conversions.
void add_factors(const program::Expr& e, std::vector<program::Expr>& factors);

/// A term in which the padded parts `paddings` are replaced by the values that they pad.
[[nodiscard]] program::Expr unpadded(const program::Expr& e, const std::vector<const program::ExprNode*>& paddings);

[[nodiscard]] std::shared_ptr<const program::Operator> without_padding(
    const program::Operator& op, const std::vector<const program::ExprNode*>& paddings);

class PaddingElimination {
 public:
  explicit PaddingElimination(LoopNest& nest) : nest_(nest) {}

  void run(Body& body);

 private:
  void eliminate(Statement& s);

  [[nodiscard]] bool differs_between_lanes(const Guard& guard) const {
    return std::any_of(lane_variables_.begin(), lane_variables_.end(), [&](Var v) { return guard.value.uses(v); });
  }

  LoopNest& nest_;
  std::vector<Var> lane_variables_;  ///< of surrounding vectorized loops
  std::map<std::pair<std::shared_ptr<const program::Operator>, std::vector<const program::ExprNode*>>,
           std::shared_ptr<const program::Operator>>
      without_;
};

}  // namespace detail

/// The operator with the parts of its terms read without padding, as if all guards held.
[[nodiscard]] std::shared_ptr<const program::Operator> without_padding(const program::Operator& op);

/// Returns the nest with guards instead of padding. Results are unchanged, except that zero times an infinity or a NaN
/// is zero.
[[nodiscard]] LoopNest eliminate_padding(LoopNest nest);

}  // namespace tunewright::loops

#if TUNEWRIGHT_DEFINES(loops)

namespace tunewright::loops {

TUNEWRIGHT_INLINE std::vector<program::Expr> parts_of_term(const program::Expr& term, program::Combiner combiner) {
  if (combiner != program::Combiner::Sum) return {term};
  std::vector<program::Expr> factors;
  detail::add_factors(term, factors);
  return factors;
}

TUNEWRIGHT_INLINE std::optional<std::vector<IndexExpr>> padding_conditions(const program::Expr& part,
                                                                           program::Combiner combiner) {
  using program::Op;
  if (part->op != Op::Select || part->args[2]->op != Op::Constant) return std::nullopt;
  const double outside = part->args[2]->value;
  if (outside != program::identity(combiner) && outside != program::identity(combiner, part->type)) return std::nullopt;
  std::vector<IndexExpr> values;
  const auto add = [&values](const auto& self, const program::Expr& e) -> bool {
    if (e->op == Op::And) return self(self, e->args[0]) && self(self, e->args[1]);
    if (e->op != Op::Less && e->op != Op::LessEqual) return false;
    if (e->args[0]->op != Op::Index || e->args[1]->op != Op::Index) return false;
    values.push_back(e->args[1]->index - e->args[0]->index - (e->op == Op::Less ? 1 : 0));
    return true;
  };
  if (!add(add, part->args[0])) return std::nullopt;
  return values;
}

TUNEWRIGHT_INLINE std::optional<std::vector<Guard>> padding_guards(const LoopNest& nest, const Statement& s,
                                                                   const program::Expr& part) {
  const auto conditions = padding_conditions(part, s.op->combiner);
  if (!conditions) return std::nullopt;
  std::vector<Guard> guards;
  for (const IndexExpr& condition : *conditions)
    guards.push_back({over_loops(nest, s, condition), 0, true, false, Guard::padding});
  return guards;
}

}  // namespace tunewright::loops

namespace tunewright::loops::detail {

TUNEWRIGHT_INLINE void add_factors(const program::Expr& e, std::vector<program::Expr>& factors) {
  if (e->op != program::Op::Multiply && e->op != program::Op::Cast) {
    factors.push_back(e);
    return;
  }
  for (const program::Expr& arg : e->args) add_factors(arg, factors);
}

TUNEWRIGHT_INLINE program::Expr unpadded(const program::Expr& e,
                                         const std::vector<const program::ExprNode*>& paddings) {
  if (std::find(paddings.begin(), paddings.end(), e.get()) != paddings.end()) return e->args[1];
  if (e->op != program::Op::Multiply && e->op != program::Op::Cast) return e;
  program::ExprNode node = *e;
  for (program::Expr& arg : node.args) arg = unpadded(arg, paddings);
  return program::make_expr(std::move(node));
}

TUNEWRIGHT_INLINE std::shared_ptr<const program::Operator> without_padding(
    const program::Operator& op, const std::vector<const program::ExprNode*>& paddings) {
  auto copy = std::make_shared<program::Operator>(op);
  copy->body = unpadded(op.body, paddings);
  return copy;
}

TUNEWRIGHT_INLINE void PaddingElimination::run(Body& body) {
  for (Node& node : body) {
    if (auto* statement = std::get_if<Statement>(&node.content)) eliminate(*statement);
    if (auto* branch = std::get_if<Branch>(&node.content)) {
      run(branch->then);
      run(branch->otherwise);
    }
    if (auto* loop = std::get_if<Loop>(&node.content)) {
      const bool lanes = loop->kind == LoopKind::Vectorized && nest_.variables[loop->var].extent > 1;
      if (lanes) lane_variables_.push_back(loop->var);
      run(loop->body);
      if (lanes) lane_variables_.pop_back();
    }
  }
}

TUNEWRIGHT_INLINE void PaddingElimination::eliminate(Statement& s) {
  if (s.kind != Statement::Kind::Update) return;
  std::vector<const program::ExprNode*> paddings;
  std::vector<Guard> guards;
  for (const program::Expr& part : parts_of_term(s.op->body, s.op->combiner)) {
    auto own = padding_guards(nest_, s, part);
    if (!own ||
        std::any_of(own->begin(), own->end(), [this](const Guard& guard) { return differs_between_lanes(guard); }))
      continue;
    paddings.push_back(part.get());
    guards.insert(guards.end(), std::make_move_iterator(own->begin()), std::make_move_iterator(own->end()));
  }
  if (paddings.empty()) return;
  for (Guard& guard : guards) {
    if (guard.value.range([this](Var v) { return nest_.range_of(v); }).min < 0) s.guards.push_back(std::move(guard));
  }
  std::shared_ptr<const program::Operator>& op = without_[{s.op, paddings}];
  if (op == nullptr) op = without_padding(*s.op, paddings);
  s.op = op;
}

}  // namespace tunewright::loops::detail

namespace tunewright::loops {

TUNEWRIGHT_INLINE std::shared_ptr<const program::Operator> without_padding(const program::Operator& op) {
  std::vector<const program::ExprNode*> paddings;
  for (const program::Expr& part : parts_of_term(op.body, op.combiner)) {
    if (padding_conditions(part, op.combiner)) paddings.push_back(part.get());
  }
  return detail::without_padding(op, paddings);
}

TUNEWRIGHT_INLINE LoopNest eliminate_padding(LoopNest nest) {
  detail::PaddingElimination(nest).run(nest.body);
  return nest;
}

}  // namespace tunewright::loops

#endif
