// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/loops/nest.hpp"

/// Statements prepared for execution one by one by verifiers: accesses are analysed once and checked at each execution.
/// The caller provides the memory.
namespace tunewright::loops {

/// An error of a nest that was found by running it.
enum class AccessFault : std::uint8_t {
  Outside,     ///< accessed memory outside a buffer's window
  Unwritten,   ///< read an unwritten element, or memory that is not allocated
  Race,        ///< threads accessed one element without a barrier between them, and one wrote it
  NotRunnable  ///< cannot be run here
};

/// An error of a nest. The message names the statement, the tensor, the dimension and the values of the loop variables.
class InterpretError : public std::runtime_error {
 public:
  InterpretError(AccessFault fault, const std::string& message) : std::runtime_error(message), fault_(fault) {}
  [[nodiscard]] AccessFault fault() const noexcept { return fault_; }

 private:
  AccessFault fault_;
};

namespace detail {

[[nodiscard]] double combined(program::Combiner combiner, ScalarType type, double a, double b);

/// The target of an access.
struct Place {
  struct Coordinate {
    std::size_t dimension = 0;
    IndexExpr within;  ///< relative to the buffer's window
  };
  BufferId buffer = 0;
  IndexExpr offset;
  std::vector<Coordinate> uncertain;  ///< those that may be out of bounds according to ranges
};

[[nodiscard]] Place place_of(const LoopNest& nest, BufferId id, std::vector<IndexExpr> coordinates);

/// The state of a running nest: values of its loop variables, and errors that report them.
class LoopState {
 public:
  explicit LoopState(const LoopNest& nest) : nest_(nest), values_(nest.variables.size(), 0) {}

  [[nodiscard]] std::int64_t value(const IndexExpr& e) const;
  [[nodiscard]] bool holds(std::span<const Guard> guards) const;
  [[noreturn]] void fail(AccessFault fault, const program::Operator& op, const std::string& what) const;
  /// Offset of the element that `op` accesses; throws if it is outside the window.
  [[nodiscard]] std::size_t element(const program::Operator& op, const Place& place, const char* verb) const;

 protected:
  const LoopNest& nest_;
  std::vector<std::int64_t> values_;
  std::vector<Var> active_;  ///< of the running loops, outermost first
};

/// A statement with analysed accesses and body.
class StatementProgram {
 public:
  StatementProgram(const LoopNest& nest, const Statement& s);

  /// Runs the statement if its guards hold. `memory` is a `LoopState` with
  ///   read(op, place, offset) -> double      the value of an element
  ///   write(op, place, offset, value)
  template <class Memory>
  void run(Memory& memory) const {
    const Statement& s = *statement_;
    if (!memory.holds(s.guards)) return;
    double result = 0;
    if (s.kind == Statement::Kind::Initialise) {
      result = program::identity(s.op->combiner, type_);
    } else {
      result = evaluate(memory, root_);
      if (s.kind == Statement::Kind::Update) result = combined(s.op->combiner, type_, load(memory, target_), result);
    }
    memory.write(*s.op, target_, memory.element(*s.op, target_, "writes"), program::rounded(result, type_));
  }

 private:
  struct Instruction {
    program::Op op = program::Op::Constant;
    ScalarType type = ScalarType::Float32;
    ScalarType source = ScalarType::Float32;  ///< of a Cast
    std::size_t args[3] = {0, 0, 0};          ///< instructions; for a Load its access, for an Index its function
    double value = 0;
  };

  std::size_t compile(const LoopNest& nest, const program::ExprNode& e);

  template <class Memory>
  [[nodiscard]] double load(Memory& memory, const Place& place) const {
    return memory.read(*statement_->op, place, memory.element(*statement_->op, place, "reads"));
  }

  template <class Memory>
  double evaluate(Memory& memory, std::size_t at) const {
    using program::Op;
    const Instruction& e = code_[at];
    const auto arg = [&](std::size_t i) { return evaluate(memory, e.args[i]); };
    // One after the other: C++ leaves the order to the compiler, but the first fault is the one that is told.
    const auto of_operands = [&](auto&& function) {
      const double a = arg(0);
      const double b = arg(1);
      return function(a, b);
    };
    // Functions of integers are computed in float64 and converted like casts.
    const auto of_function = [&](double value) { return program::converted(value, ScalarType::Float64, e.type); };
    const auto truth = [](bool b) { return b ? 1.0 : 0.0; };
    double result = 0;
    switch (e.op) {
      case Op::Constant: result = e.value; break;
      case Op::Index: result = static_cast<double>(memory.value(indices_[e.args[0]])); break;
      case Op::Load: return load(memory, loads_[e.args[0]]);
      case Op::Negate: result = -arg(0); break;
      case Op::Abs: result = std::fabs(arg(0)); break;
      case Op::Exp: return of_function(std::exp(arg(0)));
      case Op::Log: return of_function(std::log(arg(0)));
      case Op::Sqrt: return of_function(std::sqrt(arg(0)));
      case Op::Tanh: return of_function(std::tanh(arg(0)));
      case Op::Erf: return of_function(std::erf(arg(0)));
      case Op::Cast: return program::converted(arg(0), e.source, e.type);
      case Op::Not: result = truth(arg(0) == 0); break;
      case Op::Add: result = of_operands(std::plus{}); break;
      case Op::Subtract: result = of_operands(std::minus{}); break;
      case Op::Multiply: return of_operands([&](double a, double b) { return program::product(a, b, e.type); });
      case Op::Divide: result = of_operands(std::divides{}); break;
      case Op::Min: result = of_operands([](double a, double b) { return a < b ? a : b; }); break;
      case Op::Max: result = of_operands([](double a, double b) { return a > b ? a : b; }); break;
      case Op::Less: result = truth(of_operands(std::less{})); break;
      case Op::LessEqual: result = truth(of_operands(std::less_equal{})); break;
      case Op::Equal: result = truth(of_operands(std::equal_to{})); break;
      case Op::And: return truth(arg(0) != 0 && arg(1) != 0);
      case Op::Or: return truth(arg(0) != 0 || arg(1) != 0);
      case Op::Select: return arg(0) != 0 ? arg(1) : arg(2);
    }
    return program::rounded(result, e.type);
  }

  const Statement* statement_;
  ScalarType type_;
  Place target_;
  std::vector<Instruction> code_;
  std::size_t root_ = 0;
  std::vector<Place> loads_;
  std::vector<IndexExpr> indices_;
};

/// Throws `std::invalid_argument` unless there is one vector per argument of `nest`, each with the size of its layout.
void check_arguments(const LoopNest& nest, std::span<const std::vector<double>> arguments);

}  // namespace detail
}  // namespace tunewright::loops

#if TUNEWRIGHT_DEFINES(loops)

namespace tunewright::loops::detail {

TUNEWRIGHT_INLINE double combined(program::Combiner combiner, ScalarType type, double a, double b) {
  switch (combiner) {
    case program::Combiner::Sum: return a + b;
    case program::Combiner::Product: return program::product(a, b, type);
    case program::Combiner::Max: return a > b ? a : b;
    case program::Combiner::Min: return a < b ? a : b;
    case program::Combiner::None: break;
  }
  return b;
}

TUNEWRIGHT_INLINE Place place_of(const LoopNest& nest, BufferId id, std::vector<IndexExpr> coordinates) {
  const Buffer& buffer = nest.buffers.at(id);
  const auto range_of = [&nest](Var v) { return nest.range_of(v); };
  Place place;
  place.buffer = id;
  for (std::size_t d = 0; d < coordinates.size(); ++d) {
    IndexExpr within = coordinates[d] - buffer.origin[d];
    const program::Range range = within.range(range_of);
    if (range.min < 0 || range.max >= buffer.shape[d]) place.uncertain.push_back({d, std::move(within)});
  }
  place.offset = flatten(buffer, physical_indices(nest, buffer, std::move(coordinates)));
  return place;
}

TUNEWRIGHT_INLINE std::int64_t LoopState::value(const IndexExpr& e) const {
  return e.evaluate([this](Var var) { return values_[var]; });
}

TUNEWRIGHT_INLINE bool LoopState::holds(std::span<const Guard> guards) const {
  return std::all_of(guards.begin(), guards.end(), [&](const Guard& g) {
    const std::int64_t v = value(g.value);
    return (!g.below || v >= 0) && (!g.above || v < g.extent);
  });
}

TUNEWRIGHT_INLINE void LoopState::fail(AccessFault fault, const program::Operator& op, const std::string& what) const {
  std::string where;
  for (const Var var : active_) {
    where += (where.empty() ? "" : ", ") + nest_.variables[var].name + " = " + std::to_string(values_[var]);
  }
  throw InterpretError(fault, "operator '" + op.name + "' " + what + (where.empty() ? "" : " at " + where));
}

TUNEWRIGHT_INLINE std::size_t LoopState::element(const program::Operator& op, const Place& place,
                                                 const char* verb) const {
  const Buffer& buffer = nest_.buffers[place.buffer];
  for (const Place::Coordinate& c : place.uncertain) {
    const std::int64_t index = value(c.within);
    if (index >= 0 && index < buffer.shape[c.dimension]) continue;
    fail(AccessFault::Outside, op,
         std::string(verb) + " '" + buffer.name + "' outside its window: index " + std::to_string(index) +
             " of dimension " + std::to_string(c.dimension) + " with extent " +
             std::to_string(buffer.shape[c.dimension]));
  }
  return static_cast<std::size_t>(value(place.offset));
}

TUNEWRIGHT_INLINE StatementProgram::StatementProgram(const LoopNest& nest, const Statement& s)
    : statement_(&s), type_(nest.buffers.at(s.target).type) {
  const auto rank = static_cast<std::ptrdiff_t>(nest.buffers[s.target].shape.size());
  target_ = place_of(nest, s.target, {s.axis_values.begin(), s.axis_values.begin() + rank});
  if (s.kind != Statement::Kind::Initialise) root_ = compile(nest, *s.op->body);
}

TUNEWRIGHT_INLINE std::size_t StatementProgram::compile(const LoopNest& nest, const program::ExprNode& e) {
  Instruction made;
  made.op = e.op;
  made.type = e.type;
  made.value = e.value;
  if (e.op == program::Op::Load) {
    const BufferId id = nest.buffer_of.at(e.tensor);
    if (id == LoopNest::no_buffer)
      throw InterpretError(AccessFault::NotRunnable, no_buffer_text("operator", statement_->op->name, e.tensor));
    std::vector<IndexExpr> coordinates;
    for (const IndexExpr& index : e.indices) coordinates.push_back(over_loops(nest, *statement_, index));
    made.args[0] = loads_.size();
    loads_.push_back(place_of(nest, id, std::move(coordinates)));
  } else if (e.op == program::Op::Index) {
    made.args[0] = indices_.size();
    indices_.push_back(over_loops(nest, *statement_, e.index));
  } else {
    for (std::size_t a = 0; a < e.args.size(); ++a) made.args[a] = compile(nest, *e.args[a]);
    if (e.op == program::Op::Cast) made.source = e.args[0]->type;
  }
  code_.push_back(made);
  return code_.size() - 1;
}

TUNEWRIGHT_INLINE void check_arguments(const LoopNest& nest, std::span<const std::vector<double>> arguments) {
  if (arguments.size() != nest.arguments.size()) {
    throw std::invalid_argument("loop nest '" + nest.name + "' has " + std::to_string(nest.arguments.size()) +
                                " arguments, " + std::to_string(arguments.size()) + " were given");
  }
  for (std::size_t a = 0; a < arguments.size(); ++a) {
    const Buffer& buffer = nest.buffers[nest.arguments[a]];
    if (static_cast<std::int64_t>(arguments[a].size()) == buffer.elements()) continue;
    throw std::invalid_argument("argument '" + buffer.name + "' has " + std::to_string(arguments[a].size()) +
                                " elements; its layout holds " + std::to_string(buffer.elements()));
  }
}

}  // namespace tunewright::loops::detail

#endif
