// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/networks/onnx/model.hpp"

/// What the outputs of a model depend on.
namespace tunewright::networks::onnx::detail {

/// By node: whether outputs depend on it.
[[nodiscard]] std::vector<bool> needed_nodes(const Model& model);

/// The elements of all floating-point constants that needed nodes read, without the running statistics of batch
/// normalisations. Constant nodes count for nothing.
[[nodiscard]] std::int64_t count_parameters(const Model& model);

}  // namespace tunewright::networks::onnx::detail

#if TUNEWRIGHT_DEFINES(onnx_operators)

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>

namespace tunewright::networks::onnx::detail {

TUNEWRIGHT_INLINE std::vector<bool> needed_nodes(const Model& model) {
  std::set<std::string> wanted(model.outputs.begin(), model.outputs.end());
  std::vector<bool> needed(model.nodes.size(), false);
  for (std::size_t n = model.nodes.size(); n-- > 0;) {
    const Node& node = model.nodes[n];
    needed[n] = std::any_of(node.outputs.begin(), node.outputs.end(),
                            [&](const std::string& name) { return !name.empty() && wanted.contains(name); });
    if (needed[n]) wanted.insert(node.inputs.begin(), node.inputs.end());
  }
  return needed;
}

TUNEWRIGHT_INLINE std::int64_t count_parameters(const Model& model) {
  const std::vector<bool> wanted = needed_nodes(model);
  std::set<std::string> read;
  for (std::size_t n = 0; n < model.nodes.size(); ++n) {
    const Node& node = model.nodes[n];
    const bool normalises = node.op == "BatchNormalization" && node.domain.empty();
    for (std::size_t i = 0; wanted[n] && i < node.inputs.size(); ++i) {
      const bool is_running_statistic = normalises && i >= 3;  // the mean and the variance
      if (!is_running_statistic) read.insert(node.inputs[i]);
    }
  }
  std::int64_t count = 0;
  for (const auto& [name, constant] : model.constants)
    if (is_float(constant->array.type()) && read.contains(name))
      count += static_cast<std::int64_t>(constant->array.size());
  return count;
}

}  // namespace tunewright::networks::onnx::detail

#endif
