// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "tunewright/core/number_text.hpp"
#include "tunewright/program/graph.hpp"

/// Readable index notation:
///
///   input    A[1024, 512] float32
///   constant B[512, 256] float32
///   matmul[i, j] += A[i, k] * B[k, j]    i < 1024, j < 256, k < 512
namespace tunewright::program {

namespace detail {

/// The number of a constant; one of up to 32 bits has the digits of a float.
[[nodiscard]] inline std::string constant_text(const ExprNode& e) {
  const bool is_narrow = is_float(e.type) && e.type != ScalarType::Float64;
  return number_text(is_narrow ? rounded(e.value, ScalarType::Float32) : e.value);
}

/// Operator precedence: arguments with a lower one get parentheses.
[[nodiscard]] constexpr int precedence(Op op) noexcept {
  switch (op) {
    case Op::Select: return 0;
    case Op::Or: return 1;
    case Op::And: return 2;
    case Op::Less:
    case Op::LessEqual:
    case Op::Equal: return 3;
    case Op::Add:
    case Op::Subtract: return 4;
    case Op::Multiply:
    case Op::Divide: return 5;
    case Op::Negate:
    case Op::Not: return 6;
    default: return 7;
  }
}

[[nodiscard]] constexpr std::string_view symbol(Op op) noexcept {
  switch (op) {
    case Op::Negate: return "-";
    case Op::Abs: return "abs";
    case Op::Exp: return "exp";
    case Op::Log: return "log";
    case Op::Sqrt: return "sqrt";
    case Op::Tanh: return "tanh";
    case Op::Erf: return "erf";
    case Op::Not: return "not ";
    case Op::Add: return " + ";
    case Op::Subtract: return " - ";
    case Op::Multiply: return " * ";
    case Op::Divide: return " / ";
    case Op::Min: return "min";
    case Op::Max: return "max";
    case Op::Less: return " < ";
    case Op::LessEqual: return " <= ";
    case Op::Equal: return " == ";
    case Op::And: return " and ";
    case Op::Or: return " or ";
    default: return "";
  }
}

}  // namespace detail

/// `e` as text; `name_of_tensor(id)` and `name_of_var(var)` give the names.
template <class NameOfTensor, class NameOfVar>
[[nodiscard]] std::string to_text(const Expr& e, const NameOfTensor& name_of_tensor, const NameOfVar& name_of_var) {
  const auto argument = [&](std::size_t a, int least) {
    const std::string text = to_text(e->args[a], name_of_tensor, name_of_var);
    return detail::precedence(e->args[a]->op) < least ? "(" + text + ")" : text;
  };
  const int level = detail::precedence(e->op);
  switch (e->op) {
    case Op::Constant: return detail::constant_text(*e);
    case Op::Index:
      return e->index.terms().size() + (e->index.constant() != 0 ? 1U : 0U) > 1
                 ? "(" + e->index.to_string(name_of_var) + ")"
                 : e->index.to_string(name_of_var);
    case Op::Load: {
      std::string text = name_of_tensor(e->tensor) + "[";
      for (std::size_t d = 0; d < e->indices.size(); ++d)
        text += (d == 0 ? "" : ", ") + e->indices[d].to_string(name_of_var);
      return text + "]";
    }
    case Op::Cast: return std::string(name(e->type)) + "(" + argument(0, 0) + ")";
    case Op::Select: return argument(0, 1) + " ? " + argument(1, 1) + " : " + argument(2, 0);
    case Op::Negate:
    case Op::Not: return std::string(detail::symbol(e->op)) + argument(0, level);
    case Op::Abs:
    case Op::Exp:
    case Op::Log:
    case Op::Sqrt:
    case Op::Tanh:
    case Op::Erf: return std::string(detail::symbol(e->op)) + "(" + argument(0, 0) + ")";
    case Op::Min:
    case Op::Max: return std::string(detail::symbol(e->op)) + "(" + argument(0, 0) + ", " + argument(1, 0) + ")";
    case Op::And:
    case Op::Or: return argument(0, level) + std::string(detail::symbol(e->op)) + argument(1, level);
    default:
      // Equal precedence needs parentheses on the right: a - (b - c).
      return argument(0, level) + std::string(detail::symbol(e->op)) + argument(1, level + 1);
  }
}

/// One operator as one line; `name_of_tensor(id)` gives the names of its operands.
template <class NameOfTensor>
[[nodiscard]] std::string to_text(const Operator& op, const NameOfTensor& name_of_tensor) {
  const auto list = [&](const auto& entry, std::size_t count) {
    std::string text;
    for (std::size_t a = 0; a < count; ++a) text += (a == 0 ? "" : ", ") + entry(a);
    return text;
  };
  if (!op.body) {
    return (op.role == Role::Constant ? "constant " : "input    ") + op.name + "[" +
           list([&](std::size_t a) { return std::to_string(op.axes[a].extent); }, op.axes.size()) + "] " +
           std::string(name(op.type));
  }
  const auto axis_name = [&](std::size_t a) { return op.axes[a].name; };
  std::string text = op.name + "[" + list(axis_name, op.rank()) + "]";
  const std::string body = to_text(op.body, name_of_tensor, axis_name);
  switch (op.combiner) {
    case Combiner::None: text += " = " + body; break;
    case Combiner::Sum: text += " += " + body; break;
    case Combiner::Product: text += " *= " + body; break;
    case Combiner::Max: text += " max= " + body; break;
    case Combiner::Min: text += " min= " + body; break;
  }
  if (op.axes.empty()) return text;
  return text + "    " +
         list([&](std::size_t a) { return op.axes[a].name + " < " + std::to_string(op.axes[a].extent); },
              op.axes.size());
}

/// Operator `id` of `graph` as one line.
[[nodiscard]] inline std::string to_text(const ComputeGraph& graph, TensorId id) {
  return to_text(graph.op(id), [&](TensorId read) { return graph.op(read).name; });
}
/// All operators, one per line.
[[nodiscard]] inline std::string to_text(const ComputeGraph& graph) {
  std::string text;
  for (TensorId id = 0; id < graph.size(); ++id) text += to_text(graph, id) + "\n";
  return text;
}

}  // namespace tunewright::program
