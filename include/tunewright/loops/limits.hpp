// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <variant>

#include "tunewright/core/target.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/loops/nest.hpp"
#include "tunewright/loops/target_limits.hpp"

/// Static limits of loop nests, checked without compiling them.
namespace tunewright::loops {

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

/// A limit that a nest exceeds, as text; empty if none. Uses `limits` on a CPU and those of the target on a
/// GPU.
[[nodiscard]] std::string_view exceeded_limit(const LoopNest& nest, const Target& target, const CpuLimits& limits = {});

}  // namespace tunewright::loops

#if TUNEWRIGHT_DEFINES(loops)

#include "tunewright/loops/limit_checks.hpp"
#include "tunewright/loops/written_statements.hpp"

namespace tunewright::loops {

namespace detail {

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
