// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/codegen/cuda/loop_visit.hpp"
#include "tunewright/codegen/cuda/types.hpp"
#include "tunewright/loops/nest.hpp"

/// Determines which accesses of a vectorized loop can move several elements at once.
namespace tunewright::codegen::cuda {

using loops::IndexExpr;

/// A vectorized loop, divided into vectors of `lanes` iterations.
struct LanePlan {
  /// A load of `lanes` consecutive elements; valid only if all conditions, which are equal in all lanes, have the
  /// required values.
  struct VectorLoad {
    const program::ExprNode* node = nullptr;
    std::vector<std::pair<const program::ExprNode*, bool>> conditions;
  };
  loops::Var var = 0;
  const loops::Statement* statement = nullptr;
  std::int64_t lanes = 1;
  bool stores = false;   ///< the target's lanes are consecutive
  bool is_copy = false;  ///< the statement copies a single load
  std::vector<VectorLoad> loads;
};

/// Whether evaluating `e` loads an element, which may not exist if a surrounding guard fails.
[[nodiscard]] inline bool reads_memory(const program::Expr& e) {
  bool found = false;
  program::visit(e, [&](const program::ExprNode& node) { found = found || node.op == program::Op::Load; });
  return found;
}

/// Whether `e` is a multiple of `m` whenever variable `var` is.
[[nodiscard]] inline bool is_multiple(const IndexExpr& e, std::int64_t m, loops::Var var) {
  if (e.constant() % m != 0) return false;
  return std::all_of(e.terms().begin(), e.terms().end(), [&](const IndexExpr::Term& t) {
    if (t.coefficient % m == 0) return true;
    switch (t.kind) {
      case IndexExpr::Kind::Variable: return t.var == var;
      case IndexExpr::Kind::Remainder: return t.divisor % m == 0 && is_multiple(*t.numerator, m, var);
      case IndexExpr::Kind::Quotient: return is_multiple(*t.numerator, m * t.divisor, var) && !t.numerator->uses(var);
    }
    return false;
  });
}

namespace detail {

class LanePlanner {
 public:
  LanePlanner(const loops::LoopNest& nest, LanePlan& plan) : nest_(nest), plan_(plan) {}

  /// Whether the offset advances by one per lane and starts at a multiple of the lanes.
  [[nodiscard]] bool is_consecutive(const IndexExpr& offset) const {
    if (offset.coefficient(plan_.var) != 1) return false;
    for (const IndexExpr::Term& t : offset.terms()) {
      if (t.kind != IndexExpr::Kind::Variable && t.numerator->uses(plan_.var)) return false;
    }
    return is_multiple(offset, plan_.lanes, plan_.var);
  }

  template <class IsPrivate>
  void collect(const program::ExprNode& node, const IsPrivate& is_private) {
    using program::Op;
    if (node.op == Op::Load) {
      const loops::BufferId id = nest_.buffer_of.at(node.tensor);
      if (id == loops::LoopNest::no_buffer || is_private(id)) return;
      const bool known =
          std::any_of(plan_.loads.begin(), plan_.loads.end(), [&](const auto& l) { return l.node == &node; });
      if (known || max_lanes(cuda_type(node.type)) < plan_.lanes) return;
      // The conditions of one place would decide for all of them.
      if (!conditions_.empty() && places(node) > 1) return;
      if (is_consecutive(load_offset(nest_, *plan_.statement, node))) plan_.loads.push_back({&node, conditions_});
      return;
    }
    const bool branches = node.op == Op::Select || node.op == Op::And || node.op == Op::Or;
    if (!branches) {
      for (const program::Expr& arg : node.args) collect(*arg, is_private);
      return;
    }
    collect(*node.args[0], is_private);
    if (differs_by_lane(*node.args[0])) return;
    // All conditions are evaluated before the vectors, so a condition that reads memory is only allowed if it is not
    // nested.
    if (!conditions_.empty() && reads_memory(node.args[0])) return;
    for (std::size_t a = 1; a < node.args.size(); ++a) {
      const bool wanted = node.op == Op::Select ? a == 1 : node.op == Op::And;
      conditions_.emplace_back(node.args[0].get(), wanted);
      collect(*node.args[a], is_private);
      conditions_.pop_back();
    }
  }

 private:
  /// How often the body has a node.
  [[nodiscard]] std::size_t places(const program::ExprNode& node) const {
    std::size_t count = 0;
    program::visit(plan_.statement->op->body,
                   [&](const program::ExprNode& other) { count += &other == &node ? 1U : 0U; });
    return count;
  }
  /// Whether a comparison has the same result in all lanes, because vectors and the bound start at multiples of the
  /// vector length.
  [[nodiscard]] bool is_between_vectors(const program::ExprNode& node) const {
    using program::Op;
    const bool below = node.op == Op::Less, least = node.op == Op::LessEqual;  // i < n, 0 <= i
    if (!below && !least) return false;
    const program::ExprNode &index = *node.args[below ? 0 : 1], &bound = *node.args[below ? 1 : 0];
    if (index.op != Op::Index || bound.op != Op::Index) return false;
    const IndexExpr beyond = over_loops(nest_, *plan_.statement, bound.index);
    return !beyond.uses(plan_.var) && is_multiple(beyond, plan_.lanes, plan_.var) &&
           is_consecutive(over_loops(nest_, *plan_.statement, index.index));
  }
  [[nodiscard]] bool differs_by_lane(const program::ExprNode& node) const {
    if (is_between_vectors(node)) return false;
    if (node.op == program::Op::Index && over_loops(nest_, *plan_.statement, node.index).uses(plan_.var)) return true;
    if (node.op == program::Op::Load && load_offset(nest_, *plan_.statement, node).uses(plan_.var)) return true;
    return std::any_of(node.args.begin(), node.args.end(), [&](const auto& arg) { return differs_by_lane(*arg); });
  }

  const loops::LoopNest& nest_;
  LanePlan& plan_;
  std::vector<std::pair<const program::ExprNode*, bool>> conditions_;
};

}  // namespace detail

/// Whether every stored vector is a loaded one, possibly under a condition, as asynchronous copies require.
[[nodiscard]] inline bool copies_whole_vectors(const LanePlan& plan) {
  const program::ExprNode& body = *plan.statement->op->body;
  if (!plan.stores || plan.loads.size() != 1) return false;
  const LanePlan::VectorLoad& load = plan.loads[0];
  if (body.op != program::Op::Select) return load.node == &body;
  // Where lanes differ in the condition, no load is planned under it.
  const std::pair<const program::ExprNode*, bool> holds{body.args[0].get(), true};
  return load.node == body.args[1].get() &&
         std::find(load.conditions.begin(), load.conditions.end(), holds) != load.conditions.end();
}

/// How to execute `loop` in vectors; empty unless it contains a single statement that stores or loads consecutive,
/// aligned elements. A guard that depends on the lane prevents it. `is_private(buffer)`: the buffer is thread-private
/// and has no memory address.
template <class IsPrivate>
[[nodiscard]] std::optional<LanePlan> plan_lanes(const loops::LoopNest& nest, const loops::Loop& loop,
                                                 const IsPrivate& is_private) {
  if (loop.body.size() != 1) return std::nullopt;
  const auto* statement = std::get_if<loops::Statement>(&loop.body.front().content);
  if (statement == nullptr) return std::nullopt;
  for (const loops::Guard& guard : statement->guards) {
    if (guard.value.uses(loop.var)) return std::nullopt;
  }
  LanePlan plan;
  plan.var = loop.var;
  plan.statement = statement;
  const std::int64_t extent = nest.variables[loop.var].extent;
  plan.lanes = max_lanes(cuda_type(nest.buffers[statement->target].type));
  while (plan.lanes > 1 && extent % plan.lanes != 0) plan.lanes /= 2;
  for (; plan.lanes > 1; plan.lanes /= 2) {
    detail::LanePlanner planner(nest, plan);
    plan.loads.clear();
    plan.stores = statement->kind != loops::Statement::Kind::Update && !is_private(statement->target) &&
                  planner.is_consecutive(store_offset(nest, *statement));
    if (statement->kind != loops::Statement::Kind::Initialise) planner.collect(*statement->op->body, is_private);
    if (!plan.stores && plan.loads.empty()) continue;
    if (statement->asynchronous && !copies_whole_vectors(plan)) continue;
    plan.is_copy = plan.stores && statement->kind == loops::Statement::Kind::Assign &&
                   statement->op->body->op == program::Op::Load && plan.loads.size() == 1;
    return plan;
  }
  return std::nullopt;
}

namespace detail {

inline void guard_whole_vectors(const loops::LoopNest& nest, loops::Body& body) {
  for_each_loop(body, [&nest](loops::Node&, loops::Loop& loop) {
    if (loop.kind != loops::LoopKind::Vectorized || loop.body.size() != 1) return;
    auto* statement = std::get_if<loops::Statement>(&loop.body.front().content);
    if (statement == nullptr) return;
    const std::int64_t lanes = loops::checked_extent(nest, loop);
    for (loops::Guard& guard : statement->guards) {
      const IndexExpr first = guard.value - IndexExpr::variable(loop.var);
      if (!first.uses(loop.var) && guard.extent % lanes == 0 && is_multiple(first, lanes, loop.var))
        guard.value = first;
    }
  });
}

}  // namespace detail

/// Evaluates guards once per vector if all lanes agree: the vector and the guard's bound start at multiples of its
/// length.
[[nodiscard]] inline loops::LoopNest guard_whole_vectors(loops::LoopNest nest) {
  detail::guard_whole_vectors(nest, nest.body);
  return nest;
}

}  // namespace tunewright::codegen::cuda
