// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "tunewright/core/rng.hpp"
#include "tunewright/loops/nest.hpp"
#include "tunewright/program/scalar_type.hpp"

namespace tunewright::test {

/// Arguments of a nest as numbers of all magnitudes of their types, row-major where nothing is packed.
inline std::vector<std::vector<double>> arguments_of_all_magnitudes(const loops::LoopNest& nest) {
  Rng rng(5);
  std::vector<std::vector<double>> arguments;
  for (const loops::BufferId id : nest.arguments) {
    const loops::Buffer& buffer = nest.buffers[id];
    std::vector<double>& values = arguments.emplace_back(static_cast<std::size_t>(buffer.elements()));
    for (double& v : values) {
      v = program::is_float(buffer.type) ? program::rounded(2 * rng.uniform() - 1, buffer.type)
                                         : program::lowest(buffer.type) + static_cast<double>(rng.below(256));
    }
  }
  return arguments;
}

}  // namespace tunewright::test
