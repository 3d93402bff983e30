// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/core/task.hpp"

namespace tunewright {

/// A task of a network and the number of its occurrences.
struct WeightedTask {
  Task task;
  double weight = 1;
};

}  // namespace tunewright
