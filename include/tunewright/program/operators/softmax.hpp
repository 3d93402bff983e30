// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/program/graph.hpp"
#include "tunewright/program/scalar_type.hpp"

namespace tunewright::program::operators {

struct SoftmaxOptions {
  int axis = -1;  ///< dimension that is normalised; negative counts from the end
  std::string name = "softmax";
};

/// exp(x - max) / sum of exp(x - max) along one dimension, as four operators: max, exp, sum, divide. Subtracting the
/// maximum prevents overflow of the exponentials. Exponentials and sums of 16-bit elements are in float32.
///
/// Shapes: x any rank of at least 1; result as x. Throws `std::invalid_argument` for an unknown dimension and unless
///         the tensor has floating-point elements.
Tensor softmax(ComputeGraph& graph, const Tensor& x, const SoftmaxOptions& options = {});

struct SoftmaxShape {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  ScalarType type = ScalarType::Float32;
};

/// Softmax of each row as a complete graph with input "data".
[[nodiscard]] std::shared_ptr<const ComputeGraph> softmax_graph(const SoftmaxShape& s);

}  // namespace tunewright::program::operators

#if TUNEWRIGHT_DEFINES(program)

#include "tunewright/program/operators/checks.hpp"

namespace tunewright::program::operators {

TUNEWRIGHT_INLINE Tensor softmax(ComputeGraph& graph, const Tensor& x, const SoftmaxOptions& options) {
  const std::size_t along = detail::dimension(options.name, options.axis, x.shape.size());
  detail::require_floating_point(options.name, "the input", x);
  const auto erased = [&](auto all) {
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(along));
    return all;
  };
  const auto outer_of = [&](auto i) { return erased(std::vector<IndexExpr>(i.begin(), i.end())); };
  const auto inserted = [&](auto outer, const IndexExpr& k) {
    std::vector<IndexExpr> all(outer.begin(), outer.end());
    all.insert(all.begin() + static_cast<std::ptrdiff_t>(along), k);
    return all;
  };
  const std::vector<Axis> full = detail::axes_over(x.shape);
  const std::vector<Axis> outer = erased(full);
  const Axis reduced{"k", x.shape[along]};
  const Tensor largest = graph.reduce(options.name + "_max", outer, {reduced}, Combiner::Max,
                                      [&](auto i, auto r) { return x.at(inserted(i, r[0])); });
  const Tensor powers = graph.compute(options.name + "_exp", full, [&](auto i) {
    return exp(widened(x.at({i.begin(), i.end()})) - widened(largest.at(outer_of(i))));
  });
  const Tensor sum = graph.reduce(options.name + "_sum", outer, {reduced}, Combiner::Sum,
                                  [&](auto i, auto r) { return powers.at(inserted(i, r[0])); });
  return graph.compute(options.name, full,
                       [&](auto i) { return cast(powers.at({i.begin(), i.end()}) / sum.at(outer_of(i)), x.type); });
}

TUNEWRIGHT_INLINE std::shared_ptr<const ComputeGraph> softmax_graph(const SoftmaxShape& s) {
  detail::require_extents("softmax", {{"rows", s.rows}, {"columns", s.columns}});
  auto graph = std::make_shared<ComputeGraph>();
  softmax(*graph, graph->input("data", {s.rows, s.columns}, s.type));
  return graph;
}

}  // namespace tunewright::program::operators

#endif
