// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "tunewright/core/bounded_product.hpp"
#include "tunewright/core/target.hpp"
#include "tunewright/loops/fragment_instructions.hpp"
#include "tunewright/loops/nest.hpp"
#include "tunewright/loops/target_limits.hpp"

namespace tunewright::loops::detail {

/// Copies of a statement after one more loop, counted up to 2^62.
[[nodiscard]] constexpr std::int64_t times(std::int64_t copies, std::int64_t extent) noexcept {
  return bounded_product(copies, extent, std::int64_t{1} << 62);
}

/// Checks a CPU program whose parts are passed in program order.
class CpuLimitCheck {
 public:
  /// The context of a part.
  struct Around {
    std::int64_t copies = 1;  ///< copies of a statement because of unrolling and vector splitting
    bool in_loop = false;
    bool in_parallel = false;
  };

  CpuLimitCheck(const Target& target, const CpuLimits& limits)
      : limits_(limits), lanes_(target.vector_lanes(sizeof(float))) {}

  /// The exceeded limit that was found last; empty if none.
  [[nodiscard]] std::string_view exceeded() const noexcept { return exceeded_; }

  void allocate(std::int64_t bytes, const Around& around) {
    if (around.in_loop && (local_bytes_ += bytes) > limits_.max_local_bytes) exceeded_ = "local buffers too large";
    if (!around.in_loop && bytes > limits_.max_workspace_bytes) exceeded_ = "workspace too large";
  }
  /// A statement, or the loops of a tensor instruction, which count as one.
  void statement(const Around& around) {
    if (around.copies > limits_.max_unrolled_statements) exceeded_ = "too much unrolling";
  }
  /// A loop that no instruction replaces. Returns the context of its body. `is_innermost`: the body consists of
  /// statements.
  [[nodiscard]] Around enter(std::int64_t extent, LoopKind kind, bool is_innermost, Around around) {
    if (kind == LoopKind::Unrolled) around.copies = times(around.copies, extent);
    if (kind == LoopKind::Vectorized) {
      around.copies = times(around.copies, program::ceil_div(extent, lanes_));
      if (extent > limits_.max_vector_extent) exceeded_ = "vectorized loop too long";
      if (!is_innermost) exceeded_ = "vectorized loop is not innermost";
    }
    if (kind == LoopKind::Parallel && around.in_parallel) exceeded_ = "parallel loop inside a parallel loop";
    around.in_loop = true;
    around.in_parallel = around.in_parallel || kind == LoopKind::Parallel;
    return around;
  }

 private:
  const CpuLimits& limits_;
  std::int64_t lanes_;
  std::int64_t local_bytes_ = 0;
  std::string_view exceeded_;
};

/// Checks a GPU program, as lowered or in device form, whose kernels are passed in program order.
class GpuLimitCheck {
 public:
  /// The context of a part, given by the loops around it.
  struct Around {
    std::int64_t copies = 1;
    std::int64_t virtual_threads = 1;
    bool reduces_by_threads = false;
    const schedule::TensorIntrinsic* instruction = nullptr;  ///< its loops count as one statement
  };

  explicit GpuLimitCheck(const GpuLimits& limits) : limits_(limits) {}

  [[nodiscard]] std::string_view workspace(std::int64_t bytes) const {
    return bytes > limits_.max_workspace_bytes ? "workspace too large" : std::string_view{};
  }
  void start_kernel() { kernel_ = {}; }
  /// The first limit that the kernel, or an earlier one inside its loops, exceeds. `statements()` counts the statements
  /// after unrolling; it is called only if no other limit is exceeded.
  template <class Statements>
  [[nodiscard]] std::string_view end_kernel(const Statements& statements) {
    // Along x, a block has the threads that hold fragments together, whatever loops over them there are.
    if (kernel_.accumulator_bytes > 0)
      kernel_.block[0] = std::max(kernel_.block[0], kernel_.instructions.threads_together());
    for (std::size_t i = 0; i < 3; ++i) {
      if (kernel_.grid[i] > limits_.max_grid[i]) return "too many blocks";
      if (kernel_.block[i] > limits_.max_block[i]) return "too many threads";
    }
    const std::int64_t threads = kernel_.block[0] * kernel_.block[1] * kernel_.block[2];
    if (threads > limits_.max_threads) return "too many threads";
    constexpr std::int64_t staged_bytes_of_warp = std::int64_t{16} * 16 * 4;
    if (kernel_.stages_fragments) kernel_.shared_bytes += program::ceil_div(threads, 32) * staged_bytes_of_warp;
    if (combines_in_shared_memory()) kernel_.shared_bytes += threads * kernel_.combined_bytes;
    if (kernel_.shared_bytes > limits_.max_shared_bytes) return "too much shared memory";
    // The threads of a warp or warp group share the registers of accumulators.
    if (kernel_.local_bytes + kernel_.accumulator_bytes / kernel_.instructions.threads_together() >
        limits_.max_local_bytes)
      return "local buffers too large";
    if (!exceeded_.empty()) return exceeded_;
    return statements() > limits_.max_kernel_statements ? "too much code" : std::string_view{};
  }

  void allocate(Scope scope, bool asynchronous, std::int64_t bytes, const Around& around) {
    if (scope == Scope::Shared) {
      kernel_.shared_bytes += bytes;
      if (asynchronous && !limits_.asynchronous_copies) exceeded_ = "asynchronous copies before compute capability 8.0";
    } else if (scope == Scope::Accumulator) {
      kernel_.accumulator_bytes += bytes;
    } else {
      kernel_.local_bytes += bytes * around.virtual_threads;
    }
  }
  /// `element_bytes` is the element size of `target`.
  void statement(Statement::Kind kind, BufferId target, std::int64_t element_bytes, const Around& around) {
    if (around.instruction != nullptr)
      kernel_.instructions.add(*around.instruction, target);
    else if (around.copies > limits_.max_unrolled_statements)
      exceeded_ = "too much unrolling";
    if (around.reduces_by_threads && kind == Statement::Kind::Update) note_combined(element_bytes);
  }
  void reduction(const CrossThreadReduction& reduction, std::int64_t element_bytes) {
    kernel_.combines_beyond_x = kernel_.combines_beyond_x || reduction.over[1] || reduction.over[2];
    note_combined(element_bytes);
  }
  /// Returns the context of the body of a loop.
  [[nodiscard]] Around enter(std::int64_t extent, LoopKind kind, bool is_reduction,
                             const schedule::TensorIntrinsic* intrinsic, Around around) {
    if (intrinsic != nullptr) {
      around.instruction = intrinsic;
      if ((limits_.tensor_units & static_cast<std::uint32_t>(intrinsic->unit)) == 0 ||
          limits_.compute_capability < intrinsic->since || (intrinsic->by_warp_group() && !limits_.warp_groups))
        exceeded_ = "tensor instruction the device lacks";
      if (!intrinsic->layout_is_known) kernel_.stages_fragments = true;
    }
    if (schedule::is_thread_index(kind)) {
      const std::size_t dimension = schedule::dimension_of_index(kind);
      kernel_.block[dimension] = std::max(kernel_.block[dimension], extent);
      around.reduces_by_threads = around.reduces_by_threads || is_reduction;
      kernel_.combines_beyond_x = kernel_.combines_beyond_x || (is_reduction && dimension > 0);
    } else if (schedule::is_block_index(kind)) {
      const std::size_t dimension = schedule::dimension_of_index(kind);
      kernel_.grid[dimension] = std::max(kernel_.grid[dimension], extent);
    } else if (kind == LoopKind::VirtualThread) {
      around.virtual_threads = times(around.virtual_threads, extent);
      around.copies = times(around.copies, extent);
      if (around.virtual_threads > limits_.max_virtual_threads) exceeded_ = "too many virtual threads";
    } else if (kind == LoopKind::Unrolled) {
      around.copies = times(around.copies, extent);
    } else if (kind == LoopKind::Vectorized) {
      around.copies = times(around.copies, program::ceil_div(extent, 4));
    } else if (kind == LoopKind::Parallel) {
      exceeded_ = "parallel loop on a GPU";
    }
    return around;
  }

  [[nodiscard]] std::string_view exceeded() const noexcept { return exceeded_; }

 private:
  struct Kernel {
    std::array<std::int64_t, 3> grid{1, 1, 1};
    std::array<std::int64_t, 3> block{1, 1, 1};
    std::int64_t shared_bytes = 0;
    std::int64_t local_bytes = 0;
    std::int64_t accumulator_bytes = 0;
    FragmentInstructions instructions;
    std::int64_t combined_bytes = 0;  ///< maximum over the elements reduced across threads
    bool combines_beyond_x = false;
    bool stages_fragments = false;  ///< fragments are stored through shared memory
  };

  [[nodiscard]] bool combines_in_shared_memory() const noexcept {
    const std::int64_t group = kernel_.block[0];
    return kernel_.combined_bytes > 0 && (kernel_.combines_beyond_x || group > 32 || (group & (group - 1)) != 0);
  }
  void note_combined(std::int64_t element_bytes) {
    kernel_.combined_bytes = std::max(kernel_.combined_bytes, element_bytes);
  }

  const GpuLimits& limits_;
  Kernel kernel_;
  std::string_view exceeded_;
};

}  // namespace tunewright::loops::detail
