// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <variant>

#include "tunewright/core/target.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/loops/fragment_instructions.hpp"
#include "tunewright/loops/nest.hpp"

/// Static limits of loop nests, checked without compiling them.
namespace tunewright::loops {

/// Limits of a CPU candidate. They bound compile times and stack size; slow candidates are left to the search.
struct CpuLimits {
  std::int64_t max_local_bytes = 2 << 20;  ///< total of the buffers that a thread allocates inside its loops
  std::int64_t max_workspace_bytes = 1LL << 30;
  std::int64_t max_unrolled_statements = 2048;  ///< copies of one statement because of unrolling and vector splitting
  std::int64_t max_vector_extent = 1024;
};

/// Limits of a GPU candidate: those of the device, and those that bound compile times and registers. Slow candidates
/// are left to the search.
struct GpuLimits {
  std::int64_t max_shared_bytes = 48 << 10;  ///< per block
  std::int64_t max_threads = 1024;           ///< per block
  std::int64_t max_virtual_threads = 8;      ///< per thread
  std::int64_t max_local_bytes = 2048;       ///< per thread, including copies for virtual threads
  std::int64_t max_workspace_bytes = 1LL << 30;
  std::int64_t max_unrolled_statements = 2048;  ///< as on CPUs; virtual threads are unrolled
  std::int64_t max_kernel_statements = 768;     ///< limit of `written_statements`; compilers take up to 3 ms for each
  std::array<std::int64_t, 3> max_grid{(1LL << 31) - 1, 65535, 65535};  ///< blocks along x, y, z
  std::array<std::int64_t, 3> max_block{1024, 1024, 64};                ///< threads along x, y, z
  bool asynchronous_copies = true;
  std::uint32_t tensor_units = ~std::uint32_t{0};  ///< bits of `TensorUnit`
  unsigned compute_capability = ~0U;               ///< times ten; determines the instructions of tensor cores
  bool warp_groups = true;                         ///< whether warp groups can multiply

  /// The limits of a target. Values that it does not state are those of devices of compute capability 7.0 and later;
  /// locals may take twice the registers of a thread, beyond which they hardly pay.
  [[nodiscard]] static GpuLimits of(const Target& target) noexcept;
};

namespace detail {

/// Share of their time in which threads are busy with equally long iterations.
[[nodiscard]] inline double busy_share(std::int64_t iterations, unsigned threads) {
  const auto t = static_cast<std::int64_t>(threads);
  return static_cast<double>(iterations) / static_cast<double>(t * program::ceil_div(iterations, t));
}

}  // namespace detail

/// Share of their time in which `threads` threads are busy with the last nest of the program (that of its output), if
/// all iterations of the parallel loop take equally long: n / (threads * ceil(n / threads)).
[[nodiscard]] double thread_utilisation(const LoopNest& nest, unsigned threads);

/// The first limit that a nest exceeds on a GPU, as text; empty if none. Takes a nest as lowered or in device form.
/// Cost: one walk over the nest.
[[nodiscard]] std::string_view exceeded_limit(const LoopNest& nest, const GpuLimits& limits);

/// The first limit that a nest exceeds, as text; empty if none. Uses `limits` on a CPU and those of the target on a
/// GPU.
[[nodiscard]] std::string_view exceeded_limit(const LoopNest& nest, const Target& target, const CpuLimits& limits = {});

}  // namespace tunewright::loops

#if TUNEWRIGHT_DEFINES(loops)

#include "tunewright/loops/written_statements.hpp"

namespace tunewright::loops {

TUNEWRIGHT_INLINE GpuLimits GpuLimits::of(const Target& target) noexcept {
  GpuLimits limits;
  const auto take = [](std::int64_t& limit, std::uint64_t told) {
    if (told != 0) limit = static_cast<std::int64_t>(told);
  };
  take(limits.max_shared_bytes, target.shared_memory_limit_bytes());
  take(limits.max_threads, target.max_threads_per_block);
  take(limits.max_virtual_threads, target.max_vthread_extent);
  take(limits.max_local_bytes, std::uint64_t{2} * 4 * target.max_registers_per_thread);
  limits.asynchronous_copies = target.copies_asynchronously();
  limits.tensor_units = target.tensor_units;
  limits.compute_capability = target.compute_capability();
  limits.warp_groups = target.multiplies_by_warp_groups();
  return limits;
}

namespace detail {

/// Checks a CPU program whose parts are passed in program order.
class CpuLimitCheck {
 public:
  /// The context of a part.
  struct Around {
    std::int64_t copies = 1;  ///< copies of a statement because of unrolling and vector splitting
    bool in_loop = false;
    bool in_parallel = false;
  };

  CpuLimitCheck(const Target& target, const CpuLimits& limits) : limits_(limits), lanes_(target.vector_bytes() / 4) {}

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
    if (kind == LoopKind::Unrolled) around.copies *= extent;
    if (kind == LoopKind::Vectorized) {
      around.copies *= program::ceil_div(extent, lanes_);
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
      const auto place = static_cast<std::size_t>(kind) - static_cast<std::size_t>(LoopKind::ThreadX);
      kernel_.block[place] = std::max(kernel_.block[place], extent);
      around.reduces_by_threads = around.reduces_by_threads || is_reduction;
      kernel_.combines_beyond_x = kernel_.combines_beyond_x || (is_reduction && place > 0);
    } else if (schedule::is_hardware_index(kind)) {
      const auto place = static_cast<std::size_t>(kind) - static_cast<std::size_t>(LoopKind::BlockX);
      kernel_.grid[place] = std::max(kernel_.grid[place], extent);
    } else if (kind == LoopKind::VirtualThread) {
      around.virtual_threads *= extent;
      around.copies *= extent;
      if (around.virtual_threads > limits_.max_virtual_threads) exceeded_ = "too many virtual threads";
    } else if (kind == LoopKind::Unrolled) {
      around.copies *= extent;
    } else if (kind == LoopKind::Vectorized) {
      around.copies *= program::ceil_div(extent, 4);
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

/// Passes a nest to `CpuLimitCheck`.
class CpuNestLimits {
 public:
  CpuNestLimits(const LoopNest& nest, const Target& target, const CpuLimits& limits)
      : nest_(nest), check_(target, limits) {}

  std::string_view run() {
    visit(nest_.body, {});
    return check_.exceeded();
  }

 private:
  void visit(const Body& body, const CpuLimitCheck::Around& around) {
    for (const Node& node : body) {
      if (const auto* loop = std::get_if<Loop>(&node.content)) {
        visit(*loop, around);
      } else if (const auto* branch = std::get_if<Branch>(&node.content)) {
        visit(branch->then, around);
        visit(branch->otherwise, around);
      } else if (const auto* allocate = std::get_if<Allocate>(&node.content)) {
        check_.allocate(nest_.buffers[allocate->buffer].bytes(), around);
      } else if (std::holds_alternative<Statement>(node.content)) {
        check_.statement(around);
      }
    }
  }
  void visit(const Loop& loop, const CpuLimitCheck::Around& around) {
    if (loop.intrinsic != nullptr) return check_.statement(around);
    const bool is_innermost = std::all_of(loop.body.begin(), loop.body.end(), [](const Node& node) {
      return std::holds_alternative<Statement>(node.content);
    });
    visit(loop.body, check_.enter(nest_.variables[loop.var].extent, loop.kind, is_innermost, around));
  }

  const LoopNest& nest_;
  CpuLimitCheck check_;
};

/// Passes a nest to `GpuLimitCheck`: one walk over each kernel, plus those of `written_statements`.
class GpuNestLimits {
 public:
  GpuNestLimits(const LoopNest& nest, const GpuLimits& limits) : nest_(nest), check_(limits) {}

  std::string_view run() {
    for (const Node& node : nest_.body) {
      std::string_view exceeded;
      if (const auto* allocate = std::get_if<Allocate>(&node.content)) {
        exceeded = check_.workspace(nest_.buffers[allocate->buffer].bytes());
      } else {
        check_.start_kernel();
        visit(node, {});
        exceeded = check_.end_kernel([&] { return written_statements(nest_, node); });
      }
      if (!exceeded.empty()) return exceeded;
    }
    return check_.exceeded();
  }

 private:
  void visit(const Body& body, const GpuLimitCheck::Around& around) {
    for (const Node& node : body) visit(node, around);
  }
  void visit(const Node& node, const GpuLimitCheck::Around& around) {
    if (const auto* loop = std::get_if<Loop>(&node.content)) {
      visit(loop->body,
            check_.enter(nest_.variables[loop->var].extent, loop->kind, loop->reduction, loop->intrinsic, around));
    } else if (const auto* branch = std::get_if<Branch>(&node.content)) {
      visit(branch->then, around);
      visit(branch->otherwise, around);
    } else if (const auto* allocate = std::get_if<Allocate>(&node.content)) {
      const Buffer& buffer = nest_.buffers[allocate->buffer];
      check_.allocate(buffer.scope, buffer.asynchronous, buffer.bytes(), around);
    } else if (const auto* statement = std::get_if<Statement>(&node.content)) {
      check_.statement(statement->kind, statement->target, element_bytes(statement->target), around);
    } else if (const auto* reduction = std::get_if<CrossThreadReduction>(&node.content)) {
      check_.reduction(*reduction, element_bytes(reduction->partial));
    }
  }
  [[nodiscard]] std::int64_t element_bytes(BufferId id) const {
    return static_cast<std::int64_t>(program::size_in_bytes(nest_.buffers[id].type));
  }

  const LoopNest& nest_;
  GpuLimitCheck check_;
};

/// Iterations of the first parallel loop; 1 if there is none.
TUNEWRIGHT_INLINE std::int64_t parallel_extent(const LoopNest& nest, const Body& body) {
  for (const Node& node : body) {
    if (const auto* loop = std::get_if<Loop>(&node.content)) {
      if (loop->kind == LoopKind::Parallel) return nest.variables[loop->var].extent;
      if (const std::int64_t inner = parallel_extent(nest, loop->body); inner > 1) return inner;
    } else if (const auto* branch = std::get_if<Branch>(&node.content)) {
      if (const std::int64_t inner = parallel_extent(nest, branch->then); inner > 1) return inner;
    }
  }
  return 1;
}

}  // namespace detail

TUNEWRIGHT_INLINE double thread_utilisation(const LoopNest& nest, unsigned threads) {
  if (nest.body.empty() || threads <= 1) return 1;
  const auto* last = std::get_if<Loop>(&nest.body.back().content);
  if (last == nullptr) return 1.0 / threads;
  const std::int64_t n =
      last->kind == LoopKind::Parallel ? nest.variables[last->var].extent : detail::parallel_extent(nest, last->body);
  return detail::busy_share(n, threads);
}

TUNEWRIGHT_INLINE std::string_view exceeded_limit(const LoopNest& nest, const GpuLimits& limits) {
  return detail::GpuNestLimits(nest, limits).run();
}

TUNEWRIGHT_INLINE std::string_view exceeded_limit(const LoopNest& nest, const Target& target, const CpuLimits& limits) {
  if (target.kind == DeviceKind::Gpu) return exceeded_limit(nest, GpuLimits::of(target));
  return detail::CpuNestLimits(nest, target, limits).run();
}

}  // namespace tunewright::loops

#endif
