// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/json/scanner.hpp"
#include "tunewright/json/writer.hpp"
#include "tunewright/program/expr.hpp"
#include "tunewright/program/graph.hpp"
#include "tunewright/program/index_expr.hpp"
#include "tunewright/program/scalar_type.hpp"

/// Compute graphs as JSON: an array of operators in the order of their tensors, each an array
///
///   ["matmul","computed","float32",[["i",1024,"spatial"],["k",512,"reduction"]],"sum",BODY]
///
/// with a null body for inputs and constants. An expression starts with its operation and type:
/// `["constant","float32",0.5]`, `["index","int64",INDEX]`, `["load","float32",TENSOR,[INDEX, ..]]`, or with arguments
/// `["add","float32",EXPRESSION,EXPRESSION]`. An index is an integer, or `[CONSTANT,TERM,..]` with terms
/// `[COEFFICIENT,AXIS]`, `[COEFFICIENT,"quotient",INDEX,DIVISOR]` and likewise `"remainder"`. Infinite constants are
/// written as in Python. Numbers of indices are from -2^31 to 2^31, all others as `ComputeGraph::add` takes them.
namespace tunewright::program {

/// One line of text, without spaces. Equal graphs give equal texts; numbers keep every bit.
[[nodiscard]] std::string to_json(const ComputeGraph& graph);

/// The graph of a text written by `to_json`, with the same content hash. Throws `FormatError` for other texts, with the
/// column and what was expected there, or the graph's own error.
[[nodiscard]] ComputeGraph graph_from_json(std::string_view text);

}  // namespace tunewright::program

#if TUNEWRIGHT_DEFINES(program)

#include <algorithm>
#include <stdexcept>
#include <tuple>

namespace tunewright::program::graph_json {

// Names are in the order of the enumerations.
inline constexpr std::array<std::string_view, 24> op_names = {
    "constant", "index",    "load",     "negate", "abs", "exp", "log",  "sqrt",       "tanh",  "erf", "cast", "not",
    "add",      "subtract", "multiply", "divide", "min", "max", "less", "less_equal", "equal", "and", "or",   "select"};
inline constexpr std::array<std::string_view, 3> role_names = {"input", "constant", "computed"};
inline constexpr std::array<std::string_view, 2> axis_names = {"spatial", "reduction"};
inline constexpr std::array<std::string_view, 5> combiner_names = {"none", "sum", "product", "max", "min"};
static_assert(op_names.size() == static_cast<std::size_t>(Op::Select) + 1);

class Writer {
 public:
  std::string text;

  void write(const ComputeGraph& graph) {
    text += '[';
    for (TensorId id = 0; id < graph.size(); ++id) {
      if (id > 0) text += ',';
      write(graph.op(id));
    }
    text += ']';
  }

 private:
  template <class Enum, std::size_t N>
  void name(const std::array<std::string_view, N>& names, Enum value) {
    json::write(text, names.at(static_cast<std::size_t>(value)));
  }

  void write(const Operator& op) {
    text += '[';
    json::write(text, std::string_view(op.name));
    text += ',';
    name(role_names, op.role);
    text += ',';
    json::write(text, program::name(op.type));
    text += ",[";
    for (std::size_t a = 0; a < op.axes.size(); ++a) {
      text += a > 0 ? ",[" : "[";
      json::write(text, std::string_view(op.axes[a].name));
      text += ',';
      json::write(text, op.axes[a].extent);
      text += ',';
      name(axis_names, op.axes[a].kind);
      text += ']';
    }
    text += "],";
    name(combiner_names, op.combiner);
    text += ',';
    if (op.body)
      write(*op.body);
    else
      text += "null";
    text += ']';
  }

  void write(const ExprNode& e) {
    text += '[';
    name(op_names, e.op);
    text += ',';
    json::write(text, program::name(e.type));
    if (e.op == Op::Constant) {
      text += ',';
      json::write(text, e.value);
    } else if (e.op == Op::Index) {
      text += ',';
      write(e.index);
    } else if (e.op == Op::Load) {
      text += ',';
      json::write(text, e.tensor);
      text += ",[";
      for (std::size_t i = 0; i < e.indices.size(); ++i) {
        if (i > 0) text += ',';
        write(e.indices[i]);
      }
      text += ']';
    }
    for (const Expr& argument : e.args) {
      text += ',';
      write(*argument);
    }
    text += ']';
  }

  void write(const IndexExpr& index) {
    if (index.is_constant()) return json::write(text, index.constant());
    text += '[';
    json::write(text, index.constant());
    for (const IndexExpr::Term& term : index.terms()) {
      text += ",[";
      json::write(text, term.coefficient);
      text += ',';
      if (term.kind == IndexExpr::Kind::Variable) {
        json::write(text, term.var);
      } else {
        text += term.kind == IndexExpr::Kind::Quotient ? "\"quotient\"," : "\"remainder\",";
        write(*term.numerator);
        text += ',';
        json::write(text, term.divisor);
      }
      text += ']';
    }
    text += ']';
  }
};

class Reader {
 public:
  explicit Reader(std::string_view text) : in_(text) {}

  ComputeGraph graph() {
    ComputeGraph graph;
    in_.array([&] {
      Operator op = read_operator();
      try {
        static_cast<void>(graph.add(std::move(op)));
      } catch (const std::invalid_argument& error) {
        throw FormatError(error.what());
      }
    });
    in_.expect_end();
    return graph;
  }

 private:
  static constexpr std::int64_t most_factor = std::int64_t{1} << 31;

  template <class Enum, std::size_t N>
  Enum named(const std::array<std::string_view, N>& names, std::string_view what) {
    in_.peek();
    const std::string_view written = in_.plain_string();
    for (std::size_t i = 0; i < N; ++i) {
      if (names[i] == written) return static_cast<Enum>(i);
    }
    in_.fail("'" + std::string(written) + "' is no " + std::string(what));
  }
  ScalarType type() {
    std::array<std::string_view, scalar_type_count> names;
    for (std::size_t i = 0; i < names.size(); ++i) names[i] = program::name(static_cast<ScalarType>(i));
    return named<ScalarType>(names, "type of tensor elements");
  }

  Operator read_operator() {
    Operator op;
    in_.expect('[');
    in_.string(op.name);
    in_.expect(',');
    op.role = named<Role>(role_names, "role of a tensor");
    in_.expect(',');
    op.type = type();
    in_.expect(',');
    in_.array([&] {
      Axis& axis = op.axes.emplace_back();
      in_.expect('[');
      in_.string(axis.name);
      in_.expect(',');
      axis.extent = in_.integer();
      in_.expect(',');
      axis.kind = named<AxisKind>(axis_names, "kind of axis");
      in_.expect(']');
    });
    in_.expect(',');
    op.combiner = named<Combiner>(combiner_names, "combiner");
    in_.expect(',');
    if (in_.peek() == 'n')
      in_.null();
    else
      op.body = expression(most_body_levels);
    in_.expect(']');
    return op;
  }

  Expr expression(std::uint32_t levels) {
    if (levels == 0) in_.fail("expected an expression of fewer levels");
    ExprNode e;
    in_.expect('[');
    e.op = named<Op>(op_names, "operation");
    in_.expect(',');
    e.type = type();
    if (e.op == Op::Constant) {
      in_.expect(',');
      e.value = in_.number();
    } else if (e.op == Op::Index) {
      in_.expect(',');
      e.index = index(levels);
    } else if (e.op == Op::Load) {
      in_.expect(',');
      e.tensor = in_.integer<TensorId>();
      in_.expect(',');
      in_.array([&] { e.indices.push_back(index(levels)); });
    }
    for (std::size_t a = 0; a < arguments_of(e.op); ++a) {
      in_.expect(',');
      e.args.push_back(expression(levels - 1));
    }
    in_.expect(']');
    return make_expr(std::move(e));
  }

  /// A factor of index arithmetic, which must not overflow.
  std::int64_t factor() {
    const std::int64_t value = in_.integer();
    if (value > most_factor || value < -most_factor) in_.fail("expected a number of at most 2^31");
    return value;
  }

  /// Whether adding a term changes others: coefficients that are added up or multiplied by each other may overflow.
  static bool merges(const IndexExpr& sum, const IndexExpr::Term& term) {
    using Kind = IndexExpr::Kind;
    return std::any_of(sum.terms().begin(), sum.terms().end(), [&term](const IndexExpr::Term& other) {
      if (term.kind == Kind::Variable) return other.kind == Kind::Variable && other.var == term.var;
      if (other.kind == Kind::Variable || other.divisor != term.divisor) return false;
      if (!(*other.numerator == *term.numerator)) return false;
      const auto& [quotient, remainder] = term.kind == Kind::Quotient ? std::tie(term, other) : std::tie(other, term);
      return other.kind == term.kind || quotient.coefficient == remainder.coefficient * term.divisor;
    });
  }

  IndexExpr index(std::uint32_t levels) {
    if (levels == 0) in_.fail("expected an index of fewer levels");
    if (in_.peek() != '[') return {factor()};
    in_.expect('[');
    IndexExpr sum(factor());
    while (in_.accept(',')) {
      IndexExpr::Term term;
      in_.expect('[');
      term.coefficient = factor();
      in_.expect(',');
      if (in_.peek() == '"') {
        const std::string_view kind = in_.plain_string();
        if (kind != "quotient" && kind != "remainder") in_.fail("expected a quotient or a remainder");
        term.kind = kind == "quotient" ? IndexExpr::Kind::Quotient : IndexExpr::Kind::Remainder;
        in_.expect(',');
        term.numerator = std::make_shared<const IndexExpr>(index(levels - 1));
        in_.expect(',');
        term.divisor = factor();
        if (term.divisor < 2) in_.fail("expected a divisor above 1");
      } else {
        term.var = in_.integer<Var>();
      }
      in_.expect(']');
      if (merges(sum, term)) in_.fail("expected terms that cannot be merged");
      sum.add(term);
    }
    in_.expect(']');
    return sum;
  }

  json::Scanner in_;
};

}  // namespace tunewright::program::graph_json

namespace tunewright::program {

TUNEWRIGHT_INLINE std::string to_json(const ComputeGraph& graph) {
  graph_json::Writer writer;
  writer.write(graph);
  return std::move(writer.text);
}

TUNEWRIGHT_INLINE ComputeGraph graph_from_json(std::string_view text) { return graph_json::Reader(text).graph(); }

}  // namespace tunewright::program

#endif
