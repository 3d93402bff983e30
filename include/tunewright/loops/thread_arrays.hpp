// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <variant>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/loops/nest.hpp"
#include "tunewright/program/expr.hpp"

/// Thread-private arrays of GPUs. They are in registers only if every index is constant after unrolling, so the loops
/// that select their elements must be unrolled.
namespace tunewright::loops {

/// The thread-private arrays of a nest, which must outlive this object: temporary, not shared, allocated inside a
/// kernel.
class ThreadArrays {
 public:
  /// Whether fragments of warps count as such arrays. In a nest as lowered, plain loops access elements of fragments,
  /// and `to_device` marks them as the work of one instruction; only then do the remaining loops select whole
  /// fragments.
  enum class Fragments : bool { Excluded, Included };

  /// Cost: one walk over the buffers and the top of the nest.
  ThreadArrays(const LoopNest& nest, Fragments fragments);

  /// Whether a buffer is such an array; false for `LoopNest::no_buffer`.
  [[nodiscard]] bool contains(BufferId id) const { return id != LoopNest::no_buffer && own_.at(memory_of(*nest_, id)); }

  /// Whether `var` affects which element of such an array some node of `body` loads or stores. A loop around the
  /// allocation moves the window instead of the element. Cost: one walk over `body`.
  [[nodiscard]] bool selected_by(Var var, std::span<const Node> body) const;

 private:
  [[nodiscard]] bool selected_by(Var var, const Statement& s) const;

  [[nodiscard]] bool element_moves(BufferId id, const std::vector<IndexExpr>& axis_values, Var var) const;
  [[nodiscard]] bool loaded_element_moves(const Statement& s, const program::ExprNode& load, Var var) const;

  /// Whether the index relative to the window depends on `var`. Computes the coordinate only if the window moves, too.
  template <class Coordinate>
  [[nodiscard]] static bool moves(const Buffer& buffer, std::size_t d, Var var, bool coordinate_moves,
                                  const Coordinate& coordinate) {
    const bool window_moves = buffer.origin[d].uses(var);
    if (!window_moves || !coordinate_moves) return window_moves || coordinate_moves;
    return (coordinate() - buffer.origin[d]).uses(var);
  }
  [[nodiscard]] static bool copy_moves(const Buffer& buffer, Var var);

  const LoopNest* nest_;
  std::vector<char> own_;  ///< by BufferId
};

}  // namespace tunewright::loops

#if TUNEWRIGHT_DEFINES(loops)

namespace tunewright::loops {

TUNEWRIGHT_INLINE ThreadArrays::ThreadArrays(const LoopNest& nest, Fragments fragments)
    : nest_(&nest), own_(nest.buffers.size()) {
  for (BufferId id = 0; id < own_.size(); ++id) {
    const Buffer& buffer = nest.buffers[id];
    own_[id] = buffer.role == BufferRole::Temporary && buffer.scope != Scope::Shared &&
               (buffer.scope != Scope::Accumulator || fragments == Fragments::Included);
  }
  for (const Node& node : nest.body) {
    if (const auto* workspace = std::get_if<Allocate>(&node.content)) own_.at(workspace->buffer) = false;
  }
}

TUNEWRIGHT_INLINE bool ThreadArrays::selected_by(Var var, std::span<const Node> body) const {
  return std::any_of(body.begin(), body.end(), [&](const Node& node) {
    if (const auto* loop = std::get_if<Loop>(&node.content)) return selected_by(var, loop->body);
    if (const auto* branch = std::get_if<Branch>(&node.content))
      return selected_by(var, branch->then) || selected_by(var, branch->otherwise);
    if (const auto* reduction = std::get_if<CrossThreadReduction>(&node.content))
      return element_moves(reduction->partial, reduction->axis_values, var) ||
             element_moves(reduction->target, reduction->axis_values, var);
    const auto* statement = std::get_if<Statement>(&node.content);
    return statement != nullptr && selected_by(var, *statement);
  });
}

TUNEWRIGHT_INLINE bool ThreadArrays::selected_by(Var var, const Statement& s) const {
  if (element_moves(s.target, s.axis_values, var)) return true;
  if (s.kind == Statement::Kind::Initialise) return false;
  bool found = false;
  program::visit(s.op->body, [&](const program::ExprNode& e) {
    found = found || (e.op == program::Op::Load && loaded_element_moves(s, e, var));
  });
  return found;
}

TUNEWRIGHT_INLINE bool ThreadArrays::element_moves(BufferId id, const std::vector<IndexExpr>& axis_values,
                                                   Var var) const {
  if (!contains(id)) return false;
  const Buffer& buffer = nest_->buffers[id];
  for (std::size_t d = 0; d < buffer.shape.size(); ++d) {
    if (moves(buffer, d, var, axis_values[d].uses(var), [&] { return axis_values[d]; })) return true;
  }
  return copy_moves(buffer, var);
}

TUNEWRIGHT_INLINE bool ThreadArrays::loaded_element_moves(const Statement& s, const program::ExprNode& load,
                                                          Var var) const {
  const BufferId id = nest_->buffer_of[load.tensor];
  if (!contains(id)) return false;
  const Buffer& buffer = nest_->buffers[id];
  for (std::size_t d = 0; d < buffer.shape.size(); ++d) {
    bool used = false;
    program::for_each_variable(load.indices[d],
                               [&](program::Var axis) { used = used || s.axis_values[axis].uses(var); });
    if (moves(buffer, d, var, used, [&] { return over_loops(*nest_, s, load.indices[d]); })) return true;
  }
  return copy_moves(buffer, var);
}

TUNEWRIGHT_INLINE bool ThreadArrays::copy_moves(const Buffer& buffer, Var var) {
  return buffer.stage.uses(var) || std::any_of(buffer.private_to.begin(), buffer.private_to.end(),
                                               [&](const CopySelector& copies) { return copies.var == var; });
}

}  // namespace tunewright::loops

#endif
