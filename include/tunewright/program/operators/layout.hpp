// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/program/graph.hpp"

namespace tunewright::program::operators {

/// Permutes dimensions: dimension d of the result is dimension `order[d]` of x; without an order, all are reversed.
/// Throws `std::invalid_argument` unless `order` is a permutation.
Tensor transpose(ComputeGraph& graph, const Tensor& x, const std::vector<int>& order = {},
                 const std::string& name = "transpose");

/// The same elements in row-major order with another shape. Throws `std::invalid_argument` if the number of elements
/// differs.
Tensor reshape(ComputeGraph& graph, const Tensor& x, const std::vector<std::int64_t>& shape,
               const std::string& name = "reshape");

/// Whether tensor `id` is a `reshape`: its elements are those of the single tensor it reads, in the same row-major
/// order, so that both can share memory.
[[nodiscard]] bool is_reshape(const ComputeGraph& graph, TensorId id);

/// Part of a dimension: elements begin, begin + step, ..
struct SliceRange {
  int dimension = 0;
  std::int64_t begin = 0;
  std::int64_t extent = 1;  ///< of the result
  std::int64_t step = 1;
};
/// out[.., i, ..] = x[.., begin + i*step, ..]. Throws `std::invalid_argument` for a range that is not inside x, and an
/// extent or a step below 1.
Tensor slice(ComputeGraph& graph, const Tensor& x, const SliceRange& range, const std::string& name = "slice");

/// x broadcast: dimensions of extent 1, and missing leading dimensions, are repeated to those of `shape`. Throws
/// `std::invalid_argument` for a shape to which x does not broadcast.
Tensor broadcast(ComputeGraph& graph, const Tensor& x, const std::vector<std::int64_t>& shape,
                 const std::string& name = "broadcast");

/// Concatenates tensors along dimension `axis`; all other extents must be equal. Throws `std::invalid_argument` for no
/// tensors, and for different types, ranks or other extents.
Tensor concat(ComputeGraph& graph, const std::vector<Tensor>& parts, int axis = -1, const std::string& name = "concat");

}  // namespace tunewright::program::operators

#if TUNEWRIGHT_DEFINES(program)

#include "tunewright/program/operators/checks.hpp"

namespace tunewright::program::operators::detail {

/// The indices into the tensor before a reshape, for the axes `i` of the result.
TUNEWRIGHT_INLINE std::vector<IndexExpr> reshaped_indices(const std::vector<std::int64_t>& before,
                                                          const std::vector<std::int64_t>& after,
                                                          std::span<const IndexExpr> i) {
  const AxisRanges range_of{after};
  IndexExpr flat;
  for (std::size_t d = 0; d < after.size(); ++d) {
    flat *= after[d];
    flat += i[d];
  }
  std::vector<IndexExpr> indices(before.size());
  for (std::size_t d = before.size(); d-- > 0;) {
    indices[d] = d == 0 ? flat : IndexExpr::remainder(flat, before[d], range_of);
    flat = IndexExpr::quotient(flat, before[d], range_of);
  }
  return indices;
}

/// The element at `i` of `parts` one behind the other along dimension `along`; the first of them begins at `begin`.
TUNEWRIGHT_INLINE Expr element_of_parts(std::span<const Tensor> parts, std::size_t along, std::span<const IndexExpr> i,
                                        std::int64_t begin) {
  if (parts.size() == 1) {
    std::vector<IndexExpr> indices(i.begin(), i.end());
    indices[along] -= begin;
    return parts[0].at(std::move(indices));
  }
  // Few parts are compared one after the other, which finds the first ones soonest. Many are halved: a chain of them
  // would have more levels than a body may have.
  constexpr std::size_t few = 64;
  const std::size_t front = parts.size() > few ? parts.size() / 2 : 1;
  std::int64_t middle = begin;
  for (const Tensor& part : parts.first(front)) middle += part.shape[along];
  return select(index_value(i[along]) < index_value(middle), element_of_parts(parts.first(front), along, i, begin),
                element_of_parts(parts.subspan(front), along, i, middle));
}

}  // namespace tunewright::program::operators::detail

namespace tunewright::program::operators {

TUNEWRIGHT_INLINE Tensor transpose(ComputeGraph& graph, const Tensor& x, const std::vector<int>& order,
                                   const std::string& name) {
  const std::size_t rank = x.shape.size();
  std::vector<std::size_t> source;
  std::vector<bool> used(rank, false);
  for (std::size_t d = 0; d < (order.empty() ? rank : order.size()); ++d) {
    source.push_back(order.empty() ? rank - 1 - d : detail::dimension(name, order[d], rank));
    if (used[source.back()]) {
      detail::refuse(name, "dimension " + std::to_string(source.back()) + " is given twice; give a permutation");
    }
    used[source.back()] = true;
  }
  if (source.size() != rank) {
    detail::refuse(name, "an order of " + std::to_string(source.size()) + " dimensions was given for shape " +
                             detail::shape_text(x.shape) + "; give a permutation of all");
  }
  std::vector<Axis> axes;
  for (std::size_t d = 0; d < rank; ++d) axes.push_back({"i" + std::to_string(d), x.shape[source[d]]});
  return graph.compute(name, std::move(axes), [&](auto i) {
    std::vector<IndexExpr> indices(rank);
    for (std::size_t d = 0; d < rank; ++d) indices[source[d]] = i[d];
    return x.at(std::move(indices));
  });
}

TUNEWRIGHT_INLINE Tensor reshape(ComputeGraph& graph, const Tensor& x, const std::vector<std::int64_t>& shape,
                                 const std::string& name) {
  std::int64_t before = 1;
  std::int64_t after = 1;
  for (const std::int64_t extent : x.shape) before *= extent;
  for (const std::int64_t extent : shape) {
    if (extent < 1 || __builtin_mul_overflow(after, extent, &after)) {
      detail::refuse(name, "shape " + detail::shape_text(shape) + " is impossible; give extents of at least 1 whose " +
                               "product is " + std::to_string(before));
    }
  }
  if (before != after) {
    detail::refuse(name, "shape " + detail::shape_text(x.shape) + " has " + std::to_string(before) + " elements but " +
                             detail::shape_text(shape) + " has " + std::to_string(after) + "; keep their number");
  }
  return graph.compute(name, detail::axes_over(shape),
                       [&](auto i) { return x.at(detail::reshaped_indices(x.shape, shape, i)); });
}

TUNEWRIGHT_INLINE bool is_reshape(const ComputeGraph& graph, TensorId id) {
  const Operator& op = graph.op(id);
  if (op.role != Role::Computed || op.has_reduction() || op.body->op != Op::Load) return false;
  const Operator& source = graph.op(op.body->tensor);
  if (op.elements() != source.elements()) return false;
  std::vector<IndexExpr> axes;
  for (Var axis = 0; axis < op.axes.size(); ++axis) axes.push_back(IndexExpr::variable(axis));
  return op.body->indices == detail::reshaped_indices(source.shape(), op.shape(), axes);
}

TUNEWRIGHT_INLINE Tensor slice(ComputeGraph& graph, const Tensor& x, const SliceRange& range, const std::string& name) {
  const std::size_t along = detail::dimension(name, range.dimension, x.shape.size());
  detail::require_number(name, "begin", range.begin, 0);
  detail::require_number(name, "extent", range.extent, 1);
  detail::require_number(name, "step", range.step, 1);
  if (range.begin >= x.shape[along] || (range.extent - 1) > (x.shape[along] - 1 - range.begin) / range.step) {
    detail::refuse(name, std::to_string(range.extent) + " elements from " + std::to_string(range.begin) + ", " +
                             std::to_string(range.step) + " apart, reach beyond the " + std::to_string(x.shape[along]) +
                             " of dimension " + std::to_string(along) + "; give a part inside it");
  }
  std::vector<std::int64_t> shape = x.shape;
  shape[along] = range.extent;
  return graph.compute(name, detail::axes_over(shape), [&](auto i) {
    std::vector<IndexExpr> indices(i.begin(), i.end());
    indices[along] = indices[along] * range.step + range.begin;
    return x.at(std::move(indices));
  });
}

TUNEWRIGHT_INLINE Tensor broadcast(ComputeGraph& graph, const Tensor& x, const std::vector<std::int64_t>& shape,
                                   const std::string& name) {
  const std::size_t rank = x.shape.size();
  bool fits = rank <= shape.size();
  const std::size_t missing = fits ? shape.size() - rank : 0;
  for (std::size_t d = 0; fits && d < rank; ++d) fits = x.shape[d] == 1 || x.shape[d] == shape[d + missing];
  if (!fits) {
    detail::refuse(name, "shape " + detail::shape_text(x.shape) + " cannot be stretched to " +
                             detail::shape_text(shape) + "; dimensions, counted from the last, must be equal or 1");
  }
  return graph.compute(name, detail::axes_over(shape), [&](auto i) {
    std::vector<IndexExpr> indices;
    for (std::size_t d = 0; d < rank; ++d)
      indices.push_back(x.shape[d] == shape[d + missing] ? i[d + missing] : IndexExpr(0));
    return x.at(std::move(indices));
  });
}

TUNEWRIGHT_INLINE Tensor concat(ComputeGraph& graph, const std::vector<Tensor>& parts, int axis,
                                const std::string& name) {
  if (parts.empty()) detail::refuse(name, "no tensors were given; give at least 1");
  const std::size_t along = detail::dimension(name, axis, parts[0].shape.size());
  std::vector<std::int64_t> shape = parts[0].shape;
  for (std::size_t p = 1; p < parts.size(); ++p) {
    detail::require_same_type(name, parts[0], parts[p]);
    std::vector<std::int64_t> expected = parts[0].shape;
    if (parts[p].shape.size() == expected.size()) expected[along] = parts[p].shape[along];
    if (parts[p].shape != expected) {
      detail::refuse(name, "part " + std::to_string(p) + " has shape " + detail::shape_text(parts[p].shape) +
                               ", the first one " + detail::shape_text(parts[0].shape) +
                               "; make all extents but that of dimension " + std::to_string(along) + " equal");
    }
    shape[along] += parts[p].shape[along];
  }
  return graph.compute(name, detail::axes_over(shape),
                       [&](auto i) { return detail::element_of_parts(parts, along, i, 0); });
}

}  // namespace tunewright::program::operators

#endif
