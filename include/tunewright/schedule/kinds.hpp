// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tunewright::schedule {

/// How the iterations of a loop are executed.
enum class LoopKind : std::uint8_t {
  Serial,
  Parallel,
  Vectorized,
  Unrolled,
  BlockX,
  BlockY,
  BlockZ,
  ThreadX,
  ThreadY,
  ThreadZ,
  VirtualThread,
};

inline constexpr std::array<std::string_view, 11> loop_kind_names{"serial",   "parallel", "vectorized", "unrolled",
                                                                  "block_x",  "block_y",  "block_z",    "thread_x",
                                                                  "thread_y", "thread_z", "vthread"};

[[nodiscard]] constexpr std::string_view name(LoopKind kind) noexcept {
  return loop_kind_names[static_cast<std::size_t>(kind)];
}

/// A block index of a GPU grid.
[[nodiscard]] constexpr bool is_block_index(LoopKind kind) noexcept {
  return kind >= LoopKind::BlockX && kind <= LoopKind::BlockZ;
}
/// A thread index of a GPU block.
[[nodiscard]] constexpr bool is_thread_index(LoopKind kind) noexcept {
  return kind >= LoopKind::ThreadX && kind <= LoopKind::ThreadZ;
}
/// Whether the loop is a block or thread index of a GPU, which has an extent in a kernel launch.
[[nodiscard]] constexpr bool is_hardware_index(LoopKind kind) noexcept {
  return is_block_index(kind) || is_thread_index(kind);
}
/// The dimension of a block or thread index: 0 for x, 1 for y, 2 for z.
[[nodiscard]] constexpr std::size_t dimension_of_index(LoopKind kind) noexcept {
  return static_cast<std::size_t>(kind) -
         static_cast<std::size_t>(is_block_index(kind) ? LoopKind::BlockX : LoopKind::ThreadX);
}

/// The memory of a buffer. `Local` is private to a thread: registers if the code generator can prove that they suffice,
/// otherwise the stack.
enum class Scope : std::uint8_t { Global, Shared, Local, FragmentA, FragmentB, Accumulator };

inline constexpr std::array<std::string_view, 6> scope_names{"global",     "shared",     "local",
                                                             "fragment_a", "fragment_b", "accumulator"};

[[nodiscard]] constexpr std::string_view name(Scope scope) noexcept {
  return scope_names[static_cast<std::size_t>(scope)];
}

}  // namespace tunewright::schedule
