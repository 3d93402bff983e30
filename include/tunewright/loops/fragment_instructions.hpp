// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <variant>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/loops/nest.hpp"

/// The tensor instructions that operate on fragments of a GPU, and the number of threads that hold a fragment together.
namespace tunewright::loops {

/// The factor by which bank conflicts slow down a warp's load of a fragment whose rows begin `row_bytes` apart in
/// shared memory. The banks cover 128 bytes; `ldmatrix` reads 16 bytes of eight rows at once (PTX ISA, ldmatrix), so
/// rows at multiples of 128 bytes all conflict, and rows at odd multiples of 16 never do: max(1, gcd(row_bytes, 128) /
/// 16).
[[nodiscard]] constexpr std::int64_t conflicts_of_fragment_rows(std::int64_t row_bytes) noexcept {
  return std::max<std::int64_t>(1, std::gcd(row_bytes, std::int64_t{128}) / 16);
}

/// The tensor instructions of a kernel, and the buffers to which statements in their loops store: the accumulators and,
/// in device form, the destinations of fragments.
class FragmentInstructions {
 public:
  FragmentInstructions() = default;
  /// Collects the instructions of a kernel, lowered or in device form. Cost: one walk over its nodes.
  explicit FragmentInstructions(std::span<const Node> kernel) { add(kernel, nullptr); }

  /// Records that a loop of `instruction` stores to `target`.
  void add(const schedule::TensorIntrinsic& instruction, BufferId target);

  /// The instruction whose loops store to `target`, e.g. the accumulator that it computes; null if there is none.
  [[nodiscard]] const schedule::TensorIntrinsic* storing_to(BufferId target) const noexcept;

  /// Whether warp groups execute at least one of them.
  [[nodiscard]] bool by_warp_groups() const noexcept {
    return std::any_of(stores_.begin(), stores_.end(), by_warp_group);
  }
  /// Whether warps execute some and warp groups others. Kernels must not mix them, because ThreadX numbers the threads
  /// of either a warp or a group.
  [[nodiscard]] bool mix_warps_and_groups() const noexcept {
    return by_warp_groups() && !std::all_of(stores_.begin(), stores_.end(), by_warp_group);
  }

  /// Number of threads that hold each fragment together: those of a warp (also without instructions), or of a warp
  /// group.
  [[nodiscard]] std::int64_t threads_together() const noexcept;

 private:
  struct Store {
    BufferId target = 0;
    const schedule::TensorIntrinsic* instruction = nullptr;
  };

  [[nodiscard]] static bool by_warp_group(const Store& s) noexcept { return s.instruction->by_warp_group(); }

  void add(std::span<const Node> body, const schedule::TensorIntrinsic* around);

  std::vector<Store> stores_;  // few
};

}  // namespace tunewright::loops

#if TUNEWRIGHT_DEFINES(loops)

namespace tunewright::loops {

TUNEWRIGHT_INLINE void FragmentInstructions::add(const schedule::TensorIntrinsic& instruction, BufferId target) {
  const auto known = std::find_if(stores_.begin(), stores_.end(),
                                  [&](const Store& s) { return s.target == target && s.instruction == &instruction; });
  if (known == stores_.end()) stores_.push_back({target, &instruction});
}

TUNEWRIGHT_INLINE const schedule::TensorIntrinsic* FragmentInstructions::storing_to(BufferId target) const noexcept {
  const auto found = std::find_if(stores_.begin(), stores_.end(), [&](const Store& s) { return s.target == target; });
  return found == stores_.end() ? nullptr : found->instruction;
}

TUNEWRIGHT_INLINE std::int64_t FragmentInstructions::threads_together() const noexcept {
  std::int64_t threads = schedule::TensorIntrinsic{}.threads;
  for (const Store& s : stores_) threads = std::max(threads, s.instruction->threads);
  return threads;
}

TUNEWRIGHT_INLINE void FragmentInstructions::add(std::span<const Node> body, const schedule::TensorIntrinsic* around) {
  for (const Node& node : body) {
    if (const auto* loop = std::get_if<Loop>(&node.content)) {
      add(loop->body, loop->intrinsic != nullptr ? loop->intrinsic : around);
    } else if (const auto* branch = std::get_if<Branch>(&node.content)) {
      add(branch->then, around);
      add(branch->otherwise, around);
    } else if (const auto* statement = std::get_if<Statement>(&node.content)) {
      if (around != nullptr) add(*around, statement->target);
    }
  }
}

}  // namespace tunewright::loops

#endif
