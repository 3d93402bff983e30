// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "tunewright/codegen/kernel.hpp"
#include "tunewright/reference/compare.hpp"
#include "tunewright/reference/evaluate.hpp"

namespace tunewright::test {

/// Arguments of a kernel as numbers in the order it asks for them: what `inputs` holds in the kernel's layouts, zeros
/// where the kernel writes.
[[nodiscard]] inline std::vector<std::vector<double>> arguments_for(const codegen::Kernel& kernel,
                                                                    const reference::Tensors& inputs) {
  std::vector<std::vector<double>> arguments;
  for (const codegen::KernelBuffer& buffer : kernel.buffers) {
    const loops::Buffer& layout = buffer.layout;
    std::vector<double>& values = arguments.emplace_back(static_cast<std::size_t>(layout.elements()), 0.0);
    if (layout.role != loops::BufferRole::Input && layout.role != loops::BufferRole::Constant) continue;
    const reference::Array& array = inputs[layout.tensor];
    std::vector<double> row_major(array.size());
    for (std::size_t i = 0; i < row_major.size(); ++i) row_major[i] = array.get(i);
    codegen::pack<double>(layout, row_major.data(), values.data());
  }
  return arguments;
}

/// Whether all outputs of a kernel that ran are what the reference says, within its tolerance.
[[nodiscard]] inline bool outputs_are_right(const codegen::Kernel& kernel, const program::ComputeGraph& graph,
                                            const std::vector<std::vector<double>>& arguments,
                                            const reference::Tensors& expected) {
  for (std::size_t b = 0; b < kernel.buffers.size(); ++b) {
    const loops::Buffer& layout = kernel.buffers[b].layout;
    if (layout.role != loops::BufferRole::Output) continue;
    reference::Array actual(layout.type, expected[layout.tensor].shape());
    for (std::size_t i = 0; i < actual.size(); ++i) actual.set(i, arguments[b][i]);
    if (!reference::compare(actual, expected[layout.tensor], reference::tolerance_for(graph, layout.tensor)).passed)
      return false;
  }
  return true;
}

}  // namespace tunewright::test
