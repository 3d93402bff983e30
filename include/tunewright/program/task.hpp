// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "tunewright/core/task.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/program/graph.hpp"

namespace tunewright::program {

/// A task with hash and operation count from `graph`. `weight` is the number of occurrences of the computation in its
/// network. Throws `std::invalid_argument` for a missing graph, one that computes nothing, a CPU without threads, or a
/// weight that is not positive.
[[nodiscard]] Task make_task(std::string name, std::shared_ptr<const ComputeGraph> graph, Target target,
                             double weight = 1);

/// A task from a journal, with the graph rebuilt from `graph_json`; a task with a graph, or without `graph_json`, is
/// unchanged. Throws `std::invalid_argument` for invalid text, and for a graph whose hash differs from `workload_hash`.
[[nodiscard]] Task with_graph(Task task);

}  // namespace tunewright::program

#if TUNEWRIGHT_DEFINES(program)

#include <cmath>

#include "tunewright/core/hash.hpp"
#include "tunewright/core/number_text.hpp"
#include "tunewright/json/scanner.hpp"
#include "tunewright/program/analysis.hpp"
#include "tunewright/program/graph_json.hpp"

namespace tunewright::program {

TUNEWRIGHT_INLINE Task make_task(std::string name, std::shared_ptr<const ComputeGraph> graph, Target target,
                                 double weight) {
  if (!graph || graph->outputs().empty()) {
    throw std::invalid_argument("task '" + name + "' computes nothing; give it a graph with at least one operator");
  }
  if (target.kind == DeviceKind::Cpu && target.threads == 0) {
    throw std::invalid_argument("task '" + name + "' is for target '" + target.name +
                                "' without threads; give the target at least 1");
  }
  if (!(weight > 0) || !std::isfinite(weight)) {
    throw std::invalid_argument("task '" + name + "' has weight " + number_text(weight) +
                                "; give the number of its occurrences, which is positive and finite");
  }
  Task task;
  task.name = std::move(name);
  task.workload_hash = stable_hash(*graph);
  task.flops = flops(*graph);
  task.weight = weight;
  task.target = std::move(target);
  task.graph_json = to_json(*graph);
  task.graph = std::move(graph);
  return task;
}

TUNEWRIGHT_INLINE Task with_graph(Task task) {
  if (task.graph || task.graph_json.empty()) return task;
  const auto refuse = [&task](const std::string& why) {
    throw std::invalid_argument("task '" + task.name + "': " + why + "; give it the text that program::to_json wrote");
  };
  try {
    task.graph = std::make_shared<const ComputeGraph>(graph_from_json(task.graph_json));
  } catch (const FormatError& error) {
    refuse(std::string("graph_json is no graph: ") + error.what());
  }
  if (const std::uint64_t hash = stable_hash(*task.graph); hash != task.workload_hash)
    refuse("graph_json is the graph of workload " + to_hex(hash) + ", not of " + to_hex(task.workload_hash));
  return task;
}

}  // namespace tunewright::program

#endif
