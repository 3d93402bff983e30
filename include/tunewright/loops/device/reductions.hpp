// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/loops/device/pass.hpp"

namespace tunewright::loops::device {

/// Makes cross-thread reductions explicit: if a loop over a reduction axis is bound to a thread index, each thread
/// reduces its share into its own Local buffer, and a `CrossThreadReduction` combines these.
///
///   C[i] = 0                                   allocate C.partial local
///   for k.0 serial reduction:                  C.partial[i] = 0
///     for k.1 thread_x reduction:        ->    for k.0: for k.1 thread_x: C.partial[i] += ..
///       C[i] += ..                             C[i] = sum over thread_x of C.partial[i]
class ReductionsByThreads {
 public:
  explicit ReductionsByThreads(LoopNest& nest) : nest_(nest) {}

  /// `blocks`: the loops around `body`.
  void run(Body& body, const std::vector<Loop>& blocks) {
    around_.assign(nest_.variables.size(), 0);
    for (const Loop& loop : blocks) around_[loop.var] = 1;
    visit_nodes<Loop>(body, [this](const Loop& loop) {
      if (schedule::is_thread_index(loop.kind)) thread_variables_.push_back(loop.var);
    });
    run_inside(body);
  }

 private:
  void run_inside(Body& body) {
    split_reductions(body);
    for (Node& node : body) {
      if (auto* loop = std::get_if<Loop>(&node.content)) {
        around_[loop->var] = 1;
        run_inside(loop->body);
        around_[loop->var] = 0;
      }
      if (auto* branch = std::get_if<Branch>(&node.content)) {
        run_inside(branch->then);
        run_inside(branch->otherwise);
      }
    }
  }

  using Indices = std::array<bool, 3>;

  /// Finds the thread indices to which reduction loops around the update of `target` are bound.
  static bool find_update(std::span<const Node> body, BufferId target, Indices over, Indices& found) {
    return std::any_of(body.begin(), body.end(), [&](const Node& node) {
      if (const auto* loop = std::get_if<Loop>(&node.content)) {
        Indices inside = over;
        if (loop->reduction && schedule::is_thread_index(loop->kind))
          inside[schedule::dimension_of_index(loop->kind)] = true;
        return find_update(loop->body, target, inside, found);
      }
      if (const auto* branch = std::get_if<Branch>(&node.content)) {
        return find_update(branch->then, target, over, found) || find_update(branch->otherwise, target, over, found);
      }
      const auto* statement = std::get_if<Statement>(&node.content);
      if (statement == nullptr || statement->target != target || statement->kind != Statement::Kind::Update)
        return false;
      found = over;
      return true;
    });
  }

  /// The initialisation in loops without other content, or null.
  static const Statement* initialisation(const Node& node) {
    const Node* inner = &node;
    while (const auto* loop = std::get_if<Loop>(&inner->content)) {
      if (loop->body.size() != 1) return nullptr;
      inner = &loop->body[0];
    }
    const auto* statement = std::get_if<Statement>(&inner->content);
    return statement != nullptr && statement->kind == Statement::Kind::Initialise ? statement : nullptr;
  }

  void split_reductions(Body& body) {
    for (std::size_t n = 0; n < body.size(); ++n) {
      const Statement* initialise = initialisation(body[n]);
      if (initialise == nullptr) continue;
      const BufferId target = initialise->target;
      for (std::size_t m = n + 1; m < body.size(); ++m) {
        Indices over{};
        if (!find_update(std::span<const Node>(&body[m], 1), target, {}, over)) continue;
        if (over == Indices{}) break;
        const BufferId partial = add_partial(*initialise);
        Node combine = combination(body[n], partial, over);
        Body inner;
        inner.push_back(std::move(body[n]));
        retarget(inner, target, partial);
        body[n] = std::move(inner[0]);
        inner[0] = std::move(body[m]);
        retarget(inner, target, partial);
        body[m] = std::move(inner[0]);
        body.insert(body.begin() + static_cast<std::ptrdiff_t>(m + 1), std::move(combine));
        body.insert(body.begin() + static_cast<std::ptrdiff_t>(n), Node(Allocate{partial}));
        n = m + 1;
        break;
      }
    }
  }

  /// Adds a Local buffer for the result of inner loops; each thread has its own, so thread indices count as surrounding
  /// loops.
  BufferId add_partial(const Statement& initialise) {
    const auto range_of = [this](Var v) { return nest_.range_of(v); };
    Buffer partial = nest_.buffers[initialise.target];
    partial.name += ".partial";
    partial.scope = Scope::Local;
    partial.role = BufferRole::Temporary;
    partial.packing.clear();
    for (std::size_t d = 0; d < partial.shape.size(); ++d) {
      const IndexExpr& value = initialise.axis_values[d];
      IndexExpr outer, inner(value.constant());
      bool mixed = false;
      for (const IndexExpr::Term& term : value.terms()) {
        const auto [uses_outer, uses_inner] = variables_used(IndexExpr::from_term(term));
        mixed = mixed || (uses_outer && uses_inner);
        (uses_inner ? inner : outer).add(term);
      }
      const program::Range range = mixed ? value.range(range_of) : inner.range(range_of);
      partial.origin[d] = (mixed ? IndexExpr() : outer) + IndexExpr(range.min);
      partial.shape[d] = range.extent();
    }
    nest_.buffers.push_back(std::move(partial));
    return static_cast<BufferId>(nest_.buffers.size() - 1);
  }

  [[nodiscard]] std::pair<bool, bool> variables_used(const IndexExpr& e) const {
    std::pair<bool, bool> used{false, false};
    for (Var v = 0; v < around_.size(); ++v) {
      if (e.uses(v)) (around_[v] != 0 || is_thread(v) ? used.first : used.second) = true;
    }
    return used;
  }
  [[nodiscard]] bool is_thread(Var var) const {
    return std::find(thread_variables_.begin(), thread_variables_.end(), var) != thread_variables_.end();
  }

  /// The loops of `initialise`, around the combination of the elements that it initialises.
  Node combination(const Node& initialise, BufferId partial, Indices over) {
    if (const auto* loop = std::get_if<Loop>(&initialise.content)) {
      Loop copy;
      copy.var = loop->var;
      copy.kind = loop->kind == LoopKind::Vectorized ? LoopKind::Unrolled : loop->kind;
      copy.body.push_back(combination(loop->body[0], partial, over));
      return copy;
    }
    const auto& statement = std::get<Statement>(initialise.content);
    CrossThreadReduction reduction;
    reduction.partial = partial;
    reduction.target = statement.target;
    reduction.op = statement.op;
    reduction.axis_values.assign(
        statement.axis_values.begin(),
        statement.axis_values.begin() + static_cast<std::ptrdiff_t>(nest_.buffers[statement.target].shape.size()));
    reduction.guards = statement.guards;
    reduction.over = over;
    return reduction;
  }

  /// Redirects updates of `from` to `to`, which every thread initialises entirely.
  static void retarget(Body& body, BufferId from, BufferId to) {
    visit_nodes<Statement>(body, [&](Statement& s) {
      if (s.target != from || s.kind == Statement::Kind::Assign) return;
      s.target = to;
      s.may_overcompute = true;
      if (s.kind == Statement::Kind::Initialise) s.guards.clear();
    });
  }

  LoopNest& nest_;
  std::vector<char> around_;
  std::vector<Var> thread_variables_;
};

}  // namespace tunewright::loops::device
