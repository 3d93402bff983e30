// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/detail/config.hpp"
#include "tunewright/networks/onnx/call.hpp"

namespace tunewright::networks::onnx {

/// Elementwise operators: Relu, Clip, Gelu, Add, Where, Cast, .. All broadcast.
void add_elementwise(Operators& operators);

}  // namespace tunewright::networks::onnx

#if TUNEWRIGHT_DEFINES(onnx_operators)

#include <cmath>
#include <limits>
#include <span>

#include "tunewright/core/number_text.hpp"
#include "tunewright/program/operators/elementwise.hpp"

namespace tunewright::networks::onnx::detail {

using Elements = std::span<const Expr>;

/// The type for a number of ONNX's enumeration `TensorProto.DataType`. Inputs and values computed from them are int32
/// where the file has int64, because no tensor index exceeds it.
TUNEWRIGHT_INLINE ScalarType element_type(const Call& call, std::int64_t number, bool known) {
  switch (number) {
    case 1: return ScalarType::Float32;
    case 2: return ScalarType::UInt8;
    case 3: return ScalarType::Int8;
    case 6: return ScalarType::Int32;
    case 7: return known ? ScalarType::Int64 : ScalarType::Int32;
    case 9: return ScalarType::Bool;
    case 10: return ScalarType::Float16;
    case 11: return ScalarType::Float64;
    case 16: return ScalarType::BFloat16;
    default: break;
  }
  call.unsupported("to", "element type " + std::to_string(number) + " is not among those of tensor programs",
                   "use float, double, float16, bfloat16, int8, uint8, int32, int64 or bool");
}

/// An elementwise function of as many inputs as it has parameters.
template <class F>
Operator pointwise(std::string name, std::size_t count, F f) {
  return [name = std::move(name), count, f](Emitter& emitter, const Call& call) -> std::vector<Value> {
    std::vector<Value> operands;
    for (std::size_t i = 0; i < count; ++i) operands.push_back(call.input(i));
    return {emitter.elementwise(name, operands, [&](Elements x) { return f(x, call); })};
  };
}

/// The same folded over any number of inputs.
template <class F>
Operator variadic(const std::string& name, F f) {
  return [name, f](Emitter& emitter, const Call& call) -> std::vector<Value> {
    Value result = call.input(0);
    for (std::size_t i = 1; i < call.inputs.size(); ++i)
      result = emitter.elementwise(name, {result, call.input(i)}, [&](Elements x) { return f(x[0], x[1]); });
    return {result};
  };
}

/// Integer and half-integer powers by products and roots; others would need a logarithm, which fails for negative
/// numbers.
TUNEWRIGHT_INLINE std::vector<Value> power(Emitter& emitter, const Call& call) {
  if (const Value& exponents = call.input(1); exponents.known && exponents.elements() != 1) {
    call.unsupported("Y", "it has " + std::to_string(exponents.elements()) + " elements",
                     "use one exponent for all of X, or write it with Exp and Log");
  }
  const double exponent = call.known_number(1, "Y");
  const bool is_root = exponent == 0.5 || exponent == -0.5;
  if (!is_root && (std::trunc(exponent) != exponent || std::abs(exponent) > 8)) {
    call.unsupported("Y", "the exponent is " + number_text(exponent),
                     "use a whole number from -8 to 8, 0.5 or -0.5, or write it with Exp and Log");
  }
  return {emitter.elementwise("power", {call.input(0), call.input(1)}, [&](Elements x) {
    if (exponent == 0) return program::constant(1, x[0]->type);
    Expr result = is_root ? program::sqrt(x[0]) : x[0];
    for (double done = 1; done < std::abs(exponent); ++done) result = result * x[0];
    return exponent < 0 ? program::constant(1, x[0]->type) / result : result;
  })};
}

/// The larger of both. Where one is NaN the result is the second argument of `max`, so a constant is the first.
TUNEWRIGHT_INLINE Expr larger(const Expr& x, const Expr& y) {
  return y->op == program::Op::Constant ? max(y, x) : max(x, y);
}

/// The smaller of both, for NaN as `larger`.
TUNEWRIGHT_INLINE Expr smaller(const Expr& x, const Expr& y) {
  return y->op == program::Op::Constant ? min(y, x) : min(x, y);
}

TUNEWRIGHT_INLINE std::vector<Value> clip(Emitter& emitter, const Call& call) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double low = call.has(1) ? call.known_number(1, "min") : call.attribute<double>("min", -infinity);
  const double high = call.has(2) ? call.known_number(2, "max") : call.attribute<double>("max", infinity);
  const std::string name = low == 0 && high == 6 ? "relu6" : "clip";
  return {emitter.elementwise(name, {call.input(0)}, [&](Elements x) {
    Expr result = x[0];
    if (low > program::lowest(x[0]->type)) result = larger(result, Expr(low));
    if (high < program::highest(x[0]->type)) result = smaller(result, Expr(high));
    return result;
  })};
}

TUNEWRIGHT_INLINE std::vector<Value> gelu(Emitter& emitter, const Call& call) {
  const std::string form = call.attribute<std::string>("approximate", "none");
  if (form != "none" && form != "tanh")
    call.unsupported("approximate", "'" + form + "' is no form of GELU", "use tanh");
  return {emitter.elementwise("gelu", {call.input(0)}, [&](Elements e) {
    const Expr& x = e[0];
    if (form == "none") return x * 0.5 * (erf(x * 0.70710678118654752440) + 1.0);
    return x * 0.5 * (program::tanh((x + x * x * x * 0.044715) * 0.79788456080286535588) + 1.0);
  })};
}

TUNEWRIGHT_INLINE std::vector<Value> cast(Emitter& emitter, const Call& call) {
  const Value& x = call.input(0);
  return {emitter.cast(x, element_type(call, call.whole("to", 0), x.known != nullptr))};
}

/// The remainder of integers with the sign of the divisor or, with `fmod`, of the dividend.
TUNEWRIGHT_INLINE std::vector<Value> remainder(Emitter& emitter, const Call& call) {
  if (is_float(call.input(0).type)) call.unsupported("A", "it holds fractions", "take remainders of integers");
  const bool follows_dividend = call.whole("fmod", 0) != 0;
  return {emitter.elementwise("remainder", {call.input(0), call.input(1)}, [&](Elements e) {
    const Expr rest = e[0] - e[0] / e[1] * e[1];
    if (follows_dividend) return rest;
    const Expr zero = program::constant(0, rest->type);
    const Expr other_sign = (rest < zero && zero < e[1]) || (zero < rest && e[1] < zero);
    return select(other_sign, rest + e[1], rest);
  })};
}

/// Identity, and Dropout, which is the identity at inference.
TUNEWRIGHT_INLINE std::vector<Value> same(Emitter&, const Call& call) {
  if (call.node.op == "Dropout") {
    const bool trains = call.has(2) && call.known_number(2, "training_mode") != 0;
    if (trains) call.unsupported("training_mode", "networks run inference only", "export the model in evaluation mode");
  }
  return {call.input(0)};
}

}  // namespace tunewright::networks::onnx::detail

namespace tunewright::networks::onnx {

TUNEWRIGHT_INLINE void add_elementwise(Operators& operators) {
  using detail::Elements;
  const auto unary = [&](const std::string& op, const std::string& name, auto f) {
    operators[op] = detail::pointwise(name, 1, [f](Elements x, const Call& call) { return f(x[0], call); });
  };
  const auto binary = [&](const std::string& op, const std::string& name, auto f) {
    operators[op] = detail::pointwise(name, 2, [f](Elements x, const Call&) { return f(x[0], x[1]); });
  };
  unary("Relu", "relu", [](const Expr& x, const Call&) { return detail::larger(x, Expr(0.0)); });
  unary("LeakyRelu", "leaky_relu", [](const Expr& x, const Call& call) {
    return select(x < Expr(0.0), x * Expr(call.attribute<double>("alpha", 0.01)), x);
  });
  unary("Sigmoid", "sigmoid", [](const Expr& x, const Call&) { return Expr(1.0) / (exp(-x) + 1.0); });
  unary("HardSigmoid", "hard_sigmoid", [](const Expr& x, const Call& call) {
    const Expr line = x * Expr(call.attribute<double>("alpha", 0.2)) + Expr(call.attribute<double>("beta", 0.5));
    return detail::larger(detail::smaller(line, Expr(1.0)), Expr(0.0));
  });
  unary("HardSwish", "hard_swish", [](const Expr& x, const Call&) {
    return x * detail::larger(detail::smaller(x * Expr(1.0 / 6) + Expr(0.5), Expr(1.0)), Expr(0.0));
  });
  unary("Erf", "erf", [](const Expr& x, const Call&) { return erf(x); });
  unary("Tanh", "tanh", [](const Expr& x, const Call&) { return program::tanh(x); });
  unary("Exp", "exp", [](const Expr& x, const Call&) { return exp(x); });
  unary("Log", "log", [](const Expr& x, const Call&) { return log(x); });
  unary("Sqrt", "sqrt", [](const Expr& x, const Call&) { return sqrt(x); });
  unary("Neg", "negate", [](const Expr& x, const Call&) { return -x; });
  unary("Abs", "abs", [](const Expr& x, const Call&) { return abs(x); });
  unary("Reciprocal", "reciprocal", [](const Expr& x, const Call&) { return Expr(1.0) / x; });
  unary("Not", "not", [](const Expr& x, const Call&) { return logical_not(x); });
  unary("IsNaN", "is_nan", [](const Expr& x, const Call&) { return logical_not(equal(x, x)); });
  binary("Add", "add", [](const Expr& x, const Expr& y) { return x + y; });
  binary("Sub", "subtract", [](const Expr& x, const Expr& y) { return x - y; });
  binary("Mul", "multiply", [](const Expr& x, const Expr& y) { return x * y; });
  binary("Div", "divide", [](const Expr& x, const Expr& y) { return x / y; });
  binary("Equal", "equal", [](const Expr& x, const Expr& y) { return equal(x, y); });
  binary("Less", "less", [](const Expr& x, const Expr& y) { return x < y; });
  binary("LessOrEqual", "less_or_equal", [](const Expr& x, const Expr& y) { return x <= y; });
  binary("Greater", "greater", [](const Expr& x, const Expr& y) { return x > y; });
  binary("GreaterOrEqual", "greater_or_equal", [](const Expr& x, const Expr& y) { return x >= y; });
  binary("And", "and", [](const Expr& x, const Expr& y) { return x && y; });
  binary("Or", "or", [](const Expr& x, const Expr& y) { return x || y; });
  operators["Where"] = detail::pointwise("where", 3, [](Elements x, const Call&) { return select(x[0], x[1], x[2]); });
  operators["Max"] = detail::variadic("maximum", detail::larger);
  operators["Min"] = detail::variadic("minimum", detail::smaller);
  operators["Sum"] = detail::variadic("add", [](const Expr& x, const Expr& y) { return x + y; });
  operators["Pow"] = detail::power;
  operators["Mod"] = detail::remainder;
  operators["Clip"] = detail::clip;
  operators["Gelu"] = detail::gelu;
  operators["Cast"] = detail::cast;
  operators["Identity"] = detail::same;
  operators["Dropout"] = detail::same;
}

}  // namespace tunewright::networks::onnx

#endif
