// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/loops/nest.hpp"

/// Runs a loop nest statement by statement and checks every access: the verifier of lowering. Independent of
/// every code generator, so that a wrong result can be told apart from wrong machine code.
namespace tunewright::loops {

/// A nest that touches memory outside a buffer's window, reads what was never written, or cannot be run here.
/// The message names the statement, the tensor, the dimension and the values of the loop variables.
class InterpretError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

namespace detail {

[[nodiscard]] inline double combined(program::Combiner combiner, ScalarType type, double a, double b) {
  switch (combiner) {
    case program::Combiner::Sum: return a + b;
    case program::Combiner::Product: return program::product(a, b, type);
    case program::Combiner::Max: return a > b ? a : b;
    case program::Combiner::Min: return a < b ? a : b;
    case program::Combiner::None: break;
  }
  return b;
}

class Interpreter {
 public:
  Interpreter(const LoopNest& nest, std::vector<std::vector<double>>& arguments)
      : nest_(nest),
        values_(nest.variables.size(), 0),
        storage_(nest.buffers.size()),
        written_(nest.buffers.size()) {
    if (arguments.size() != nest.arguments.size()) {
      throw std::invalid_argument("loop nest '" + nest.name + "' has " +
                                  std::to_string(nest.arguments.size()) + " arguments, " +
                                  std::to_string(arguments.size()) + " were given");
    }
    for (std::size_t a = 0; a < arguments.size(); ++a) {
      const BufferId id = nest.arguments[a];
      const auto elements = static_cast<std::size_t>(nest.buffers[id].elements());
      if (arguments[a].size() != elements) {
        throw std::invalid_argument("argument '" + nest.buffers[id].name + "' has " +
                                    std::to_string(arguments[a].size()) + " elements; its layout holds " +
                                    std::to_string(elements));
      }
      storage_[id] = &arguments[a];
      written_[id].assign(elements, nest.buffers[id].role != BufferRole::Output);
    }
  }

  void run() { run(nest_.body); }

 private:
  /// Where an access goes: coordinates within the buffer's window, and the offset of the element.
  struct Place {
    BufferId buffer = 0;
    std::vector<IndexExpr> local;
    IndexExpr offset;
  };
  struct Prepared {
    Place target;
    std::unordered_map<const program::ExprNode*, Place> loads;
    std::unordered_map<const program::ExprNode*, IndexExpr> indices;
  };

  [[nodiscard]] Place place(BufferId id, std::vector<IndexExpr> coordinates) const {
    const Buffer& buffer = nest_.buffers[id];
    Place p;
    p.buffer = id;
    p.offset = flatten(buffer, physical_indices(nest_, buffer, coordinates));
    for (std::size_t d = 0; d < coordinates.size(); ++d) coordinates[d] -= buffer.origin[d];
    p.local = std::move(coordinates);
    return p;
  }

  const Prepared& prepared(const Statement& s) {
    const auto [found, fresh] = prepared_.try_emplace(&s);
    Prepared& p = found->second;
    if (!fresh) return p;
    const auto rank = static_cast<std::ptrdiff_t>(nest_.buffers[s.target].shape.size());
    p.target = place(s.target, {s.axis_values.begin(), s.axis_values.begin() + rank});
    if (s.kind == Statement::Kind::Initialise) return p;
    program::visit(s.op->body, [&](const program::ExprNode& node) {
      if (node.op == program::Op::Index) p.indices.emplace(&node, over_loops(nest_, s, node.index));
      if (node.op != program::Op::Load || p.loads.count(&node) != 0) return;
      const BufferId id = nest_.buffer_of[node.tensor];
      if (id == LoopNest::no_buffer) {
        throw InterpretError("operator '" + s.op->name + "' reads tensor " + std::to_string(node.tensor) +
                             " which has no buffer");
      }
      std::vector<IndexExpr> coordinates;
      for (const IndexExpr& index : node.indices) coordinates.push_back(over_loops(nest_, s, index));
      p.loads.emplace(&node, place(id, std::move(coordinates)));
    });
    return p;
  }

  [[nodiscard]] std::int64_t value(const IndexExpr& e) const {
    return e.evaluate([this](Var var) { return values_[var]; });
  }

  [[noreturn]] void fail(const Statement& s, const std::string& what) const {
    std::string where;
    for (const Var var : active_) {
      where += (where.empty() ? "" : ", ") + nest_.variables[var].name + " = " + std::to_string(values_[var]);
    }
    throw InterpretError("operator '" + s.op->name + "' " + what + (where.empty() ? "" : " at " + where));
  }

  std::size_t element(const Statement& s, const Place& p, const char* verb) const {
    const Buffer& buffer = nest_.buffers[p.buffer];
    if (storage_[p.buffer] == nullptr)
      fail(s, std::string(verb) + " '" + buffer.name + "' before it is allocated");
    for (std::size_t d = 0; d < p.local.size(); ++d) {
      const std::int64_t index = value(p.local[d]);
      if (index < 0 || index >= buffer.shape[d]) {
        fail(s, std::string(verb) + " '" + buffer.name + "' outside its window: index " +
                    std::to_string(index) + " of dimension " + std::to_string(d) + " with extent " +
                    std::to_string(buffer.shape[d]));
      }
    }
    const std::int64_t offset = value(p.offset);
    if (offset < 0 || offset >= buffer.elements()) {
      fail(s, std::string(verb) + " '" + buffer.name + "' at offset " + std::to_string(offset) + " of " +
                  std::to_string(buffer.elements()) + " elements");
    }
    return static_cast<std::size_t>(offset);
  }

  double read(const Statement& s, const Place& p) const {
    const std::size_t at = element(s, p, "reads");
    if (!written_[p.buffer][at]) {
      fail(s, "reads element " + std::to_string(at) + " of '" + nest_.buffers[p.buffer].name +
                  "' before it is written");
    }
    return (*storage_[p.buffer])[at];
  }

  double evaluate(const Statement& s, const Prepared& p, const program::ExprNode& e) const {
    using program::Op;
    const auto arg = [&](std::size_t i) { return evaluate(s, p, *e.args[i]); };
    const auto truth = [](bool b) { return b ? 1.0 : 0.0; };
    double result = 0;
    switch (e.op) {
      case Op::Constant: result = e.value; break;
      case Op::Index: result = static_cast<double>(value(p.indices.at(&e))); break;
      case Op::Load: return read(s, p.loads.at(&e));
      case Op::Negate: result = -arg(0); break;
      case Op::Abs: result = std::fabs(arg(0)); break;
      case Op::Exp: result = std::exp(arg(0)); break;
      case Op::Log: result = std::log(arg(0)); break;
      case Op::Sqrt: result = std::sqrt(arg(0)); break;
      case Op::Tanh: result = std::tanh(arg(0)); break;
      case Op::Erf: result = std::erf(arg(0)); break;
      case Op::Cast: return program::converted(arg(0), e.args[0]->type, e.type);
      case Op::Not: result = truth(arg(0) == 0); break;
      case Op::Add: result = arg(0) + arg(1); break;
      case Op::Subtract: result = arg(0) - arg(1); break;
      case Op::Multiply: return program::product(arg(0), arg(1), e.type);
      case Op::Divide: result = arg(0) / arg(1); break;
      case Op::Min: {
        const double a = arg(0), b = arg(1);
        result = a < b ? a : b;
        break;
      }
      case Op::Max: {
        const double a = arg(0), b = arg(1);
        result = a > b ? a : b;
        break;
      }
      case Op::Less: result = truth(arg(0) < arg(1)); break;
      case Op::LessEqual: result = truth(arg(0) <= arg(1)); break;
      case Op::Equal: result = truth(arg(0) == arg(1)); break;
      case Op::And: return truth(arg(0) != 0 && arg(1) != 0);
      case Op::Or: return truth(arg(0) != 0 || arg(1) != 0);
      case Op::Select: return arg(0) != 0 ? arg(1) : arg(2);
    }
    return program::rounded(result, e.type);
  }

  [[nodiscard]] bool holds(const std::vector<Guard>& guards) const {
    return std::all_of(guards.begin(), guards.end(), [&](const Guard& g) {
      const std::int64_t v = value(g.value);
      return (!g.below || v >= 0) && (!g.above || v < g.extent);
    });
  }

  void run(const Statement& s) {
    if (!holds(s.guards)) return;
    const Prepared& p = prepared(s);
    const ScalarType type = nest_.buffers[s.target].type;
    double result = 0;
    if (s.kind == Statement::Kind::Initialise) {
      result = program::identity(s.op->combiner, type);
    } else {
      result = evaluate(s, p, *s.op->body);
      if (s.kind == Statement::Kind::Update) result = combined(s.op->combiner, type, read(s, p.target), result);
    }
    const std::size_t at = element(s, p.target, "writes");
    (*storage_[s.target])[at] = program::rounded(result, type);
    written_[s.target][at] = true;
  }

  void run(const Loop& loop) {
    active_.push_back(loop.var);
    const bool threads = loop.kind >= LoopKind::ThreadX && loop.kind <= LoopKind::ThreadZ;
    thread_depth_ += threads;
    for (values_[loop.var] = 0; values_[loop.var] < nest_.variables[loop.var].extent; ++values_[loop.var])
      run(loop.body);
    thread_depth_ -= threads;
    active_.pop_back();
  }

  void run(const Allocate& allocate) {
    const auto elements = static_cast<std::size_t>(nest_.buffers[allocate.buffer].elements());
    owned_[allocate.buffer].assign(elements, std::numeric_limits<double>::quiet_NaN());
    storage_[allocate.buffer] = &owned_[allocate.buffer];
    written_[allocate.buffer].assign(elements, false);
  }

  void run(const Branch& branch) { run(holds(branch.conditions) ? branch.then : branch.otherwise); }

  void run(const Barrier&) {
    if (thread_depth_ > 0)
      throw InterpretError("loop nest '" + nest_.name +
                           "' has a barrier between threads that run one after the other");
  }

  void run(const CrossThreadReduction&) {
    throw InterpretError("loop nest '" + nest_.name +
                         "' combines what threads hold; they cannot run one after the other");
  }

  void run(const Body& body) {
    for (const Node& node : body) std::visit([&](const auto& content) { run(content); }, node.content);
  }

  const LoopNest& nest_;
  std::vector<std::int64_t> values_;
  std::vector<std::vector<double>*> storage_;
  std::vector<std::vector<bool>> written_;
  std::unordered_map<BufferId, std::vector<double>> owned_;
  std::unordered_map<const Statement*, Prepared> prepared_;
  std::vector<Var> active_;
  int thread_depth_ = 0;
};

}  // namespace detail

/// Runs `nest` on `arguments`, one vector an entry of `nest.arguments`, each in the physical order of its
/// layout (`codegen::pack` makes that order for packed constants). Values are rounded to their type after
/// every operation. Statements run exactly where their guards hold. Outputs start as never written, whatever the
/// vectors contain.
///
/// Throws `std::invalid_argument` for wrong arguments and `InterpretError` for an access outside a window or
/// a read of an element nothing has written. Cost: roughly a microsecond for each operation of a body; meant
/// for small extents.
inline void interpret(const LoopNest& nest, std::vector<std::vector<double>>& arguments) {
  detail::Interpreter(nest, arguments).run();
}

}  // namespace tunewright::loops
