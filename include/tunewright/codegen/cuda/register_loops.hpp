// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <variant>

#include "tunewright/codegen/cuda/loop_visit.hpp"
#include "tunewright/loops/nest.hpp"
#include "tunewright/loops/thread_arrays.hpp"
#include "tunewright/loops/written_statements.hpp"

/// Unrolling for registers: thread-private arrays are in registers only if every index is constant after unrolling.
namespace tunewright::codegen::cuda {

/// Number of statements after unrolling the loops that are marked for it; `limit + 1` if it exceeds `limit`. Other
/// loops stay loops.
[[nodiscard]] inline std::int64_t unrolled_statements(const loops::LoopNest& nest, std::span<const loops::Node> body,
                                                      std::int64_t limit) {
  std::int64_t count = 0;
  for (const loops::Node& node : body) {
    if (const auto* loop = std::get_if<loops::Loop>(&node.content)) {
      if (loop->intrinsic != nullptr) {  // one instruction
        ++count;
        continue;
      }
      const std::int64_t inside = unrolled_statements(nest, loop->body, limit);
      const bool unrolled = loop->kind == loops::LoopKind::Unrolled || loop->kind == loops::LoopKind::Vectorized;
      const std::int64_t copies = unrolled ? loops::checked_extent(nest, *loop) : 1;
      count += inside > limit / copies ? limit + 1 : inside * copies;
    } else if (const auto* branch = std::get_if<loops::Branch>(&node.content)) {
      count += unrolled_statements(nest, branch->then, limit) + unrolled_statements(nest, branch->otherwise, limit);
    } else if (!std::holds_alternative<loops::Allocate>(node.content)) {
      ++count;
    }
    if (count > limit) return limit + 1;
  }
  return count;
}

namespace detail {

/// Whether nodes are only updates of registers and unrolled loops around them.
template <class IsPrivate>
[[nodiscard]] bool only_sums(std::span<const loops::Node> body, const IsPrivate& is_private) {
  return std::all_of(body.begin(), body.end(), [&](const loops::Node& node) {
    if (const auto* loop = std::get_if<loops::Loop>(&node.content))
      return loop->intrinsic == nullptr && loop->kind == loops::LoopKind::Unrolled && only_sums(loop->body, is_private);
    const auto* statement = std::get_if<loops::Statement>(&node.content);
    return statement != nullptr && statement->kind == loops::Statement::Kind::Update && is_private(statement->target);
  });
}

/// Whether nodes only copy to shared memory.
[[nodiscard]] inline bool only_fetches(const loops::LoopNest& nest, std::span<const loops::Node> body) {
  return std::all_of(body.begin(), body.end(), [&](const loops::Node& node) {
    if (const auto* loop = std::get_if<loops::Loop>(&node.content)) return only_fetches(nest, loop->body);
    if (const auto* branch = std::get_if<loops::Branch>(&node.content))
      return only_fetches(nest, branch->then) && only_fetches(nest, branch->otherwise);
    const auto* statement = std::get_if<loops::Statement>(&node.content);
    return statement != nullptr && statement->kind == loops::Statement::Kind::Assign &&
           nest.buffers[statement->target].scope == loops::Scope::Shared;
  });
}

class RegisterLoops {
 public:
  RegisterLoops(loops::LoopNest& nest, std::int64_t limit)
      : nest_(nest), limit_(limit), arrays_(nest, loops::ThreadArrays::Fragments::Included) {}

  void run(loops::Body& body) {
    for_each_loop(body, [this](loops::Node&, loops::Loop& loop) {
      if (loop.kind == loops::LoopKind::Serial && is_small(loop) && arrays_.selected_by(loop.var, loop.body))
        loop.kind = loops::LoopKind::Unrolled;
    });
  }

 private:
  [[nodiscard]] bool is_small(const loops::Loop& loop) const {
    const std::int64_t inside = unrolled_statements(nest_, loop.body, limit_);
    return inside <= limit_ / loops::checked_extent(nest_, loop);
  }

  loops::LoopNest& nest_;
  std::int64_t limit_;
  loops::ThreadArrays arrays_;
};

}  // namespace detail

/// Number of iterations of a serial loop over terms of sums in registers that are unrolled here; 1: the compiler
/// decides. After unrolling, operands of the next terms are loaded while products of the current ones are added, and
/// elements that are contiguous in shared memory are loaded as vectors, which compilers miss when they unroll loops
/// themselves. The whole loop if that gives at most a thousand statements, otherwise the largest divisor that does.
/// `copies`: copies of the loop because of unrolled outer loops. `is_private(buffer)`: the buffer is thread-private.
template <class IsPrivate>
[[nodiscard]] std::int64_t terms_together(const loops::LoopNest& nest, const loops::Loop& loop, std::int64_t copies,
                                          const IsPrivate& is_private) {
  constexpr std::int64_t most = 1024, most_of_all_copies = 2048;
  if (!loop.reduction || loop.intrinsic != nullptr || !detail::only_sums(loop.body, is_private)) return 1;
  const std::int64_t extent = loops::checked_extent(nest, loop);
  const std::int64_t inside = unrolled_statements(nest, loop.body, most);
  if (inside == 0) return 1;
  std::int64_t together = std::min({extent, most / inside, most_of_all_copies / copies / inside});
  while (together > 1 && extent % together != 0) --together;
  return std::max<std::int64_t>(together, 1);
}

/// Whether to unroll a serial loop that copies to shared memory: all loads are then issued before the first wait, and
/// their addresses differ by constants.
[[nodiscard]] inline bool is_short_fetch(const loops::LoopNest& nest, const loops::Loop& loop) {
  constexpr std::int64_t most = 32;  // elements per thread
  return loop.kind == loops::LoopKind::Serial && detail::only_fetches(nest, loop.body) &&
         loops::statements_of(nest, loop, most) <= most;
}

/// Unrolls the serial loops of a nest in device form whose variables index thread-private arrays or fragments of a
/// warp, if that gives at most `limit` statements.
[[nodiscard]] inline loops::LoopNest unroll_register_loops(loops::LoopNest nest, std::int64_t limit) {
  detail::RegisterLoops(nest, limit).run(nest.body);
  return nest;
}

}  // namespace tunewright::codegen::cuda
