// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/loops/nest.hpp"

/// Perfect nests: nested loops around a single statement.
namespace tunewright::loops {

/// The statement of a perfect nest; null if `node` is not one.
[[nodiscard]] const Statement* only_statement(const Node& node);
[[nodiscard]] Statement* only_statement(Node& node);

/// The loops of a perfect nest, outermost first.
[[nodiscard]] std::vector<const Loop*> perfect_loops(const Node& node);

/// Lets a loop of a perfect nest, over `from`, go over `to` instead: iteration i of `to` is iteration `begin` + i.
void rebind(const LoopNest& nest, Node& node, Var from, Var to, std::int64_t begin = 0);

/// Whether the loops of a perfect nest are the statement's innermost ones: those of a tensor instruction, unrolled or
/// vectorized loops, then reductions, or one plain loop if there are none of these.
[[nodiscard]] bool is_innermost(const Node& node);

/// Whether `node` is a loop, of at most as many iterations as a vector has lanes, around a vectorised one of as many or
/// up to `most_transposed_squares` times as many, that copies an operand whose elements lie side by side along the
/// former only, all elements being float32. Code generators transpose such tiles in registers, if no guard divides
/// them.
[[nodiscard]] bool transposes(const LoopNest& nest, const Node& node);

/// The last node of the group that begins at `first`: an initialisation and the next loop, if that updates the same
/// buffer, are a group.
[[nodiscard]] std::size_t last_of_group(const Body& body, std::size_t first);

}  // namespace tunewright::loops

#if TUNEWRIGHT_DEFINES(loops)

#include <utility>

#include "tunewright/loops/tensor_operands.hpp"

namespace tunewright::loops {

TUNEWRIGHT_INLINE const Statement* only_statement(const Node& node) {
  const Node* current = &node;
  while (const auto* loop = std::get_if<Loop>(&current->content)) {
    if (loop->body.size() != 1) return nullptr;
    current = &loop->body[0];
  }
  return std::get_if<Statement>(&current->content);
}

TUNEWRIGHT_INLINE Statement* only_statement(Node& node) {
  return const_cast<Statement*>(only_statement(std::as_const(node)));
}

TUNEWRIGHT_INLINE std::vector<const Loop*> perfect_loops(const Node& node) {
  std::vector<const Loop*> loops;
  const Node* current = &node;
  while (const auto* loop = std::get_if<Loop>(&current->content)) {
    loops.push_back(loop);
    current = &loop->body[0];
  }
  return loops;
}

TUNEWRIGHT_INLINE void rebind(const LoopNest& nest, Node& node, Var from, Var to, std::int64_t begin) {
  const auto renamed = [&](const IndexExpr& e) {
    return e.substitute(
        [&](Var v) { return v == from ? IndexExpr::variable(to) + IndexExpr(begin) : IndexExpr::variable(v); },
        [&](Var v) { return nest.range_of(v); });
  };
  Node* current = &node;
  while (auto* loop = std::get_if<Loop>(&current->content)) {
    if (loop->var == from) loop->var = to;
    current = &loop->body[0];
  }
  auto& statement = std::get<Statement>(current->content);
  for (IndexExpr& value : statement.axis_values) value = renamed(value);
  for (Guard& guard : statement.guards) guard.value = renamed(guard.value);
}

TUNEWRIGHT_INLINE bool is_innermost(const Node& node) {
  const std::vector<const Loop*> loops = perfect_loops(node);
  const auto is_inner = [](const Loop& loop) {
    return loop.kind == LoopKind::Unrolled || loop.kind == LoopKind::Vectorized;
  };
  std::size_t begin = 0;
  while (begin < loops.size() && loops[begin]->intrinsic == nullptr) ++begin;
  while (begin > 0 && is_inner(*loops[begin - 1])) --begin;
  while (begin > 0 && loops[begin - 1]->reduction && loops[begin - 1]->kind == LoopKind::Serial) --begin;
  if (begin == loops.size() && begin > 0 && loops[begin - 1]->kind == LoopKind::Serial) --begin;
  return begin == 0;
}

TUNEWRIGHT_INLINE bool transposes(const LoopNest& nest, const Node& node) {
  const std::vector<const Loop*> loops = perfect_loops(node);
  const Statement* s = only_statement(node);
  if (s == nullptr || s->kind != Statement::Kind::Assign || loops.size() != 2 || loops[0]->kind != LoopKind::Serial ||
      loops[1]->kind != LoopKind::Vectorized)
    return false;
  constexpr std::int64_t most_lanes = 16;
  const std::int64_t rows = nest.variables[loops[0]->var].extent, columns = nest.variables[loops[1]->var].extent;
  if (rows > most_lanes || columns % rows != 0 || columns / rows > most_transposed_squares) return false;
  const auto has_floats = [&](BufferId buffer) { return nest.buffers[buffer].type == program::ScalarType::Float32; };
  bool across = false, all_floats = has_floats(s->target);
  program::visit(s->op->body, [&](const program::ExprNode& read) {
    if (read.op != program::Op::Load || nest.buffer_of[read.tensor] == LoopNest::no_buffer) return;
    all_floats = all_floats && has_floats(nest.buffer_of[read.tensor]);
    across = across || runs_across(load_offset(nest, *s, read), loops[0]->var, loops[1]->var);
  });
  return across && all_floats;
}

TUNEWRIGHT_INLINE std::size_t last_of_group(const Body& body, std::size_t first) {
  const Statement* start = only_statement(body[first]);
  if (start == nullptr || start->kind != Statement::Kind::Initialise || first + 1 == body.size()) return first;
  const Statement* next = only_statement(body[first + 1]);
  const bool pair = next != nullptr && next->kind == Statement::Kind::Update && next->target == start->target;
  return pair ? first + 1 : first;
}

}  // namespace tunewright::loops

#endif
