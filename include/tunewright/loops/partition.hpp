// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/loops/nest.hpp"

/// Hoists guards, so that the main body of a tiled loop nest has none.
///
/// A guard of a statement depends on surrounding loops. With the innermost loops at their worst values, it becomes a
/// condition on the outer ones; the innermost loops are then emitted twice under a branch: without guards where the
/// condition holds (all full tiles), with guards elsewhere (the boundary).
namespace tunewright::loops {

namespace detail {

class Partition {
 public:
  explicit Partition(LoopNest& nest) : nest_(nest) {}

  void run() { nest_.body = rewrite(std::move(nest_.body)); }

 private:
  [[nodiscard]] auto range_of() const {
    return [this](Var v) { return nest_.range_of(v); };
  }

  Body rewrite(Body body);

  /// Whether `node` is the place to evaluate guards of skipped terms, but these differ between its iterations in any
  /// case. Evaluating them further inside would divide the reduction.
  [[nodiscard]] bool skips_terms_only_inside(const Node& node) const;

  /// The conditions under which `node` needs no guards; empty if it has none or is not the place to evaluate them.
  [[nodiscard]] std::vector<Guard> conditions_for(const Node& node) const;

  /// A branch between the nodes `first` to `last` without guards, where `conditions` hold, and the unchanged nodes.
  static Branch branch_on(std::vector<Guard> conditions, Body& body, std::size_t first, std::size_t last);

  /// Whether to branch on a perfect nest as a whole: all its loops are the statement's innermost ones, or those of a
  /// transposed tile, and the condition can hold.
  bool is_hoisting_place(const Node& node, const Statement& statement) const;

  [[nodiscard]] bool can_hold(const std::vector<Guard>& conditions) const;

  /// The guards of `statement` with the loops of `node` at their worst values: one condition per side.
  std::vector<Guard> worst_case(const Node& node, const Statement& statement) const;

  static bool uses_any(const IndexExpr& e, const std::vector<char>& inside);

  LoopNest& nest_;
};

}  // namespace detail

/// Returns the nest with hoisted guards. Semantics are unchanged; code grows by at most one copy of each guarded tile.
[[nodiscard]] LoopNest partition(LoopNest nest);

}  // namespace tunewright::loops

#if TUNEWRIGHT_DEFINES(loops)

#include "tunewright/core/target.hpp"
#include "tunewright/loops/perfect_nest.hpp"

namespace tunewright::loops::detail {

TUNEWRIGHT_INLINE Body Partition::rewrite(Body body) {
  Body result;
  result.reserve(body.size());
  for (std::size_t n = 0; n < body.size(); ++n) {
    Node& node = body[n];
    if (auto* branch = std::get_if<Branch>(&node.content)) {
      branch->then = rewrite(std::move(branch->then));
      branch->otherwise = rewrite(std::move(branch->otherwise));
    } else if (auto* loop = std::get_if<Loop>(&node.content)) {
      const std::size_t last = last_of_group(body, n);
      if (skips_terms_only_inside(body[last])) {
        for (; n < last; ++n) result.push_back(std::move(body[n]));
        result.push_back(std::move(body[last]));
        continue;
      }
      std::vector<Guard> conditions = conditions_for(body[last]);
      if (!conditions.empty()) {
        result.push_back(branch_on(std::move(conditions), body, n, last));
        n = last;
        continue;
      }
      // Work of a whole warp cannot contain a branch.
      const bool by_warp = loop->intrinsic != nullptr && is_tensor_core(loop->intrinsic->unit);
      if (loop->kind != LoopKind::Vectorized && !by_warp) loop->body = rewrite(std::move(loop->body));
    }
    result.push_back(std::move(node));
  }
  return result;
}

TUNEWRIGHT_INLINE bool Partition::skips_terms_only_inside(const Node& node) const {
  const Statement* guarded = only_statement(node);
  return guarded != nullptr && is_innermost(node) && !can_hold(worst_case(node, *guarded)) &&
         std::any_of(guarded->guards.begin(), guarded->guards.end(),
                     [](const Guard& guard) { return guard.axis == Guard::padding; });
}

TUNEWRIGHT_INLINE std::vector<Guard> Partition::conditions_for(const Node& node) const {
  const Statement* guarded = only_statement(node);
  if (guarded == nullptr || guarded->guards.empty() || !is_hoisting_place(node, *guarded)) return {};
  return worst_case(node, *guarded);
}

TUNEWRIGHT_INLINE Branch Partition::branch_on(std::vector<Guard> conditions, Body& body, std::size_t first,
                                              std::size_t last) {
  Branch branch;
  branch.conditions = std::move(conditions);
  for (std::size_t m = first; m <= last; ++m) {
    branch.then.push_back(body[m]);
    only_statement(branch.then.back())->guards.clear();
    branch.otherwise.push_back(std::move(body[m]));
  }
  return branch;
}

TUNEWRIGHT_INLINE bool Partition::is_hoisting_place(const Node& node, const Statement& statement) const {
  return (is_innermost(node) || transposes(nest_, node)) && can_hold(worst_case(node, statement));
}

TUNEWRIGHT_INLINE bool Partition::can_hold(const std::vector<Guard>& conditions) const {
  return std::all_of(conditions.begin(), conditions.end(), [&](const Guard& c) {
    const program::Range range = c.value.range(range_of());
    return (!c.above || range.min < c.extent) && (!c.below || range.max >= 0);
  });
}

TUNEWRIGHT_INLINE std::vector<Guard> Partition::worst_case(const Node& node, const Statement& statement) const {
  std::vector<char> inside(nest_.variables.size(), 0);
  for (const Loop* loop : perfect_loops(node)) inside[loop->var] = 1;
  std::vector<Guard> conditions;
  for (const Guard& guard : statement.guards) {
    for (const bool above : {false, true}) {
      if (above ? !guard.above : !guard.below) continue;
      IndexExpr value(guard.value.constant());
      for (const IndexExpr::Term& term : guard.value.terms()) {
        IndexExpr single = IndexExpr::from_term(term);
        if (uses_any(single, inside)) {
          const program::Range range = single.range(range_of());
          single = IndexExpr(above ? range.max : range.min);
        }
        value += single;
      }
      conditions.push_back({std::move(value), guard.extent, !above, above, guard.axis});
    }
  }
  return conditions;
}

TUNEWRIGHT_INLINE bool Partition::uses_any(const IndexExpr& e, const std::vector<char>& inside) {
  for (Var v = 0; v < inside.size(); ++v) {
    if (inside[v] != 0 && e.uses(v)) return true;
  }
  return false;
}

}  // namespace tunewright::loops::detail

namespace tunewright::loops {

TUNEWRIGHT_INLINE LoopNest partition(LoopNest nest) {
  detail::Partition(nest).run();
  return nest;
}

}  // namespace tunewright::loops

#endif
