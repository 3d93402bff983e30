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

/// Which tensor instruction of a GPU works on which fragments, and how many threads hold them together.
namespace tunewright::loops {

/// How many times as long as without bank conflicts a warp takes to load a fragment whose rows begin `row_bytes` apart
/// in shared memory. Banks are 128 bytes around; `ldmatrix` reads 16 bytes of eight rows at once (PTX ISA, ldmatrix),
/// so that rows in multiples of 128 bytes all wait for each other and odd multiples of 16 never do: max(1,
/// gcd(row_bytes, 128) / 16).
[[nodiscard]] constexpr std::int64_t conflicts_of_fragment_rows(std::int64_t row_bytes) noexcept {
  return std::max<std::int64_t>(1, std::gcd(row_bytes, std::int64_t{128}) / 16);
}

/// The tensor instructions of a kernel, and the buffers that statements in their loops store to: the accumulators whose
/// fragments they multiply into and, once a nest is in device form, what fragments are taken out to.
class FragmentInstructions {
 public:
  FragmentInstructions() = default;
  /// Takes a kernel's nodes, as lowered or in device form. Cost: one walk over them.
  explicit FragmentInstructions(std::span<const Node> kernel) { add(kernel, nullptr); }

  /// Notes that a loop of `instruction` stores to `target`.
  void add(const schedule::TensorIntrinsic& instruction, BufferId target);

  /// The one that stores to `target`, as it does to the accumulator it computes; null if there is none.
  [[nodiscard]] const schedule::TensorIntrinsic* storing_to(BufferId target) const noexcept;

  /// Whether warp groups run them, or some of them.
  [[nodiscard]] bool by_warp_groups() const noexcept {
    return std::any_of(stores_.begin(), stores_.end(), by_warp_group);
  }
  /// Whether warps run some and warp groups others. No kernel may: its ThreadX numbers the threads of the one or the
  /// other.
  [[nodiscard]] bool mix_warps_and_groups() const noexcept {
    return by_warp_groups() && !std::all_of(stores_.begin(), stores_.end(), by_warp_group);
  }

  /// Threads that hold each fragment together: of a warp, also where there are no instructions, or of a warp group.
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
