// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tunewright/codegen/cuda/index_emitter.hpp"
#include "tunewright/codegen/cuda/names.hpp"
#include "tunewright/codegen/cuda/number_helpers.hpp"
#include "tunewright/codegen/cuda/types.hpp"
#include "tunewright/codegen/cuda/warp_group_helpers.hpp"
#include "tunewright/loops/device/fragments.hpp"
#include "tunewright/loops/nest.hpp"

namespace tunewright::codegen::cuda {

using program::Expr;
using program::ExprNode;
using program::Op;

/// State shared by the parts of one source file: names, and the definitions that the code needs.
struct SourceContext {
  explicit SourceContext(const loops::LoopNest& n)
      : nest(n),
        variables(n.variables.size()),
        buffers(n.buffers.size()),
        unrolled(n.variables.size(), false),
        index(n, variables) {}
  SourceContext(const SourceContext&) = delete;
  SourceContext& operator=(const SourceContext&) = delete;

  const loops::LoopNest& nest;
  Names names;
  std::vector<std::string> variables;  ///< by Var
  std::vector<std::string> buffers;    ///< by BufferId
  std::vector<bool> unrolled;          ///< by Var: the loop is unrolled, entirely or several iterations at a time
  IndexEmitter index;
  bool uses_infinity = false;
  bool uses_half = false;
  bool uses_bfloat16 = false;
  bool uses_vectors = false;
  bool copies_asynchronously = false;
  bool multiplies_by_warp_groups = false;
  std::map<std::string_view, std::string_view> number_helpers{};  ///< definitions, by name
  std::map<std::string, std::string> helpers{};                   ///< definitions of other device functions, by name
  unsigned min_compute_capability = 0;                            ///< times ten; maximum over all instructions used

  void require(unsigned compute_capability) noexcept {
    min_compute_capability = std::max(min_compute_capability, compute_capability);
  }

  /// The name of a function, whose definition the source then has.
  [[nodiscard]] std::string helper(const NumberHelper& function) {
    number_helpers.emplace(function.name, function.definition);
    return std::string(function.name);
  }
  [[nodiscard]] std::string helper(const TensorHelper& function) {
    helpers.emplace(function.name, function.definition);
    require(function.since);
    return function.name;
  }
  [[nodiscard]] const CudaType& type(program::ScalarType scalar) {
    const CudaType& row = cuda_type(scalar);
    uses_half = uses_half || row.spelling == "half";
    uses_bfloat16 = uses_bfloat16 || row.spelling == "bfloat16";
    return row;
  }
  [[nodiscard]] std::string constant(double value, const CudaType& row) {
    std::string text = literal(value, row);
    uses_infinity = uses_infinity || text.find("INFINITY") != std::string::npos;
    return text;
  }
  [[nodiscard]] std::string element(loops::BufferId id, const IndexExpr& offset) {
    return element(id, offset, nest.buffers[id].swizzled);
  }
  /// The place that the element would have without swizzling, which descriptors of matrices take.
  [[nodiscard]] std::string unswizzled_element(loops::BufferId id, const IndexExpr& offset) {
    return element(id, offset, false);
  }
  /// Whether the buffer is thread-private and in registers.
  [[nodiscard]] static bool is_registers(const loops::Buffer& buffer) {
    return buffer.role == loops::BufferRole::Temporary && buffer.scope == loops::Scope::Local;
  }
  /// Whether the buffer is thread-private with one element, which is a plain variable.
  [[nodiscard]] static bool is_scalar(const loops::Buffer& buffer) {
    return is_registers(buffer) && buffer.elements() == 1;
  }

  void declare_variable(loops::Var var) {
    if (variables[var].empty()) variables[var] = names.unique(nest.variables[var].name);
  }
  [[nodiscard]] std::string loop_head(loops::Var var, std::int64_t step) const {
    const std::string& name = variables[var];
    const std::int64_t extent = nest.variables[var].extent;
    const bool wide = extent > std::int64_t{1} << 30;
    return "for (" + std::string(wide ? "long long " : "int ") + name + " = 0; " + name + " < " +
           std::to_string(extent) + (wide ? "LL" : "") + "; " +
           (step == 1 ? "++" + name : name + " += " + std::to_string(step)) + ")";
  }
  /// The name of the vector type with `lanes` lanes; defines it if necessary.
  [[nodiscard]] std::string vector_of(const CudaType& row, std::int64_t lanes) {
    uses_vectors = uses_vectors || row.vector.empty();
    return vector_type(row, lanes);
  }

 private:
  [[nodiscard]] std::string element(loops::BufferId id, const IndexExpr& offset, bool swizzled) {
    const loops::Buffer& buffer = nest.buffers[id];
    const std::string& memory = buffers[memory_of(nest, id)];
    if (is_scalar(buffer)) return memory;
    const auto place = [&](const IndexExpr& e) -> Text {
      if (!swizzled) return index(e);
      return {helper(swizzle_helper(program::size_in_bytes(buffer.type))) + "(" + index(e).text + ")"};
    };
    // The part of an offset that is constant after unrolling is written separately and becomes the offset of an
    // instruction: compilers do not extract it from 32-bit sums, which might overflow.
    IndexExpr moving, number(offset.constant());
    bool any = false;
    for (const IndexExpr::Term& term : offset.terms()) {
      const IndexExpr part = IndexExpr::from_term(term);
      bool known = true;
      program::for_each_variable(part, [&](loops::Var v) { known = known && unrolled[v]; });
      any = any || known;
      (known ? number : moving) += part;
    }
    const std::int64_t period = loops::swizzle_bytes / static_cast<std::int64_t>(program::size_in_bytes(buffer.type));
    const bool apart = any && !moving.terms().empty() && !is_registers(buffer) &&
                       (!swizzled || loops::device::is_multiple_of(number, period));
    if (!apart) return memory + "[" + place(offset).text + "]";
    return "(" + memory + " + " + place(moving).in(Text::Sum + 1) + ")[" + index(number).text + "]";
  }
};

/// Writes the body of one statement at one point of its loops. Values that a body uses several times get a variable if
/// they are computed unconditionally; `declarations` has the lines that declare them.
class ScalarEmitter {
 public:
  /// `precomputed`: parts of the body whose values are already in variables. `substitute` is applied to every index
  /// over the loops.
  template <class Substitute>
  ScalarEmitter(SourceContext& context, const loops::Statement& statement,
                std::unordered_map<const ExprNode*, std::string> precomputed, const Substitute& substitute)
      : context_(context), statement_(statement), precomputed_(std::move(precomputed)) {
    if (statement.kind == loops::Statement::Kind::Initialise) return;
    count_uses(*statement.op->body);
    program::visit(statement.op->body, [&](const ExprNode& node) {
      if (node.op == Op::Index) places_.try_emplace(&node, substitute(over_loops(context.nest, statement, node.index)));
      if (node.op == Op::Load) {
        if (context.nest.buffer_of.at(node.tensor) == loops::LoopNest::no_buffer)
          throw Unsupported(loops::no_buffer_text("operator", statement.op->name, node.tensor));
        places_.try_emplace(&node, substitute(load_offset(context.nest, statement, node)));
      }
    });
  }

  [[nodiscard]] Text value() { return evaluate(*statement_.op->body, true); }
  /// The value for `combine`.
  [[nodiscard]] Text term() {
    const ExprNode& body = *statement_.op->body;
    return computes_modular(body) && is_sum_or_product(statement_.op->combiner)
               ? modular(body, true)
               : as_term(statement_.op->combiner, type(body), value());
  }
  [[nodiscard]] Text value_of(const ExprNode& node) { return evaluate(node, false); }
  [[nodiscard]] const std::vector<std::string>& declarations() const noexcept { return declarations_; }

  /// A value of a type for `combine`: of the unsigned type if sums and products must wrap around.
  [[nodiscard]] static Text as_term(program::Combiner combiner, const CudaType& type, const Text& value) {
    return is_sum_or_product(combiner) && !type.modular.empty() ? unsigned_of(type, value) : value;
  }
  /// `kept op= value` for the statement's combiner, in C++; `value` is what `term` or `as_term` gives.
  [[nodiscard]] static std::string combine(SourceContext& context, program::Combiner combiner, const CudaType& type,
                                           const std::string& kept, const Text& value) {
    using program::Combiner;
    const auto as_float = [&](const std::string& text) { return "to_float(" + text + ")"; };
    const bool extreme = combiner == Combiner::Max || combiner == Combiner::Min;
    if (type.emulated) {
      const std::string a = as_float(kept);
      const std::string b = as_float(value.text);
      const std::string sum =
          extreme ? extreme_of(combiner == Combiner::Max, context.type(program::ScalarType::Float32), a, b)
                  : a + (combiner == Combiner::Product ? " * " : " + ") + b;
      return kept + " = to_" + std::string(type.spelling) + "(" + sum + ");";
    }
    switch (combiner) {
      case Combiner::Sum: return kept + " += " + value.text + ";";
      case Combiner::Product: return kept + " *= " + value.text + ";";
      case Combiner::Max:
      case Combiner::Min: return kept + " = " + extreme_of(combiner == Combiner::Max, type, kept, value.text) + ";";
      case Combiner::None: break;
    }
    return kept + " = " + value.text + ";";
  }

 private:
  void count_uses(const ExprNode& node) {
    if (++uses_[&node] > 1) return;
    for (const Expr& arg : node.args) count_uses(*arg);
  }

  [[nodiscard]] const CudaType& type(const ExprNode& node) { return context_.type(node.type); }

  [[nodiscard]] static bool is_sum_or_product(program::Combiner combiner) {
    return combiner == program::Combiner::Sum || combiner == program::Combiner::Product;
  }
  [[nodiscard]] static Text unsigned_of(const CudaType& type, const Text& value) {
    return {"(" + std::string(type.modular) + ")" + value.in(Text::Unary), Text::Unary};
  }

  /// Whether the node is written by `modular`, because C++ leaves results beyond its type undefined. Half of what the
  /// type holds is room for rounded bounds.
  [[nodiscard]] bool computes_modular(const ExprNode& node) {
    const bool arithmetic =
        node.op == Op::Add || node.op == Op::Subtract || node.op == Op::Multiply || node.op == Op::Negate;
    return arithmetic && !type(node).modular.empty() && exact_bound(node) > program::highest(node.type) / 2;
  }
  /// A bound of the magnitude of an integer, from types and from the extents of loops.
  [[nodiscard]] double bound(const ExprNode& node) {
    if (const auto known = bounds_.find(&node); known != bounds_.end()) return known->second;
    const double most = std::max(program::highest(node.type), -program::lowest(node.type));
    return bounds_[&node] = std::min(exact_bound(node), most);
  }
  /// The same for a result that has not wrapped around.
  [[nodiscard]] double exact_bound(const ExprNode& node) {
    const auto of = [&](std::size_t i) { return bound(*node.args[i]); };
    switch (node.op) {
      case Op::Constant: return std::fabs(node.value);
      case Op::Index: {
        const program::Range range = places_.at(&node).range([&](loops::Var v) { return context_.nest.range_of(v); });
        return std::max(std::fabs(static_cast<double>(range.min)), std::fabs(static_cast<double>(range.max)));
      }
      case Op::Add:
      case Op::Subtract: return of(0) + of(1);
      case Op::Multiply: return of(0) * of(1);
      case Op::Negate: return of(0);
      case Op::Min:
      case Op::Max: return std::max(of(0), of(1));
      case Op::Select: return std::max(of(1), of(2));
      case Op::Cast:
        if (!program::is_float(node.args[0]->type)) return of(0);
        [[fallthrough]];
      default: return std::numeric_limits<double>::infinity();
    }
  }
  /// Whether `evaluate` gives a variable for the node.
  [[nodiscard]] bool is_variable(const ExprNode& node, bool always) {
    return named_.contains(&node) || precomputed_.contains(&node) || (always && !node.args.empty() && uses_[&node] > 1);
  }
  /// The node as a value of the unsigned type, which wraps around. Only the leftmost operand is converted: operators
  /// convert the other one as well.
  [[nodiscard]] Text modular(const ExprNode& node, bool always) {
    const auto operand_of = [&](const ExprNode& arg, bool leftmost) {
      if (computes_modular(arg) && !is_variable(arg, always)) return modular(arg, always);
      const Text value = evaluate(arg, always);
      return leftmost ? unsigned_of(type(arg), value) : value;
    };
    const Text a = operand_of(*node.args[0], true);
    if (node.op == Op::Negate) return negated(a);
    const Text b = operand_of(*node.args[1], false);
    if (node.op == Op::Multiply) return joined(a, " * ", b, Text::Product);
    return joined(a, node.op == Op::Add ? " + " : " - ", b, Text::Sum);
  }

  [[nodiscard]] static Text negated(const Text& inner) {
    return {"-" + (inner.text.front() == '-' ? "(" + inner.text + ")" : inner.in(Text::Unary)), Text::Unary};
  }
  /// Operators group from the left, and the order of floating-point operations must not change.
  [[nodiscard]] static Text joined(const Text& a, const char* symbol, const Text& b, int precedence) {
    return {a.in(precedence) + symbol + b.in(precedence + 1), precedence};
  }

  /// Maximum and minimum that ignore a NaN operand, which is a single instruction.
  [[nodiscard]] static std::string extreme_of(bool maximum, const CudaType& type, const std::string& a,
                                              const std::string& b) {
    const std::string name = maximum ? "max" : "min";
    if (type.scalar == "float32") return "f" + name + "f(" + a + ", " + b + ")";
    if (type.scalar == "float64") return "f" + name + "(" + a + ", " + b + ")";
    return name + "(" + a + ", " + b + ")";
  }

  /// `always`: the value is computed unconditionally, so it may also be computed earlier.
  [[nodiscard]] Text evaluate(const ExprNode& node, bool always) {
    if (const auto known = named_.find(&node); known != named_.end()) return {known->second};
    if (const auto known = precomputed_.find(&node); known != precomputed_.end()) return {known->second};
    Text text = compose(node, always);
    const bool leaf = node.args.empty();
    if (!always || leaf || uses_[&node] < 2) return text;
    const std::string name = context_.names.unique("t");
    declarations_.push_back("const " + std::string(type(node).spelling) + " " + name + " = " + text.text + ";");
    named_.emplace(&node, name);
    return {name};
  }

  /// The value as a float if its type is computed in float.
  [[nodiscard]] std::string widened(const ExprNode& node, bool always) {
    if (!type(node).emulated) return evaluate(node, always).text;
    if (node.op == Op::Constant)
      return context_.constant(program::rounded(node.value, node.type), cuda_type(program::ScalarType::Float32));
    return "to_float(" + evaluate(node, always).text + ")";
  }
  [[nodiscard]] Text operand(const ExprNode& node, bool always) {
    if (type(node).emulated) return {widened(node, always)};
    return evaluate(node, always);
  }
  /// Converts a result computed in float, or in int for smaller integers and Booleans, to the type.
  [[nodiscard]] Text rounded(Text text, const CudaType& to) const {
    if (to.emulated) return {"to_" + std::string(to.spelling) + "(" + text.text + ")"};
    if (to.scalar == "int8" || to.scalar == "uint8")
      return {"(" + std::string(to.spelling) + ")" + text.in(Text::Unary), Text::Unary};
    if (to.scalar == "bool") return {text.in(Text::Equality + 1) + " != 0", Text::Equality};
    return text;
  }

  [[nodiscard]] Text compose(const ExprNode& node, bool always) {
    const auto arg = [&](std::size_t i) -> const ExprNode& { return *node.args[i]; };
    const CudaType& own = type(node);
    if (computes_modular(node))
      return {"(" + std::string(own.spelling) + ")" + modular(node, always).in(Text::Unary), Text::Unary};
    switch (node.op) {
      case Op::Constant: {
        const std::string text =
            context_.constant(own.emulated ? program::rounded(node.value, node.type) : node.value, own);
        const bool negative = text.front() == '-';
        if (own.emulated) return {"to_" + std::string(own.spelling) + "(" + text + ")"};
        return {text, negative ? int{Text::Unary} : int{Text::Primary}};
      }
      case Op::Index: {
        const IndexExpr& place = places_.at(&node);
        if (place.is_constant()) return {context_.constant(static_cast<double>(place.constant()), own)};
        return {"(long long)" + context_.index(place).in(Text::Unary), Text::Unary};
      }
      case Op::Load: {
        return {context_.element(context_.nest.buffer_of[node.tensor], places_.at(&node))};
      }
      case Op::Negate: return rounded(negated(operand(arg(0), always)), own);
      case Op::Abs: return function(own, "fabs", arg(0), always);
      case Op::Exp: return function(own, "exp", arg(0), always);
      case Op::Log: return function(own, "log", arg(0), always);
      case Op::Sqrt: return function(own, "sqrt", arg(0), always);
      case Op::Tanh: return function(own, "tanh", arg(0), always);
      case Op::Erf: return function(own, "erf", arg(0), always);
      case Op::Cast: return cast_of(arg(0), own, always);
      case Op::Not: return {"!" + evaluate(arg(0), always).in(Text::Unary), Text::Unary};
      case Op::Add: return rounded(binary(node, " + ", Text::Sum, always), own);
      case Op::Subtract: return rounded(binary(node, " - ", Text::Sum, always), own);
      case Op::Multiply: return rounded(binary(node, " * ", Text::Product, always), own);
      case Op::Divide: {
        // Only the quotient of the least number and -1 exceeds its type.
        const bool by_another = arg(1).op == Op::Constant && std::trunc(arg(1).value) != -1;
        if (own.modular.empty() || by_another) return rounded(binary(node, " / ", Text::Product, always), own);
        const std::string a = evaluate(arg(0), always).text;
        return {context_.helper(wrapping_quotient_helper) + "(" + a + ", " + evaluate(arg(1), always).text + ")"};
      }
      case Op::Min:
      case Op::Max: {
        const CudaType& in = own.emulated ? cuda_type(program::ScalarType::Float32) : own;
        return rounded({extreme_of(node.op == Op::Max, in, operand(arg(0), always).text, operand(arg(1), always).text)},
                       own);
      }
      case Op::Less: return comparison(node, " < ", Text::Relation, always);
      case Op::LessEqual: return comparison(node, " <= ", Text::Relation, always);
      case Op::Equal: return comparison(node, " == ", Text::Equality, always);
      case Op::And:
      case Op::Or: {
        const bool all = node.op == Op::And;
        const Text a = evaluate(arg(0), always);
        const Text b = evaluate(arg(1), false);
        const std::string neutral = all ? "true" : "false";
        const std::string absorbing = all ? "false" : "true";
        if (a.text == neutral) return b;
        if (b.text == neutral || a.text == absorbing) return a;
        const int precedence = all ? Text::And : Text::Or;
        return {a.in(precedence) + (all ? " && " : " || ") + b.in(precedence), precedence};
      }
      case Op::Select: {
        const Text condition = evaluate(arg(0), always);
        if (condition.text == "true") return evaluate(arg(1), always);
        if (condition.text == "false") return evaluate(arg(2), always);
        return {condition.in(Text::Or) + " ? " + evaluate(arg(1), false).in(Text::Or) + " : " +
                    evaluate(arg(2), false).in(Text::Ternary),
                Text::Ternary};
      }
    }
    throw Unsupported("operator '" + statement_.op->name + "' computes something CUDA code is not generated for");
  }

  [[nodiscard]] Text function(const CudaType& own, const std::string& name, const ExprNode& argument, bool always) {
    const std::string text = operand(argument, always).text;
    if (own.scalar == "float32" || own.emulated) return rounded({name + "f(" + text + ")"}, own);
    if (own.scalar == "float64") return {name + "(" + text + ")"};
    if (name == "fabs")
      return rounded({(own.modular.empty() ? "abs" : context_.helper(wrapping_abs_helper)) + "(" + text + ")"}, own);
    // Functions of integers are computed in double and converted like casts.
    return whole({name + "((double)(" + text + "))"}, program::ScalarType::Float64, own);
  }

  [[nodiscard]] Text binary(const ExprNode& node, const char* symbol, int precedence, bool always) {
    const Text a = operand(*node.args[0], always);
    return joined(a, symbol, operand(*node.args[1], always), precedence);
  }

  [[nodiscard]] Text cast_of(const ExprNode& from, const CudaType& to, bool always) {
    const Text value = operand(from, always);
    if (to.scalar == "bool") return whole(value, from.type, to);
    if (to.emulated) {
      if (type(from).emulated || from.type == program::ScalarType::Float32) return rounded(value, to);
      const bool fits = program::holds(program::ScalarType::Float32, from.type);
      return rounded(
          {fits ? "(float)" + value.in(Text::Unary) : context_.helper(towards_odd_helper) + "(" + value.text + ")"},
          to);
    }
    if (type(from).emulated && to.scalar == "float32") return value;
    if (!program::is_float(from.type) || to.scalar.starts_with("float"))
      return {"(" + std::string(to.spelling) + ")" + value.in(Text::Unary), Text::Unary};
    return whole(value, from.type, to);
  }
  /// Converts a floating-point number to an integer, or any number to a Boolean.
  [[nodiscard]] Text whole(const Text& value, program::ScalarType from, const CudaType& to) {
    if (to.scalar == "bool") return {value.in(Text::Equality + 1) + " != 0", Text::Equality};
    // The device's conversions to integers saturate; there are none to narrower types. NaN becomes 0, but not from
    // double nor to 64 bits.
    std::string number = value.in(Text::Unary);
    if (from == program::ScalarType::Float64 || to.bytes == 8) {
      number = context_.helper(zero_if_nan_helper) + "(" + value.text + ")";
    }
    if (to.bytes == 1) {
      const std::string least = to.scalar == "int8" ? "-128" : "0", most = to.scalar == "int8" ? "127" : "255";
      number = "max(" + least + ", min(" + most + ", (int)" + number + "))";
    }
    return {"(" + std::string(to.spelling) + ")" + number, Text::Unary};
  }

  /// Comparisons of indices that follow from the loops' extents are decided here; others use 32 bits.
  [[nodiscard]] Text comparison(const ExprNode& node, const char* symbol, int precedence, bool always) {
    const ExprNode& a = *node.args[0];
    const ExprNode& b = *node.args[1];
    if (a.op != Op::Index || b.op != Op::Index) return binary(node, symbol, precedence, always);
    const IndexExpr& left = places_.at(&a);
    const IndexExpr& right = places_.at(&b);
    const program::Range d = (right - left).range([&](loops::Var v) { return context_.nest.range_of(v); });
    const std::int64_t least = node.op == Op::Less ? 1 : 0;
    if (node.op != Op::Equal) {
      if (d.min >= least) return {"true"};
      if (d.max < least) return {"false"};
    } else if (d.min > 0 || d.max < 0) {
      return {"false"};
    }
    return {context_.index(left).in(precedence) + symbol + context_.index(right).in(precedence + 1), precedence};
  }

  SourceContext& context_;
  const loops::Statement& statement_;
  std::unordered_map<const ExprNode*, std::string> precomputed_;
  std::unordered_map<const ExprNode*, IndexExpr> places_;
  std::unordered_map<const ExprNode*, int> uses_;
  std::unordered_map<const ExprNode*, double> bounds_;
  std::unordered_map<const ExprNode*, std::string> named_;
  std::vector<std::string> declarations_;
};

}  // namespace tunewright::codegen::cuda
