// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "tunewright/loops/nest.hpp"

namespace tunewright::test {

/// The last argument once `run(nest, arguments)` has computed it from fixed inputs: small integers, so that sums are
/// exact in any order.
template <class Run>
[[nodiscard]] std::vector<double> outputs(const loops::LoopNest& nest, const Run& run) {
  std::vector<std::vector<double>> arguments;
  for (const loops::BufferId id : nest.arguments) {
    arguments.emplace_back(static_cast<std::size_t>(nest.buffers[id].elements()));
    double next = 1;
    for (double& value : arguments.back()) value = (next = next < 30 ? next * 3 + 1 : next - 29) - 16;
  }
  run(nest, arguments);
  return arguments.back();
}

}  // namespace tunewright::test
