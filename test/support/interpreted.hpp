// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "tunewright/loops/interpret.hpp"
#include "tunewright/loops/nest.hpp"

namespace tunewright::test {

/// Values of the last argument after a nest has run, the others filled with 1, 2, 3, ...
inline std::vector<double> interpreted(const loops::LoopNest& nest) {
  std::vector<std::vector<double>> arguments;
  for (const loops::BufferId id : nest.arguments) {
    arguments.emplace_back(static_cast<std::size_t>(nest.buffers[id].elements()));
    double next = 1;
    for (double& value : arguments.back()) value = next++;
  }
  loops::interpret(nest, arguments);
  return arguments.back();
}

}  // namespace tunewright::test
