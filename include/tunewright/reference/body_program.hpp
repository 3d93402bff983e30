// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/program/graph.hpp"
#include "tunewright/reference/array.hpp"

namespace tunewright::reference::detail {

using program::AxisKind;
using program::ComputeGraph;
using program::Expr;
using program::ExprNode;
using program::IndexExpr;
using program::Op;
using program::Operator;
using program::Range;
using program::TensorId;
using program::Var;

/// An integer function of the axes; if it is affine, with its coefficients.
struct AxisFunction {
  IndexExpr expression;
  bool affine = false;
  std::vector<std::int64_t> coefficients;  ///< one per axis, if affine

  AxisFunction() = default;
  AxisFunction(IndexExpr e, std::size_t axes) : expression(std::move(e)), affine(expression.is_affine()) {
    for (Var v = 0; affine && v < axes; ++v) coefficients.push_back(expression.coefficient(v));
  }
  [[nodiscard]] std::int64_t at(std::span<const std::int64_t> axis) const;
};

/// One read of a tensor.
struct Access {
  TensorId tensor = 0;
  std::vector<std::int64_t> shape;
  std::vector<AxisFunction> indices;
  AxisFunction flat;      ///< row-major element number
  bool in_bounds = true;  ///< for all values of the axes

  Access(const Operator& op, const ExprNode& node, std::vector<std::int64_t> tensor_shape);
  [[nodiscard]] bool is_outside(std::span<const std::int64_t> axis) const;
};

/// A scalar body as straight-line code on registers.
struct BodyProgram {
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  struct Instruction {
    Op op = Op::Constant;
    ScalarType type = ScalarType::Float32;    ///< of the result
    ScalarType source = ScalarType::Float32;  ///< of a Cast: type of the argument
    std::size_t out = 0;
    std::size_t args[3] = {0, 0, 0};
    std::size_t mask = none;  ///< of a Load: register that is nonzero where the value is needed
    std::size_t detail = 0;   ///< number of an Access (Load) or AxisFunction (Index)
    double value = 0;         ///< of a Constant
  };
  const Operator* op = nullptr;
  std::vector<Instruction> constants;
  std::vector<Instruction> code;
  std::vector<Access> accesses;
  std::vector<AxisFunction> functions;
  std::size_t registers = 0;
  std::size_t result = 0;

  BodyProgram(const ComputeGraph& graph, const Operator& compiled);

 private:
  template <class Known>
  std::size_t compile(const ComputeGraph& graph, const Expr& e, std::size_t mask, Known& known) {
    if (const auto place = known.find({e.get(), mask}); place != known.end()) return place->second;
    Instruction made;
    made.op = e->op;
    made.type = e->type;
    made.mask = mask;
    made.value = e->value;
    if (e->op == Op::Cast) made.source = e->args[0]->type;
    if (e->op == Op::Select) {
      // Both branches are evaluated everywhere, but read memory only where they are selected.
      made.args[0] = compile(graph, e->args[0], mask, known);
      made.args[1] = compile(graph, e->args[1], both(mask, made.args[0]), known);
      made.args[2] = compile(graph, e->args[2], both(mask, emit({.op = Op::Not, .args = {made.args[0]}})), known);
    } else {
      for (std::size_t a = 0; a < e->args.size(); ++a) made.args[a] = compile(graph, e->args[a], mask, known);
    }
    if (e->op == Op::Load) {
      made.detail = accesses.size();
      accesses.emplace_back(*op, *e, graph.op(e->tensor).shape());
    } else if (e->op == Op::Index) {
      made.detail = functions.size();
      functions.emplace_back(e->index, op->axes.size());
    }
    const std::size_t out = emit(made);
    known[{e.get(), mask}] = out;
    return out;
  }
  std::size_t both(std::size_t mask, std::size_t condition) {
    return mask == none ? condition : emit({.op = Op::And, .args = {mask, condition}});
  }
  std::size_t emit(Instruction made);
};

/// Runs a `BodyProgram` for up to `lanes` consecutive values of one axis at a time. All arithmetic is in double.
/// Results of float32 operations are not rounded, so that a body is rounded once, when it is stored. Results of
/// narrower types are rounded, or wrap around, after every operation, as these types require; Booleans become 0 or 1.
/// Int64 is exact up to 2^53.
class Machine {
 public:
  static constexpr std::size_t lanes = 256;

  /// Only the `tensors[id]` that the body loads are read.
  Machine(const BodyProgram& program, std::span<const Array* const> tensors);

  /// Values of the body at axis[lane_axis] + 0, 1, .., count - 1 and the given other axes; `axis` is restored.
  const double* run(std::span<std::int64_t> axis, std::size_t lane_axis, std::size_t count);

 private:
  double* reg(std::size_t number) { return registers_.data() + number * lanes; }

  /// Whether every operation of the type is rounded, except those that only select a value or tell 0 from 1.
  static bool rounds_each(ScalarType type) {
    return is_narrow_float(type) || type == ScalarType::Bool || type == ScalarType::Int8 || type == ScalarType::UInt8 ||
           type == ScalarType::Int32;
  }

  void execute(const BodyProgram::Instruction& i, std::span<std::int64_t> axis, std::size_t lane_axis,
               std::size_t count);

  /// Calls `f(lane, value)` with the value of `function` in each lane.
  template <class F>
  static void walk(const AxisFunction& function, std::span<std::int64_t> axis, std::size_t lane_axis, std::size_t count,
                   const F& f) {
    if (function.affine) {
      const std::int64_t first = function.at(axis);
      const std::int64_t step = axis.empty() ? 0 : function.coefficients[lane_axis];
      for (std::size_t l = 0; l < count; ++l) f(l, first + static_cast<std::int64_t>(l) * step);
      return;
    }
    const std::int64_t start = axis[lane_axis];
    for (std::size_t l = 0; l < count; ++l) {
      f(l, function.at(axis));
      ++axis[lane_axis];
    }
    axis[lane_axis] = start;
  }

  void load(const BodyProgram::Instruction& i, std::span<std::int64_t> axis, std::size_t lane_axis, std::size_t count);

  const BodyProgram* program_;
  std::span<const Array* const> tensors_;
  std::vector<double> registers_;
};

}  // namespace tunewright::reference::detail

#if TUNEWRIGHT_DEFINES(reference)

namespace tunewright::reference::detail {

TUNEWRIGHT_INLINE std::int64_t AxisFunction::at(std::span<const std::int64_t> axis) const {
  if (!affine) return expression.evaluate([&](Var v) { return axis[v]; });
  std::int64_t sum = expression.constant();
  for (std::size_t a = 0; a < coefficients.size(); ++a) sum += coefficients[a] * axis[a];
  return sum;
}

TUNEWRIGHT_INLINE Access::Access(const Operator& op, const ExprNode& node, std::vector<std::int64_t> tensor_shape)
    : tensor(node.tensor), shape(std::move(tensor_shape)) {
  const auto range_of = [&](Var v) { return Range{0, op.axes[v].extent - 1}; };
  IndexExpr number;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const Range range = node.indices[d].range(range_of);
    in_bounds = in_bounds && range.min >= 0 && range.max < shape[d];
    number *= shape[d];
    number += node.indices[d];
    indices.emplace_back(node.indices[d], op.axes.size());
  }
  flat = AxisFunction(std::move(number), op.axes.size());
}

TUNEWRIGHT_INLINE bool Access::is_outside(std::span<const std::int64_t> axis) const {
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::int64_t index = indices[d].at(axis);
    if (index < 0 || index >= shape[d]) return true;
  }
  return false;
}

TUNEWRIGHT_INLINE BodyProgram::BodyProgram(const ComputeGraph& graph, const Operator& compiled) : op(&compiled) {
  std::map<std::pair<const ExprNode*, std::size_t>, std::size_t> known;
  result = compile(graph, compiled.body, none, known);
}

TUNEWRIGHT_INLINE std::size_t BodyProgram::emit(Instruction made) {
  made.out = registers++;
  (made.op == Op::Constant ? constants : code).push_back(made);
  return made.out;
}

TUNEWRIGHT_INLINE Machine::Machine(const BodyProgram& program, std::span<const Array* const> tensors)
    : program_(&program), tensors_(tensors), registers_(program.registers * lanes) {
  for (const BodyProgram::Instruction& c : program.constants) {
    std::fill_n(reg(c.out), lanes, program::rounded(c.value, c.type));
  }
}

TUNEWRIGHT_INLINE const double* Machine::run(std::span<std::int64_t> axis, std::size_t lane_axis, std::size_t count) {
  for (const BodyProgram::Instruction& i : program_->code) execute(i, axis, lane_axis, count);
  return reg(program_->result);
}

TUNEWRIGHT_INLINE void Machine::execute(const BodyProgram::Instruction& i, std::span<std::int64_t> axis,
                                        std::size_t lane_axis, std::size_t count) {
  double* const out = reg(i.out);
  const double* const a = reg(i.args[0]);
  const double* const b = reg(i.args[1]);
  const double* const c = reg(i.args[2]);
  const auto each = [&](auto f) {
    for (std::size_t l = 0; l < count; ++l) out[l] = f(l);
  };
  // Functions of integers are computed in float64 and converted like casts.
  const auto each_function = [&](auto f) {
    const bool is_whole = !is_float(i.type);
    each([&](std::size_t l) { return is_whole ? program::converted(f(a[l]), ScalarType::Float64, i.type) : f(a[l]); });
  };
  switch (i.op) {
    case Op::Constant: break;
    case Op::Index:
      walk(program_->functions[i.detail], axis, lane_axis, count,
           [&](std::size_t l, std::int64_t v) { out[l] = static_cast<double>(v); });
      break;
    case Op::Load: load(i, axis, lane_axis, count); break;
    case Op::Negate: each([&](std::size_t l) { return -a[l]; }); break;
    case Op::Abs: each([&](std::size_t l) { return std::abs(a[l]); }); break;
    case Op::Exp: each_function([](double x) { return std::exp(x); }); break;
    case Op::Log: each_function([](double x) { return std::log(x); }); break;
    case Op::Sqrt: each_function([](double x) { return std::sqrt(x); }); break;
    case Op::Tanh: each_function([](double x) { return std::tanh(x); }); break;
    case Op::Erf: each_function([](double x) { return std::erf(x); }); break;
    case Op::Cast: each([&](std::size_t l) { return program::converted(a[l], i.source, i.type); }); return;
    case Op::Not: each([&](std::size_t l) { return a[l] != 0 ? 0.0 : 1.0; }); return;
    case Op::Add: each([&](std::size_t l) { return a[l] + b[l]; }); break;
    case Op::Subtract: each([&](std::size_t l) { return a[l] - b[l]; }); break;
    case Op::Multiply:
      if (rounds_each(i.type)) {
        each([&](std::size_t l) { return program::product(a[l], b[l], i.type); });
        return;
      }
      each([&](std::size_t l) { return a[l] * b[l]; });
      break;
    case Op::Divide:
      each([&](std::size_t l) { return a[l] / b[l]; });
      if (!is_float(i.type)) each([&](std::size_t l) { return std::trunc(out[l]); });
      break;
    case Op::Min: each([&](std::size_t l) { return a[l] < b[l] ? a[l] : b[l]; }); break;
    case Op::Max: each([&](std::size_t l) { return a[l] > b[l] ? a[l] : b[l]; }); break;
    case Op::Less: each([&](std::size_t l) { return a[l] < b[l] ? 1.0 : 0.0; }); return;
    case Op::LessEqual: each([&](std::size_t l) { return a[l] <= b[l] ? 1.0 : 0.0; }); return;
    case Op::Equal: each([&](std::size_t l) { return a[l] == b[l] ? 1.0 : 0.0; }); return;
    case Op::And: each([&](std::size_t l) { return a[l] != 0 && b[l] != 0 ? 1.0 : 0.0; }); return;
    case Op::Or: each([&](std::size_t l) { return a[l] != 0 || b[l] != 0 ? 1.0 : 0.0; }); return;
    case Op::Select: each([&](std::size_t l) { return a[l] != 0 ? b[l] : c[l]; }); return;
  }
  if (i.op != Op::Load && i.op != Op::Constant && rounds_each(i.type))
    each([&](std::size_t l) { return program::rounded(out[l], i.type); });
}

TUNEWRIGHT_INLINE void Machine::load(const BodyProgram::Instruction& i, std::span<std::int64_t> axis,
                                     std::size_t lane_axis, std::size_t count) {
  const Access& access = program_->accesses[i.detail];
  double* const out = reg(i.out);
  tensors_[access.tensor]->visit([&](const auto& array) {
    const auto* const elements = array.data();
    if (access.in_bounds) {
      walk(access.flat, axis, lane_axis, count,
           [&](std::size_t l, std::int64_t flat) { out[l] = static_cast<double>(elements[flat]); });
      return;
    }
    const double* const wanted = i.mask == BodyProgram::none ? nullptr : reg(i.mask);
    const std::int64_t start = axis.empty() ? 0 : axis[lane_axis];
    for (std::size_t l = 0; l < count; ++l) {
      if (!axis.empty()) axis[lane_axis] = start + static_cast<std::int64_t>(l);
      out[l] = 0;
      if (wanted && wanted[l] == 0) continue;
      out[l] = static_cast<double>(elements[access.flat.at(axis)]);
    }
    if (!axis.empty()) axis[lane_axis] = start;
  });
}

}  // namespace tunewright::reference::detail

#endif
