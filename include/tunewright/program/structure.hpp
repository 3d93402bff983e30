// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/program/graph.hpp"

/// Properties shared by programs of different shapes.
namespace tunewright::program {

/// Hash of a program without its numbers: operators with their types, axes by kind, and which axes index which tensors.
/// Extents, strides, offsets and constants do not count, so that all matrix products are equal whatever their shape,
/// and all convolutions whatever their stride.
[[nodiscard]] std::uint64_t structure_hash(const ComputeGraph& graph);

/// Extents of all axes of all tensors, in their order; programs of one structure have equally many.
[[nodiscard]] std::vector<std::int64_t> all_extents(const ComputeGraph& graph);

/// Distance between the shapes of two programs of one structure:
///
///   d(a, b) = sqrt(sum over all axes i of all tensors of log2(a_i / b_i)^2)
///
/// 0 for equal shapes. An axis of a matrix product belongs to two of its three matrices and to the product itself, so
/// doubling one gives about 1.7. Throws `std::invalid_argument` for programs of two structures.
[[nodiscard]] double shape_distance(const ComputeGraph& a, const ComputeGraph& b);

}  // namespace tunewright::program

#if TUNEWRIGHT_DEFINES(program)

#include <cmath>
#include <cstddef>
#include <stdexcept>

#include "tunewright/core/hash.hpp"
#include "tunewright/program/expr.hpp"

namespace tunewright::program::detail {

TUNEWRIGHT_INLINE void add_structure(StableHash& hash, const IndexExpr& index) {
  hash.add(static_cast<std::uint64_t>(index.terms().size()));
  for (const IndexExpr::Term& term : index.terms()) {
    hash.add(static_cast<int>(term.kind)).add(term.var);
    if (term.numerator) add_structure(hash, *term.numerator);
  }
}

TUNEWRIGHT_INLINE void add_structure(StableHash& hash, const Expr& e) {
  hash.add(static_cast<int>(e->op)).add(static_cast<int>(e->type)).add(e->tensor);
  add_structure(hash, e->index);
  for (const IndexExpr& index : e->indices) add_structure(hash, index);
  hash.add(static_cast<std::uint64_t>(e->args.size()));
  for (const Expr& arg : e->args) add_structure(hash, arg);
}

}  // namespace tunewright::program::detail

namespace tunewright::program {

TUNEWRIGHT_INLINE std::uint64_t structure_hash(const ComputeGraph& graph) {
  StableHash hash;
  for (TensorId id = 0; id < graph.size(); ++id) {
    const Operator& op = graph.op(id);
    hash.add(static_cast<int>(op.role)).add(static_cast<int>(op.type)).add(static_cast<int>(op.combiner));
    hash.add(static_cast<std::uint64_t>(op.axes.size()));
    for (const Axis& axis : op.axes) hash.add(static_cast<int>(axis.kind));
    if (op.body) detail::add_structure(hash, op.body);
  }
  return hash.value();
}

TUNEWRIGHT_INLINE std::vector<std::int64_t> all_extents(const ComputeGraph& graph) {
  std::vector<std::int64_t> extents;
  for (TensorId id = 0; id < graph.size(); ++id)
    for (const Axis& axis : graph.op(id).axes) extents.push_back(axis.extent);
  return extents;
}

TUNEWRIGHT_INLINE double shape_distance(const ComputeGraph& a, const ComputeGraph& b) {
  if (structure_hash(a) != structure_hash(b))
    throw std::invalid_argument(
        "shape_distance: the programs differ in more than their shapes; compare those of one structure_hash");
  const std::vector<std::int64_t> of_a = all_extents(a);
  const std::vector<std::int64_t> of_b = all_extents(b);
  double squares = 0;
  for (std::size_t i = 0; i < of_a.size(); ++i) {
    const double octaves = std::log2(static_cast<double>(of_a[i]) / static_cast<double>(of_b[i]));
    squares += octaves * octaves;
  }
  return std::sqrt(squares);
}

}  // namespace tunewright::program

#endif
