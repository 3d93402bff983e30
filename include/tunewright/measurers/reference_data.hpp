// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tunewright/core/task.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/measurers/sandbox/task_data.hpp"

namespace tunewright::measurers {

/// Options for a task's inputs and expected outputs.
struct ReferenceData {
  std::uint64_t seed = 0;
  double full_below_flops = 3e8;        ///< smaller tasks are compared in full, others at sampled elements; at least 0
  std::size_t sampled_elements = 4096;  ///< per output of a larger task, at least 1
  double sampled_flops = 2e8;           ///< limit of the cost of sampled elements, of which at least 64 are kept
  double tolerance_factor = 1;          ///< multiplies `reference::tolerance_for` of each output; positive
  unsigned threads = 1;                 ///< does not affect the data
};

/// The options for a machine with so many threads.
[[nodiscard]] inline ReferenceData on_threads(ReferenceData options, std::size_t threads) {
  options.threads = std::max(options.threads, static_cast<unsigned>(threads));
  return options;
}

/// Hash of everything that affects the data.
[[nodiscard]] std::uint64_t stable_hash(const ReferenceData& options);

/// Random inputs and the expected values of every output of `task`.
///
/// Sampled elements are corners, edges, neighbours of tile borders and random ones (`reference::sample_points`);
/// unwritten elements are detected everywhere in any case, except integers on GPUs. Throws `std::invalid_argument` for
/// a task without a graph and for options out of range. Cost: up to a second of evaluation per task.
/// Determinism: a function of the graph and of all options except `threads`.
[[nodiscard]] TaskData make_task_data(const Task& task, const ReferenceData& options = {});

/// Identifies the result of `make_task_data`.
[[nodiscard]] std::uint64_t data_key(const Task& task, const ReferenceData& options);

}  // namespace tunewright::measurers

#if TUNEWRIGHT_DEFINES(sandbox)

#include "tunewright/core/hash.hpp"
#include "tunewright/core/require.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/program/graph.hpp"
#include "tunewright/reference/compare.hpp"
#include "tunewright/reference/evaluate.hpp"
#include "tunewright/reference/evaluate_at.hpp"
#include "tunewright/reference/random_inputs.hpp"

namespace tunewright::measurers {

TUNEWRIGHT_INLINE std::uint64_t stable_hash(const ReferenceData& options) {
  return StableHash()
      .add(options.seed)
      .add(options.full_below_flops)
      .add(static_cast<std::uint64_t>(options.sampled_elements))
      .add(options.sampled_flops)
      .add(options.tolerance_factor)
      .value();
}

TUNEWRIGHT_INLINE std::uint64_t data_key(const Task& task, const ReferenceData& options) {
  return StableHash().add(stable_hash(task)).add(stable_hash(options)).value();
}

TUNEWRIGHT_INLINE TaskData make_task_data(const Task& task, const ReferenceData& options) {
  if (!task.graph) {
    throw std::invalid_argument("task '" + task.name +
                                "' has no graph to check kernels against; build it with program::make_task");
  }
  constexpr const char* who = "ReferenceData";
  require(options.full_below_flops >= 0, who, "full_below_flops", options.full_below_flops, "at least 0");
  require(options.sampled_elements >= 1, who, "sampled_elements", 0, "at least 1");
  require(std::isfinite(options.sampled_flops) && options.sampled_flops >= 0, who, "sampled_flops",
          options.sampled_flops, "finite, at least 0");
  require(std::isfinite(options.tolerance_factor) && options.tolerance_factor > 0, who, "tolerance_factor",
          options.tolerance_factor, "finite and above 0");
  const program::ComputeGraph& graph = *task.graph;
  const Rng rng(options.seed);
  reference::Tensors tensors = reference::random_inputs(graph, rng);

  TaskData data;
  for (program::TensorId id = 0; id < graph.size(); ++id) {
    const program::Operator& op = graph.op(id);
    if (op.role == program::Role::Computed) continue;
    const auto* bytes = static_cast<const char*>(tensors[id].data());
    data.inputs.push_back({id, op.name, op.type, op.shape(), {bytes, bytes + tensors[id].size_in_bytes()}});
  }

  const bool whole = task.flops < options.full_below_flops;
  if (whole) tensors = reference::evaluate(graph, std::move(tensors), {.threads = options.threads});
  for (const program::TensorId id : graph.outputs()) {
    const program::Operator& op = graph.op(id);
    ExpectedOutput output;
    output.tensor = id;
    output.name = op.name;
    output.type = op.type;
    output.shape = op.shape();
    const reference::Tolerance tolerance = reference::tolerance_for(graph, id);
    output.relative_tolerance = options.tolerance_factor * tolerance.relative;
    output.absolute_tolerance = options.tolerance_factor * tolerance.absolute;
    if (whole) {
      output.values.resize(tensors[id].size());
      for (std::size_t i = 0; i < output.values.size(); ++i) output.values[i] = tensors[id].get(i);
    } else {
      const double each = task.flops / static_cast<double>(checked_elements(output.shape));
      const double affordable = std::max(64.0, options.sampled_flops / std::max(each, 1.0));
      const bool all = affordable >= static_cast<double>(options.sampled_elements);
      const std::size_t count = all ? options.sampled_elements : static_cast<std::size_t>(affordable);
      output.points = reference::sample_points(output.shape, count, rng.split(id));
      output.values = reference::evaluate_at(graph, tensors, id, output.points, {.threads = options.threads});
    }
    data.outputs.push_back(std::move(output));
  }
  return data;
}

}  // namespace tunewright::measurers

#endif
