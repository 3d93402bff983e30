// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/program/expr.hpp"
#include "tunewright/program/graph.hpp"
#include "tunewright/program/index_expr.hpp"
#include "tunewright/program/operators/checks.hpp"

namespace tunewright::program::operators {

namespace detail {

/// Combines f(x) over the dimensions `over`, which disappear; negative ones count from the end, and an empty list means
/// all.
template <class F>
Tensor reduce_over(ComputeGraph& graph, const Tensor& x, const std::vector<int>& over, Combiner combiner,
                   const std::string& name, const F& f) {
  const std::size_t rank = x.shape.size();
  std::vector<bool> reduced(rank, over.empty());
  for (const int wanted : over) {
    const std::size_t d = dimension(name, wanted, rank);
    if (reduced[d]) refuse(name, "dimension " + std::to_string(wanted) + " is given twice; name each once");
    reduced[d] = true;
  }
  std::vector<Axis> spatial;
  std::vector<Axis> reduction;
  for (std::size_t d = 0; d < rank; ++d) {
    (reduced[d] ? reduction : spatial).push_back({(reduced[d] ? "r" : "i") + std::to_string(d), x.shape[d]});
  }
  return graph.reduce(name, std::move(spatial), std::move(reduction), combiner, [&](auto i, auto r) {
    std::vector<IndexExpr> indices;
    std::size_t next_i = 0;
    std::size_t next_r = 0;
    for (std::size_t d = 0; d < rank; ++d) indices.push_back(reduced[d] ? r[next_r++] : i[next_i++]);
    return f(x.at(std::move(indices)));
  });
}

/// Number of elements of `x` per element of a tensor reduced from it.
std::int64_t reduced_count(const Tensor& x, const Tensor& result);

}  // namespace detail

/// Sum over the dimensions `over`, which disappear from the shape; negative ones count from the end, and an empty list
/// means all. Computed in the `accumulator_type` of the elements, which the result has. Throws `std::invalid_argument`
/// for an unknown or repeated dimension.
inline Tensor sum(ComputeGraph& graph, const Tensor& x, const std::vector<int>& over = {},
                  const std::string& name = "sum") {
  return detail::reduce_over(graph, x, over, Combiner::Sum, name, [](const Expr& v) { return widened(v); });
}
/// Maximum over the dimensions `over`; see `sum`. The result has the type of the elements.
inline Tensor max(ComputeGraph& graph, const Tensor& x, const std::vector<int>& over = {},
                  const std::string& name = "max") {
  return detail::reduce_over(graph, x, over, Combiner::Max, name, [](const Expr& v) { return v; });
}
/// Minimum over the dimensions `over`; see `max`.
inline Tensor min(ComputeGraph& graph, const Tensor& x, const std::vector<int>& over = {},
                  const std::string& name = "min") {
  return detail::reduce_over(graph, x, over, Combiner::Min, name, [](const Expr& v) { return v; });
}
/// Mean over the dimensions `over`, as two operators: sum and scale; see `sum`. The result has the type of the
/// elements. Also throws `std::invalid_argument` unless the tensor has floating-point elements.
Tensor mean(ComputeGraph& graph, const Tensor& x, const std::vector<int>& over = {}, const std::string& name = "mean");
/// Euclidean norm over the dimensions `over`, as two operators: sum of squares and square root; errors as `mean`.
Tensor norm(ComputeGraph& graph, const Tensor& x, const std::vector<int>& over = {}, const std::string& name = "norm");

}  // namespace tunewright::program::operators

#if TUNEWRIGHT_DEFINES(program)

#include "tunewright/program/operators/elementwise.hpp"

namespace tunewright::program::operators::detail {

TUNEWRIGHT_INLINE std::int64_t reduced_count(const Tensor& x, const Tensor& result) {
  std::int64_t count = 1;
  for (const std::int64_t extent : x.shape) count *= extent;
  for (const std::int64_t extent : result.shape) count /= extent;
  return count;
}

}  // namespace tunewright::program::operators::detail

namespace tunewright::program::operators {

TUNEWRIGHT_INLINE Tensor mean(ComputeGraph& graph, const Tensor& x, const std::vector<int>& over,
                              const std::string& name) {
  detail::require_floating_point(name, "the input", x);
  const Tensor total = sum(graph, x, over, name + "_sum");
  const double share = 1.0 / static_cast<double>(detail::reduced_count(x, total));
  return map(graph, total, name, [&](const Expr& v) { return cast(v * share, x.type); });
}

TUNEWRIGHT_INLINE Tensor norm(ComputeGraph& graph, const Tensor& x, const std::vector<int>& over,
                              const std::string& name) {
  detail::require_floating_point(name, "the input", x);
  const Tensor squares = detail::reduce_over(graph, x, over, Combiner::Sum, name + "_squares",
                                             [](const Expr& v) { return widened(v) * widened(v); });
  return map(graph, squares, name, [&](const Expr& v) { return cast(program::sqrt(v), x.type); });
}

}  // namespace tunewright::program::operators

#endif
