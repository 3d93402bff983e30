// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/loops/device/pass.hpp"

namespace tunewright::loops::device {

/// Converts the body of a block, which may have several consecutive loops over threads, to the code of one thread:
/// loops bound to thread indices become variables, with a condition if a loop is shorter than another one.
///
/// Serial loops around loops over threads are only allowed for reductions, whose iterations belong to one statement;
/// all other loops over threads must be outermost.
class ThreadBody {
 public:
  /// `lanes_anywhere`: loops over ThreadX may be inside other loops, because warps execute those as a whole.
  ThreadBody(LoopNest& nest, ThreadIndices& threads, bool lanes_anywhere)
      : nest_(nest), threads_(threads), lanes_anywhere_(lanes_anywhere) {}

  /// Rewrites `body`, sets the thread indices, and makes unowned memory private to threads.
  void run(Body& body) {
    visit_nodes<Loop>(body, [this](const Loop& loop) {
      if (!schedule::is_thread_index(loop.kind)) return;
      ThreadIndices::Index& index = threads_.x_y_z[schedule::dimension_of_index(loop.kind)];
      const std::int64_t extent = nest_.variables[loop.var].extent;
      if (extent > index.extent) index = {loop.var, extent};
    });
    find_privates(body, {});
    body = flattened(std::move(body), {}, 0);
    for (const auto& [from, to] : renamed_) rename(body, from, to);
    check_privates();
  }

 private:
  using Bound = std::array<bool, 3>;

  /// Finds Local buffers that are thread-private because of where they are allocated, and those that are so only if no
  /// other thread reads them.
  void find_privates(const Body& body, const Bound& bound) {
    for (const Node& node : body) {
      if (const auto* loop = std::get_if<Loop>(&node.content)) {
        Bound inside = bound;
        if (schedule::is_thread_index(loop->kind)) inside[schedule::dimension_of_index(loop->kind)] = true;
        find_privates(loop->body, inside);
      } else if (const auto* branch = std::get_if<Branch>(&node.content)) {
        find_privates(branch->then, bound);
        find_privates(branch->otherwise, bound);
      } else if (const auto* allocate = std::get_if<Allocate>(&node.content)) {
        Buffer& buffer = nest_.buffers.at(allocate->buffer);
        if (buffer.scope == Scope::Global) buffer.scope = Scope::Local;
        bool of_thread = true;
        for (std::size_t i = 0; i < bound.size(); ++i)
          of_thread = of_thread && (bound[i] || threads_.x_y_z[i].extent == 1);
        if (buffer.scope == Scope::Local && !of_thread) outside_threads_.insert(allocate->buffer);
      } else if (const auto* statement = std::get_if<Statement>(&node.content)) {
        visit_accesses(nest_, *statement, [&](const Access& access) {
          if (outside_threads_.count(access.buffer) != 0) touches_.push_back({access, bound});
        });
      } else if (const auto* reduction = std::get_if<CrossThreadReduction>(&node.content)) {
        combined_.insert(reduction->partial);
        if (outside_threads_.count(reduction->target) == 0) continue;
        Statement stored;
        stored.target = reduction->target;
        stored.op = reduction->op;
        stored.axis_values = reduction->axis_values;
        Bound differing = bound;  // all threads whose values are combined receive the result
        for (std::size_t i = 0; i < bound.size(); ++i) differing[i] = bound[i] && !reduction->over[i];
        touches_.push_back({Access{reduction->target, store_offset(nest_, stored), true}, differing});
      }
    }
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw DeviceFormError("kernel '" + nest_.name + "': " + what);
  }

  Body flattened(Body body, const Bound& bound, int serial) {
    Body result;
    for (Node& node : body) {
      if (auto* loop = std::get_if<Loop>(&node.content)) {
        append(result, flattened_loop(std::move(*loop), bound, serial));
        continue;
      }
      if (auto* branch = std::get_if<Branch>(&node.content)) {
        branch->then = flattened(std::move(branch->then), bound, serial);
        branch->otherwise = flattened(std::move(branch->otherwise), bound, serial);
      }
      result.push_back(std::move(node));
    }
    return result;
  }

  Body flattened_loop(Loop loop, Bound bound, int serial) {
    if (loop.kind == LoopKind::Parallel) {
      refuse(quoted(nest_, loop.var) + " is parallel, which only CPUs have; bind it to blocks or threads");
    }
    const bool is_bound = schedule::is_hardware_index(loop.kind);
    const bool anywhere = loop.reduction || (lanes_anywhere_ && loop.kind == LoopKind::ThreadX);
    if (is_bound && (!schedule::is_thread_index(loop.kind) || (serial > 0 && !anywhere))) {
      refuse(quoted(nest_, loop.var) + " is bound to " + std::string(name(loop.kind)) +
             " inside of other loops or beside other work; make it outermost");
    }
    Body result;
    if (!is_bound) {
      const bool counts = loop.kind != LoopKind::VirtualThread;
      loop.body = flattened(std::move(loop.body), bound, serial + (counts ? 1 : 0));
      result.push_back(std::move(loop));
      return result;
    }
    const std::size_t place = schedule::dimension_of_index(loop.kind);
    if (bound[place])
      refuse(quoted(nest_, loop.var) + " is bound to " + std::string(name(loop.kind)) + " as is one around it");
    bound[place] = true;
    result = flattened(std::move(loop.body), bound, serial);
    inherit_unroll_limit(result, loop.unroll_limit);
    const ThreadIndices::Index& index = threads_.x_y_z[place];
    if (loop.var != index.var) renamed_.emplace_back(loop.var, index.var);
    const std::int64_t extent = nest_.variables[loop.var].extent;
    if (extent == index.extent) return result;
    return restricted({IndexExpr::variable(index.var), extent, false, true, Guard::no_axis}, std::move(result));
  }

  /// Restricts `body` to the threads that satisfy `condition`. Cross-thread reductions, and the values that they
  /// combine, are still executed by all threads.
  Body restricted(const Guard& condition, Body body) const {
    const auto is_combination = [&](const Node& node) {
      bool combines = false;
      const Body one{node};
      visit_nodes<CrossThreadReduction>(one, [&](const CrossThreadReduction&) { combines = true; });
      visit_nodes<Statement>(one, [&](const Statement& s) {
        combines = combines || (s.kind == Statement::Kind::Initialise && combined_.count(s.target) != 0);
      });
      return combines;
    };
    Body result, rest;
    const auto flush = [&] {
      if (!rest.empty()) result.push_back(Branch{{condition}, std::move(rest), {}});
      rest.clear();
    };
    const bool whole = std::none_of(body.begin(), body.end(), is_combination);
    for (Node& node : body) {
      if (!whole && std::holds_alternative<Allocate>(node.content)) {
        result.push_back(std::move(node));  // later nodes outside of the branch may need it
      } else if (is_combination(node)) {
        flush();
        if (auto* loop = std::get_if<Loop>(&node.content)) {
          loop->body = restricted(condition, std::move(loop->body));
        } else if (auto* branch = std::get_if<Branch>(&node.content)) {
          branch->then = restricted(condition, std::move(branch->then));
          branch->otherwise = restricted(condition, std::move(branch->otherwise));
        } else if (auto* reduction = std::get_if<CrossThreadReduction>(&node.content)) {
          reduction->guards.push_back(condition);
        }
        result.push_back(std::move(node));
      } else {
        rest.push_back(std::move(node));
      }
    }
    flush();
    return result;
  }

  void rename(IndexExpr& e, Var from, Var to) const {
    if (!e.uses(from)) return;
    e = e.substitute([&](Var v) { return IndexExpr::variable(v == from ? to : v); },
                     [this](Var v) { return nest_.range_of(v); });
  }
  void rename(std::vector<Guard>& guards, Var from, Var to) const {
    for (Guard& guard : guards) rename(guard.value, from, to);
  }
  void rename(Body& body, Var from, Var to) {
    const auto rename_all = [&](auto& content) {
      for (IndexExpr& value : content.axis_values) rename(value, from, to);
      rename(content.guards, from, to);
    };
    visit_nodes<Statement>(body, rename_all);
    visit_nodes<CrossThreadReduction>(body, rename_all);
    visit_nodes<Branch>(body, [&](Branch& branch) { rename(branch.conditions, from, to); });
    for (Buffer& buffer : nest_.buffers) {
      for (IndexExpr& origin : buffer.origin) rename(origin, from, to);
    }
    for (Touch& touch : touches_) rename(touch.access.offset, from, to);
  }

  /// A Local buffer that is allocated per block becomes thread-private, which is only equivalent if threads read what
  /// they have written themselves.
  void check_privates() const {
    for (const Touch& written : touches_) {
      if (!written.access.writes) continue;
      for (const Touch& read : touches_) {
        if (read.access.writes || read.access.buffer != written.access.buffer) continue;
        ThreadIndices writers = threads_;
        for (std::size_t i = 0; i < writers.x_y_z.size(); ++i) {
          if (!written.bound[i]) writers.x_y_z[i].extent = 1;  // all threads along it write the element
        }
        if (is_same_thread(nest_, writers, written.access.offset, read.access.offset)) continue;
        refuse("'" + nest_.buffers[written.access.buffer].name +
               "' is local to a thread but read by others; keep it in shared memory");
      }
    }
  }

  struct Touch {
    Access access;
    Bound bound;
  };

  LoopNest& nest_;
  ThreadIndices& threads_;
  bool lanes_anywhere_;
  std::vector<std::pair<Var, Var>> renamed_;
  std::set<BufferId> outside_threads_;
  std::set<BufferId> combined_;
  std::vector<Touch> touches_;
};

/// Lets one thread execute work that all threads would repeat: if a store to shared or global memory does not depend on
/// a thread index, only the threads with index 0 execute it.
class SingleStores {
 public:
  SingleStores(const LoopNest& nest, const ThreadIndices& threads) : nest_(nest), threads_(threads) {}

  void run(Body& body) const { run(body, {}); }

 private:
  using Indices = std::array<bool, 3>;

  /// `single`: indices for which only 0 reaches the body.
  void run(Body& body, const Indices& single) const {
    for (Node& node : body) {
      if (auto* loop = std::get_if<Loop>(&node.content)) {
        Indices inside = single;
        inside[0] = inside[0] || loop->intrinsic != nullptr;  // a warp executes it once
        run(loop->body, inside);
      }
      if (auto* branch = std::get_if<Branch>(&node.content)) {
        Indices inside = single;
        for (std::size_t i = 0; i < inside.size(); ++i) inside[i] = inside[i] || leaves_one(*branch, threads_.x_y_z[i]);
        run(branch->then, inside);
        run(branch->otherwise, single);
      }
      if (auto* reduction = std::get_if<CrossThreadReduction>(&node.content)) {
        const Buffer& target = nest_.buffers[reduction->target];
        if (target.scope == Scope::Local) continue;
        for (Guard& guard : idle(element_offset(nest_, target, reduction->axis_values), reduction->over))
          reduction->guards.push_back(std::move(guard));
      }
      if (auto* statement = std::get_if<Statement>(&node.content)) {
        const Scope scope = nest_.buffers[statement->target].scope;
        if (scope == Scope::Local || scope == Scope::Accumulator) continue;
        std::vector<Guard> guards = idle(store_offset(nest_, *statement), single);
        if (guards.empty()) continue;
        Body one;
        one.push_back(std::move(node));
        node = Branch{std::move(guards), std::move(one), {}};
      }
    }
  }

  static bool leaves_one(const Branch& branch, const ThreadIndices::Index& index) {
    return std::any_of(branch.conditions.begin(), branch.conditions.end(), [&](const Guard& g) {
      return g.above && g.extent == 1 && g.value == IndexExpr::variable(index.var);
    });
  }

  /// Conditions that select one thread for every value of `offset`, except for the indices `but`.
  [[nodiscard]] std::vector<Guard> idle(const IndexExpr& offset, const Indices& but) const {
    std::vector<Guard> guards;
    for (std::size_t i = 0; i < threads_.x_y_z.size(); ++i) {
      const ThreadIndices::Index& index = threads_.x_y_z[i];
      if (index.extent == 1 || offset.uses(index.var) || but[i]) continue;
      guards.push_back({IndexExpr::variable(index.var), 1, false, true, Guard::no_axis});
    }
    return guards;
  }

  const LoopNest& nest_;
  const ThreadIndices& threads_;
};

/// Hoists branches that are alone in a loop and do not depend on its variable.
inline void hoist_branches(Body& body) {
  for (Node& node : body) {
    if (auto* branch = std::get_if<Branch>(&node.content)) {
      hoist_branches(branch->then);
      hoist_branches(branch->otherwise);
    }
    auto* loop = std::get_if<Loop>(&node.content);
    if (loop == nullptr) continue;
    hoist_branches(loop->body);
    if (loop->body.size() != 1) continue;
    auto* branch = std::get_if<Branch>(&loop->body[0].content);
    if (branch == nullptr || !branch->otherwise.empty()) continue;
    const Var var = loop->var;
    if (std::any_of(branch->conditions.begin(), branch->conditions.end(),
                    [var](const Guard& g) { return g.value.uses(var); }))
      continue;
    Branch outer{std::move(branch->conditions), {}, {}};
    Body inside = std::move(branch->then);
    loop->body = std::move(inside);
    outer.then.push_back(std::move(node));
    node = std::move(outer);
  }
}

}  // namespace tunewright::loops::device
