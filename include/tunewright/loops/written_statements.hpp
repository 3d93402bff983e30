// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/loops/nest.hpp"
#include "tunewright/loops/thread_arrays.hpp"

/// The code size of a GPU kernel.
namespace tunewright::loops {

/// Number of statements after unrolling all loops; `limit + 1` if it exceeds `limit`. A tensor instruction counts as
/// one. Throws `std::invalid_argument` for undeclared loops.
[[nodiscard]] std::int64_t statements_of(const LoopNest& nest, std::span<const Node> body, std::int64_t limit);
[[nodiscard]] std::int64_t statements_of(const LoopNest& nest, const Loop& loop, std::int64_t limit);

namespace detail {

/// Adds up statements inside unrolled loops.
class WrittenCopies {
 public:
  void open(std::int64_t extent, LoopKind kind) {
    const std::int64_t iterations = std::min(many, extent);
    around_.push_back({kind == LoopKind::Vectorized ? program::ceil_div(iterations, 4) : iterations,
                       kind == LoopKind::VirtualThread});
  }
  void close() { around_.pop_back(); }
  /// Virtual threads fetch together: filling shared memory is not repeated for each.
  void add(bool fetches) {
    std::int64_t copies = 1;
    for (const Around& loop : around_)
      if (!(loop.virtual_threads && fetches)) copies = std::min(many, copies * loop.copies);
    total_ = std::min(many, total_ + copies);
  }
  [[nodiscard]] std::int64_t total() const noexcept { return total_; }

 private:
  static constexpr std::int64_t many = std::int64_t{1} << 20;  ///< larger numbers are not distinguished

  struct Around {
    std::int64_t copies = 1;
    bool virtual_threads = false;
  };
  std::vector<Around> around_;  ///< outermost first
  std::int64_t total_ = 0;
};

/// Whether loops of this kind are always unrolled.
[[nodiscard]] constexpr bool is_always_written(LoopKind kind) noexcept {
  return kind == LoopKind::VirtualThread || kind == LoopKind::Unrolled || kind == LoopKind::Vectorized;
}

}  // namespace detail

/// Number of statements of a kernel, a top-level node of `nest`, after unrolling as for GPUs: loops that are marked for
/// it, virtual threads, loops that select elements of thread-private arrays, which are in registers only then, and
/// loops with no more statements than their unroll limit. Vectors have four elements; a tensor instruction is one
/// statement. Does not include terms of sums that `codegen::cuda` unrolls irrespective of their limit. Takes a nest as
/// lowered or in device form. Cost: one walk over the kernel, and at most two over each loop in it, i.e. two for each
/// level of nesting.
[[nodiscard]] std::int64_t written_statements(const LoopNest& nest, const Node& kernel);

}  // namespace tunewright::loops

#if TUNEWRIGHT_DEFINES(loops)

namespace tunewright::loops {

TUNEWRIGHT_INLINE std::int64_t statements_of(const LoopNest& nest, const Loop& loop, std::int64_t limit) {
  if (loop.intrinsic != nullptr) return 1;
  const std::int64_t inside = statements_of(nest, loop.body, limit);
  const std::int64_t extent = checked_extent(nest, loop);
  return inside > limit / extent ? limit + 1 : inside * extent;
}

TUNEWRIGHT_INLINE std::int64_t statements_of(const LoopNest& nest, std::span<const Node> body, std::int64_t limit) {
  std::int64_t count = 0;
  for (const Node& node : body) {
    if (const auto* loop = std::get_if<Loop>(&node.content)) count += statements_of(nest, *loop, limit);
    if (const auto* branch = std::get_if<Branch>(&node.content))
      count += std::max(statements_of(nest, branch->then, limit), statements_of(nest, branch->otherwise, limit));
    if (std::holds_alternative<Statement>(node.content) || std::holds_alternative<CrossThreadReduction>(node.content))
      ++count;
  }
  return std::min(count, limit + 1);
}

}  // namespace tunewright::loops

namespace tunewright::loops::detail {

class WrittenStatements {
 public:
  explicit WrittenStatements(const LoopNest& nest) : nest_(nest), arrays_(nest, ThreadArrays::Fragments::Excluded) {}

  std::int64_t run(const Node& kernel) {
    visit(kernel, 0);
    return copies_.total();
  }

 private:
  void visit(std::span<const Node> body, std::int64_t limit) {
    for (const Node& node : body) visit(node, limit);
  }
  void visit(const Node& node, std::int64_t limit) {
    if (const auto* loop = std::get_if<Loop>(&node.content)) {
      visit(*loop, std::max(limit, loop->unroll_limit));
    } else if (const auto* branch = std::get_if<Branch>(&node.content)) {
      visit(branch->then, limit);
      visit(branch->otherwise, limit);
    } else if (const auto* statement = std::get_if<Statement>(&node.content)) {
      copies_.add(nest_.buffers[statement->target].scope == Scope::Shared);
    } else if (std::holds_alternative<CrossThreadReduction>(node.content)) {
      copies_.add(false);
    }
  }
  void visit(const Loop& loop, std::int64_t limit) {
    if (loop.intrinsic != nullptr) return copies_.add(false);
    const bool written = !schedule::is_hardware_index(loop.kind) &&
                         (is_always_written(loop.kind) || (limit > 0 && statements_of(nest_, loop, limit) <= limit) ||
                          arrays_.selected_by(loop.var, loop.body));
    if (written) copies_.open(nest_.variables[loop.var].extent, loop.kind);
    visit(loop.body, limit);
    if (written) copies_.close();
  }

  const LoopNest& nest_;
  ThreadArrays arrays_;
  WrittenCopies copies_;
};

}  // namespace tunewright::loops::detail

namespace tunewright::loops {

TUNEWRIGHT_INLINE std::int64_t written_statements(const LoopNest& nest, const Node& kernel) {
  return detail::WrittenStatements(nest).run(kernel);
}

}  // namespace tunewright::loops

#endif
