// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/loops/nest.hpp"

namespace tunewright::loops {

namespace detail {

[[nodiscard]] std::string number(double value);

[[nodiscard]] std::string extents(const std::vector<std::int64_t>& shape);

class Printer {
 public:
  explicit Printer(const LoopNest& nest) : nest_(nest) {}

  [[nodiscard]] std::string text();

 private:
  [[nodiscard]] std::string index(const IndexExpr& e) const {
    return e.to_string([this](Var var) { return nest_.variables[var].name; });
  }
  [[nodiscard]] std::string indices(const std::vector<IndexExpr>& list) const;
  [[nodiscard]] static std::string declaration(const Buffer& buffer);
  /// Element of a buffer, by its coordinates within the window.
  [[nodiscard]] std::string access(BufferId id, std::vector<IndexExpr> coordinates) const;

  [[nodiscard]] std::string expression(const Statement& s, const program::ExprNode& e, bool nested = true) const;

  [[nodiscard]] std::string condition(const std::vector<Guard>& guards) const;

  void line(std::size_t depth, const std::string& text) { out_ += std::string(2 * depth, ' ') + text + "\n"; }

  void print(const Loop& loop, std::size_t depth);
  void print(const Statement& s, std::size_t depth);
  [[nodiscard]] static std::string initial(program::Combiner combiner);
  void print(const Allocate& allocate, std::size_t depth);
  void print(const Branch& branch, std::size_t depth);
  void print(const Barrier&, std::size_t depth) { line(depth, "barrier"); }
  void print(const CommitCopies&, std::size_t depth) { line(depth, "commit copies"); }
  void print(const WaitForCopies& wait, std::size_t depth) {
    line(depth, "wait for copies" + (wait.under_way == 0 ? "" : " but " + std::to_string(wait.under_way) + " groups"));
  }
  void print(const WaitForProducts& wait, std::size_t depth);
  void print(const CrossThreadReduction& reduction, std::size_t depth);
  [[nodiscard]] static std::string_view combination(program::Combiner combiner);
  void print(const Body& body, std::size_t depth) {
    for (const Node& node : body) std::visit([&](const auto& content) { print(content, depth); }, node.content);
  }

  const LoopNest& nest_;
  std::string out_;
};

}  // namespace detail

/// The loop nest as indented text, one line per loop or statement:
///
///   matmul(A: float32[64, 64], B: float32[64, 64], out C: float32[64, 64])
///     for i in 0..64 parallel:
///       for k in 0..64 reduction:
///         C[i, j] += A[i, k] * B[k, j]
///
/// Indices are relative to each buffer's window. `if` marks guards that must hold, `where` guards that a statement may
/// ignore.
[[nodiscard]] inline std::string to_string(const LoopNest& nest) { return detail::Printer(nest).text(); }

}  // namespace tunewright::loops

#if TUNEWRIGHT_DEFINES(loops)

namespace tunewright::loops::detail {

TUNEWRIGHT_INLINE std::string number(double value) {
  if (value == std::trunc(value) && std::abs(value) < 0x1p63)  // larger values do not fit std::int64_t
    return std::to_string(static_cast<std::int64_t>(value));
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  return text;
}

TUNEWRIGHT_INLINE std::string extents(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (std::size_t d = 0; d < shape.size(); ++d) text += (d == 0 ? "" : ", ") + std::to_string(shape[d]);
  return text + "]";
}

TUNEWRIGHT_INLINE std::string Printer::text() {
  out_ = nest_.name + "(";
  for (std::size_t a = 0; a < nest_.arguments.size(); ++a) {
    const Buffer& buffer = nest_.buffers[nest_.arguments[a]];
    out_ += (a == 0 ? "" : ", ") + std::string(buffer.role == BufferRole::Output ? "out " : "") + declaration(buffer);
  }
  out_ += ")\n";
  print(nest_.body, 1);
  return std::move(out_);
}

TUNEWRIGHT_INLINE std::string Printer::indices(const std::vector<IndexExpr>& list) const {
  std::string text = "[";
  for (std::size_t d = 0; d < list.size(); ++d) text += (d == 0 ? "" : ", ") + index(list[d]);
  return text + "]";
}

TUNEWRIGHT_INLINE std::string Printer::declaration(const Buffer& buffer) {
  std::string text = buffer.name + ": " + std::string(program::name(buffer.type)) + extents(buffer.shape);
  if (!buffer.packing.empty()) text += " packed " + extents(buffer.physical_shape());
  if (buffer.stages > 1)
    text += " in " + std::to_string(buffer.stages) + (buffer.asynchronous ? " asynchronous stages" : " stages");
  if (buffer.swizzled) text += " swizzled";
  return text;
}

TUNEWRIGHT_INLINE std::string Printer::access(BufferId id, std::vector<IndexExpr> coordinates) const {
  const Buffer& buffer = nest_.buffers[id];
  for (std::size_t d = 0; d < coordinates.size(); ++d) coordinates[d] -= buffer.origin[d];
  const bool one = buffer.stages == 1 || buffer.stage == IndexExpr(0);
  return buffer.name + (one ? "" : "<" + index(buffer.stage) + ">") + indices(coordinates);
}

TUNEWRIGHT_INLINE std::string Printer::expression(const Statement& s, const program::ExprNode& e, bool nested) const {
  using program::Op;
  const auto arg = [&](std::size_t i) { return expression(s, *e.args[i]); };
  const auto call = [&](std::string_view function) {
    std::string text = std::string(function) + "(";
    for (std::size_t i = 0; i < e.args.size(); ++i) text += (i == 0 ? "" : ", ") + expression(s, *e.args[i], false);
    return text + ")";
  };
  const auto infix = [&](std::string_view sign) {
    const std::string text = arg(0) + " " + std::string(sign) + " " + arg(1);
    return nested ? "(" + text + ")" : text;
  };
  switch (e.op) {
    case Op::Constant: return number(e.value);
    case Op::Index: return "(" + index(over_loops(nest_, s, e.index)) + ")";
    case Op::Load: {
      std::vector<IndexExpr> coordinates;
      for (const IndexExpr& i : e.indices) coordinates.push_back(over_loops(nest_, s, i));
      const BufferId id = nest_.buffer_of[e.tensor];
      if (id == LoopNest::no_buffer) return "tensor" + std::to_string(e.tensor) + indices(coordinates);
      return access(id, std::move(coordinates));
    }
    case Op::Negate: return "-" + arg(0);
    case Op::Abs: return call("abs");
    case Op::Exp: return call("exp");
    case Op::Log: return call("log");
    case Op::Sqrt: return call("sqrt");
    case Op::Tanh: return call("tanh");
    case Op::Erf: return call("erf");
    case Op::Cast: return call(program::name(e.type));
    case Op::Not: return "!" + arg(0);
    case Op::Add: return infix("+");
    case Op::Subtract: return infix("-");
    case Op::Multiply: return infix("*");
    case Op::Divide: return infix("/");
    case Op::Min: return call("min");
    case Op::Max: return call("max");
    case Op::Less: return infix("<");
    case Op::LessEqual: return infix("<=");
    case Op::Equal: return infix("==");
    case Op::And: return infix("&&");
    case Op::Or: return infix("||");
    case Op::Select: return call("select");
  }
  return "?";
}

TUNEWRIGHT_INLINE std::string Printer::condition(const std::vector<Guard>& guards) const {
  std::string text;
  for (const Guard& guard : guards) {
    text += (text.empty() ? "" : " and ") + std::string(guard.below ? "0 <= " : "") + index(guard.value);
    if (guard.above) text += " < " + std::to_string(guard.extent);
  }
  return text;
}

TUNEWRIGHT_INLINE void Printer::print(const Loop& loop, std::size_t depth) {
  const LoopVariable& variable = nest_.variables[loop.var];
  std::string text = "for " + variable.name + " in 0.." + std::to_string(variable.extent);
  if (loop.kind != LoopKind::Serial) text += " " + std::string(name(loop.kind));
  if (loop.reduction) text += " reduction";
  if (loop.intrinsic != nullptr) text += " by " + std::string(loop.intrinsic->name);
  if (loop.unroll_limit > 0) text += " unroll<=" + std::to_string(loop.unroll_limit);
  line(depth, text + ":");
  print(loop.body, depth + 1);
}

TUNEWRIGHT_INLINE void Printer::print(const Statement& s, std::size_t depth) {
  const auto rank = static_cast<std::ptrdiff_t>(nest_.buffers[s.target].shape.size());
  const std::string target = access(s.target, {s.axis_values.begin(), s.axis_values.begin() + rank});
  std::string text;
  if (s.asynchronous) text = "async ";
  if (s.kind == Statement::Kind::Initialise) {
    text = target + " = " + initial(s.op->combiner);
  } else if (s.kind == Statement::Kind::Assign) {
    text += target + " = " + expression(s, *s.op->body, false);
  } else {
    const std::string value = expression(s, *s.op->body, false);
    switch (s.op->combiner) {
      case program::Combiner::Sum: text = target + " += " + value; break;
      case program::Combiner::Product: text = target + " *= " + value; break;
      case program::Combiner::Max: text = target + " max= " + value; break;
      case program::Combiner::Min: text = target + " min= " + value; break;
      case program::Combiner::None: text = target + " = " + value; break;
    }
  }
  if (!s.guards.empty()) text += (s.may_overcompute ? "  where " : "  if ") + condition(s.guards);
  line(depth, text);
}

TUNEWRIGHT_INLINE std::string Printer::initial(program::Combiner combiner) {
  switch (combiner) {
    case program::Combiner::Max: return "-inf";
    case program::Combiner::Min: return "inf";
    case program::Combiner::Product: return "1";
    case program::Combiner::Sum:
    case program::Combiner::None: break;
  }
  return "0";
}

TUNEWRIGHT_INLINE void Printer::print(const Allocate& allocate, std::size_t depth) {
  const Buffer& buffer = nest_.buffers[allocate.buffer];
  std::string text =
      "allocate " + declaration(buffer) + " " + std::string(name(buffer.scope)) + " at " + indices(buffer.origin);
  for (const CopySelector& copies : buffer.private_to) text += " for each " + nest_.variables[copies.var].name;
  line(depth, text);
}

TUNEWRIGHT_INLINE void Printer::print(const Branch& branch, std::size_t depth) {
  line(depth, "if " + condition(branch.conditions) + ":");
  print(branch.then, depth + 1);
  if (branch.otherwise.empty()) return;
  line(depth, "else:");
  print(branch.otherwise, depth + 1);
}

TUNEWRIGHT_INLINE void Printer::print(const WaitForProducts& wait, std::size_t depth) {
  line(depth,
       "wait for products" + (wait.under_way == 0 ? "" : " but those of " + std::to_string(wait.under_way) + " loops"));
}

TUNEWRIGHT_INLINE void Printer::print(const CrossThreadReduction& reduction, std::size_t depth) {
  const auto at = [&](BufferId id) {
    const auto rank = static_cast<std::ptrdiff_t>(nest_.buffers[id].shape.size());
    return access(id, {reduction.axis_values.begin(), reduction.axis_values.begin() + rank});
  };
  std::string text = at(reduction.target) + " = " + std::string(combination(reduction.op->combiner)) + " over";
  for (std::size_t index = 0; index < reduction.over.size(); ++index) {
    if (reduction.over[index]) text += std::string(" thread_") + "xyz"[index];
  }
  text += " of " + at(reduction.partial);
  if (!reduction.guards.empty()) text += "  if " + condition(reduction.guards);
  line(depth, text);
}

TUNEWRIGHT_INLINE std::string_view Printer::combination(program::Combiner combiner) {
  switch (combiner) {
    case program::Combiner::Max: return "max";
    case program::Combiner::Min: return "min";
    case program::Combiner::Product: return "product";
    case program::Combiner::Sum: return "sum";
    case program::Combiner::None: break;
  }
  return "any";
}

}  // namespace tunewright::loops::detail

#endif
