// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/loops/fragment_instructions.hpp"

/// The kernels of a nest in device form, for code generation, limits and execution.
namespace tunewright::loops {

/// One kernel launch. Points into the nest.
struct DeviceKernel {
  std::array<std::int64_t, 3> grid{1, 1, 1};   ///< blocks along x, y, z
  std::array<std::int64_t, 3> block{1, 1, 1};  ///< threads per block along x, y, z
  std::array<std::optional<Var>, 3> block_index{};
  std::array<std::optional<Var>, 3> thread_index{};
  std::vector<const Loop*> bound;  ///< the loops over blocks and threads, outermost first
  std::span<const Node> body;      ///< code of one thread
  std::vector<BufferId> shared;    ///< in order of allocation
  std::vector<BufferId> local;     ///< per thread, in order of allocation
  std::int64_t shared_bytes = 0;   ///< without those of reductions across threads
  std::int64_t local_bytes = 0;    ///< per thread
  /// Maximum shared bytes of reductions across threads: one element per thread, shared by all reductions, because they
  /// are sequential. 0 if they stay within warps.
  std::int64_t combination_bytes = 0;
  std::int64_t staging_bytes = 0;     ///< shared bytes for storing fragments, one fragment per warp
  FragmentInstructions instructions;  ///< of tensor cores

  [[nodiscard]] std::int64_t blocks() const noexcept { return grid[0] * grid[1] * grid[2]; }
  [[nodiscard]] std::int64_t threads() const noexcept { return block[0] * block[1] * block[2]; }
};

namespace device {

/// Number of threads that execute together; equal on all devices so far.
inline constexpr std::int64_t warp_size = 32;

/// Whether `reduction` combines groups of threads whose size is a power of two and that are within a warp.
[[nodiscard]] bool stays_in_warp(const DeviceKernel& kernel, const CrossThreadReduction& reduction) noexcept;

class KernelReader {
 public:
  KernelReader(const LoopNest& nest, DeviceKernel& kernel) : nest_(nest), kernel_(kernel) {}

  void read(const Node& root);

 private:
  [[noreturn]] void refuse(const Loop& loop, const std::string& what) const;

  void bind(const Loop& loop);

  /// Fragments are stored by assignments; from registers if the layout is known, otherwise through shared memory.
  void note_staging(const Loop& marked);

  void visit(std::span<const Node> body);

  const LoopNest& nest_;
  DeviceKernel& kernel_;
};

}  // namespace device

/// The kernels of a nest in device form, in execution order. Throws `DeviceFormError` for a nest in another form.
[[nodiscard]] std::vector<DeviceKernel> device_kernels(const LoopNest& nest);

}  // namespace tunewright::loops

#if TUNEWRIGHT_DEFINES(loops)

#include "tunewright/loops/device/pass.hpp"

namespace tunewright::loops::device {

TUNEWRIGHT_INLINE bool stays_in_warp(const DeviceKernel& kernel, const CrossThreadReduction& reduction) noexcept {
  const std::int64_t group = kernel.block[0];
  return reduction.over[0] && !reduction.over[1] && !reduction.over[2] && group <= warp_size &&
         (group & (group - 1)) == 0;
}

TUNEWRIGHT_INLINE void KernelReader::read(const Node& root) {
  kernel_.body = std::span<const Node>(&root, 1);
  while (kernel_.body.size() == 1) {
    const auto* loop = std::get_if<Loop>(&kernel_.body[0].content);
    if (loop == nullptr || !schedule::is_hardware_index(loop->kind)) break;
    bind(*loop);
    kernel_.body = loop->body;
  }
  visit(kernel_.body);
  kernel_.instructions = FragmentInstructions(kernel_.body);
}

TUNEWRIGHT_INLINE void KernelReader::refuse(const Loop& loop, const std::string& what) const {
  throw DeviceFormError(quoted(nest_, loop.var) + " of '" + nest_.name + "' is " + what +
                        "; bring the nest into device form with loops::to_device first");
}

TUNEWRIGHT_INLINE void KernelReader::bind(const Loop& loop) {
  const bool thread = schedule::is_thread_index(loop.kind);
  const std::size_t dimension = schedule::dimension_of_index(loop.kind);
  std::optional<Var>& index = (thread ? kernel_.thread_index : kernel_.block_index)[dimension];
  if (index) refuse(loop, "bound to " + std::string(name(loop.kind)) + " as is one around it");
  const bool is_inside = !thread && !kernel_.bound.empty() && schedule::is_thread_index(kernel_.bound.back()->kind);
  if (is_inside) refuse(loop, "over blocks inside of threads");
  index = loop.var;
  (thread ? kernel_.block : kernel_.grid)[dimension] = checked_extent(nest_, loop);
  kernel_.bound.push_back(&loop);
}

TUNEWRIGHT_INLINE void KernelReader::note_staging(const Loop& marked) {
  if (marked.intrinsic->layout_is_known) return;
  const Loop* loop = &marked;
  while (loop->body.size() == 1 && std::holds_alternative<Loop>(loop->body[0].content))
    loop = &std::get<Loop>(loop->body[0].content);
  const auto* statement = loop->body.empty() ? nullptr : std::get_if<Statement>(&loop->body[0].content);
  if (statement == nullptr || statement->kind != Statement::Kind::Assign) return;
  constexpr std::int64_t sum_bytes = 4;
  kernel_.staging_bytes = kernel_.threads() / warp_size * marked.intrinsic->m * marked.intrinsic->n * sum_bytes;
}

TUNEWRIGHT_INLINE void KernelReader::visit(std::span<const Node> body) {
  for (const Node& node : body) {
    if (const auto* loop = std::get_if<Loop>(&node.content)) {
      if (schedule::is_hardware_index(loop->kind) || loop->kind == LoopKind::VirtualThread ||
          loop->kind == LoopKind::Parallel) {
        refuse(*loop, std::string(name(loop->kind)) + " inside of other work");
      }
      static_cast<void>(checked_extent(nest_, *loop));
      if (loop->intrinsic != nullptr) note_staging(*loop);
      visit(loop->body);
    } else if (const auto* branch = std::get_if<Branch>(&node.content)) {
      visit(branch->then);
      visit(branch->otherwise);
    } else if (const auto* allocate = std::get_if<Allocate>(&node.content)) {
      const Buffer& buffer = nest_.buffers.at(allocate->buffer);
      const bool shared = buffer.scope == Scope::Shared;
      (shared ? kernel_.shared : kernel_.local).push_back(allocate->buffer);
      // ThreadX numbers the threads that together hold an accumulator.
      const bool together = buffer.scope == Scope::Accumulator;
      (shared ? kernel_.shared_bytes : kernel_.local_bytes) +=
          together ? buffer.bytes() / kernel_.block[0] : buffer.bytes();
    } else if (const auto* reduction = std::get_if<CrossThreadReduction>(&node.content)) {
      if (stays_in_warp(kernel_, *reduction)) continue;
      const auto element = static_cast<std::int64_t>(program::size_in_bytes(nest_.buffers.at(reduction->partial).type));
      kernel_.combination_bytes = std::max(kernel_.combination_bytes, kernel_.threads() * element);
    }
  }
}

}  // namespace tunewright::loops::device

namespace tunewright::loops {

TUNEWRIGHT_INLINE std::vector<DeviceKernel> device_kernels(const LoopNest& nest) {
  std::vector<DeviceKernel> kernels;
  for (const Node& node : nest.body) {
    if (std::holds_alternative<Allocate>(node.content)) continue;  // workspace
    device::KernelReader(nest, kernels.emplace_back()).read(node);
  }
  return kernels;
}

}  // namespace tunewright::loops

#endif
