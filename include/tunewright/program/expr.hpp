// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tunewright/core/function_ref.hpp"
#include "tunewright/core/hash.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/program/index_expr.hpp"
#include "tunewright/program/scalar_type.hpp"

namespace tunewright::program {

/// Number of a tensor, equal to that of the operator that computes it. No schedule step changes it.
using TensorId = std::uint32_t;

// clang-format off
enum class Op : std::uint8_t {
  Constant,  ///< `value`
  Index,     ///< `index` as an Int64
  Load,      ///< element `indices` of tensor `tensor`
  Negate, Abs, Exp, Log, Sqrt, Tanh, Erf,
  Cast,      ///< argument 0 converted to `type`, see `converted`
  Not,
  Add, Subtract, Multiply,
  Divide,    ///< of integers: the quotient without its fraction
  Min, Max,
  Less, LessEqual, Equal, And, Or,  ///< Bool; comparisons take two equal types
  Select,    ///< argument 0 ? argument 1 : argument 2; the one not taken is not evaluated, so it may be out of bounds
};
// clang-format on

[[nodiscard]] constexpr std::size_t arguments_of(Op op) noexcept {
  return op < Op::Negate ? 0 : op < Op::Add ? 1 : op < Op::Select ? 2 : 3;
}

struct ExprNode;

/// Immutable scalar expression with shared structure: the body of an operator over its axes. Cheap to copy.
class Expr {
 public:
  Expr() = default;
  explicit Expr(std::shared_ptr<const ExprNode> node) : node_(std::move(node)) {}
  /// A number is a Float32 constant, which takes the type of the other operand; `cast` gives other types. `bool` is
  /// excluded, so that `expr && flag` tests whether `expr` is nonempty.
  template <class T>
    requires(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>)
  Expr(T value);  // NOLINT: numbers read well in bodies
  [[nodiscard]] explicit operator bool() const noexcept { return node_ != nullptr; }
  const ExprNode& operator*() const noexcept { return *node_; }
  const ExprNode* operator->() const noexcept { return node_.get(); }
  [[nodiscard]] const ExprNode* get() const noexcept { return node_.get(); }

 private:
  std::shared_ptr<const ExprNode> node_;
};

struct ExprNode {
  Op op = Op::Constant;
  ScalarType type = ScalarType::Float32;
  double value = 0;
  TensorId tensor = 0;
  std::uint32_t levels = 1;  ///< those of the deepest argument and one more; `make_expr` counts them
  IndexExpr index{};
  std::vector<IndexExpr> indices{};
  std::vector<Expr> args{};
};

/// Maximum levels of an expression: what walks through one calls itself once for each, and so does its destructor.
inline constexpr std::uint32_t most_levels = 6000;

namespace detail {
[[noreturn]] void refuse_levels(std::uint32_t levels);
}  // namespace detail

/// The node as an expression. Throws `std::invalid_argument` for more than `most_levels` levels.
inline Expr make_expr(ExprNode node) {
  node.levels = 1;
  for (const Expr& arg : node.args) node.levels = std::max(node.levels, arg->levels + 1);
  if (node.levels > most_levels) detail::refuse_levels(node.levels);
  return Expr(std::make_shared<const ExprNode>(std::move(node)));
}

inline Expr constant(double value, ScalarType type) {
  return make_expr({.op = Op::Constant, .type = type, .value = value});
}
template <class T>
  requires(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>)
Expr::Expr(T value) : Expr(constant(static_cast<double>(value), ScalarType::Float32)) {}
inline Expr index_value(IndexExpr index) {
  return make_expr({.op = Op::Index, .type = ScalarType::Int64, .index = std::move(index)});
}
inline Expr load(TensorId tensor, ScalarType type, std::vector<IndexExpr> indices) {
  return make_expr({.op = Op::Load, .type = type, .tensor = tensor, .indices = std::move(indices)});
}
Expr cast(Expr a, ScalarType type);
/// `a` in the type in which sums of such elements are computed: see `accumulator_type`.
[[nodiscard]] inline Expr widened(Expr a) {
  const ScalarType type = accumulator_type(a->type);
  return cast(std::move(a), type);
}

namespace detail {
Expr unary(Op op, Expr a);
/// A constant takes the type of the other operand; otherwise both are widened to their common type.
void unify(Expr& a, Expr& b);
Expr binary(Op op, Expr a, Expr b);
Expr predicate(Op op, Expr a, Expr b);
}  // namespace detail

inline Expr operator+(Expr a, Expr b) { return detail::binary(Op::Add, std::move(a), std::move(b)); }
inline Expr operator-(Expr a, Expr b) { return detail::binary(Op::Subtract, std::move(a), std::move(b)); }
inline Expr operator*(Expr a, Expr b) { return detail::binary(Op::Multiply, std::move(a), std::move(b)); }
inline Expr operator/(Expr a, Expr b) { return detail::binary(Op::Divide, std::move(a), std::move(b)); }
inline Expr operator-(Expr a) { return detail::unary(Op::Negate, std::move(a)); }
inline Expr min(Expr a, Expr b) { return detail::binary(Op::Min, std::move(a), std::move(b)); }
inline Expr max(Expr a, Expr b) { return detail::binary(Op::Max, std::move(a), std::move(b)); }
inline Expr abs(Expr a) { return detail::unary(Op::Abs, std::move(a)); }
inline Expr exp(Expr a) { return detail::unary(Op::Exp, std::move(a)); }
inline Expr log(Expr a) { return detail::unary(Op::Log, std::move(a)); }
inline Expr sqrt(Expr a) { return detail::unary(Op::Sqrt, std::move(a)); }
inline Expr tanh(Expr a) { return detail::unary(Op::Tanh, std::move(a)); }
inline Expr erf(Expr a) { return detail::unary(Op::Erf, std::move(a)); }
inline Expr operator<(Expr a, Expr b) { return detail::predicate(Op::Less, std::move(a), std::move(b)); }
inline Expr operator<=(Expr a, Expr b) { return detail::predicate(Op::LessEqual, std::move(a), std::move(b)); }
inline Expr operator>(Expr a, Expr b) { return detail::predicate(Op::Less, std::move(b), std::move(a)); }
inline Expr operator>=(Expr a, Expr b) { return detail::predicate(Op::LessEqual, std::move(b), std::move(a)); }
inline Expr equal(Expr a, Expr b) { return detail::predicate(Op::Equal, std::move(a), std::move(b)); }
inline Expr operator&&(Expr a, Expr b) { return detail::predicate(Op::And, std::move(a), std::move(b)); }
inline Expr operator||(Expr a, Expr b) { return detail::predicate(Op::Or, std::move(a), std::move(b)); }
/// Not `operator!`, which on an `Expr` tests whether it is empty.
inline Expr logical_not(Expr a) { return detail::unary(Op::Not, std::move(a)); }
/// Throws `std::invalid_argument` unless the condition is a Bool, as a comparison is: code generators and the evaluator
/// do not agree on which other numbers are true.
Expr select(Expr condition, Expr a, Expr b);
/// 0 <= index < extent, as a Bool.
inline Expr in_bounds(const IndexExpr& index, std::int64_t extent) {
  return index_value(IndexExpr(0)) <= index_value(index) && index_value(index) < index_value(IndexExpr(extent));
}

/// Rebuilds `e` bottom-up: `f(node)` returns a replacement for a node whose arguments are already rebuilt, or an empty
/// `Expr` to keep it. It is called once for each node, however often that is used, so what is shared stays shared,
/// changed or not. Cost: O(nodes).
[[nodiscard]] Expr rewrite(const Expr& e, FunctionRef<Expr(const Expr&)> f);

/// Replaces the variables of every index in `e` by `expression_of(var)`; `range_of` are the ranges of the new
/// variables.
template <class ExpressionOf>
[[nodiscard]] Expr substitute_indices(const Expr& e, const ExpressionOf& expression_of, IndexExpr::RangeOf range_of) {
  return rewrite(e, [&](const Expr& node) -> Expr {
    if (node->op != Op::Index && node->op != Op::Load) return {};
    ExprNode copy = *node;
    copy.index = copy.index.substitute(expression_of, range_of);
    for (IndexExpr& index : copy.indices) index = index.substitute(expression_of, range_of);
    return make_expr(std::move(copy));
  });
}

/// Calls `f(node)` for every node, arguments first; for one that is used several times, each time.
void visit(const Expr& e, FunctionRef<void(const ExprNode&)> f);

/// The distinct parts of expressions, compared by content: what a compiler evaluates once. The expressions must outlive
/// it.
class DistinctParts {
 public:
  /// Calls `f(node)` for every part of `e` that equals none before it, nor one of an earlier call, arguments first.
  /// Cost: O(nodes), however often each is used.
  void visit(const Expr& e, FunctionRef<void(const ExprNode&)> f) { static_cast<void>(add(e, f)); }

 private:
  std::uint64_t add(const Expr& e, FunctionRef<void(const ExprNode&)> f);

  std::unordered_map<const ExprNode*, std::uint64_t> hashes_;
  std::unordered_set<std::uint64_t> seen_;
};

/// Whether the type of a node is that which its operation gives for the types of its arguments.
[[nodiscard]] bool has_fitting_types(const ExprNode& node);

/// Nodes of `e` and terms of their indices; what occurs twice counts twice.
[[nodiscard]] std::size_t size_of(const Expr& e);

void add_to_hash(StableHash& h, const Expr& e);

}  // namespace tunewright::program

#if TUNEWRIGHT_DEFINES(program)

namespace tunewright::program {

TUNEWRIGHT_INLINE Expr cast(Expr a, ScalarType type) {
  if (a->type == type) return a;
  if (a->op == Op::Constant) return constant(is_float(type) ? a->value : converted(a->value, a->type, type), type);
  return make_expr({.op = Op::Cast, .type = type, .args = {std::move(a)}});
}

}  // namespace tunewright::program

namespace tunewright::program::detail {

TUNEWRIGHT_INLINE void refuse_levels(std::uint32_t levels) {
  throw std::invalid_argument(
      "an expression of " + std::to_string(levels) + " levels was made, and at most " + std::to_string(most_levels) +
      " are possible; combine many terms in halves, or compute a part as an operator of its own");
}

TUNEWRIGHT_INLINE Expr unary(Op op, Expr a) {
  const ScalarType type = a->type;
  return make_expr({.op = op, .type = type, .args = {std::move(a)}});
}

TUNEWRIGHT_INLINE void unify(Expr& a, Expr& b) {
  if (a->type == b->type) return;
  const ScalarType type = a->op == Op::Constant   ? b->type
                          : b->op == Op::Constant ? a->type
                                                  : common_type(a->type, b->type);
  a = cast(std::move(a), type);
  b = cast(std::move(b), type);
}

TUNEWRIGHT_INLINE Expr binary(Op op, Expr a, Expr b) {
  unify(a, b);
  const ScalarType type = a->type;
  return make_expr({.op = op, .type = type, .args = {std::move(a), std::move(b)}});
}

TUNEWRIGHT_INLINE Expr predicate(Op op, Expr a, Expr b) {
  unify(a, b);
  return make_expr({.op = op, .type = ScalarType::Bool, .args = {std::move(a), std::move(b)}});
}

}  // namespace tunewright::program::detail

namespace tunewright::program {

TUNEWRIGHT_INLINE Expr select(Expr condition, Expr a, Expr b) {
  if (condition->type != ScalarType::Bool) {
    throw std::invalid_argument("select: the condition is a " + std::string(name(condition->type)) +
                                "; give a comparison, such as x > 0.0");
  }
  detail::unify(a, b);
  const ScalarType type = a->type;
  return make_expr({.op = Op::Select, .type = type, .args = {std::move(condition), std::move(a), std::move(b)}});
}

TUNEWRIGHT_INLINE Expr rewrite(const Expr& e, FunctionRef<Expr(const Expr&)> f) {
  std::unordered_map<const ExprNode*, Expr> rewritten;
  const auto rewrite_one = [&](const auto& self, const Expr& node) -> Expr {
    if (const auto known = rewritten.find(node.get()); known != rewritten.end()) return known->second;
    std::vector<Expr> args;
    bool changed = false;
    args.reserve(node->args.size());
    for (const Expr& arg : node->args) {
      args.push_back(self(self, arg));
      changed = changed || args.back().get() != arg.get();
    }
    Expr current = node;
    if (changed) {
      ExprNode copy = *node;
      copy.args = std::move(args);
      current = make_expr(std::move(copy));
    }
    if (Expr replaced = f(current)) current = std::move(replaced);
    return rewritten.emplace(node.get(), std::move(current)).first->second;
  };
  return rewrite_one(rewrite_one, e);
}

TUNEWRIGHT_INLINE void visit(const Expr& e, FunctionRef<void(const ExprNode&)> f) {
  for (const Expr& arg : e->args) visit(arg, f);
  f(*e);
}

TUNEWRIGHT_INLINE std::uint64_t DistinctParts::add(const Expr& e, FunctionRef<void(const ExprNode&)> f) {
  if (const auto known = hashes_.find(e.get()); known != hashes_.end()) return known->second;
  StableHash h;
  for (const Expr& arg : e->args) h.add(add(arg, f));
  h.add(static_cast<int>(e->op)).add(static_cast<int>(e->type)).add(e->value).add(e->tensor).add(e->index.hash());
  for (const IndexExpr& index : e->indices) h.add(index.hash());
  if (seen_.insert(h.value()).second) f(*e);
  return hashes_.emplace(e.get(), h.value()).first->second;
}

TUNEWRIGHT_INLINE bool has_fitting_types(const ExprNode& node) {
  const auto all_are = [&](ScalarType type, std::size_t first = 0) {
    return std::all_of(node.args.begin() + static_cast<std::ptrdiff_t>(first), node.args.end(),
                       [type](const Expr& argument) { return argument->type == type; });
  };
  switch (node.op) {
    case Op::Constant:
    case Op::Load:
    case Op::Cast: return true;
    case Op::Index: return node.type == ScalarType::Int64;
    case Op::Less:
    case Op::LessEqual:
    case Op::Equal: return node.type == ScalarType::Bool && all_are(node.args[0]->type);
    case Op::And:
    case Op::Or:
    case Op::Not: return node.type == ScalarType::Bool && all_are(ScalarType::Bool);
    case Op::Select: return node.args[0]->type == ScalarType::Bool && all_are(node.type, 1);
    default: return all_are(node.type);
  }
}

TUNEWRIGHT_INLINE std::size_t size_of(const Expr& e) {
  std::size_t size = 0;
  visit(e, [&size](const ExprNode& node) {
    size += 1 + node.index.size();
    for (const IndexExpr& index : node.indices) size += index.size();
  });
  return size;
}

TUNEWRIGHT_INLINE void add_to_hash(StableHash& h, const Expr& e) {
  h.add(static_cast<int>(e->op)).add(static_cast<int>(e->type)).add(e->value).add(e->tensor).add(e->index.hash());
  for (const IndexExpr& index : e->indices) h.add(index.hash());
  h.add(static_cast<std::uint64_t>(e->args.size()));
  for (const Expr& arg : e->args) add_to_hash(h, arg);
}

}  // namespace tunewright::program

#endif
