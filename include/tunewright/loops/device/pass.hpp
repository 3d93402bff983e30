// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/loops/nest.hpp"

/// Common parts of the passes that convert a nest to device form.
namespace tunewright::loops {

/// The loop nest is not a GPU program. The message names the loop or the buffer and the necessary change.
class DeviceFormError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

namespace device {

/// The thread indices of a kernel: the variable and the number of threads of each.
struct ThreadIndices {
  struct Index {
    Var var = 0;
    std::int64_t extent = 1;  ///< 1: the kernel does not use it
  };
  std::array<Index, 3> x_y_z{};

  [[nodiscard]] bool any_used_by(const IndexExpr& e) const;
  [[nodiscard]] bool any_used_by(const std::vector<Guard>& guards) const {
    return std::any_of(guards.begin(), guards.end(), [&](const Guard& g) { return any_used_by(g.value); });
  }
};

/// An element that a statement accesses.
struct Access {
  BufferId buffer = 0;
  IndexExpr offset;  ///< over loop variables
  bool writes = false;
  const program::Operator* writer = nullptr;  ///< the operator whose result is written
  Statement::Kind kind = Statement::Kind::Assign;
};

/// Calls `f(access)` for the accesses of `statement`: first its target, then its loads. An update also reads its
/// target, at the element that it writes.
template <class F>
void visit_accesses(const LoopNest& nest, const Statement& statement, const F& f) {
  f(Access{statement.target, store_offset(nest, statement), true, statement.op.get(), statement.kind});
  if (statement.kind == Statement::Kind::Initialise) return;
  program::visit(statement.op->body, [&](const program::ExprNode& node) {
    if (node.op != program::Op::Load) return;
    const BufferId id = nest.buffer_of.at(node.tensor);
    if (id != LoopNest::no_buffer) f(Access{id, load_offset(nest, statement, node), false});
  });
}

/// Calls `f(content)` for every node of kind `Content` in `body`, at any depth, in order.
template <class Content, class AnyBody, class F>
void visit_nodes(AnyBody& body, const F& f) {
  for (auto& node : body) {
    if (auto* content = std::get_if<Content>(&node.content)) f(*content);
    if (auto* loop = std::get_if<Loop>(&node.content)) visit_nodes<Content>(loop->body, f);
    if (auto* branch = std::get_if<Branch>(&node.content)) {
      visit_nodes<Content>(branch->then, f);
      visit_nodes<Content>(branch->otherwise, f);
    }
  }
}

inline void append(Body& body, Body more) {
  for (Node& node : more) body.push_back(std::move(node));
}

/// Passes the unroll limit of a removed loop to the loops inside it.
void inherit_unroll_limit(Body& body, std::int64_t limit);

[[nodiscard]] inline std::string quoted(const LoopNest& nest, Var var) {
  return "loop '" + nest.variables.at(var).name + "'";
}

/// Whether no two threads access the same element through `a` and `b`: both have the same coefficients for the thread
/// indices, and all other terms stay within one thread's range or are multiples of the range of all threads, so that
/// the element determines the thread. False if that cannot be shown.
[[nodiscard]] bool is_same_thread(const LoopNest& nest, const ThreadIndices& threads, const IndexExpr& a,
                                  const IndexExpr& b);

}  // namespace device
}  // namespace tunewright::loops

#if TUNEWRIGHT_DEFINES(loops)

#include "tunewright/core/order.hpp"

namespace tunewright::loops::device {

TUNEWRIGHT_INLINE bool ThreadIndices::any_used_by(const IndexExpr& e) const {
  return std::any_of(x_y_z.begin(), x_y_z.end(),
                     [&](const Index& index) { return index.extent > 1 && e.uses(index.var); });
}

TUNEWRIGHT_INLINE void inherit_unroll_limit(Body& body, std::int64_t limit) {
  if (limit == 0) return;
  for (Node& node : body) {
    if (auto* loop = std::get_if<Loop>(&node.content)) loop->unroll_limit = std::max(loop->unroll_limit, limit);
    if (auto* branch = std::get_if<Branch>(&node.content)) {
      inherit_unroll_limit(branch->then, limit);
      inherit_unroll_limit(branch->otherwise, limit);
    }
  }
}

TUNEWRIGHT_INLINE bool is_same_thread(const LoopNest& nest, const ThreadIndices& threads, const IndexExpr& a,
                                      const IndexExpr& b) {
  std::vector<std::pair<std::int64_t, std::int64_t>> digits;  // coefficient, extent
  IndexExpr rest_of_a = a, rest_of_b = b;
  std::int64_t all_threads = 1;  // range of all threads together
  for (const ThreadIndices::Index& index : threads.x_y_z) {
    if (index.extent == 1) continue;
    const std::int64_t coefficient = a.coefficient(index.var);
    if (coefficient < 1 || coefficient != b.coefficient(index.var)) return false;
    digits.emplace_back(coefficient, index.extent);
    all_threads = std::max(all_threads, coefficient * index.extent);
    rest_of_a.add(IndexExpr::variable(index.var), -coefficient);
    rest_of_b.add(IndexExpr::variable(index.var), -coefficient);
  }
  if (threads.any_used_by(rest_of_a) || threads.any_used_by(rest_of_b)) return false;
  const auto share = [&](const IndexExpr& rest) {
    IndexExpr within(rest.constant());
    for (const IndexExpr::Term& term : rest.terms()) {
      if (term.coefficient % all_threads != 0) within.add(term);
    }
    return within.range([&nest](Var v) { return nest.range_of(v); });
  };
  const program::Range of_a = share(rest_of_a), of_b = share(rest_of_b);
  std::int64_t span = std::max(of_a.max, of_b.max) - std::min(of_a.min, of_b.min);
  sort_few(digits);
  for (const auto& [coefficient, extent] : digits) {
    if (coefficient <= span) return false;
    span += coefficient * (extent - 1);
  }
  return true;
}

}  // namespace tunewright::loops::device

#endif
