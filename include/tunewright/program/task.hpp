// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "tunewright/core/task.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/program/graph.hpp"

namespace tunewright::program {

/// A task whose hash and operation count follow from `graph`. `weight` says how often the computation occurs
/// in its network. Throws `std::invalid_argument` for a missing graph, one that computes nothing, or a weight
/// that is not positive.
[[nodiscard]] Task make_task(std::string name, std::shared_ptr<const ComputeGraph> graph, Target target,
                             double weight = 1);

}  // namespace tunewright::program

#if TUNEWRIGHT_DEFINES(program)

#include "tunewright/program/analysis.hpp"

namespace tunewright::program {

TUNEWRIGHT_INLINE Task make_task(std::string name, std::shared_ptr<const ComputeGraph> graph, Target target,
                                 double weight) {
  if (!graph || graph->outputs().empty()) {
    throw std::invalid_argument("task '" + name + "' computes nothing; give it a graph with at least one operator");
  }
  if (!(weight > 0)) {
    throw std::invalid_argument("task '" + name + "' has weight " + std::to_string(weight) +
                                "; give the number of its occurrences, which is positive");
  }
  Task task;
  task.name = std::move(name);
  task.workload_hash = stable_hash(*graph);
  task.flops = flops(*graph);
  task.weight = weight;
  task.target = std::move(target);
  task.graph = std::move(graph);
  return task;
}

}  // namespace tunewright::program

#endif
