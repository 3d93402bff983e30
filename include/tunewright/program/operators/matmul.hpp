// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "tunewright/program/operators/checks.hpp"

namespace tunewright::program::operators {

struct MatmulOptions {
  bool transpose_a = false;  ///< `a` is stored [k, m]
  bool transpose_b = false;  ///< `b` is stored [n, k]
  std::string name = "matmul";
};

/// out[i, j] = sum over k of a[i, k] * b[k, j].
///
/// Shapes: a [m, k] or, transposed, [k, m]; b [k, n] or [n, k]; result [m, n].
/// Throws `std::invalid_argument` for other ranks, different types or different k.
inline Tensor matmul(ComputeGraph& graph, const Tensor& a, const Tensor& b,
                     const MatmulOptions& options = {}) {
  detail::require_rank(options.name, "operand a", a, 2, options.transpose_a ? "[k, m]" : "[m, k]");
  detail::require_rank(options.name, "operand b", b, 2, options.transpose_b ? "[n, k]" : "[k, n]");
  detail::require_same_type(options.name, a, b);
  const std::int64_t m = a.shape[options.transpose_a ? 1 : 0];
  const std::int64_t k = a.shape[options.transpose_a ? 0 : 1];
  const std::int64_t n = b.shape[options.transpose_b ? 0 : 1];
  detail::require_extent(options.name, "k of b", b.shape[options.transpose_b ? 1 : 0], k,
                         "make it equal to k of a, or set a transpose option");
  return graph.reduce(options.name, {{"i", m}, {"j", n}}, {{"k", k}}, Combiner::Sum, [&](auto i, auto r) {
    return (options.transpose_a ? a(r[0], i[0]) : a(i[0], r[0])) *
           (options.transpose_b ? b(i[1], r[0]) : b(r[0], i[1]));
  });
}

struct MatmulShape {
  std::int64_t m = 1;
  std::int64_t n = 1;
  std::int64_t k = 1;
  bool transpose_a = false;
  bool transpose_b = false;
  bool constant_b = false;  ///< `b` is a weight: it may be repacked ahead of time
  ScalarType type = ScalarType::Float32;
};

/// One matrix product as a whole graph with inputs "A" and "B".
[[nodiscard]] inline std::shared_ptr<const ComputeGraph> matmul_graph(const MatmulShape& s) {
  auto graph = std::make_shared<ComputeGraph>();
  using Shape = std::vector<std::int64_t>;
  const Shape shape_a = s.transpose_a ? Shape{s.k, s.m} : Shape{s.m, s.k};
  const Shape shape_b = s.transpose_b ? Shape{s.n, s.k} : Shape{s.k, s.n};
  const Tensor a = graph->input("A", shape_a, s.type);
  const Tensor b = s.constant_b ? graph->constant("B", shape_b, s.type) : graph->input("B", shape_b, s.type);
  matmul(*graph, a, b, {.transpose_a = s.transpose_a, .transpose_b = s.transpose_b});
  return graph;
}

}  // namespace tunewright::program::operators
