// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/loops/device/kernels.hpp"
#include "tunewright/loops/simt/memory.hpp"
#include "tunewright/loops/simt/steps.hpp"
#include "tunewright/loops/statement_program.hpp"

/// Runs the kernels of a nest in device form on the CPU: threads become loops that are split at barriers.
namespace tunewright::loops {

namespace detail {

class Simt : public SimtMemory {
 public:
  using SimtMemory::SimtMemory;

  void run(std::vector<std::vector<double>>& arguments);

 private:
  void run(const DeviceKernel& kernel);

  /// Runs all threads of a block, in step from barrier to barrier.
  void run_together(std::span<const SimtStep> steps);
  void run_together(const SimtStep& step);

  /// The value of the conditions, on which all threads must agree.
  bool agreed(const Branch& branch);

  void run_alone(std::span<const SimtStep> steps);

  void combine(const CrossThreadReduction& r);

  std::vector<StatementProgram> programs_;
};

}  // namespace detail

/// Runs the kernels of `nest`, which must be in device form (`to_device`), on `arguments` in the form of `interpret`.
/// Blocks run one after the other, and threads of a block in step from barrier to barrier, so that results do not
/// depend on an order that a device does not guarantee.
///
/// Throws what `interpret` does, for the same reasons. Also throws `InterpretError` for data races: an element that two
/// threads of a block access without a barrier between them, or threads of different blocks within one kernel, if one
/// access writes; and an element whose asynchronous copy has not been waited for; also for barriers that only some
/// threads reach. Asynchronous copies arrive at the wait; products of warp groups are executed at once, so that a
/// missing wait for them is not detected. Throws `DeviceFormError` for another form.
/// Cost: about a tenth of a microsecond per operation of a body; memory for the locals of one block.
inline void run_simt(const LoopNest& nest, std::vector<std::vector<double>>& arguments) {
  detail::Simt(nest, arguments).run(arguments);
}

}  // namespace tunewright::loops

#if TUNEWRIGHT_DEFINES(loops)

namespace tunewright::loops::detail {

TUNEWRIGHT_INLINE void Simt::run(std::vector<std::vector<double>>& arguments) {
  const std::vector<DeviceKernel> kernels = device_kernels(nest_);
  std::size_t next = 0;
  for (const Node& node : nest_.body) {
    if (const auto* allocate = std::get_if<Allocate>(&node.content)) {
      allocate_workspace(allocate->buffer);
    } else {
      run(kernels[next++]);
    }
  }
  give_back(arguments);
}

TUNEWRIGHT_INLINE void Simt::run(const DeviceKernel& kernel) {
  begin(kernel);
  programs_.clear();
  const std::vector<SimtStep> steps = simt_steps(nest_, kernel.body, programs_);
  active_.clear();
  for (const Loop* loop : kernel.bound) active_.push_back(loop->var);
  for (std::int64_t block = 0; block < kernel.blocks(); ++block) {
    begin_block(block);
    run_together(steps);
  }
}

TUNEWRIGHT_INLINE void Simt::run_together(std::span<const SimtStep> steps) {
  for (std::size_t n = 0; n < steps.size();) {
    if (steps[n].together) {
      run_together(steps[n++]);
      continue;
    }
    const std::size_t first = n;
    while (n < steps.size() && !steps[n].together) ++n;
    for (std::size_t t = 0; t < threads_.size(); ++t) {
      become(t);
      run_alone(steps.subspan(first, n - first));
    }
  }
}

TUNEWRIGHT_INLINE void Simt::run_together(const SimtStep& step) {
  switch (step.kind) {
    case SimtStep::Kind::Loop:
      active_.push_back(step.var);
      for (std::int64_t i = 0; i < step.extent; ++i) {
        values_[step.var] = i;  // set again, because the body may run the same loop
        run_together(step.body);
      }
      active_.pop_back();
      break;
    case SimtStep::Kind::Branch: run_together(agreed(*step.branch) ? step.body : step.otherwise); break;
    case SimtStep::Kind::Combine: combine(*step.combine); break;
    default: pass_barrier(); break;
  }
}

TUNEWRIGHT_INLINE bool Simt::agreed(const Branch& branch) {
  become(0);
  const bool first = holds(branch.conditions);
  for (std::size_t t = 1; t < threads_.size(); ++t) {
    become(t);
    if (holds(branch.conditions) != first)
      throw InterpretError(AccessFault::NotRunnable,
                           "loop nest '" + nest_.name + "' has a barrier where only some threads of a block run");
  }
  return first;
}

TUNEWRIGHT_INLINE void Simt::run_alone(std::span<const SimtStep> steps) {
  for (const SimtStep& step : steps) {
    switch (step.kind) {
      case SimtStep::Kind::Loop:
        if (step.by_warp && thread_ % lanes() != 0) break;  // the first thread represents its warp
        by_warp_ = by_warp_ || step.by_warp;
        active_.push_back(step.var);
        for (std::int64_t i = 0; i < step.extent; ++i) {
          values_[step.var] = i;
          run_alone(step.body);
        }
        active_.pop_back();
        if (step.by_warp) by_warp_ = false;
        break;
      case SimtStep::Kind::Branch: run_alone(holds(step.branch->conditions) ? step.body : step.otherwise); break;
      case SimtStep::Kind::Statement:
        asynchronous_ = step.asynchronous;
        programs_[step.program].run(*this);
        asynchronous_ = false;
        break;
      case SimtStep::Kind::Commit: commit_copies(); break;
      case SimtStep::Kind::Wait: wait_for_copies(step.under_way); break;
      default: forget(step.buffer); break;
    }
  }
}

TUNEWRIGHT_INLINE void Simt::combine(const CrossThreadReduction& r) {
  const auto local = [&](BufferId id) { return place_of(nest_, id, r.axis_values); };
  const Place from = local(r.partial), to = local(r.target);
  const ScalarType type = nest_.buffers[r.target].type;
  const bool everyone = is_of_threads(r.target);
  std::vector<double> result(threads_.size(), program::identity(r.op->combiner, type));
  const auto leader = [&](std::size_t t) {
    std::size_t number = 0, stride = 1;
    for (std::size_t i = 0; i < 3; ++i) {
      if (!r.over[i]) number += stride * static_cast<std::size_t>(threads_[t][i]);
      stride *= static_cast<std::size_t>(kernel_shape_->block[i]);
    }
    return number;
  };
  for (std::size_t t = 0; t < threads_.size(); ++t) {
    become(t);
    double& sum = result[leader(t)];
    sum = program::rounded(combined(r.op->combiner, type, sum, read(*r.op, from, element(*r.op, from, "reads"))), type);
  }
  for (std::size_t t = 0; t < threads_.size(); ++t) {
    become(t);
    if (holds(r.guards) && (everyone || leader(t) == t))
      write(*r.op, to, element(*r.op, to, "writes"), result[leader(t)]);
  }
}

}  // namespace tunewright::loops::detail

#endif
