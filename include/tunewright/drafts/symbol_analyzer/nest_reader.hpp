// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/loops/nest.hpp"
#include "tunewright/loops/nest_summary.hpp"
#include "tunewright/loops/tensor_statements.hpp"

/// Analyses of programs for drafts: the loops around each statement; in `statement_footprint.hpp`, the elements that
/// its indices touch while some loops vary; in `growing_footprint.hpp`, the memory of these. Exact for tiles that
/// divide, otherwise an estimate: a quotient of values that begin between multiples of its divisor may have one more.
namespace tunewright::drafts {

/// Loops of one statement.
using LoopSet = loops::DepthSet;

/// Walks a summary. Reuses its memory between programs.
class NestReader {
 public:
  static constexpr std::uint8_t none = 255;
  static constexpr std::size_t max_depth = 64;  ///< the number of bits of a `LoopSet`

  /// Calls `on_loop(loop)` for every loop, before its body, and `on_statement(statement)` for every statement. A
  /// parallel loop has the iterations of one of `workers` workers. Throws `std::invalid_argument` for more than 64
  /// nested loops.
  template <class OnLoop, class OnStatement>
  void read(const loops::NestSummary& summary, const OnLoop& on_loop, const OnStatement& on_statement,
            std::int64_t workers = 1) {
    summary_ = &summary;
    depth_ = 0;
    of_kind_.fill(0);
    depth_of_.assign(summary.indices.extents.size(), none);
    allocated_at_.assign(summary.buffers.size(), 0);
    kernel_ = 0;
    for (const loops::NestSummary::Step& step : summary.steps()) {
      switch (step.event) {
        case loops::NestSummary::Event::Enter:
          enter(summary.loops[step.of], workers);
          on_loop(open_[depth_ - 1]);
          break;
        case loops::NestSummary::Event::Leave: leave(); break;
        case loops::NestSummary::Event::Run: on_statement(summary.statements[step.of]); break;
        case loops::NestSummary::Event::Allocate: allocated_at_[step.of] = depth_; break;
        case loops::NestSummary::Event::Next: ++kernel_; break;
        case loops::NestSummary::Event::Fill: break;
      }
    }
  }

  [[nodiscard]] const loops::NestSummary& summary() const noexcept { return *summary_; }
  [[nodiscard]] std::span<const loops::LoopSummary> open() const noexcept { return {open_.data(), depth_}; }
  /// Number of the current top-level tree; on a GPU, of the launch.
  [[nodiscard]] std::size_t kernel() const noexcept { return kernel_; }
  /// Number of open loops where a buffer is allocated; 0 for arguments.
  [[nodiscard]] std::size_t allocated_at(loops::BufferId buffer) const { return allocated_at_[buffer]; }
  /// The memory of a buffer. A buffer that is allocated outside all loops is workspace, whatever its declared scope.
  [[nodiscard]] loops::Scope scope_of(loops::BufferId buffer) const {
    return allocated_at_[buffer] == 0 ? loops::Scope::Global : summary_->buffers[buffer].scope;
  }
  [[nodiscard]] std::uint8_t depth_of(loops::Var var) const { return depth_of_[var]; }

  /// The open loops of one kind.
  [[nodiscard]] LoopSet loops_of(loops::LoopKind kind) const { return of_kind_[static_cast<std::size_t>(kind)]; }
  [[nodiscard]] LoopSet block_loops() const;
  [[nodiscard]] LoopSet thread_loops() const;
  [[nodiscard]] LoopSet all_loops() const { return outermost(depth_); }
  /// The `count` outermost loops; a shift by the number of bits would be undefined.
  [[nodiscard]] static LoopSet outermost(std::size_t count) {
    return count >= max_depth ? ~LoopSet{0} : (LoopSet{1} << count) - 1;
  }
  /// Product of the extents of loops.
  [[nodiscard]] double iterations(LoopSet set) const;

 private:
  void enter(const loops::LoopSummary& loop, std::int64_t workers);
  [[noreturn]] static void refuse_depth();
  void leave();

  const loops::NestSummary* summary_ = nullptr;
  std::array<loops::LoopSummary, max_depth> open_;  // the first `depth_` are open
  std::size_t depth_ = 0;
  std::array<LoopSet, schedule::loop_kind_names.size()> of_kind_{};
  std::vector<std::uint8_t> depth_of_;  // by variable
  std::vector<std::size_t> allocated_at_;
  std::size_t kernel_ = 0;
};

}  // namespace tunewright::drafts

#if TUNEWRIGHT_DEFINES(drafts)

namespace tunewright::drafts {

TUNEWRIGHT_INLINE LoopSet NestReader::block_loops() const {
  using loops::LoopKind;
  return loops_of(LoopKind::BlockX) | loops_of(LoopKind::BlockY) | loops_of(LoopKind::BlockZ);
}

TUNEWRIGHT_INLINE LoopSet NestReader::thread_loops() const {
  using loops::LoopKind;
  return loops_of(LoopKind::ThreadX) | loops_of(LoopKind::ThreadY) | loops_of(LoopKind::ThreadZ);
}

TUNEWRIGHT_INLINE double NestReader::iterations(LoopSet set) const {
  double product = 1;
  for (; set != 0; set &= set - 1)
    product *= static_cast<double>(open_[static_cast<std::size_t>(std::countr_zero(set))].extent);
  return product;
}

TUNEWRIGHT_INLINE void NestReader::enter(const loops::LoopSummary& loop, std::int64_t workers) {
  if (depth_ == max_depth) refuse_depth();
  depth_of_[loop.var] = static_cast<std::uint8_t>(depth_);
  of_kind_[static_cast<std::size_t>(loop.kind)] |= LoopSet{1} << depth_;
  loops::LoopSummary& opened = open_[depth_++];
  opened = loop;
  if (loop.kind == loops::LoopKind::Parallel) opened.extent = program::ceil_div(loop.extent, workers);
}

TUNEWRIGHT_INLINE void NestReader::refuse_depth() {
  throw std::invalid_argument(
      "drafts: a statement stands in more than the 64 loops that they can read; "
      "split or tile its axes less deeply");
}

TUNEWRIGHT_INLINE void NestReader::leave() {
  const loops::LoopSummary& loop = open_[--depth_];
  depth_of_[loop.var] = none;
  of_kind_[static_cast<std::size_t>(loop.kind)] &= ~(LoopSet{1} << depth_);
}

}  // namespace tunewright::drafts

#endif
