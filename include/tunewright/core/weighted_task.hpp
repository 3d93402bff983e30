// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/core/task.hpp"

namespace tunewright {

/// A task of a network and how often the network computes it.
struct WeightedTask {
  Task task;
  double weight = 1;
};

}  // namespace tunewright
