// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/loops/nest.hpp"

/// Guard elimination: removes guards that a statement may ignore and that protect no memory, so that tiles that do not
/// divide an axis execute the same code at the boundary as elsewhere.
namespace tunewright::loops {

namespace detail {

class GuardElimination {
 public:
  explicit GuardElimination(LoopNest& nest) : nest_(nest) {}

  void run(Body& body);

 private:
  void eliminate(Statement& s) const;

  [[nodiscard]] bool fits(const Buffer& buffer, std::size_t dimension, const IndexExpr& coordinate) const;

  /// Only dimensions that depend on the guarded axis matter, because windows are boxes.
  [[nodiscard]] bool is_needless(const Statement& s, const Guard& guard) const;

  const LoopNest& nest_;
};

}  // namespace detail

/// Returns the nest without unnecessary guards. Elements that are read afterwards are unchanged.
[[nodiscard]] LoopNest eliminate_guards(LoopNest nest);

}  // namespace tunewright::loops

#if TUNEWRIGHT_DEFINES(loops)

namespace tunewright::loops::detail {

TUNEWRIGHT_INLINE void GuardElimination::run(Body& body) {
  for (Node& node : body) {
    if (auto* statement = std::get_if<Statement>(&node.content)) eliminate(*statement);
    if (auto* loop = std::get_if<Loop>(&node.content)) run(loop->body);
    if (auto* branch = std::get_if<Branch>(&node.content)) {
      run(branch->then);
      run(branch->otherwise);
    }
  }
}

TUNEWRIGHT_INLINE void GuardElimination::eliminate(Statement& s) const {
  if (!s.may_overcompute || s.guards.empty()) return;
  std::vector<Guard> needed;
  for (const Guard& guard : s.guards) {
    if (!is_needless(s, guard)) needed.push_back(guard);
  }
  s.guards = std::move(needed);
}

TUNEWRIGHT_INLINE bool GuardElimination::fits(const Buffer& buffer, std::size_t dimension,
                                              const IndexExpr& coordinate) const {
  const program::Range range =
      (coordinate - buffer.origin[dimension]).range([this](Var v) { return nest_.range_of(v); });
  return range.min >= 0 && range.max < buffer.shape[dimension];
}

TUNEWRIGHT_INLINE bool GuardElimination::is_needless(const Statement& s, const Guard& guard) const {
  const Buffer& target = nest_.buffers[s.target];
  if (guard.axis >= target.shape.size() || target.role != BufferRole::Temporary) return false;
  if (!fits(target, guard.axis, s.axis_values[guard.axis])) return false;
  if (s.kind == Statement::Kind::Initialise) return true;
  bool safe = true;
  program::visit(s.op->body, [&](const program::ExprNode& node) {
    if (node.op != program::Op::Load) return;
    const BufferId id = nest_.buffer_of[node.tensor];
    for (std::size_t d = 0; d < node.indices.size() && safe; ++d) {
      if (!node.indices[d].uses(guard.axis)) continue;
      safe = id != LoopNest::no_buffer && fits(nest_.buffers[id], d, over_loops(nest_, s, node.indices[d]));
    }
  });
  return safe;
}

}  // namespace tunewright::loops::detail

namespace tunewright::loops {

TUNEWRIGHT_INLINE LoopNest eliminate_guards(LoopNest nest) {
  detail::GuardElimination(nest).run(nest.body);
  return nest;
}

}  // namespace tunewright::loops

#endif
