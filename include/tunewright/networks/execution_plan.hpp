// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "tunewright/codegen/kernel.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/loops/nest.hpp"
#include "tunewright/networks/memory_plan.hpp"
#include "tunewright/networks/network.hpp"
#include "tunewright/networks/partition.hpp"
#include "tunewright/reference/evaluate.hpp"

namespace tunewright::networks {

/// Alignment in bytes of every buffer of a kernel.
inline constexpr std::size_t kernel_alignment = 64;

/// A constant in the layout of some kernel.
struct PackedConstant {
  TensorId tensor = 0;   ///< of the network
  loops::Buffer layout;  ///< without packing: row-major, shared by all kernels with this layout
  [[nodiscard]] std::size_t bytes() const { return static_cast<std::size_t>(layout.bytes()); }
};

/// Where each constant lies in one block: one after the other, at multiples of `kernel_alignment`.
struct WeightsLayout {
  std::vector<std::size_t> offsets;
  std::size_t bytes = 0;  ///< of all
};
[[nodiscard]] WeightsLayout weights_layout(std::span<const PackedConstant> constants);

/// The memory of one buffer of a call.
struct BufferPlace {
  bool constant = false;
  std::size_t number = 0;  ///< among the constants, or among the pieces of shared memory
};

/// The parts of a network's inference that are decided before memory is allocated; execution in this process and
/// exported code follow the same plan.
struct ExecutionPlan {
  std::vector<Lifetime> lifetimes;                ///< of pieces of shared memory: tensors, then the workspaces of calls
  MemoryPlan memory;                              ///< where each piece lies
  std::map<TensorId, std::size_t> piece_of;       ///< by storage (`Partition::storage`)
  std::vector<PackedConstant> constants;          ///< in the layouts of the kernels
  std::vector<std::vector<BufferPlace>> buffers;  ///< by call, in the order of its kernel's buffers
};

/// Plans the calls of `partition` with one kernel per task, in the order of its tasks.
///
/// Inputs keep their memory during the whole inference, so that it can be repeated, and outputs to the end.
///
/// Errors: `std::invalid_argument` for a partition of another network or of other outputs, for different numbers of
///         kernels and tasks, and for a kernel whose buffers do not have the types, sizes and roles of its task's
///         tensors.
/// Cost: quadratic in the number of calls.
/// Determinism: a function of the arguments.
[[nodiscard]] ExecutionPlan plan_execution(const Network& network, const Partition& partition,
                                           std::span<const codegen::Kernel> kernels);

/// Throws `std::invalid_argument` unless `partition` was made of this network and computes its outputs.
void check_partition(const Network& network, const Partition& partition);

/// Writes the constant in the layout `layout`, which takes `layout.bytes()`.
void pack_constant(const loops::Buffer& layout, const reference::Array& values, std::byte* packed);

}  // namespace tunewright::networks

#if TUNEWRIGHT_DEFINES(whole_networks)

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "tunewright/core/checked_elements.hpp"
#include "tunewright/core/rounded_up.hpp"
#include "tunewright/program/analysis.hpp"

namespace tunewright::networks::detail {

/// Kernels of other tasks would read and write beyond their buffers, or take activations for weights.
TUNEWRIGHT_INLINE void check_kernels(const Network& network, const Partition& partition,
                                     std::span<const codegen::Kernel> kernels) {
  if (kernels.size() != partition.tasks.size() || kernels.empty()) {
    throw std::invalid_argument(std::to_string(kernels.size()) + " kernels were given for the " +
                                std::to_string(partition.tasks.size()) + " tasks of network '" + network.name +
                                "'; give one a task, in the order of the partition");
  }
  using loops::BufferRole;
  for (const TaskCall& call : partition.calls) {
    const ComputeGraph& task = *partition.tasks[call.task].task.graph;
    const auto role_of = [&](TensorId tensor) {  // Temporary for what a task keeps to itself
      switch (task.op(tensor).role) {
        case program::Role::Input: return BufferRole::Input;
        case program::Role::Constant: return BufferRole::Constant;
        case program::Role::Computed: break;
      }
      return call.tensors[tensor] == call.output ? BufferRole::Output : BufferRole::Temporary;
    };
    for (const codegen::KernelBuffer& buffer : kernels[call.task].buffers) {
      const loops::Buffer& layout = buffer.layout;
      if (layout.role == BufferRole::Temporary) continue;
      if (layout.tensor < call.tensors.size()) {
        const program::Operator& op = network.graph->op(call.tensors[layout.tensor]);
        const std::int64_t elements = checked_elements(layout.shape, "buffer '" + layout.name + "'");
        if (op.type == layout.type && op.elements() == elements && layout.role == role_of(layout.tensor)) continue;
      }
      throw std::invalid_argument("kernel " + std::to_string(call.task) + " of network '" + network.name +
                                  "' is not one of task '" + partition.tasks[call.task].task.name + "': its buffer '" +
                                  layout.name +
                                  "' has another type, size or role; give kernels in the order of the tasks");
    }
  }
}

TUNEWRIGHT_INLINE void plan_shared_memory(const Network& network, const Partition& partition,
                                          std::span<const codegen::Kernel> kernels, ExecutionPlan& plan) {
  const ComputeGraph& graph = *network.graph;
  const std::size_t end = partition.calls.size();
  const auto live = [&](TensorId tensor, std::size_t step) {
    const TensorId storage = partition.storage[tensor];
    const program::Operator& op = graph.op(storage);
    if (op.role == program::Role::Constant) return;
    const auto [place, is_new] = plan.piece_of.try_emplace(storage, plan.lifetimes.size());
    if (is_new) plan.lifetimes.push_back({static_cast<std::size_t>(program::bytes(op)), step, step});
    std::size_t& last = plan.lifetimes[place->second].last;
    last = std::max(last, step);
  };
  for (TensorId id = 0; id < graph.size(); ++id) {
    if (graph.op(id).role != program::Role::Input) continue;
    live(id, 0);
    live(id, end);
  }
  for (std::size_t c = 0; c < end; ++c) {
    for (const TensorId tensor : partition.calls[c].tensors) {
      const TensorId storage = partition.storage[tensor];
      if (tensor == partition.calls[c].output || plan.piece_of.contains(storage)) live(tensor, c);
    }
  }
  for (const TensorId output : network.outputs) live(output, end);
  for (std::size_t c = 0; c < end; ++c) {
    for (const codegen::KernelBuffer& buffer : kernels[partition.calls[c].task].buffers)
      if (buffer.layout.role == loops::BufferRole::Temporary) plan.lifetimes.push_back({buffer.bytes(), c, c});
  }
  plan.memory = plan_memory(plan.lifetimes, kernel_alignment);
}

}  // namespace tunewright::networks::detail

namespace tunewright::networks {

TUNEWRIGHT_INLINE WeightsLayout weights_layout(std::span<const PackedConstant> constants) {
  WeightsLayout layout;
  for (const PackedConstant& constant : constants) {
    layout.offsets.push_back(layout.bytes);
    layout.bytes += rounded_up(constant.bytes(), kernel_alignment);
  }
  return layout;
}

TUNEWRIGHT_INLINE void check_partition(const Network& network, const Partition& partition) {
  const ComputeGraph& graph = graph_of(network);
  const std::string remedy = "; give what networks::partition makes of it";
  if (program::stable_hash(graph) != partition.graph_hash) {
    throw std::invalid_argument("the partition is not one of network '" + network.name + "'" + remedy);
  }
  for (const TensorId output : network.outputs) {
    const bool computed =
        output < graph.size() && std::any_of(
                                     partition.calls.begin(), partition.calls.end(),
                                     [&](const TaskCall& call) { return call.output == partition.storage[output]; });
    if (computed) continue;
    throw std::invalid_argument("the partition is one of other outputs of network '" + network.name +
                                "': no call computes tensor " + std::to_string(output) + remedy);
  }
}

TUNEWRIGHT_INLINE ExecutionPlan plan_execution(const Network& network, const Partition& partition,
                                               std::span<const codegen::Kernel> kernels) {
  check_partition(network, partition);
  detail::check_kernels(network, partition, kernels);
  ExecutionPlan plan;
  detail::plan_shared_memory(network, partition, kernels, plan);
  std::map<TensorId, std::size_t> row_major;
  const auto constant = [&](const loops::Buffer& layout, TensorId tensor) {
    if (layout.packing.empty()) {
      const auto [found, is_new] = row_major.try_emplace(tensor, plan.constants.size());
      if (!is_new) return found->second;
    }
    plan.constants.push_back({tensor, layout});
    return plan.constants.size() - 1;
  };
  std::size_t workspace = plan.piece_of.size();
  for (const TaskCall& call : partition.calls) {
    std::vector<BufferPlace>& places = plan.buffers.emplace_back();
    for (const codegen::KernelBuffer& buffer : kernels[call.task].buffers) {
      const loops::Buffer& layout = buffer.layout;
      if (layout.role == loops::BufferRole::Temporary) {
        places.push_back({false, workspace++});
        continue;
      }
      const TensorId storage = partition.storage[call.tensors[layout.tensor]];
      if (layout.role == loops::BufferRole::Constant)
        places.push_back({true, constant(layout, storage)});
      else
        places.push_back({false, plan.piece_of.at(storage)});
    }
  }
  return plan;
}

TUNEWRIGHT_INLINE void pack_constant(const loops::Buffer& layout, const reference::Array& values, std::byte* packed) {
  if (layout.packing.empty()) {
    std::memcpy(packed, values.data(), values.size_in_bytes());
    return;
  }
  codegen::pack_bytes(layout, values.data(), packed);
}

}  // namespace tunewright::networks

#endif
