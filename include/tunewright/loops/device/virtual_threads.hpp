// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/loops/device/pass.hpp"

namespace tunewright::loops::device {

/// Moves loops over virtual threads inwards: past reduction loops and past nodes that do not depend on them, such as
/// copies that all threads of a block execute together, which then run once. Dependent nodes are put into an unrolled
/// loop, and buffers whose contents differ between virtual threads get one copy each.
class VirtualThreads {
 public:
  explicit VirtualThreads(LoopNest& nest) : nest_(nest) {}

  void run(Body& body) {
    Body result;
    for (Node& node : body) {
      auto* loop = std::get_if<Loop>(&node.content);
      if (loop != nullptr && loop->kind == LoopKind::VirtualThread) {
        Body inside = std::move(loop->body);
        inherit_unroll_limit(inside, loop->unroll_limit);
        push_inwards(loop->var, inside);
        run(inside);  // the next virtual thread
        append(result, std::move(inside));
        continue;
      }
      if (loop != nullptr) run(loop->body);
      if (auto* branch = std::get_if<Branch>(&node.content)) {
        run(branch->then);
        run(branch->otherwise);
      }
      result.push_back(std::move(node));
    }
    body = std::move(result);
  }

 private:
  void push_inwards(Var var, Body& body) {
    var_ = var;
    depends_.assign(nest_.buffers.size(), 0);
    allocated_.assign(nest_.buffers.size(), 0);
    visit_nodes<Allocate>(body, [this](const Allocate& a) { allocated_[a.buffer] = 1; });
    for (BufferId id = 0; id < nest_.buffers.size(); ++id) {
      if (allocated_[id] != 0) depends_[id] = uses(nest_.buffers[id].origin);
    }
    do {
      grew_ = false;
      mark_dependent(body, false);
    } while (grew_);
    const std::int64_t extent = nest_.variables[var].extent;
    for (BufferId id = 0; id < nest_.buffers.size(); ++id) {
      if (allocated_[id] != 0 && depends_[id] != 0) nest_.buffers[id].private_to.push_back({var, extent});
    }
    body = distributed(std::move(body));
  }

  [[nodiscard]] bool uses(const std::vector<IndexExpr>& values) const {
    return std::any_of(values.begin(), values.end(), [this](const IndexExpr& e) { return e.uses(var_); });
  }
  [[nodiscard]] bool uses(const std::vector<Guard>& guards) const {
    return std::any_of(guards.begin(), guards.end(), [this](const Guard& g) { return g.value.uses(var_); });
  }

  [[nodiscard]] bool depends(const Statement& s) const {
    if (uses(s.axis_values) || uses(s.guards) || depends_[s.target] != 0) return true;
    bool found = false;
    if (s.kind == Statement::Kind::Initialise) return found;
    program::visit(s.op->body, [&](const program::ExprNode& node) {
      if (node.op != program::Op::Load) return;
      const BufferId id = nest_.buffer_of.at(node.tensor);
      found = found || (id != LoopNest::no_buffer && depends_[id] != 0);
    });
    return found;
  }
  [[nodiscard]] bool depends(const CrossThreadReduction& r) const {
    return uses(r.axis_values) || uses(r.guards) || depends_[r.target] != 0 || depends_[r.partial] != 0;
  }

  /// Marks buffers written by dependent statements, whose contents differ between virtual threads.
  void mark_dependent(const Body& body, bool inside) {
    const auto mark = [&](BufferId target) {
      if (allocated_[target] == 0 || depends_[target] != 0) return;
      depends_[target] = 1;
      grew_ = true;
    };
    for (const Node& node : body) {
      if (const auto* loop = std::get_if<Loop>(&node.content)) mark_dependent(loop->body, inside);
      if (const auto* branch = std::get_if<Branch>(&node.content)) {
        const bool condition = inside || uses(branch->conditions);
        mark_dependent(branch->then, condition);
        mark_dependent(branch->otherwise, condition);
      }
      const auto* statement = std::get_if<Statement>(&node.content);
      if (statement != nullptr && (inside || depends(*statement))) mark(statement->target);
      const auto* reduction = std::get_if<CrossThreadReduction>(&node.content);
      if (reduction != nullptr && (inside || depends(*reduction))) mark(reduction->target);
    }
  }

  /// Whether some or all of a node depends on the virtual thread, and whether it reduces.
  struct Content {
    bool some = false;
    bool all = true;
    bool reduces = false;
  };
  [[nodiscard]] Content content_of(const Node& node) const {
    Content c;
    const auto note = [&c](bool dependent) {
      c.some = c.some || dependent;
      c.all = c.all && dependent;
    };
    const auto note_all = [&](const Body& body) {
      for (const Node& inner : body) {
        const Content i = content_of(inner);
        c = {c.some || i.some, c.all && i.all, c.reduces || i.reduces};
      }
    };
    if (const auto* loop = std::get_if<Loop>(&node.content)) {
      note_all(loop->body);
      c.reduces = c.reduces || loop->reduction;
    } else if (const auto* branch = std::get_if<Branch>(&node.content)) {
      note_all(branch->then);
      note_all(branch->otherwise);
      if (uses(branch->conditions)) c = {true, true, false};  // branches are moved as a whole
    } else if (const auto* statement = std::get_if<Statement>(&node.content)) {
      note(depends(*statement));
    } else if (const auto* reduction = std::get_if<CrossThreadReduction>(&node.content)) {
      note(depends(*reduction));
    }
    return c;
  }

  Body distributed(Body body) const {
    Body result;
    for (Node& node : body) {
      const Content content = content_of(node);
      if (content.some && content.all && !content.reduces) {
        Loop each;
        each.var = var_;
        each.kind = LoopKind::Unrolled;
        each.body.push_back(std::move(node));
        result.push_back(std::move(each));
        continue;
      }
      if (content.some) {
        if (auto* loop = std::get_if<Loop>(&node.content)) loop->body = distributed(std::move(loop->body));
        if (auto* branch = std::get_if<Branch>(&node.content)) {
          branch->then = distributed(std::move(branch->then));
          branch->otherwise = distributed(std::move(branch->otherwise));
        }
      }
      result.push_back(std::move(node));
    }
    return result;
  }

  LoopNest& nest_;
  Var var_ = 0;
  std::vector<char> depends_;    // by buffer
  std::vector<char> allocated_;  // by buffer: allocated inside the loop
  bool grew_ = false;
};

}  // namespace tunewright::loops::device
