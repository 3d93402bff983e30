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

struct BatchMatmulOptions {
  bool transpose_a = false;  ///< `a` is stored [batch, k, m]
  bool transpose_b = false;  ///< `b` is stored [batch, n, k]
  std::string name = "batch_matmul";
  std::optional<ScalarType> accumulator{};  ///< of products, sums and the result; by default `accumulator_type`
};

/// out[b, i, j] = sum over k of a[b, i, k] * b[b, k, j], in the accumulator's type.
///
/// Shapes: a [batch, m, k] or, transposed, [batch, k, m]; b [batch, k, n] or [batch, n, k]; result [batch, m, n]. The
///         operands have one type, or are int8 and uint8. Throws `std::invalid_argument` for other ranks or types,
///         different batches or k, or an accumulator that cannot represent the operands' values.
Tensor batch_matmul(ComputeGraph& graph, const Tensor& a, const Tensor& b, const BatchMatmulOptions& options = {});

struct BatchMatmulShape {
  std::int64_t batch = 1;
  std::int64_t m = 1;
  std::int64_t n = 1;
  std::int64_t k = 1;
  bool transpose_a = false;
  bool transpose_b = false;
  ScalarType type = ScalarType::Float32;
  std::optional<ScalarType> type_b{};  ///< where it differs from `type`: uint8 times int8
  std::optional<ScalarType> accumulator{};
};

/// A batched matrix product as a complete graph with inputs "A" and "B".
[[nodiscard]] std::shared_ptr<const ComputeGraph> batch_matmul_graph(const BatchMatmulShape& s);

}  // namespace tunewright::program::operators

#if TUNEWRIGHT_DEFINES(program)

#include "tunewright/program/operators/checks.hpp"

namespace tunewright::program::operators {

TUNEWRIGHT_INLINE Tensor batch_matmul(ComputeGraph& graph, const Tensor& a, const Tensor& b,
                                      const BatchMatmulOptions& options) {
  detail::require_rank(options.name, "operand a", a, 3, options.transpose_a ? "[batch, k, m]" : "[batch, m, k]");
  detail::require_rank(options.name, "operand b", b, 3, options.transpose_b ? "[batch, n, k]" : "[batch, k, n]");
  const ScalarType accumulator = detail::accumulator_for(options.name, a, b, options.accumulator);
  const std::int64_t m = a.shape[options.transpose_a ? 2 : 1];
  const std::int64_t k = a.shape[options.transpose_a ? 1 : 2];
  const std::int64_t n = b.shape[options.transpose_b ? 1 : 2];
  detail::require_extent(options.name, "batch of b", b.shape[0], a.shape[0], "make it equal to the batch of a");
  detail::require_extent(options.name, "k of b", b.shape[options.transpose_b ? 2 : 1], k,
                         "make it equal to k of a, or set a transpose option");
  return graph.reduce(
      options.name, {{"b", a.shape[0]}, {"i", m}, {"j", n}}, {{"k", k}}, Combiner::Sum, [&](auto i, auto r) {
        return detail::product_in(accumulator, options.transpose_a ? a(i[0], r[0], i[1]) : a(i[0], i[1], r[0]),
                                  options.transpose_b ? b(i[0], i[2], r[0]) : b(i[0], r[0], i[2]));
      });
}

TUNEWRIGHT_INLINE std::shared_ptr<const ComputeGraph> batch_matmul_graph(const BatchMatmulShape& s) {
  detail::require_extents("batch_matmul", {{"batch", s.batch}, {"m", s.m}, {"n", s.n}, {"k", s.k}});
  auto graph = std::make_shared<ComputeGraph>();
  using Shape = std::vector<std::int64_t>;
  const Tensor a = graph->input("A", s.transpose_a ? Shape{s.batch, s.k, s.m} : Shape{s.batch, s.m, s.k}, s.type);
  const Tensor b =
      graph->input("B", s.transpose_b ? Shape{s.batch, s.n, s.k} : Shape{s.batch, s.k, s.n}, s.type_b.value_or(s.type));
  batch_matmul(*graph, a, b,
               {.transpose_a = s.transpose_a, .transpose_b = s.transpose_b, .accumulator = s.accumulator});
  return graph;
}

}  // namespace tunewright::program::operators

#endif
