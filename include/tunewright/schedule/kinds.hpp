// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tunewright::schedule {

/// How the iterations of a loop run.
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

/// A thread index of a GPU block.
[[nodiscard]] constexpr bool is_thread_index(LoopKind kind) noexcept {
  return kind >= LoopKind::ThreadX && kind <= LoopKind::ThreadZ;
}
/// A block or thread index of a GPU: what a kernel launch has one extent for.
[[nodiscard]] constexpr bool is_hardware_index(LoopKind kind) noexcept {
  return kind >= LoopKind::BlockX && kind <= LoopKind::ThreadZ;
}

/// Memory a buffer lives in. `Local` is private to a thread: registers where the code generator can prove it,
/// else stack.
enum class Scope : std::uint8_t { Global, Shared, Local, FragmentA, FragmentB, Accumulator };

inline constexpr std::array<std::string_view, 6> scope_names{"global",     "shared",     "local",
                                                             "fragment_a", "fragment_b", "accumulator"};

[[nodiscard]] constexpr std::string_view name(Scope scope) noexcept {
  return scope_names[static_cast<std::size_t>(scope)];
}

}  // namespace tunewright::schedule
