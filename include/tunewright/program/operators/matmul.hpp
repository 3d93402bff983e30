// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/program/graph.hpp"
#include "tunewright/program/scalar_type.hpp"

namespace tunewright::program::operators {

struct MatmulOptions {
  bool transpose_a = false;  ///< `a` is stored [k, m]
  bool transpose_b = false;  ///< `b` is stored [n, k]
  std::string name = "matmul";
  std::optional<ScalarType> accumulator{};  ///< of products, sums and the result; by default `accumulator_type`
};

/// out[i, j] = sum over k of a[i, k] * b[k, j], in the accumulator's type.
///
/// Shapes: a [m, k] or, transposed, [k, m]; b [k, n] or [n, k]; result [m, n]. The operands have one type, or are int8
///         and uint8. Throws `std::invalid_argument` for other ranks or types, different k, or an accumulator that
///         cannot represent the operands' values.
Tensor matmul(ComputeGraph& graph, const Tensor& a, const Tensor& b, const MatmulOptions& options = {});

struct MatmulShape {
  std::int64_t m = 1;
  std::int64_t n = 1;
  std::int64_t k = 1;
  bool transpose_a = false;
  bool transpose_b = false;
  bool constant_b = false;  ///< `b` is a weight, which may be packed ahead of time
  ScalarType type = ScalarType::Float32;
  std::optional<ScalarType> type_b{};  ///< where it differs from `type`: uint8 times int8
  std::optional<ScalarType> accumulator{};
};

/// A matrix product as a complete graph with inputs "A" and "B".
[[nodiscard]] std::shared_ptr<const ComputeGraph> matmul_graph(const MatmulShape& s);

}  // namespace tunewright::program::operators

#if TUNEWRIGHT_DEFINES(program)

#include "tunewright/program/operators/checks.hpp"

namespace tunewright::program::operators {

TUNEWRIGHT_INLINE Tensor matmul(ComputeGraph& graph, const Tensor& a, const Tensor& b, const MatmulOptions& options) {
  detail::require_rank(options.name, "operand a", a, 2, options.transpose_a ? "[k, m]" : "[m, k]");
  detail::require_rank(options.name, "operand b", b, 2, options.transpose_b ? "[n, k]" : "[k, n]");
  const ScalarType accumulator = detail::accumulator_for(options.name, a, b, options.accumulator);
  const std::int64_t m = a.shape[options.transpose_a ? 1 : 0];
  const std::int64_t k = a.shape[options.transpose_a ? 0 : 1];
  const std::int64_t n = b.shape[options.transpose_b ? 0 : 1];
  detail::require_extent(options.name, "k of b", b.shape[options.transpose_b ? 1 : 0], k,
                         "make it equal to k of a, or set a transpose option");
  return graph.reduce(options.name, {{"i", m}, {"j", n}}, {{"k", k}}, Combiner::Sum, [&](auto i, auto r) {
    return detail::product_in(accumulator, options.transpose_a ? a(r[0], i[0]) : a(i[0], r[0]),
                              options.transpose_b ? b(i[1], r[0]) : b(r[0], i[1]));
  });
}

TUNEWRIGHT_INLINE std::shared_ptr<const ComputeGraph> matmul_graph(const MatmulShape& s) {
  detail::require_extents("matmul", {{"m", s.m}, {"n", s.n}, {"k", s.k}});
  auto graph = std::make_shared<ComputeGraph>();
  using Shape = std::vector<std::int64_t>;
  const Shape shape_a = s.transpose_a ? Shape{s.k, s.m} : Shape{s.m, s.k};
  const Shape shape_b = s.transpose_b ? Shape{s.n, s.k} : Shape{s.k, s.n};
  const Tensor a = graph->input("A", shape_a, s.type);
  const ScalarType type_b = s.type_b.value_or(s.type);
  const Tensor b = s.constant_b ? graph->constant("B", shape_b, type_b) : graph->input("B", shape_b, type_b);
  matmul(*graph, a, b, {.transpose_a = s.transpose_a, .transpose_b = s.transpose_b, .accumulator = s.accumulator});
  return graph;
}

}  // namespace tunewright::program::operators

#endif
