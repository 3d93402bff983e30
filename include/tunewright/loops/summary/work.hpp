// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/loops/nest_summary.hpp"
#include "tunewright/loops/summary/schedule_plan.hpp"

namespace tunewright::loops {

/// A summary in construction, shared by its passes. They compute the same as `loops::lower`, without names, guards and
/// bodies, in memory that is reused between schedules.
struct SummaryWork {
  using Var = program::Var;
  static constexpr Var no_var = ~Var{0};

  /// A variable that stands for part of another variable's range until all windows are known.
  struct Renaming {
    program::TensorId of = 0;  ///< its stage
    Var from = 0, to = 0;
  };
  struct Stage {
    std::vector<std::int64_t> extent;      ///< by IterId
    std::vector<Var> var;                  ///< by IterId; no_var for loops of extent 1
    std::vector<Var> index;                ///< by IterId: variable of the surrounding loop that binds it, or no_var
    std::vector<FlatIndex> value;          ///< by IterId, for those that are not loops
    std::vector<FlatIndex> axis_values;    ///< by axis; initially the base of the window
    std::vector<std::int64_t> reached;     ///< by axis: extent covered by the loops, also beyond the window
    std::vector<FlatIndex> base;           ///< of the window of an attached stage
    std::vector<PackedDimension> packing;  ///< of a stage with a layout
    std::uint32_t kinds_around = 0;        ///< kinds of surrounding loops that can be hardware indices; by bit
    std::array<Var, schedule::loop_kind_names.size()> outermost;  ///< outermost of these, by kind

    void enter(Var loop, schedule::LoopKind kind) noexcept;
    /// Whether a surrounding loop is an index of one of the kinds from `first` to `last`.
    [[nodiscard]] bool is_inside(schedule::LoopKind first, schedule::LoopKind last) const noexcept;
    /// The outermost surrounding loop that is an index of this kind, or no_var.
    [[nodiscard]] Var around(schedule::LoopKind kind) const noexcept {
      return is_inside(kind, kind) ? outermost[static_cast<std::size_t>(kind)] : no_var;
    }
    void make_room(std::size_t iterators, std::size_t axes);
  };

  /// Part of an index of a packed buffer.
  struct Piece {
    std::uint32_t place = 0;  ///< number of its loop, from the innermost
    loops::PackedDimension dimension{};
  };

  const SchedulePlan* plan = nullptr;
  const schedule::Schedule* candidate = nullptr;
  const ScheduleSignature* numbers = nullptr;
  NestSummary summary;
  std::vector<Stage> stages;              ///< by TensorId
  Var variables = 0;                      ///< number of variables so far
  std::vector<schedule::LoopKind> kinds;  ///< by variable; larger than needed
  std::vector<Renaming> renamed;
  std::vector<std::int64_t> strides;  ///< for the parts of a split
  std::vector<char> fixed;            ///< by variable: its loop is outside the current window
  std::vector<Piece> pieces;
  std::vector<std::uint32_t> place_around;  ///< by variable: number of its loop around a packed read, or none

  void start(const SchedulePlan& of, const schedule::Schedule& schedule, const ScheduleSignature& signature);
};

/// Common base of the passes.
class SummaryPass {
 protected:
  using TensorId = program::TensorId;
  using IterId = schedule::IterId;
  using Var = program::Var;
  using LoopKind = schedule::LoopKind;
  using StagePlan = SchedulePlan::StagePlan;
  using Work = SummaryWork::Stage;
  static constexpr Var no_var = SummaryWork::no_var;

  explicit SummaryPass(SummaryWork& all)
      : plan_(*all.plan), summary_(all.summary), work_(all.stages), kinds_(all.kinds) {}

  [[nodiscard]] std::int64_t extent_of(Var var) const noexcept { return summary_.indices.extents[var]; }

  /// Calls `f(variable, loop)` for all loops around an attached stage with more than one iteration, from the innermost.
  template <class F>
  void for_each_loop_around(TensorId id, const F& f) const {
    for (const StagePlan* plan = &plan_.stages[id]; plan->is_attached; plan = &plan_.stages[plan->target]) {
      const std::vector<SchedulePlan::Loop>& loops = plan_.stages[plan->target].loops;
      const std::vector<Var>& var = work_[plan->target].var;
      for (std::size_t place = plan->place + 1; place-- > 0;)
        if (var[loops[place].iter] != no_var) f(var[loops[place].iter], loops[place]);
    }
  }

  /// An index over the loops around the reader; `room` stores it if it is not an axis.
  [[nodiscard]] const FlatIndex& over_loops(const SchedulePlan::ReadIndex& read, FlatIndex& room) const;

  const SchedulePlan& plan_;
  NestSummary& summary_;
  std::vector<Work>& work_;  // by TensorId
  std::vector<LoopKind>& kinds_;
};

}  // namespace tunewright::loops

#if TUNEWRIGHT_DEFINES(loops)

namespace tunewright::loops {

TUNEWRIGHT_INLINE void SummaryWork::Stage::enter(Var loop, schedule::LoopKind kind) noexcept {
  if (!is_inside(kind, kind)) outermost[static_cast<std::size_t>(kind)] = loop;
  kinds_around |= 1U << static_cast<unsigned>(kind);
}

TUNEWRIGHT_INLINE bool SummaryWork::Stage::is_inside(schedule::LoopKind first, schedule::LoopKind last) const noexcept {
  const std::uint32_t up_to_last = (2U << static_cast<unsigned>(last)) - 1;
  return (kinds_around & up_to_last) >> static_cast<unsigned>(first) != 0;
}

TUNEWRIGHT_INLINE void SummaryWork::Stage::make_room(std::size_t iterators, std::size_t axes) {
  if (extent.size() < iterators) {
    extent.resize(iterators);
    var.resize(iterators);
    index.resize(iterators);
    value.resize(iterators);
  }
  if (axis_values.size() < axes) {
    axis_values.resize(axes);
    reached.resize(axes);
  }
}

TUNEWRIGHT_INLINE void SummaryWork::start(const SchedulePlan& of, const schedule::Schedule& schedule,
                                          const ScheduleSignature& signature) {
  plan = &of;
  candidate = &schedule;
  numbers = &signature;
  summary.clear();
  summary.buffer_of = of.buffer_of;
  summary.last_argument = of.last_argument;
  renamed.clear();
  variables = 0;
  summary.indices.extents.resize(of.most_variables);
  if (kinds.size() < of.most_variables) kinds.resize(of.most_variables);
  if (strides.size() < of.most_parts) strides.resize(of.most_parts);
  if (stages.size() < of.stages.size()) stages.resize(of.stages.size());
  for (const program::TensorId id : of.stored)
    stages[id].make_room(of.stages[id].is_loop.size(), of.stages[id].extents.size());
}

TUNEWRIGHT_INLINE const FlatIndex& SummaryPass::over_loops(const SchedulePlan::ReadIndex& read, FlatIndex& room) const {
  const std::vector<FlatIndex>& values = work_[read.reader].axis_values;
  if (read.index == nullptr) return values[read.axis];
  summary_.indices.substitute(*read.index, [&](Var axis) -> const FlatIndex& { return values[axis]; }, room);
  return room;
}

}  // namespace tunewright::loops

#endif
