// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tunewright/drafts/symbol_analyzer/nest_reader.hpp"

namespace tunewright::drafts {

/// For each loop, the axes that contain its variable as a plain term, and the step of an axis per iteration. Most loops
/// move one axis.
class LoopMoves {
 public:
  struct Move {
    std::int64_t step = 0;
    std::uint32_t axis = none;
    std::uint32_t next = none;  ///< next move of the same loop, in `more_`
  };

  /// Removes all moves of the `loops` outermost loops.
  void clear(std::size_t loops) {
    for (std::size_t depth = 0; depth < loops; ++depth) first_[depth].axis = none;
    more_.clear();
  }
  void add(std::size_t depth, std::uint32_t axis, std::int64_t step) {
    Move& first = first_[depth];
    std::uint32_t next = none;
    if (first.axis != none) {
      next = static_cast<std::uint32_t>(more_.size());
      more_.push_back(first);
    }
    first = {step, axis, next};
  }

  /// Calls `f(move)` for each axis that the loop at `depth` moves.
  template <class F>
  void for_each(std::size_t depth, const F& f) const {
    const Move& first = first_[depth];
    if (first.axis == none) return;
    f(first);
    for (std::uint32_t m = first.next; m != none; m = more_[m].next) f(more_[m]);
  }
  /// Step of an axis per iteration of the loop at `depth`.
  [[nodiscard]] std::int64_t step(std::size_t depth, std::uint32_t axis) const {
    std::int64_t moved = 0;
    for_each(depth, [&](const Move& move) {
      if (move.axis == axis) moved += move.step;
    });
    return moved;
  }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  std::array<Move, NestReader::max_depth> first_;  // by depth; the last one added
  std::vector<Move> more_;
};

}  // namespace tunewright::drafts
