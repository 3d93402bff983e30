// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "tunewright/codegen/kernel.hpp"
#include "tunewright/codegen/llvm.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/networks/memory_plan.hpp"
#include "tunewright/networks/network.hpp"
#include "tunewright/networks/partition.hpp"
#include "tunewright/reference/compare.hpp"
#include "tunewright/reference/evaluate.hpp"
#include "tunewright/schedule/schedule.hpp"

namespace tunewright::networks {

struct CompiledNetworkOptions {
  codegen::CompileOptions compile = {};
  unsigned compile_threads = 1;      ///< 0: all hardware threads; does not change the kernels
  std::vector<int> processors = {};  ///< that helpers, see `codegen::PinnedTeam`, and compiling threads keep to
};

/// A network on this machine's processors: one kernel per task, called in the order of the partition.
///
/// Weights are packed in the order of each kernel. All other tensors and the workspaces of kernels share one block of
/// memory, planned by lifetimes (`plan_memory`). Copies share everything; use one from one thread at a time.
class CompiledNetwork {
 public:
  /// Compiles one schedule per task, in the order of `partition.tasks`. `values` has the constants, by tensor (see
  /// `random_values`); only the packed copies are stored.
  ///
  /// Errors: `std::invalid_argument` for different numbers of schedules and tasks, a schedule of another task, a
  ///         partition of another network, a missing or mismatched constant, and a target that is not a CPU;
  ///         `codegen::Unsupported` and `schedule::ScheduleError` for schedules that cannot be compiled.
  /// Cost: 5 to 20 ms per task and thread, and a pass over the weights.
  CompiledNetwork(const Network& network, const Partition& partition, std::span<const schedule::Schedule> schedules,
                  const reference::Tensors& values, const CompiledNetworkOptions& options = {});

  /// One inference: takes the inputs of `inputs(network)` from `tensors`, returns the outputs in the network's order.
  /// Throws `std::invalid_argument` for a missing or mismatched input and for lookup indices outside their table.
  [[nodiscard]] std::vector<reference::Array> run(const reference::Tensors& tensors);

  /// The parts of `run`, to time inference alone: set the inputs once and repeat `execute`.
  void set_inputs(const reference::Tensors& tensors);
  void execute();
  [[nodiscard]] std::vector<reference::Array> outputs() const;

  /// Runs the network and compares the result of each call with the reference, which gets the same inputs as the call,
  /// so that rounding errors do not add up from layer to layer. One comparison per call. `values` has inputs and
  /// constants, by tensor.
  ///
  /// The bounds are those of `reference::tolerance_for` on the task's graph, which assumes numbers of order 1, times
  /// the largest magnitudes of the call's inputs and constants, if these exceed 1. All memory is first filled with NaN.
  /// Cost: that of `reference::evaluate`, about a second per billion operations. Throws as `run`.
  [[nodiscard]] std::vector<reference::Comparison> compare_calls(const reference::Tensors& values);

  /// Called after each kernel of an inference, with the number of its call.
  using Watch = std::function<void(std::size_t call)>;
  void execute(const Watch& watch);
  /// A tensor that is alive: an input, an output or, during a watch, the inputs and results of the call.
  [[nodiscard]] reference::Array value(TensorId tensor) const;

  [[nodiscard]] const Network& network() const;
  [[nodiscard]] const Partition& partition() const;
  /// One per task, in the order of the partition; for `export_network`.
  [[nodiscard]] const std::vector<codegen::Kernel>& kernels() const;
  /// Pieces of the shared block: tensors, then the workspaces of calls.
  [[nodiscard]] const std::vector<Lifetime>& lifetimes() const;
  [[nodiscard]] const MemoryPlan& memory() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tunewright::networks

#if TUNEWRIGHT_DEFINES(orc)

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "tunewright/codegen/llvm_jit.hpp"
#include "tunewright/codegen/pinned_team.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/core/huge_pages.hpp"
#include "tunewright/networks/compile_kernels.hpp"
#include "tunewright/networks/execution_plan.hpp"
#include "tunewright/networks/values.hpp"

namespace tunewright::networks::detail {

/// Memory for the buffers of kernels, in huge pages like that of the measuring process.
class KernelMemory {
 public:
  KernelMemory() = default;
  explicit KernelMemory(std::size_t bytes)
      : bytes_(static_cast<std::byte*>(::operator new(std::max<std::size_t>(bytes, 1), alignment))) {
    advise_huge_pages(bytes_.get(), bytes);
  }
  [[nodiscard]] std::byte* data() const noexcept { return bytes_.get(); }

 private:
  static constexpr std::align_val_t alignment{std::max(kernel_alignment, huge_page_bytes)};
  struct Release {
    void operator()(std::byte* bytes) const { ::operator delete(bytes, alignment); }
  };
  std::unique_ptr<std::byte, Release> bytes_;
};

}  // namespace tunewright::networks::detail

namespace tunewright::networks {

struct CompiledNetwork::State {
  struct Call {
    codegen::LoadedKernel kernel;
    std::vector<void*> buffers;
  };

  Network network;
  Partition partition;
  std::vector<codegen::Kernel> kernels;
  ExecutionPlan plan;
  codegen::PinnedTeam team;
  detail::KernelMemory constants;  // one after the other
  detail::KernelMemory block;
  std::map<TensorId, reference::Array> tables;  // of lookups
  std::vector<Call> calls;

  State(const Network& n, const Partition& p, std::vector<codegen::Kernel> k, std::span<const int> processors)
      : network(n),
        partition(p),
        kernels(std::move(k)),
        plan(plan_execution(n, p, kernels)),
        team(p.tasks[0].task.target.threads, processors) {}

  void bind(const reference::Tensors& values);
  [[nodiscard]] std::byte* place(TensorId tensor) const {
    return block.data() + plan.memory.offsets[plan.piece_of.at(partition.storage[tensor])];
  }
  /// Fills the memory with NaN, so that reads of unwritten elements show.
  void poison() const { std::memset(block.data(), 0xff, plan.memory.bytes); }
};

TUNEWRIGHT_INLINE void CompiledNetwork::State::bind(const reference::Tensors& values) {
  codegen::KernelLoader loader;
  std::vector<codegen::LoadedKernel> loaded;
  for (const codegen::Kernel& kernel : kernels) {
    if (kernel.uses_tile_registers && !host::permit_tile_registers())
      throw std::runtime_error(
          "a kernel uses the tile registers of AMX, which this system does not grant; make the "
          "tasks for host_target()");
    loaded.push_back(loader.load(kernel));
  }
  const WeightsLayout weights = weights_layout(plan.constants);
  constants = detail::KernelMemory(weights.bytes);
  for (std::size_t c = 0; c < plan.constants.size(); ++c) {
    const PackedConstant& constant = plan.constants[c];
    pack_constant(constant.layout, values[constant.tensor], constants.data() + weights.offsets[c]);
  }
  for (const Lookup& lookup : network.lookups) tables[lookup.table] = values[lookup.table];
  block = detail::KernelMemory(plan.memory.bytes);
  poison();
  for (std::size_t c = 0; c < partition.calls.size(); ++c) {
    Call bound{loaded[partition.calls[c].task], {}};
    for (const BufferPlace& place : plan.buffers[c]) {
      bound.buffers.push_back(place.constant ? constants.data() + weights.offsets[place.number]
                                             : block.data() + plan.memory.offsets[place.number]);
    }
    calls.push_back(std::move(bound));
  }
}

TUNEWRIGHT_INLINE CompiledNetwork::CompiledNetwork(const Network& network, const Partition& partition,
                                                   std::span<const schedule::Schedule> schedules,
                                                   const reference::Tensors& values,
                                                   const CompiledNetworkOptions& options) {
  std::vector<codegen::Kernel> kernels =
      compile_kernels(network, partition, schedules, options.compile, options.compile_threads, options.processors);
  for (TensorId id = 0; id < network.graph->size(); ++id)
    if (network.graph->op(id).role == program::Role::Constant) check_array(network, id, values);
  state_ = std::make_shared<State>(network, partition, std::move(kernels), options.processors);
  state_->bind(values);
}

TUNEWRIGHT_INLINE std::vector<reference::Array> CompiledNetwork::run(const reference::Tensors& tensors) {
  set_inputs(tensors);
  execute();
  return outputs();
}

TUNEWRIGHT_INLINE void CompiledNetwork::set_inputs(const reference::Tensors& tensors) {
  const Network& n = state_->network;
  for (const TensorId id : inputs(n)) {
    check_array(n, id, tensors);
    std::memcpy(state_->place(id), tensors[id].data(), tensors[id].size_in_bytes());
  }
  for (const Lookup& lookup : n.lookups) {
    const reference::Array rows = looked_up(n, lookup, state_->tables.at(lookup.table), tensors[lookup.ids]);
    std::memcpy(state_->place(lookup.rows), rows.data(), rows.size_in_bytes());
  }
}

TUNEWRIGHT_INLINE void CompiledNetwork::execute() {
  const codegen::tunewright_runtime* const runtime = state_->team.runtime();
  for (const State::Call& call : state_->calls) call.kernel(call.buffers.data(), runtime);
}

TUNEWRIGHT_INLINE void CompiledNetwork::execute(const Watch& watch) {
  const codegen::tunewright_runtime* const runtime = state_->team.runtime();
  for (std::size_t c = 0; c < state_->calls.size(); ++c) {
    state_->calls[c].kernel(state_->calls[c].buffers.data(), runtime);
    watch(c);
  }
}

TUNEWRIGHT_INLINE std::vector<reference::Array> CompiledNetwork::outputs() const {
  std::vector<reference::Array> all;
  for (const TensorId id : state_->network.outputs) all.push_back(value(id));
  return all;
}

TUNEWRIGHT_INLINE reference::Array CompiledNetwork::value(TensorId tensor) const {
  const Network& n = state_->network;
  if (tensor >= n.graph->size() || !state_->plan.piece_of.contains(state_->partition.storage[tensor])) {
    throw std::invalid_argument("network '" + n.name + "' does not keep tensor " + std::to_string(tensor) +
                                "; ask for an input, an output, or what a call computes");
  }
  reference::Array array(n.graph->op(tensor).type, n.graph->op(tensor).shape());
  std::memcpy(array.data(), state_->place(tensor), array.size_in_bytes());
  return array;
}

TUNEWRIGHT_INLINE std::vector<reference::Comparison> CompiledNetwork::compare_calls(const reference::Tensors& values) {
  const Network& n = state_->network;
  const Partition& partition = state_->partition;
  std::vector<reference::Comparison> comparisons;
  state_->poison();
  set_inputs(values);
  execute([&](std::size_t c) {
    const TaskCall& call = partition.calls[c];
    const ComputeGraph& graph = *partition.tasks[call.task].task.graph;
    reference::Tensors tensors(graph.size());
    double largest_input = 1;
    double largest_constant = 1;
    for (TensorId id = 0; id < graph.size(); ++id) {
      const program::Operator& op = graph.op(id);
      if (op.role == program::Role::Computed) continue;
      const TensorId storage = partition.storage[call.tensors[id]];
      const bool constant = op.role == program::Role::Constant;
      if (constant) check_array(n, storage, values);
      const reference::Array read = constant ? values[storage] : value(call.tensors[id]);
      tensors[id] = reference::Array(op.type, op.shape());  // a reshaped constant has another shape than its storage
      std::memcpy(tensors[id].data(), read.data(), read.size_in_bytes());
      double& largest = constant ? largest_constant : largest_input;
      for (std::size_t i = 0; i < read.size(); ++i) largest = std::max(largest, std::abs(read.get(i)));
    }
    const TensorId output = graph.outputs()[0];
    reference::Tolerance tolerance = reference::tolerance_for(graph, output);
    tolerance.absolute *= largest_input * largest_constant;
    const reference::Tensors expected = reference::evaluate(graph, std::move(tensors));
    comparisons.push_back(reference::compare(value(call.output), expected[output], tolerance));
  });
  return comparisons;
}

TUNEWRIGHT_INLINE const Network& CompiledNetwork::network() const { return state_->network; }
TUNEWRIGHT_INLINE const Partition& CompiledNetwork::partition() const { return state_->partition; }
TUNEWRIGHT_INLINE const std::vector<codegen::Kernel>& CompiledNetwork::kernels() const { return state_->kernels; }
TUNEWRIGHT_INLINE const std::vector<Lifetime>& CompiledNetwork::lifetimes() const { return state_->plan.lifetimes; }
TUNEWRIGHT_INLINE const MemoryPlan& CompiledNetwork::memory() const { return state_->plan.memory; }

}  // namespace tunewright::networks

#endif
