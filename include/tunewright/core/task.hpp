// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tunewright/core/hash.hpp"
#include "tunewright/core/target.hpp"

namespace tunewright {

namespace program {
class ComputeGraph;
}

/// A computation to tune and its target. Spaces that schedule programs read `graph`; spaces over recorded tables leave
/// it empty and use `workload_hash`. The core only names the graph's type and never uses it (`program::make_task` fills
/// in all members).
struct Task {
  std::string name;                 ///< for people, e.g. "matmul 1024x1024x1024"
  std::uint64_t workload_hash = 0;  ///< content of the computation; equal workloads share journals
  double flops = 0;                 ///< floating-point operations of one run
  double weight = 1;                ///< occurrences in the network, for task schedulers
  Target target;
  std::shared_ptr<const program::ComputeGraph> graph;
  std::string graph_json{};  ///< `program::to_json(*graph)`: what journals keep, so that others can rebuild the graph
};

/// Key of a task in journals: workload and target.
[[nodiscard]] inline std::uint64_t stable_hash(const Task& task) {
  return StableHash{}.add(task.workload_hash).add(stable_hash(task.target)).value();
}

}  // namespace tunewright
