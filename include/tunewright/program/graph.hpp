// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/program/expr.hpp"

namespace tunewright::program {

/// Maximum iterations of all axes of an operator together; leaves room to count bytes and operations.
inline constexpr std::int64_t most_iterations = std::int64_t{1} << 53;

enum class AxisKind : std::uint8_t { Spatial, Reduction };

struct Axis {
  std::string name;
  std::int64_t extent = 1;
  AxisKind kind = AxisKind::Spatial;
  bool operator==(const Axis&) const = default;
};

/// How a reduction combines the values of its body; `None` for operators without reduction axes.
enum class Combiner : std::uint8_t { None, Sum, Product, Max, Min };

[[nodiscard]] constexpr double identity(Combiner combiner) noexcept {
  switch (combiner) {
    case Combiner::Product: return 1.0;
    case Combiner::Max: return -std::numeric_limits<double>::infinity();
    case Combiner::Min: return std::numeric_limits<double>::infinity();
    case Combiner::None:
    case Combiner::Sum: break;
  }
  return 0.0;
}
/// The same for a type: for integers, which have no infinities, the minimum or maximum.
[[nodiscard]] constexpr double identity(Combiner combiner, ScalarType type) noexcept {
  const double exact = identity(combiner);
  return exact < lowest(type) ? lowest(type) : exact > highest(type) ? highest(type) : exact;
}

/// The source of a tensor. Constants (weights) do not change between runs, so kernels may request them in packed form.
enum class Role : std::uint8_t { Input, Constant, Computed };

/// One tensor operator: for every point of its spatial axes, the body, reduced over the reduction axes.
///
///   out[s0, .., sm] = combine over (r0, .., rn) of body(s0, .., sm, r0, .., rn)
///
/// Variables in `body` are axis numbers: spatial axes first, then reduction axes. Inputs and constants have
/// no body.
struct Operator {
  std::string name{};
  ScalarType type = ScalarType::Float32;
  Role role = Role::Computed;
  std::vector<Axis> axes{};
  Combiner combiner = Combiner::None;
  Expr body{};

  [[nodiscard]] std::size_t rank() const noexcept;
  [[nodiscard]] bool has_reduction() const noexcept { return rank() < axes.size(); }
  /// Number of elements of the tensor.
  [[nodiscard]] std::int64_t elements() const noexcept;
  [[nodiscard]] std::vector<std::int64_t> shape() const;
};

/// Handle of a tensor of a graph under construction: call it with indices to read an element.
struct Tensor {
  TensorId id = 0;
  ScalarType type = ScalarType::Float32;
  std::vector<std::int64_t> shape;

  [[nodiscard]] Expr at(std::vector<IndexExpr> indices) const;
  template <class... Indices>
  [[nodiscard]] Expr operator()(Indices&&... indices) const {
    return at(std::vector<IndexExpr>{IndexExpr(std::forward<Indices>(indices))...});
  }
};

/// The spatial axes, or those of the reduction, as the body of an operator uses them.
class BodyAxes : public std::span<const IndexExpr> {
 public:
  BodyAxes(const std::vector<IndexExpr>& axes, const std::string& op, const char* kind)
      : std::span<const IndexExpr>(axes), op_(op), kind_(kind) {}
  /// Throws `std::invalid_argument` for an axis that the operator lacks.
  [[nodiscard]] const IndexExpr& operator[](std::size_t axis) const {
    if (axis >= size()) refuse(axis);
    return std::span<const IndexExpr>::operator[](axis);
  }

 private:
  [[noreturn]] void refuse(std::size_t axis) const;

  const std::string& op_;
  const char* kind_;
};

/// Directed acyclic graph of tensor operators: a vertex computes the tensor of the same number, an edge leads from a
/// tensor to an operator that reads it. Vertices are in topological order, because an operator can only read existing
/// tensors. Immutable once shared with a `Task`. `boost_graph.hpp` makes it a graph for Boost.Graph's algorithms.
///
/// Numbers are part of the content hash, so add tensors in separate statements: the evaluation order of the arguments
/// of one call is unspecified.
class ComputeGraph {
 public:
  /// A tensor given at each run. Throws `std::invalid_argument` for an extent below 1 and more than 2^53 elements.
  Tensor input(std::string name, const std::vector<std::int64_t>& shape, ScalarType type = ScalarType::Float32) {
    return add_source(std::move(name), shape, type, Role::Input);
  }
  /// A tensor with the same value in each run, such as a weight.
  Tensor constant(std::string name, const std::vector<std::int64_t>& shape, ScalarType type = ScalarType::Float32) {
    return add_source(std::move(name), shape, type, Role::Constant);
  }

  /// An operator without reduction: `body(i)` gets the spatial axes as `BodyAxes`, a span of index expressions.
  /// Throws `std::invalid_argument` for an extent below 1, more than 2^53 iterations, a read of an unknown tensor, or
  /// the use of an axis beyond the last.
  template <class Body>
  Tensor compute(std::string name, std::vector<Axis> spatial, const Body& body) {
    return reduce(std::move(name), std::move(spatial), {}, Combiner::None, [&](auto i, auto) { return body(i); });
  }

  /// An operator with reduction: `body(i, r)` gets the spatial and the reduction axes.
  template <class Body>
  Tensor reduce(std::string name, std::vector<Axis> spatial, std::vector<Axis> reduction, Combiner combiner,
                const Body& body) {
    std::vector<IndexExpr> i;
    std::vector<IndexExpr> r;
    for (Var v = 0; v < spatial.size() + reduction.size(); ++v) {
      (v < spatial.size() ? i : r).push_back(IndexExpr::variable(v));
    }
    Operator op;
    op.name = std::move(name);
    op.axes = std::move(spatial);
    for (Axis& axis : op.axes) axis.kind = AxisKind::Spatial;
    for (Axis& axis : reduction) {
      axis.kind = AxisKind::Reduction;
      op.axes.push_back(std::move(axis));
    }
    op.combiner = r.empty() ? Combiner::None : combiner;
    op.body = body(BodyAxes(i, op.name, "spatial"), BodyAxes(r, op.name, "reduction"));
    if (op.body) op.type = op.body->type;
    return add(std::move(op));
  }

  /// Adds a complete operator. Throws `std::invalid_argument` unless extents are positive with at most 2^53 iterations,
  /// spatial axes come first, a combiner exists exactly with reduction axes, and the body reads tensors of this graph
  /// by its own axes.
  Tensor add(Operator op);

  [[nodiscard]] std::size_t size() const noexcept { return operators_.size(); }
  [[nodiscard]] const Operator& op(TensorId id) const { return operators_[id]; }
  [[nodiscard]] Tensor tensor(TensorId id) const { return {id, op(id).type, op(id).shape()}; }

  /// Tensors read by `id`, in order of first read.
  [[nodiscard]] const std::vector<TensorId>& producers(TensorId id) const { return producers_[id]; }
  [[nodiscard]] bool is_read(TensorId id) const { return !consumers_[id].empty(); }
  /// Operators that read `id`, in order.
  [[nodiscard]] const std::vector<TensorId>& consumers(TensorId id) const { return consumers_[id]; }
  /// Computed tensors without readers, in order.
  [[nodiscard]] std::vector<TensorId> outputs() const;

 private:
  /// Returns the tensors read by `op`, in order of first read.
  [[nodiscard]] std::vector<TensorId> check(const Operator& op) const;

  Tensor add_source(std::string name, const std::vector<std::int64_t>& shape, ScalarType type, Role role);

  std::vector<Operator> operators_;  // by TensorId, as are the others
  std::vector<std::vector<TensorId>> producers_;
  std::vector<std::vector<TensorId>> consumers_;
};

/// Content hash: equal graphs have equal hashes on every platform. Names of tensors and axes do not count.
[[nodiscard]] std::uint64_t stable_hash(const ComputeGraph& graph);

}  // namespace tunewright::program

#if TUNEWRIGHT_DEFINES(program)

#include "tunewright/core/hash.hpp"

namespace tunewright::program {

TUNEWRIGHT_INLINE void BodyAxes::refuse(std::size_t axis) const {
  throw std::invalid_argument("the body of operator '" + op_ + "' uses " + kind_ + " axis " + std::to_string(axis) +
                              " of " + std::to_string(size()) + "; they are numbered from 0");
}

TUNEWRIGHT_INLINE std::size_t Operator::rank() const noexcept {
  std::size_t spatial = 0;
  while (spatial < axes.size() && axes[spatial].kind == AxisKind::Spatial) ++spatial;
  return spatial;
}

TUNEWRIGHT_INLINE std::int64_t Operator::elements() const noexcept {
  std::int64_t product = 1;
  for (std::size_t a = 0; a < rank(); ++a) product *= axes[a].extent;
  return product;
}

TUNEWRIGHT_INLINE std::vector<std::int64_t> Operator::shape() const {
  std::vector<std::int64_t> extents(rank());
  for (std::size_t a = 0; a < extents.size(); ++a) extents[a] = axes[a].extent;
  return extents;
}

TUNEWRIGHT_INLINE Expr Tensor::at(std::vector<IndexExpr> indices) const {
  if (indices.size() != shape.size()) {
    throw std::invalid_argument("a tensor of rank " + std::to_string(shape.size()) + " was read with " +
                                std::to_string(indices.size()) + " indices; give one index a dimension");
  }
  return load(id, type, std::move(indices));
}

TUNEWRIGHT_INLINE Tensor ComputeGraph::add(Operator op) {
  std::vector<TensorId> reads = check(op);
  const auto id = static_cast<TensorId>(operators_.size());
  operators_.push_back(std::move(op));
  for (const TensorId read : reads) consumers_[read].push_back(id);
  producers_.push_back(std::move(reads));
  consumers_.emplace_back();
  return tensor(id);
}

TUNEWRIGHT_INLINE std::vector<TensorId> ComputeGraph::outputs() const {
  std::vector<TensorId> found;
  for (TensorId id = 0; id < size(); ++id) {
    if (op(id).role == Role::Computed && !is_read(id)) found.push_back(id);
  }
  return found;
}

TUNEWRIGHT_INLINE std::vector<TensorId> ComputeGraph::check(const Operator& op) const {
  const auto refuse = [&op](const std::string& why) {
    throw std::invalid_argument("operator '" + op.name + "': " + why);
  };
  std::int64_t iterations = 1;
  for (std::size_t a = 0; a < op.axes.size(); ++a) {
    const Axis& axis = op.axes[a];
    if (axis.extent < 1) {
      refuse("axis '" + axis.name + "' has extent " + std::to_string(axis.extent) + "; extents must be at least 1");
    }
    if (axis.extent > most_iterations / iterations) {
      refuse("axis '" + axis.name + "' has extent " + std::to_string(axis.extent) +
             ", which makes more than 2^53 iterations of all axes; give smaller extents");
    }
    iterations *= axis.extent;
    if (axis.kind == AxisKind::Spatial && a > 0 && op.axes[a - 1].kind == AxisKind::Reduction) {
      refuse("spatial axis '" + axis.name + "' follows a reduction axis; list spatial axes first");
    }
  }
  if ((op.combiner != Combiner::None) != op.has_reduction()) {
    refuse("reduction axes and a combiner go together; give both or none");
  }
  if ((op.role == Role::Computed) != static_cast<bool>(op.body)) {
    refuse(op.body ? "inputs and constants have no body; make it a computed operator"
                   : "a computed operator needs a body");
  }
  std::vector<TensorId> reads;
  if (op.body.get() == nullptr) return reads;
  const auto check_variables = [&](const IndexExpr& index) {
    for_each_variable(index, [&](Var var) {
      if (var >= op.axes.size()) {
        refuse("its body uses variable " + std::to_string(var) + " but it has " + std::to_string(op.axes.size()) +
               " axes; variables are axis numbers");
      }
    });
  };
  const auto text_of = [](ScalarType type) { return std::string(program::name(type)); };
  if (op.body->type != op.type)
    refuse("its body is of type " + text_of(op.body->type) + " and its tensor of type " + text_of(op.type) +
           "; cast the body");
  visit(op.body, [&](const ExprNode& node) {
    if (!has_fitting_types(node))
      refuse("an operation of its body that gives " + text_of(node.type) +
             " has arguments of other types; cast them, and take comparisons for conditions");
    if (node.op == Op::Index) check_variables(node.index);
    if (node.op != Op::Load) return;
    const std::string read = "it reads tensor " + std::to_string(node.tensor);
    if (node.tensor >= size()) refuse(read + " which is not in this graph; build bodies from this graph's tensors");
    const Operator& producer = this->op(node.tensor);
    if (node.indices.size() != producer.rank()) {
      refuse(read + " of rank " + std::to_string(producer.rank()) + " with " + std::to_string(node.indices.size()) +
             " indices; give one index a dimension");
    }
    if (node.type != producer.type) {
      refuse(read + " of type " + std::string(program::name(producer.type)) + " as " +
             std::string(program::name(node.type)) + "; read it as it is and cast");
    }
    for (const IndexExpr& index : node.indices) check_variables(index);
    if (std::find(reads.begin(), reads.end(), node.tensor) == reads.end()) reads.push_back(node.tensor);
  });
  return reads;
}

TUNEWRIGHT_INLINE Tensor ComputeGraph::add_source(std::string name, const std::vector<std::int64_t>& shape,
                                                  ScalarType type, Role role) {
  Operator op;
  op.name = std::move(name);
  op.type = type;
  op.role = role;
  for (std::size_t d = 0; d < shape.size(); ++d)
    op.axes.push_back({"d" + std::to_string(d), shape[d], AxisKind::Spatial});
  return add(std::move(op));
}

TUNEWRIGHT_INLINE std::uint64_t stable_hash(const ComputeGraph& graph) {
  StableHash h;
  for (TensorId id = 0; id < graph.size(); ++id) {
    const Operator& op = graph.op(id);
    h.add(static_cast<int>(op.role)).add(static_cast<int>(op.type)).add(static_cast<int>(op.combiner));
    h.add(static_cast<std::uint64_t>(op.axes.size()));
    for (const Axis& axis : op.axes) h.add(axis.extent).add(static_cast<int>(axis.kind));
    if (op.body) add_to_hash(h, op.body);
  }
  return h.value();
}

}  // namespace tunewright::program

#endif
