// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/refusal.hpp"
#include "tunewright/reference/evaluate.hpp"
#include "tunewright/reference/random_inputs.hpp"
#include "tunewright/reference/xtensor.hpp"

namespace tunewright::test {

/// A graph evaluated on seeded random inputs.
struct Evaluated {
  explicit Evaluated(const program::ComputeGraph& graph, std::uint64_t seed = 1)
      : tensors(reference::evaluate(graph, reference::random_inputs(graph, Rng(seed)))) {}

  [[nodiscard]] xt::xarray<float> operator[](const program::Tensor& t) const {
    return reference::to_xtensor<float>(tensors[t.id]);
  }

  reference::Tensors tensors;
};

/// Evaluates a graph whose inputs, in order, hold the given float32 values.
inline std::vector<float> evaluated(const program::ComputeGraph& graph, const std::vector<std::vector<float>>& inputs) {
  reference::Tensors tensors(graph.size());
  std::size_t next = 0;
  for (program::TensorId id = 0; id < graph.size(); ++id) {
    if (graph.op(id).role == program::Role::Computed) continue;
    tensors[id] = reference::Array(program::ScalarType::Float32, graph.op(id).shape());
    const std::vector<float>& values = inputs.at(next++);
    REQUIRE(values.size() == tensors[id].size());
    for (std::size_t i = 0; i < values.size(); ++i) tensors[id].set(i, values[i]);
  }
  const reference::Array result = reference::evaluate(graph, std::move(tensors)).back();
  std::vector<float> values;
  for (std::size_t i = 0; i < result.size(); ++i) values.push_back(static_cast<float>(result.get(i)));
  return values;
}

}  // namespace tunewright::test
