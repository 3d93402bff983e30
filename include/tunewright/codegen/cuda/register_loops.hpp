// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <span>
#include <utility>
#include <variant>

#include "tunewright/codegen/cuda/kernel_parts.hpp"
#include "tunewright/loops/nest.hpp"

/// A thread's own arrays live in registers only where every index is a number after unrolling.
namespace tunewright::codegen::cuda {

/// Whether a buffer may be a thread's own: temporary, and not of the block. Those at the top level are
/// workspace all the same.
[[nodiscard]] inline bool is_of_thread(const loops::LoopNest& nest, BufferId id) {
  return id != loops::LoopNest::no_buffer && nest.buffers[id].role == loops::BufferRole::Temporary &&
         nest.buffers[id].scope != loops::Scope::Shared;
}

/// Statements that nodes come to when the loops that are marked for it are written out; `limit + 1` where there
/// are more. Other loops stay loops.
[[nodiscard]] inline std::int64_t unrolled_statements(const loops::LoopNest& nest,
                                                      std::span<const loops::Node> body, std::int64_t limit) {
  std::int64_t count = 0;
  for (const loops::Node& node : body) {
    if (const auto* loop = std::get_if<loops::Loop>(&node.content)) {
      if (loop->intrinsic != nullptr) {  // one instruction
        ++count;
        continue;
      }
      const std::int64_t inside = unrolled_statements(nest, loop->body, limit);
      const bool unrolled = loop->kind == LoopKind::Unrolled || loop->kind == LoopKind::Vectorized;
      const std::int64_t copies = unrolled ? loops::checked_extent(nest, *loop) : 1;
      count += inside > limit / copies ? limit + 1 : inside * copies;
    } else if (const auto* branch = std::get_if<loops::Branch>(&node.content)) {
      count += unrolled_statements(nest, branch->then, limit) +
               unrolled_statements(nest, branch->otherwise, limit);
    } else if (!std::holds_alternative<loops::Allocate>(node.content)) {
      ++count;
    }
    if (count > limit) return limit + 1;
  }
  return count;
}

namespace detail {

class RegisterLoops {
 public:
  RegisterLoops(loops::LoopNest& nest, std::int64_t limit) : nest_(nest), limit_(limit) {
    for (const loops::Node& node : nest.body) {
      if (const auto* allocate = std::get_if<loops::Allocate>(&node.content))
        workspace_.insert(allocate->buffer);
    }
  }

  void run(loops::Body& body) {
    for (loops::Node& node : body) {
      if (auto* branch = std::get_if<loops::Branch>(&node.content)) {
        run(branch->then);
        run(branch->otherwise);
      }
      auto* loop = std::get_if<loops::Loop>(&node.content);
      if (loop == nullptr || loop->intrinsic != nullptr) continue;
      run(loop->body);
      if (loop->kind == LoopKind::Serial && is_small(*loop) && selects(loop->body, loop->var))
        loop->kind = LoopKind::Unrolled;
    }
  }

 private:
  [[nodiscard]] bool is_small(const loops::Loop& loop) const {
    const std::int64_t inside = unrolled_statements(nest_, loop.body, limit_);
    return inside <= limit_ / loops::checked_extent(nest_, loop);
  }
  [[nodiscard]] bool is_private(BufferId id) const {
    return is_of_thread(nest_, id) && workspace_.count(id) == 0;
  }

  /// Whether an element of a thread's own array is selected by `var`.
  [[nodiscard]] bool selects(std::span<const loops::Node> body, loops::Var var) const {
    return std::any_of(body.begin(), body.end(), [&](const loops::Node& node) {
      if (const auto* loop = std::get_if<loops::Loop>(&node.content)) return selects(loop->body, var);
      if (const auto* branch = std::get_if<loops::Branch>(&node.content))
        return selects(branch->then, var) || selects(branch->otherwise, var);
      if (const auto* reduction = std::get_if<loops::CrossThreadReduction>(&node.content))
        return element_offset(nest_, nest_.buffers[reduction->partial], reduction->axis_values).uses(var);
      const auto* statement = std::get_if<loops::Statement>(&node.content);
      if (statement == nullptr) return false;
      if (is_private(statement->target) && store_offset(nest_, *statement).uses(var)) return true;
      if (statement->kind == loops::Statement::Kind::Initialise) return false;
      bool found = false;
      program::visit(statement->op->body, [&](const program::ExprNode& e) {
        found = found || (e.op == program::Op::Load && is_private(nest_.buffer_of.at(e.tensor)) &&
                          load_offset(nest_, *statement, e).uses(var));
      });
      return found;
    });
  }

  loops::LoopNest& nest_;
  std::int64_t limit_;
  std::set<BufferId> workspace_;
};

}  // namespace detail

/// Unrolls the serial loops whose variables select elements of a thread's own arrays, where that makes at most
/// `limit` statements.
[[nodiscard]] inline loops::LoopNest unroll_register_loops(loops::LoopNest nest, std::int64_t limit) {
  detail::RegisterLoops(nest, limit).run(nest.body);
  return nest;
}

}  // namespace tunewright::codegen::cuda
