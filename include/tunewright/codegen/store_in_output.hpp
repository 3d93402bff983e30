// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/core/target.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/loops/nest.hpp"

/// Temporaries in the memory of an output. A row of a softmax keeps its exponentials until their sum is known; the last
/// pass reads them and writes the result. Stored where the result will be, they need no memory of their own, and the
/// lines of the output come to the caches while exponentials are computed, not in a pass that waits for memory alone:
///
///   for row:                                   for row:
///     t[0, j] = exp(x[row, j])                   y[row, j] = exp(x[row, j])
///     s[0] += t[0, j]                    ->      s[0] += y[row, j]
///     y[row, j] = t[0, j] / s[0]                 y[row, j] = y[row, j] / s[0]
namespace tunewright::codegen {

/// Moves temporaries of threads into the output of an elementwise statement that reads them last, element by element.
/// Semantics are unchanged. Only temporaries larger than the first-level cache of `target` are moved, since smaller
/// ones cost nothing there, and not to outputs that outgrow the caches: those are better written once, around them
/// (`streamed_buffers`). Cost: linear in the statements for each temporary.
[[nodiscard]] loops::LoopNest store_in_output(loops::LoopNest nest, const Target& target);

}  // namespace tunewright::codegen

#if TUNEWRIGHT_DEFINES(codegen)

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "tunewright/codegen/streamed_stores.hpp"
#include "tunewright/core/order.hpp"
#include "tunewright/loops/perfect_nest.hpp"
#include "tunewright/program/expr.hpp"

namespace tunewright::codegen::detail {

class OutputStorage {
 public:
  OutputStorage(loops::LoopNest& nest, const Target& target) : nest_(nest), target_(target) {}

  /// Moves temporaries that are allocated inside the loops of `body`.
  void run(loops::Body& body) {
    for (loops::Node& node : body) {
      auto* loop = std::get_if<loops::Loop>(&node.content);
      if (loop == nullptr) continue;
      around_.push_back(loop->var);
      for (std::size_t n = loop->body.size(); n-- > 0;) {
        const auto* allocate = std::get_if<loops::Allocate>(&loop->body[n].content);
        if (allocate != nullptr && move(allocate->buffer, loop->body))
          loop->body.erase(loop->body.begin() + static_cast<std::ptrdiff_t>(n));
      }
      run(loop->body);
      around_.pop_back();
    }
  }

 private:
  using IndexExpr = loops::IndexExpr;
  using Statement = loops::Statement;

  /// Moves a temporary that is allocated in `body`; returns whether it may be moved.
  [[nodiscard]] bool move(loops::BufferId id, loops::Body& body) {
    const loops::Buffer& temporary = nest_.buffers[id];
    if (!is_plain(temporary) || temporary.bytes() <= static_cast<std::int64_t>(target_.l1_bytes)) return false;
    const auto reads_it = [&](const loops::Node& node) { return !reading(node, temporary.tensor).empty(); };
    const auto last = std::find_if(body.rbegin(), body.rend(), reads_it);
    if (last == body.rend()) return false;
    const Statement* const result = loops::only_statement(*last);
    Statement* const written = only_writer(id, body);
    if (result == nullptr || written == nullptr || written == result || !may_replace(*result, temporary) ||
        !writes_what_is_read(*written, *result, temporary))
      return false;
    for (const loops::Node& node : body) {
      for (const Statement* reader : reading(node, temporary.tensor))
        if (reader->may_overcompute && !reader->guards.empty()) return false;  // it may read beyond the output
    }
    nest_.buffer_of[temporary.tensor] = result->target;
    written->target = result->target;
    written->may_overcompute = false;
    return true;
  }

  [[nodiscard]] static bool is_plain(const loops::Buffer& buffer) {
    return buffer.role == loops::BufferRole::Temporary && buffer.packing.empty() && buffer.private_to.empty() &&
           buffer.stages == 1 && !buffer.view_of;
  }

  /// The statements of `node` that read `tensor`.
  [[nodiscard]] static std::vector<const Statement*> reading(const loops::Node& node, loops::TensorId tensor) {
    std::vector<const Statement*> found;
    const auto add = [&](const Statement& s) {
      bool reads = false;
      program::visit(s.op->body, [&](const program::ExprNode& e) {
        reads = reads || (e.op == program::Op::Load && e.tensor == tensor);
      });
      if (reads) found.push_back(&s);
    };
    if (const auto* loop = std::get_if<loops::Loop>(&node.content)) loops::for_each_statement(loop->body, add);
    if (const auto* statement = std::get_if<Statement>(&node.content)) add(*statement);
    if (const auto* branch = std::get_if<loops::Branch>(&node.content)) {
      loops::for_each_statement(branch->then, add);
      loops::for_each_statement(branch->otherwise, add);
    }
    return found;
  }

  /// The only statement that writes `id`, if it is an assignment in a perfect nest of `body`; else null.
  [[nodiscard]] Statement* only_writer(loops::BufferId id, loops::Body& body) const {
    if (writers(id) != 1) return nullptr;
    for (loops::Node& node : body) {
      Statement* const s = loops::only_statement(node);
      if (s != nullptr && s->target == id) return s->kind == Statement::Kind::Assign ? s : nullptr;
    }
    return nullptr;
  }

  [[nodiscard]] std::size_t writers(loops::BufferId id) const {
    std::size_t count = 0;
    loops::for_each_statement(nest_.body, [&](const Statement& s) { count += s.target == id ? 1 : 0; });
    return count;
  }

  /// Whether `result` alone writes an output, nothing reads that, and each of its elements depends on the element of
  /// `temporary` with the same coordinates and no other.
  [[nodiscard]] bool may_replace(const Statement& result, const loops::Buffer& temporary) const {
    const loops::Buffer& output = nest_.buffers[result.target];
    if (result.kind != Statement::Kind::Assign || output.role != loops::BufferRole::Output ||
        output.type != temporary.type || outgrows_caches(nest_, result.target, target_) || !output.packing.empty() ||
        writers(result.target) != 1)
      return false;
    bool may = true;
    loops::for_each_statement(nest_.body, [&](const Statement& s) {
      program::visit(s.op->body, [&](const program::ExprNode& e) {
        may = may && !(e.op == program::Op::Load && nest_.buffer_of[e.tensor] == result.target);
      });
    });
    program::visit(result.op->body, [&](const program::ExprNode& e) {
      if (e.op != program::Op::Load || e.tensor != temporary.tensor) return;
      may = may && e.indices.size() == result.op->rank();
      for (loops::Var d = 0; may && d < e.indices.size(); ++d) may = e.indices[d] == IndexExpr::variable(d);
    });
    return may;
  }

  /// Whether the elements of the temporary that are written between two allocations are those of the output that are
  /// written then. Otherwise another thread could write to them.
  [[nodiscard]] bool writes_what_is_read(const Statement& written, const Statement& result,
                                         const loops::Buffer& temporary) const {
    if (written.op->shape() != result.op->shape()) return false;
    for (std::size_t d = 0; d < temporary.origin.size(); ++d) {
      const std::optional<std::int64_t> first = covered(written.axis_values[d] - temporary.origin[d]);
      const std::optional<std::int64_t> second = covered(result.axis_values[d] - temporary.origin[d]);
      if (!first || !second) return false;
      const std::int64_t extent = result.op->axes[d].extent;
      const bool whole = temporary.origin[d] == IndexExpr(0) && *second >= extent;
      if (!whole && *first != *second) return false;
    }
    return true;
  }

  /// The number n if `index` takes each of the values 0 to n - 1 and no other between two allocations: the loops around
  /// them do not move it.
  [[nodiscard]] std::optional<std::int64_t> covered(const IndexExpr& index) const {
    if (index.constant() != 0) return std::nullopt;
    std::vector<IndexExpr::Term> terms(index.terms().begin(), index.terms().end());
    sort_few(terms, [](const IndexExpr::Term& a, const IndexExpr::Term& b) { return a.coefficient < b.coefficient; });
    std::int64_t count = 1;
    for (const IndexExpr::Term& term : terms) {
      if (term.kind != IndexExpr::Kind::Variable || term.coefficient < 1 || term.coefficient > count)
        return std::nullopt;
      if (std::find(around_.begin(), around_.end(), term.var) != around_.end()) return std::nullopt;
      count += term.coefficient * (nest_.variables[term.var].extent - 1);
    }
    return count;
  }

  loops::LoopNest& nest_;
  const Target& target_;
  std::vector<loops::Var> around_;  // variables of the loops around the present body
};

}  // namespace tunewright::codegen::detail

namespace tunewright::codegen {

TUNEWRIGHT_INLINE loops::LoopNest store_in_output(loops::LoopNest nest, const Target& target) {
  detail::OutputStorage(nest, target).run(nest.body);
  return nest;
}

}  // namespace tunewright::codegen

#endif
