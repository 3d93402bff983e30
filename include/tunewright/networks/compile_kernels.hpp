// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "tunewright/codegen/kernel.hpp"
#include "tunewright/codegen/llvm.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/networks/network.hpp"
#include "tunewright/networks/partition.hpp"
#include "tunewright/schedule/schedule.hpp"

namespace tunewright::networks {

/// One kernel per task of `partition`, each by its schedule, for the target of the tasks, which need not be this
/// machine. `threads` (0: all hardware threads) compile in parallel and do not change the kernels. Those besides the
/// caller keep to `processors`, of which none given means where the caller may run: one that times kernels often keeps
/// to a single one.
///
/// Errors: `std::invalid_argument` for different numbers of schedules and tasks, a schedule of another task, a
///         partition of another network, and a target that is not a CPU; `codegen::Unsupported` and
///         `schedule::ScheduleError` for schedules that cannot be compiled.
/// Cost: 5 to 20 ms per task and thread.
/// Determinism: the same arguments give the same bytes.
[[nodiscard]] std::vector<codegen::Kernel> compile_kernels(const Network& network, const Partition& partition,
                                                           std::span<const schedule::Schedule> schedules,
                                                           const codegen::CompileOptions& options = {},
                                                           unsigned threads = 1, std::span<const int> processors = {});

}  // namespace tunewright::networks

#if TUNEWRIGHT_DEFINES(orc)

#include <cstddef>
#include <stdexcept>
#include <string>
#include <thread>

#include "tunewright/core/host_target.hpp"
#include "tunewright/core/parallel.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/networks/execution_plan.hpp"

namespace tunewright::networks {

TUNEWRIGHT_INLINE std::vector<codegen::Kernel> compile_kernels(const Network& network, const Partition& partition,
                                                               std::span<const schedule::Schedule> schedules,
                                                               const codegen::CompileOptions& options, unsigned threads,
                                                               std::span<const int> processors) {
  if (schedules.size() != partition.tasks.size() || partition.tasks.empty()) {
    throw std::invalid_argument(std::to_string(schedules.size()) + " schedules were given for the " +
                                std::to_string(partition.tasks.size()) + " tasks of network '" + network.name +
                                "'; give one a task, in the order of the partition");
  }
  check_partition(network, partition);
  for (std::size_t t = 0; t < schedules.size(); ++t) {
    const Task& task = partition.tasks[t].task;
    if (schedules[t].graph && program::stable_hash(*schedules[t].graph) == task.workload_hash) continue;
    throw std::invalid_argument("schedule " + std::to_string(t) + " of network '" + network.name +
                                "' is not one of task '" + task.name + "'; give them in the order of the partition");
  }
  std::vector<codegen::Kernel> kernels(schedules.size());
  const std::thread::id caller = std::this_thread::get_id();
  parallel_parts(threads, schedules.size(), [&](std::size_t begin, std::size_t end) {
    if (std::this_thread::get_id() != caller) host::keep_to(processors);
    codegen::LlvmCompiler compiler(partition.tasks[0].task.target, options);
    for (std::size_t s = begin; s < end; ++s) kernels[s] = compiler.compile(loops::lower(schedules[s]));
  });
  return kernels;
}

}  // namespace tunewright::networks

#endif
