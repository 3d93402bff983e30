// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "tunewright/detail/config.hpp"
#include "tunewright/program/graph.hpp"
#include "tunewright/program/scalar_type.hpp"

namespace tunewright::program::operators {

/// Fully connected layer: out[i, j] = sum over k of x[i, k] * weight[k, j], plus bias[j] as a separate operator. Types
/// and accumulator are those of `matmul`.
///
/// Shapes: x [batch, in], weight [in, out], bias [out]; result [batch, out]. Throws `std::invalid_argument`
/// as `matmul` and `bias_add` do.
Tensor dense(ComputeGraph& graph, const Tensor& x, const Tensor& weight, std::string name = "dense",
             std::optional<ScalarType> accumulator = {});
Tensor dense(ComputeGraph& graph, const Tensor& x, const Tensor& weight, const Tensor& bias,
             const std::string& name = "dense", std::optional<ScalarType> accumulator = {});

struct DenseShape {
  std::int64_t batch = 1;
  std::int64_t in = 1;
  std::int64_t out = 1;
  bool bias = true;
  ScalarType type = ScalarType::Float32;
  std::optional<ScalarType> weight_type{};  ///< where it differs from `type`: uint8 times int8
  std::optional<ScalarType> accumulator{};
};

/// A fully connected layer as a complete graph with input "data" and constants "weight" and "bias", which has the type
/// of the accumulator.
[[nodiscard]] std::shared_ptr<const ComputeGraph> dense_graph(const DenseShape& s);

}  // namespace tunewright::program::operators

#if TUNEWRIGHT_DEFINES(program)

#include "tunewright/program/operators/elementwise.hpp"
#include "tunewright/program/operators/matmul.hpp"

namespace tunewright::program::operators {

TUNEWRIGHT_INLINE Tensor dense(ComputeGraph& graph, const Tensor& x, const Tensor& weight, std::string name,
                               std::optional<ScalarType> accumulator) {
  return matmul(graph, x, weight, {.name = std::move(name), .accumulator = accumulator});
}

TUNEWRIGHT_INLINE Tensor dense(ComputeGraph& graph, const Tensor& x, const Tensor& weight, const Tensor& bias,
                               const std::string& name, std::optional<ScalarType> accumulator) {
  return bias_add(graph, dense(graph, x, weight, name, accumulator), bias, -1, name + "_bias");
}

TUNEWRIGHT_INLINE std::shared_ptr<const ComputeGraph> dense_graph(const DenseShape& s) {
  detail::require_extents("dense", {{"batch", s.batch}, {"in", s.in}, {"out", s.out}});
  auto graph = std::make_shared<ComputeGraph>();
  const Tensor x = graph->input("data", {s.batch, s.in}, s.type);
  const Tensor weight = graph->constant("weight", {s.in, s.out}, s.weight_type.value_or(s.type));
  const ScalarType accumulator = detail::accumulator_for("dense", x, weight, s.accumulator);
  if (s.bias) {
    dense(*graph, x, weight, graph->constant("bias", {s.out}, accumulator), "dense", accumulator);
  } else {
    dense(*graph, x, weight, "dense", accumulator);
  }
  return graph;
}

}  // namespace tunewright::program::operators

#endif
