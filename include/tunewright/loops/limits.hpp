// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>

#include "tunewright/core/target.hpp"
#include "tunewright/loops/nest.hpp"

/// Static limits: what can be told of a loop nest without compiling it.
namespace tunewright::loops {

/// Limits of a CPU candidate. They keep compile times and stacks bounded; what merely runs slowly is left to
/// the search.
struct CpuLimits {
  std::int64_t max_local_bytes = 2 << 20;  ///< of all buffers a thread allocates inside its loops
  std::int64_t max_workspace_bytes = 1LL << 30;
  std::int64_t max_unrolled_statements =
      2048;  ///< copies of one statement made by unrolling and vector splitting
  std::int64_t max_vector_extent = 1024;
};

namespace detail {

class LimitCheck {
 public:
  LimitCheck(const LoopNest& nest, const Target& target, const CpuLimits& limits)
      : nest_(nest), limits_(limits), lanes_(target.vector_bytes() / 4) {}

  std::string_view run() {
    check(nest_.body, 1, false, false);
    return exceeded_;
  }

 private:
  void check(const Body& body, std::int64_t copies, bool in_loop, bool in_parallel) {
    for (const Node& node : body) {
      if (const auto* loop = std::get_if<Loop>(&node.content)) {
        check_loop(*loop, copies, in_parallel);
      } else if (const auto* branch = std::get_if<Branch>(&node.content)) {
        check(branch->then, copies, in_loop, in_parallel);
        check(branch->otherwise, copies, in_loop, in_parallel);
      } else if (const auto* allocate = std::get_if<Allocate>(&node.content)) {
        const std::int64_t bytes = nest_.buffers[allocate->buffer].bytes();
        if (in_loop && (local_bytes_ += bytes) > limits_.max_local_bytes)
          exceeded_ = "local buffers too large";
        if (!in_loop && bytes > limits_.max_workspace_bytes) exceeded_ = "workspace too large";
      } else if (std::holds_alternative<Statement>(node.content)) {
        if (copies > limits_.max_unrolled_statements) exceeded_ = "too much unrolling";
      }
    }
  }

  void check_loop(const Loop& loop, std::int64_t copies, bool in_parallel) {
    const std::int64_t extent = nest_.variables[loop.var].extent;
    if (loop.kind == LoopKind::Unrolled) copies *= extent;
    if (loop.kind == LoopKind::Vectorized) {
      copies *= program::ceil_div(extent, lanes_);
      if (extent > limits_.max_vector_extent) exceeded_ = "vectorized loop too long";
      for (const Node& node : loop.body) {
        if (!std::holds_alternative<Statement>(node.content)) exceeded_ = "vectorized loop is not innermost";
      }
    }
    if (loop.kind == LoopKind::Parallel && in_parallel) exceeded_ = "parallel loop inside a parallel loop";
    check(loop.body, copies, true, in_parallel || loop.kind == LoopKind::Parallel);
  }

  const LoopNest& nest_;
  const CpuLimits& limits_;
  std::int64_t lanes_;
  std::int64_t local_bytes_ = 0;
  std::string_view exceeded_;
};

}  // namespace detail

namespace detail {
/// Iterations of the first parallel loop found; 1 where there is none.
inline std::int64_t parallel_extent(const LoopNest& nest, const Body& body) {
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

/// Share of their time that `threads` threads work on the last nest of the program (its output), when
/// iterations of the parallel loop take equally long: n / (threads * ceil(n / threads)).
[[nodiscard]] inline double thread_utilisation(const LoopNest& nest, unsigned threads) {
  if (nest.body.empty() || threads <= 1) return 1;
  const auto* last = std::get_if<Loop>(&nest.body.back().content);
  if (last == nullptr) return 1.0 / threads;
  const std::int64_t n = last->kind == LoopKind::Parallel ? nest.variables[last->var].extent
                                                          : detail::parallel_extent(nest, last->body);
  const auto t = static_cast<std::int64_t>(threads);
  return static_cast<double>(n) / static_cast<double>(t * program::ceil_div(n, t));
}

/// The first limit the nest exceeds, in words, or an empty string.
[[nodiscard]] inline std::string_view exceeded_limit(const LoopNest& nest, const Target& target,
                                                     const CpuLimits& limits = {}) {
  return detail::LimitCheck(nest, target, limits).run();
}

}  // namespace tunewright::loops
