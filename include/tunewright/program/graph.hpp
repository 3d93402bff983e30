// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
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

/// Maximum levels of a body, those of its indices included: its text is read by functions that call themselves.
inline constexpr std::uint32_t most_body_levels = 1000;

/// Maximum operations of a body and terms of its indices; what is shared counts as often as it occurs, because whatever
/// walks through a body comes by as often.
inline constexpr std::size_t most_body_terms = std::size_t{1} << 18;

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
  /// Throws `std::invalid_argument` for the use of an axis beyond the last, and for what `add` refuses.
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
  /// spatial axes come first, a combiner exists exactly with reduction axes, and the body has fitting types, reads
  /// tensors of this graph by its own axes, and keeps within these limits:
  ///
  ///   - It has at most `most_body_levels` levels and `most_body_terms` terms.
  ///   - A constant of an integer type is an integer of this type; one of Booleans is 0 or 1.
  ///   - Of an index, and of the row-major number of the element that is read, the terms without their signs, each at
  ///     its largest over the axes, add up to at most 2^53.
  ///   - Each index is inside the tensor that it reads, at all points at which the conditions of the selects around the
  ///     read hold. Only comparisons of indices count as conditions: those joined by `&&`, and in the branch of a
  ///     condition that does not hold those joined by `||`. Intervals have to show it, of the axes and of the sums that
  ///     are compared, or all values of the axes of the index if there are at most 2^16; both together within 2^24
  ///     steps. A read for which they do not is refused, as one that only a comparison of elements prevents. A select
  ///     by `in_bounds` of the very index is enough.
  ///
  /// Cost: that of a walk through the body; at most about a second for any body.
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

#include <optional>

#include "tunewright/core/bounded_product.hpp"
#include "tunewright/core/hash.hpp"
#include "tunewright/core/number_text.hpp"
#include "tunewright/program/index_bounds.hpp"

namespace tunewright::program::detail {

[[noreturn]] TUNEWRIGHT_INLINE void refuse(const Operator& op, const std::string& why) {
  throw std::invalid_argument("operator '" + op.name + "': " + why);
}

/// Checks the body of an operator against the limits of `ComputeGraph::add`.
class BodyCheck {
 public:
  BodyCheck(const ComputeGraph& graph, const Operator& op)
      : graph_(graph), op_(op), bounds_(extents(op), most_iterations) {}

  /// The tensors that the body reads, in order of first read.
  [[nodiscard]] std::vector<TensorId> reads() {
    if (op_.body->type != op_.type) {
      refuse("its body is of type " + text(op_.body->type) + " and its tensor of type " + text(op_.type) +
             "; cast the body");
    }
    check_levels(op_.body->levels);
    check(op_.body, 1);
    return std::move(reads_);
  }

 private:
  [[nodiscard]] static std::vector<std::int64_t> extents(const Operator& op) {
    std::vector<std::int64_t> all;
    for (const Axis& axis : op.axes) all.push_back(axis.extent);
    return all;
  }
  [[nodiscard]] static std::string text(ScalarType type) { return std::string(program::name(type)); }
  [[noreturn]] void refuse(const std::string& why) const { detail::refuse(op_, why); }

  /// `level` is that of `e` in the body, from 1.
  void check(const Expr& e, std::uint32_t level) {
    count_term();
    if (e->args.size() != arguments_of(e->op)) {
      refuse("an operation of its body has " + std::to_string(e->args.size()) + " arguments; give it " +
             std::to_string(arguments_of(e->op)));
    }
    for (std::size_t a = 0; a < e->args.size(); ++a) {
      const std::size_t outside = bounds_.depth();
      if (e->op == Op::Select && a > 0) bounds_.enter(e->args[0], a == 1);
      check(e->args[a], level + 1);
      bounds_.leave(outside);
    }
    if (!has_fitting_types(*e)) {
      refuse("an operation of its body that gives " + text(e->type) +
             " has arguments of other types; cast them, and take comparisons for conditions");
    }
    if (e->op == Op::Constant) check_constant(*e);
    if (e->op == Op::Index) static_cast<void>(reach(e->index, level));
    if (e->op == Op::Load) check_load(*e, level);
  }

  void check_constant(const ExprNode& e) const {
    if (is_number_of(e.value, e.type)) return;
    refuse("a constant of its body is " + number_text(e.value) + ", which is no " + text(e.type) +
           "; give a whole number that the type holds, or another type");
  }

  void check_load(const ExprNode& e, std::uint32_t level) {
    const auto read = [&e] { return "it reads tensor " + std::to_string(e.tensor); };
    if (e.tensor >= graph_.size()) {
      refuse(read() + " which is not in this graph; build bodies from this graph's tensors");
    }
    const Operator& producer = graph_.op(e.tensor);
    if (e.indices.size() != producer.rank()) {
      refuse(read() + " of rank " + std::to_string(producer.rank()) + " with " + std::to_string(e.indices.size()) +
             " indices; give one index a dimension");
    }
    if (e.type != producer.type) {
      refuse(read() + " of type " + text(producer.type) + " as " + text(e.type) + "; read it as it is and cast");
    }
    std::int64_t distance = 1, magnitude = 0;
    for (std::size_t d = e.indices.size(); d-- > 0;) {
      const std::int64_t extent = producer.axes[d].extent;
      const IndexReach found = reach(e.indices[d], level);
      magnitude += bounded_product(found.magnitude, distance, most_iterations + 1);
      if (magnitude > most_iterations) refuse_large(read() + " at elements whose number");
      distance *= extent;
      if ((found.range.min >= 0 && found.range.max < extent) || bounds_.is_inside(e.indices[d], extent)) continue;
      const Range values = bounds_.values(e.indices[d]).value_or(found.range);
      refuse(read() + ", '" + producer.name + "', at indices from " + std::to_string(values.min) + " to " +
             std::to_string(values.max) + " of dimension " + std::to_string(d) + ", whose extent is " +
             std::to_string(extent) + "; read inside of it, or select the read by in_bounds(index, " +
             std::to_string(extent) + ")");
    }
    if (std::find(reads_.begin(), reads_.end(), e.tensor) == reads_.end()) reads_.push_back(e.tensor);
  }

  /// Also checks the variables of the index and its size.
  [[nodiscard]] IndexReach reach(const IndexExpr& index, std::uint32_t level) {
    check_index(index, level);
    const std::optional<IndexReach> found = bounds_.reach(index);
    if (!found) refuse_large("its body has an index that");
    return *found;
  }

  void check_index(const IndexExpr& index, std::uint32_t level) {
    check_levels(level);
    for (const IndexExpr::Term& term : index.terms()) {
      count_term();
      if (term.kind != IndexExpr::Kind::Variable) {
        check_index(*term.numerator, level + 1);
      } else if (term.var >= op_.axes.size()) {
        refuse("its body uses variable " + std::to_string(term.var) + " but it has " + std::to_string(op_.axes.size()) +
               " axes; variables are axis numbers");
      }
    }
  }

  void check_levels(std::uint32_t levels) const {
    if (levels <= most_body_levels) return;
    refuse("its body has " + std::to_string(levels) + " levels, and at most " + std::to_string(most_body_levels) +
           " are possible; combine many terms in halves, or compute a part as an operator of its own");
  }

  void count_term() {
    if (++terms_ <= most_body_terms) return;
    refuse("its body has more than " + std::to_string(most_body_terms) +
           " terms, of which shared ones count as often as they occur; compute what repeats as an operator of its own");
  }

  [[noreturn]] void refuse_large(const std::string& what) const {
    refuse(what + " adds up terms of more than " + std::to_string(most_iterations) +
           " without their signs; give smaller coefficients");
  }

  const ComputeGraph& graph_;
  const Operator& op_;
  IndexBounds bounds_;
  std::vector<TensorId> reads_;
  std::size_t terms_ = 0;
};

}  // namespace tunewright::program::detail

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
  std::int64_t iterations = 1;
  for (std::size_t a = 0; a < op.axes.size(); ++a) {
    const Axis& axis = op.axes[a];
    if (axis.extent < 1) {
      detail::refuse(
          op, "axis '" + axis.name + "' has extent " + std::to_string(axis.extent) + "; extents must be at least 1");
    }
    if (axis.extent > most_iterations / iterations) {
      detail::refuse(op, "axis '" + axis.name + "' has extent " + std::to_string(axis.extent) +
                             ", which makes more than 2^53 iterations of all axes; give smaller extents");
    }
    iterations *= axis.extent;
    if (axis.kind == AxisKind::Spatial && a > 0 && op.axes[a - 1].kind == AxisKind::Reduction) {
      detail::refuse(op, "spatial axis '" + axis.name + "' follows a reduction axis; list spatial axes first");
    }
  }
  if ((op.combiner != Combiner::None) != op.has_reduction()) {
    detail::refuse(op, "reduction axes and a combiner go together; give both or none");
  }
  if ((op.role == Role::Computed) != static_cast<bool>(op.body)) {
    detail::refuse(op, op.body ? "inputs and constants have no body; make it a computed operator"
                               : "a computed operator needs a body");
  }
  return op.body ? detail::BodyCheck(*this, op).reads() : std::vector<TensorId>{};
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
