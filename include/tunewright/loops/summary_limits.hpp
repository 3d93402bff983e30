// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tunewright/core/target.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/loops/limits.hpp"
#include "tunewright/loops/nest_summary.hpp"

/// Static limits of summaries of schedules: the checks of `limits.hpp` without a program.
namespace tunewright::loops {

/// The `exceeded_limit` of the program of `summary`, which a `ScheduleSummarizer` made: the first exceeded limit as
/// text, or an empty string. Empty optional if the program is needed: on a CPU for loops on indices of blocks or
/// threads, on a GPU if a quotient or remainder may select elements of a thread-private array.
[[nodiscard]] std::optional<std::string_view> exceeded_limit(const NestSummary& summary, const Target& target,
                                                             const CpuLimits& limits = {});
/// The same for these limits of a GPU.
[[nodiscard]] std::optional<std::string_view> exceeded_limit(const NestSummary& summary, const GpuLimits& limits);

/// Steps of the last top-level tree, that of the output; empty for an empty program.
[[nodiscard]] std::span<const NestSummary::Step> last_tree(const NestSummary& summary);

/// The `thread_utilisation` of the program of `summary`, which a `ScheduleSummarizer` made.
[[nodiscard]] double thread_utilisation(const NestSummary& summary, unsigned threads);

}  // namespace tunewright::loops

#if TUNEWRIGHT_DEFINES(loops)

#include "tunewright/loops/limit_checks.hpp"
#include "tunewright/loops/written_statements.hpp"

namespace tunewright::loops {

namespace detail {

/// Position of the `Leave` for the `Enter` at `place`.
[[nodiscard]] std::size_t end_of_loop(std::span<const NestSummary::Step> steps, std::size_t place);

/// The thread-private arrays of a GPU, and the loops that select their elements: `ThreadArrays` of a summary, without
/// fragments.
class SummarizedThreadArrays {
 public:
  explicit SummarizedThreadArrays(const NestSummary& summary);

  /// Whether `var` affects which element some statement among `steps` loads or stores; empty if the summary does not
  /// tell, because the variable is divided.
  [[nodiscard]] std::optional<bool> selected_by(Var var, std::span<const NestSummary::Step> steps) const;

 private:
  /// How an index depends on a variable: by a multiple of it, within quotients and remainders, or both.
  struct Use {
    std::int64_t multiple = 0;
    bool divided = false;

    [[nodiscard]] bool any() const noexcept { return divided || multiple != 0; }
    void add(const Use& other, std::int64_t factor) noexcept;
  };

  [[nodiscard]] Use use_of(const FlatIndex& e, Var var) const;
  /// The same for an index over axes.
  [[nodiscard]] Use use_of(const program::IndexExpr& e, const StatementSummary& statement, Var var) const;

  [[nodiscard]] std::optional<bool> selected_by(Var var, const StatementSummary& s) const;

  /// Whether an index relative to the window of a buffer depends on `var`, if coordinates do as `coordinate(d)` says.
  template <class Coordinate>
  [[nodiscard]] std::optional<bool> moves(BufferId id, Var var, const Coordinate& coordinate) const {
    if (!own_[id]) return false;
    const BufferSummary& buffer = summary_.buffers[id];
    std::optional<bool> found = false;
    for (std::size_t d = 0; d < buffer.shape.size(); ++d) {
      const Use moved = coordinate(d);
      const Use window = d < buffer.origin.size() ? use_of(buffer.origin[d], var) : Use{};
      if (moved.divided || window.divided)
        found = std::nullopt;  // they may cancel
      else if (moved.multiple != window.multiple)
        return true;
    }
    return found;
  }

  const NestSummary& summary_;
  std::vector<char> own_;  ///< by BufferId
};

/// `WrittenStatements` of a summary.
class SummarizedStatements {
 public:
  explicit SummarizedStatements(const NestSummary& summary)
      : summary_(summary), arrays_(summary), steps_(summary.steps()) {}

  /// Number of statements of the kernel with the steps `begin` to `end`; empty if the summary does not tell.
  [[nodiscard]] std::optional<std::int64_t> run(std::size_t begin, std::size_t end);

 private:
  using Event = NestSummary::Event;

  void visit(std::size_t begin, std::size_t end, std::int64_t limit);
  void visit_loop(const LoopSummary& loop, std::size_t place, std::size_t last, std::int64_t limit);
  [[nodiscard]] bool selects(const LoopSummary& loop, std::size_t place, std::size_t last);
  [[nodiscard]] bool is_shared(BufferId target) const { return summary_.buffers[target].scope == Scope::Shared; }

  /// The same as `loops::statements_of`.
  [[nodiscard]] std::int64_t statements_of(std::size_t begin, std::size_t end, std::int64_t limit) const;

  const NestSummary& summary_;
  SummarizedThreadArrays arrays_;
  std::span<const NestSummary::Step> steps_;
  WrittenCopies copies_;
  bool is_known_ = true;
};

[[nodiscard]] std::optional<std::string_view> exceeded_limit_on_cpu(const NestSummary& summary, const Target& target,
                                                                    const CpuLimits& limits);

[[nodiscard]] std::optional<std::string_view> exceeded_limit_on_gpu(const NestSummary& summary,
                                                                    const GpuLimits& limits);

}  // namespace detail

TUNEWRIGHT_INLINE std::optional<std::string_view> exceeded_limit(const NestSummary& summary, const GpuLimits& limits) {
  return detail::exceeded_limit_on_gpu(summary, limits);
}

}  // namespace tunewright::loops

namespace tunewright::loops::detail {

TUNEWRIGHT_INLINE std::size_t end_of_loop(std::span<const NestSummary::Step> steps, std::size_t place) {
  using Event = NestSummary::Event;
  for (std::size_t depth = 0; place < steps.size(); ++place) {
    if (steps[place].event == Event::Enter) ++depth;
    if (steps[place].event == Event::Leave && --depth == 0) break;
  }
  return place;
}

TUNEWRIGHT_INLINE SummarizedThreadArrays::SummarizedThreadArrays(const NestSummary& summary)
    : summary_(summary), own_(summary.buffers.size()) {
  for (std::size_t b = 0; b < own_.size(); ++b) {
    const BufferSummary& buffer = summary.buffers[b];
    own_[b] =
        buffer.role == BufferRole::Temporary && buffer.scope != Scope::Shared && buffer.scope != Scope::Accumulator;
  }
  std::size_t depth = 0;
  for (const NestSummary::Step& step : summary.steps()) {
    if (step.event == NestSummary::Event::Enter) ++depth;
    if (step.event == NestSummary::Event::Leave) --depth;
    if (step.event == NestSummary::Event::Allocate && depth == 0) own_[step.of] = false;
  }
}

TUNEWRIGHT_INLINE std::optional<bool> SummarizedThreadArrays::selected_by(
    Var var, std::span<const NestSummary::Step> steps) const {
  std::optional<bool> found = false;
  for (const NestSummary::Step& step : steps) {
    if (step.event != NestSummary::Event::Run && step.event != NestSummary::Event::Fill) continue;
    const StatementSummary& statement =
        step.event == NestSummary::Event::Run ? summary_.statements[step.of] : summary_.fills[step.of];
    const std::optional<bool> own = selected_by(var, statement);
    if (own.value_or(false)) return true;
    if (!own) found = std::nullopt;
  }
  return found;
}

TUNEWRIGHT_INLINE void SummarizedThreadArrays::Use::add(const Use& other, std::int64_t factor) noexcept {
  multiple += factor * other.multiple;
  divided = divided || other.divided;
}

TUNEWRIGHT_INLINE SummarizedThreadArrays::Use SummarizedThreadArrays::use_of(const FlatIndex& e, Var var) const {
  Use use;
  for (const FlatIndex::Term& term : e.terms()) {
    if (term.kind == FlatIndex::Kind::Variable)
      use.multiple += term.of == var ? term.coefficient : 0;
    else
      use.divided = use.divided || summary_.indices.uses(summary_.indices.numerator(term), var);
  }
  return use;
}

TUNEWRIGHT_INLINE SummarizedThreadArrays::Use SummarizedThreadArrays::use_of(const program::IndexExpr& e,
                                                                             const StatementSummary& statement,
                                                                             Var var) const {
  Use use;
  for (const program::IndexExpr::Term& term : e.terms()) {
    if (term.kind == program::IndexExpr::Kind::Variable)
      use.add(use_of(statement.axis_values[term.var], var), term.coefficient);
    else
      use.divided = use.divided || use_of(*term.numerator, statement, var).any();
  }
  return use;
}

TUNEWRIGHT_INLINE std::optional<bool> SummarizedThreadArrays::selected_by(Var var, const StatementSummary& s) const {
  std::optional<bool> found = moves(s.target, var, [&](std::size_t d) { return use_of(s.axis_values[d], var); });
  for (const LoadSummary& load : s.loads) {
    if (found.value_or(false)) break;
    const std::optional<bool> own =
        moves(load.buffer, var, [&](std::size_t d) { return use_of(load.node->indices[d], s, var); });
    if (own.value_or(false) || !own) found = own;
  }
  return found;
}

TUNEWRIGHT_INLINE std::optional<std::int64_t> SummarizedStatements::run(std::size_t begin, std::size_t end) {
  copies_ = {};
  is_known_ = true;
  visit(begin, end, 0);
  if (!is_known_) return std::nullopt;
  return copies_.total();
}

TUNEWRIGHT_INLINE void SummarizedStatements::visit(std::size_t begin, std::size_t end, std::int64_t limit) {
  for (std::size_t place = begin; place < end; ++place) {
    const NestSummary::Step& step = steps_[place];
    if (step.event == Event::Run) copies_.add(is_shared(summary_.statements[step.of].target));
    if (step.event == Event::Fill) copies_.add(is_shared(summary_.fills[step.of].target));
    if (step.event != Event::Enter) continue;
    const std::size_t last = end_of_loop(steps_, place);
    visit_loop(summary_.loops[step.of], place, last, limit);
    place = last;
  }
}

TUNEWRIGHT_INLINE void SummarizedStatements::visit_loop(const LoopSummary& loop, std::size_t place, std::size_t last,
                                                        std::int64_t limit) {
  if (loop.intrinsic != nullptr) return copies_.add(false);
  limit = std::max(limit, loop.unroll_limit);
  const bool written = !schedule::is_hardware_index(loop.kind) &&
                       (is_always_written(loop.kind) || (limit > 0 && statements_of(place, last + 1, limit) <= limit) ||
                        selects(loop, place, last));
  if (written) copies_.open(loop.extent, loop.kind);
  visit(place + 1, last, limit);
  if (written) copies_.close();
}

TUNEWRIGHT_INLINE bool SummarizedStatements::selects(const LoopSummary& loop, std::size_t place, std::size_t last) {
  const std::optional<bool> found = arrays_.selected_by(loop.var, steps_.subspan(place, last - place));
  is_known_ = is_known_ && found.has_value();
  return found.value_or(false);
}

TUNEWRIGHT_INLINE std::int64_t SummarizedStatements::statements_of(std::size_t begin, std::size_t end,
                                                                   std::int64_t limit) const {
  std::int64_t count = 0;
  for (std::size_t place = begin; place < end; ++place) {
    const NestSummary::Step& step = steps_[place];
    if (step.event == Event::Run || step.event == Event::Fill) ++count;
    if (step.event != Event::Enter) continue;
    const LoopSummary& loop = summary_.loops[step.of];
    const std::size_t last = end_of_loop(steps_, place);
    const std::int64_t inside = loop.intrinsic != nullptr ? 1 : statements_of(place + 1, last, limit);
    const std::int64_t extent = loop.intrinsic != nullptr ? 1 : loop.extent;
    count += inside > limit / extent ? limit + 1 : inside * extent;
    place = last;
  }
  return std::min(count, limit + 1);
}

TUNEWRIGHT_INLINE std::optional<std::string_view> exceeded_limit_on_cpu(const NestSummary& summary,
                                                                        const Target& target, const CpuLimits& limits) {
  using Event = NestSummary::Event;
  CpuLimitCheck check(target, limits);
  std::vector<CpuLimitCheck::Around> around{{}};
  const std::span<const NestSummary::Step> steps = summary.steps();
  for (std::size_t place = 0; place < steps.size(); ++place) {
    const NestSummary::Step& step = steps[place];
    switch (step.event) {
      case Event::Enter: {
        const LoopSummary& loop = summary.loops[step.of];
        // A summary has no branches; there is one where a loop runs on an index that a surrounding loop binds.
        if (schedule::is_hardware_index(loop.kind)) return std::nullopt;
        if (loop.intrinsic != nullptr) {
          check.statement(around.back());
          place = end_of_loop(steps, place);
          break;
        }
        std::size_t next = place + 1;
        while (next < steps.size() && (steps[next].event == Event::Run || steps[next].event == Event::Fill)) ++next;
        const bool is_innermost = next < steps.size() && steps[next].event == Event::Leave;
        around.push_back(check.enter(loop.extent, loop.kind, is_innermost, around.back()));
        break;
      }
      case Event::Leave: around.pop_back(); break;
      case Event::Run:
      case Event::Fill: check.statement(around.back()); break;
      case Event::Allocate: check.allocate(summary.buffers[step.of].bytes(), around.back()); break;
      case Event::Next: break;
    }
  }
  return check.exceeded();
}

TUNEWRIGHT_INLINE std::optional<std::string_view> exceeded_limit_on_gpu(const NestSummary& summary,
                                                                        const GpuLimits& limits) {
  using Event = NestSummary::Event;
  GpuLimitCheck check(limits);
  SummarizedStatements statements(summary);
  std::vector<GpuLimitCheck::Around> around{{}};
  const std::span<const NestSummary::Step> steps = summary.steps();
  const auto bytes_of_element = [&](BufferId id) {
    return static_cast<std::int64_t>(summary.buffers[id].element_bytes);
  };
  bool is_known = true;
  check.start_kernel();
  for (std::size_t place = 0, begin = 0; place < steps.size(); ++place) {
    const NestSummary::Step& step = steps[place];
    switch (step.event) {
      case Event::Enter: {
        const LoopSummary& loop = summary.loops[step.of];
        around.push_back(check.enter(loop.extent, loop.kind, loop.reduction, loop.intrinsic, around.back()));
        break;
      }
      case Event::Leave: around.pop_back(); break;
      case Event::Run: {
        const StatementSummary& statement = summary.statements[step.of];
        check.statement(statement.kind, statement.target, bytes_of_element(statement.target), around.back());
        break;
      }
      case Event::Fill: {
        const StatementSummary& fill = summary.fills[step.of];
        check.statement(fill.kind, fill.target, bytes_of_element(fill.target), around.back());
        break;
      }
      case Event::Allocate: {
        const BufferSummary& buffer = summary.buffers[step.of];
        if (around.size() > 1) check.allocate(buffer.scope, buffer.asynchronous, buffer.bytes(), around.back());
        break;
      }
      case Event::Next: {
        const bool is_workspace = steps[begin].event == Event::Allocate;
        const std::string_view exceeded =
            is_workspace ? check.workspace(summary.buffers[steps[begin].of].bytes()) : check.end_kernel([&] {
              const std::optional<std::int64_t> count = statements.run(begin, place);
              is_known = count.has_value();
              return count.value_or(0);
            });
        if (!is_known) return std::nullopt;
        if (!exceeded.empty()) return exceeded;
        check.start_kernel();
        begin = place + 1;
        break;
      }
    }
  }
  return check.exceeded();
}

}  // namespace tunewright::loops::detail

namespace tunewright::loops {

TUNEWRIGHT_INLINE std::optional<std::string_view> exceeded_limit(const NestSummary& summary, const Target& target,
                                                                 const CpuLimits& limits) {
  return target.kind == DeviceKind::Gpu ? detail::exceeded_limit_on_gpu(summary, GpuLimits::of(target))
                                        : detail::exceeded_limit_on_cpu(summary, target, limits);
}

TUNEWRIGHT_INLINE std::span<const NestSummary::Step> last_tree(const NestSummary& summary) {
  std::span<const NestSummary::Step> steps = summary.steps();
  if (steps.empty()) return steps;
  steps = steps.first(steps.size() - 1);  // except for the `Next` at its end
  std::size_t begin = steps.size();
  while (begin > 0 && steps[begin - 1].event != NestSummary::Event::Next) --begin;
  return steps.subspan(begin);
}

TUNEWRIGHT_INLINE double thread_utilisation(const NestSummary& summary, unsigned threads) {
  const std::span<const NestSummary::Step> tree = last_tree(summary);
  if (tree.empty() || threads <= 1) return 1;
  for (const NestSummary::Step& step : tree) {
    if (step.event != NestSummary::Event::Enter) continue;
    const LoopSummary& loop = summary.loops[step.of];
    if (loop.kind == LoopKind::Parallel) return detail::busy_share(loop.extent, threads);
  }
  return detail::busy_share(1, threads);
}

}  // namespace tunewright::loops

#endif
