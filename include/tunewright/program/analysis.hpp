// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/program/graph.hpp"

/// Analyses of operators and graphs for search spaces and cost models.
///
/// Analyses of one operator take the operator itself, so that they also work for a stage whose body a schedule has
/// rewritten. The rules are those of Ansor (Zheng et al., OSDI 2020, section 4.1).
namespace tunewright::program {

/// All reads of one tensor in a body, with one index list per read.
struct Reads {
  TensorId tensor = 0;
  std::vector<std::vector<IndexExpr>> accesses;
};

/// Reads of the body by tensor, in order of first read.
[[nodiscard]] std::vector<Reads> reads_of(const Operator& op);

/// How one read uses the spatial axes of its reader.
struct AccessPattern {
  bool simple = false;           ///< every index is a constant, or one spatial axis plus a constant
  bool axis_missing = false;     ///< some spatial axis is not used
  bool axis_duplicated = false;  ///< some spatial axis is used twice
  bool same_order = true;        ///< axes are used in increasing order
};

namespace detail {

/// The spatial axis of an index, if the index is an axis plus a constant.
[[nodiscard]] std::optional<Var> shifted_axis(const Operator& reader, const IndexExpr& index);

/// Operations of one evaluation of an expression of an operator of type `type`.
[[nodiscard]] double flops_of(const Expr& e, ScalarType type);

}  // namespace detail

[[nodiscard]] AccessPattern access_pattern(const Operator& reader, const std::vector<IndexExpr>& indices);

/// Whether the operator can be inlined into its readers: it is not a reduction, has no branch that would prevent
/// vectorization of a reader, and reads everything in axis order.
[[nodiscard]] bool inlineable(const Operator& op);

/// Whether inlining is always good, because it repeats no costly arithmetic.
///
/// Deviates: Ansor counts only `exp` as costly; here all functions that are a call or a long polynomial are.
[[nodiscard]] bool strictly_inlineable(const Operator& op);

/// Whether data is reused enough for multi-level tiling: at least two tensors, or one in a reduction, are read
/// independently of some spatial axis.
[[nodiscard]] bool needs_multi_level_tiling(const Operator& op);

/// Whether a tensor is computed and has no reader.
[[nodiscard]] inline bool is_output(const ComputeGraph& graph, TensorId id) {
  return graph.op(id).role == Role::Computed && !graph.is_read(id);
}

/// Whether `consumer` has the shape of `producer`, which computes tensor `id`, and reads at each point the element of
/// that point alone.
[[nodiscard]] bool reads_elementwise(const Operator& consumer, const Operator& producer, TensorId id);

/// Number of leading dimensions of tensor `id` that `consumer` iterates over with equal extents and reads by the axis
/// of the same number, up to a constant: the loops that both could share. Zero if it does not read it.
[[nodiscard]] std::size_t num_common_outer_axes(const Operator& consumer, const Operator& producer, TensorId id);

/// Products of the extents of the spatial axes, and of the reduction axes.
[[nodiscard]] double spatial_points(const Operator& op);
[[nodiscard]] double reduction_points(const Operator& op);

/// Floating-point operations of one run, counted as in Ansor: each point of the iteration space costs one per sum,
/// difference, product, quotient, minimum or maximum of the operator's number type, one for the combiner of a
/// reduction, and the more expensive branch of a select; functions such as exp cost nothing. A matrix product has
/// 2*m*n*k.
[[nodiscard]] double flops(const Operator& op);
[[nodiscard]] double flops(const ComputeGraph& graph);

/// Bytes of a tensor.
[[nodiscard]] inline double bytes(const Operator& op) {
  return spatial_points(op) * static_cast<double>(size_in_bytes(op.type));
}
/// Bytes of all inputs, constants and outputs: the minimum memory traffic.
[[nodiscard]] double bytes(const ComputeGraph& graph);
/// Bytes of the widest elements that an operator computes.
[[nodiscard]] std::size_t widest_element(const ComputeGraph& graph);

}  // namespace tunewright::program

#if TUNEWRIGHT_DEFINES(program)

namespace tunewright::program {

TUNEWRIGHT_INLINE std::vector<Reads> reads_of(const Operator& op) {
  std::vector<Reads> all;
  if (!op.body) return all;
  visit(op.body, [&](const ExprNode& node) {
    if (node.op != Op::Load) return;
    auto place = std::find_if(all.begin(), all.end(), [&](const Reads& r) { return r.tensor == node.tensor; });
    if (place == all.end()) place = all.insert(all.end(), Reads{node.tensor, {}});
    if (std::find(place->accesses.begin(), place->accesses.end(), node.indices) == place->accesses.end()) {
      place->accesses.push_back(node.indices);
    }
  });
  return all;
}

}  // namespace tunewright::program

namespace tunewright::program::detail {

TUNEWRIGHT_INLINE std::optional<Var> shifted_axis(const Operator& reader, const IndexExpr& index) {
  const std::optional<Var> var = (index - index.constant()).as_variable();
  return var && *var < reader.rank() ? var : std::nullopt;
}

TUNEWRIGHT_INLINE double flops_of(const Expr& e, ScalarType type) {
  if (e->op == Op::Select) {
    return flops_of(e->args[0], type) + std::max(flops_of(e->args[1], type), flops_of(e->args[2], type));
  }
  double sum = 0;
  for (const Expr& arg : e->args) sum += flops_of(arg, type);
  switch (e->op) {
    case Op::Add:
    case Op::Subtract:
    case Op::Multiply:
    case Op::Divide:
    case Op::Min:
    case Op::Max: return sum + (is_float(e->type) == is_float(type) ? 1 : 0);
    default: return sum;
  }
}

}  // namespace tunewright::program::detail

namespace tunewright::program {

TUNEWRIGHT_INLINE AccessPattern access_pattern(const Operator& reader, const std::vector<IndexExpr>& indices) {
  AccessPattern pattern;
  std::vector<unsigned> uses(reader.rank(), 0);
  std::optional<Var> previous;
  for (const IndexExpr& index : indices) {
    if (index.is_constant()) continue;
    const std::optional<Var> axis = detail::shifted_axis(reader, index);
    if (!axis) return pattern;
    ++uses[*axis];
    if (previous && *axis < *previous) pattern.same_order = false;
    previous = axis;
  }
  pattern.simple = true;
  pattern.axis_missing = std::find(uses.begin(), uses.end(), 0U) != uses.end();
  pattern.axis_duplicated = std::any_of(uses.begin(), uses.end(), [](unsigned n) { return n > 1; });
  return pattern;
}

TUNEWRIGHT_INLINE bool inlineable(const Operator& op) {
  if (!op.body || op.has_reduction()) return false;
  bool inlineable = true;
  visit(op.body, [&](const ExprNode& node) {
    if (node.op == Op::Select) inlineable = false;
    if (node.op != Op::Load) return;
    const AccessPattern pattern = access_pattern(op, node.indices);
    inlineable = inlineable && pattern.simple && pattern.same_order && !pattern.axis_duplicated;
  });
  return inlineable;
}

TUNEWRIGHT_INLINE bool strictly_inlineable(const Operator& op) {
  if (!inlineable(op)) return false;
  bool cheap = true;
  visit(op.body, [&](const ExprNode& node) {
    if (node.op == Op::Exp || node.op == Op::Log || node.op == Op::Tanh || node.op == Op::Erf) cheap = false;
  });
  return cheap;
}

TUNEWRIGHT_INLINE bool needs_multi_level_tiling(const Operator& op) {
  std::size_t reused = 0;
  for (const Reads& reads : reads_of(op)) {
    std::vector<bool> used(op.axes.size(), false);
    for (const std::vector<IndexExpr>& access : reads.accesses) {
      for (const IndexExpr& index : access) for_each_variable(index, [&](Var var) { used[var] = true; });
    }
    for (std::size_t a = 0; a < op.rank(); ++a) {
      if (op.axes[a].extent > 1 && !used[a]) {
        ++reused;
        break;
      }
    }
  }
  return reused >= 2 || (reused >= 1 && op.has_reduction());
}

TUNEWRIGHT_INLINE bool reads_elementwise(const Operator& consumer, const Operator& producer, TensorId id) {
  if (consumer.shape() != producer.shape()) return false;
  bool reads = false, same_point = true;
  visit(consumer.body, [&](const ExprNode& node) {
    if (node.op != Op::Load || node.tensor != id) return;
    reads = true;
    for (Var d = 0; d < node.indices.size(); ++d)
      same_point = same_point && node.indices[d].as_variable() == std::optional(d);
  });
  return reads && same_point;
}

TUNEWRIGHT_INLINE std::size_t num_common_outer_axes(const Operator& consumer, const Operator& producer, TensorId id) {
  std::optional<std::size_t> common;
  for (const Reads& reads : reads_of(consumer)) {
    if (reads.tensor != id) continue;
    for (const std::vector<IndexExpr>& access : reads.accesses) {
      std::size_t n = 0;
      while (n < std::min(consumer.rank(), producer.rank()) && consumer.axes[n].extent == producer.axes[n].extent &&
             detail::shifted_axis(consumer, access[n]) == std::optional<Var>(static_cast<Var>(n))) {
        ++n;
      }
      common = std::min(common.value_or(n), n);
    }
  }
  return common.value_or(0);
}

TUNEWRIGHT_INLINE double spatial_points(const Operator& op) {
  double points = 1;
  for (const Axis& axis : op.axes) points *= axis.kind == AxisKind::Spatial ? static_cast<double>(axis.extent) : 1.0;
  return points;
}

TUNEWRIGHT_INLINE double reduction_points(const Operator& op) {
  double points = 1;
  for (const Axis& axis : op.axes) points *= axis.kind == AxisKind::Reduction ? static_cast<double>(axis.extent) : 1.0;
  return points;
}

TUNEWRIGHT_INLINE double flops(const Operator& op) {
  if (!op.body) return 0;
  return spatial_points(op) * reduction_points(op) *
         (detail::flops_of(op.body, op.type) + (op.has_reduction() ? 1 : 0));
}

TUNEWRIGHT_INLINE double flops(const ComputeGraph& graph) {
  double sum = 0;
  for (TensorId id = 0; id < graph.size(); ++id) sum += flops(graph.op(id));
  return sum;
}

TUNEWRIGHT_INLINE double bytes(const ComputeGraph& graph) {
  double sum = 0;
  for (TensorId id = 0; id < graph.size(); ++id) {
    if (graph.op(id).role != Role::Computed || is_output(graph, id)) sum += bytes(graph.op(id));
  }
  return sum;
}

TUNEWRIGHT_INLINE std::size_t widest_element(const ComputeGraph& graph) {
  std::size_t widest = 1;
  for (TensorId id = 0; id < graph.size(); ++id)
    if (graph.op(id).role == Role::Computed) widest = std::max(widest, size_in_bytes(graph.op(id).type));
  return widest;
}

}  // namespace tunewright::program

#endif
