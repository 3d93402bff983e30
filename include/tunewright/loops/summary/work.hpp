// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/loops/nest_summary.hpp"
#include "tunewright/loops/summary/schedule_plan.hpp"

namespace tunewright::loops {

/// A summary while it is made of a schedule: its passes share this. What they work out is what `loops::lower` works
/// out, without names, guards and bodies, in memory that is kept from one schedule to the next.
struct SummaryWork {
  using Var = program::Var;
  static constexpr Var no_var = ~Var{0};

  /// A variable that stands for part of another one's range until all windows are known.
  struct Renaming {
    program::TensorId of = 0;  ///< stage
    Var from = 0, to = 0;
  };
  struct Stage {
    std::vector<std::int64_t> extent;  ///< by IterId
    std::vector<Var> var;              ///< by IterId; no_var for loops of extent 1
    std::vector<Var> index;            ///< by IterId of what may be bound: by a loop around, that it runs on; or no_var
    std::vector<FlatIndex> value;      ///< by IterId, of those that are no loops
    std::vector<FlatIndex> axis_values;                           ///< by axis; the base of the window at first
    std::vector<std::int64_t> reached;                            ///< by axis: by the loops, beyond the window too
    std::vector<FlatIndex> base;                                  ///< of the window, of what is attached
    std::vector<PackedDimension> packing;                         ///< of what is packed or arranged
    std::uint32_t kinds_around = 0;                               ///< of those loops around that may be indices; by bit
    std::array<Var, schedule::loop_kind_names.size()> outermost;  ///< of these, by kind

    void enter(Var loop, schedule::LoopKind kind) noexcept;
    /// Whether a loop around is an index of one of the kinds from `first` to `last`.
    [[nodiscard]] bool is_inside(schedule::LoopKind first, schedule::LoopKind last) const noexcept;
    /// The outermost loop around that is an index of this kind, or no_var.
    [[nodiscard]] Var around(schedule::LoopKind kind) const noexcept {
      return is_inside(kind, kind) ? outermost[static_cast<std::size_t>(kind)] : no_var;
    }
    void make_room(std::size_t iterators, std::size_t axes);
  };

  /// Part of an index of a packed buffer.
  struct Piece {
    std::uint32_t place = 0;  ///< of its loop, from inside
    loops::PackedDimension dimension{};
  };

  const SchedulePlan* plan = nullptr;
  const schedule::Schedule* candidate = nullptr;
  const ScheduleSignature* numbers = nullptr;
  NestSummary summary;
  std::vector<Stage> stages;              ///< by TensorId
  Var variables = 0;                      ///< as many there are yet
  std::vector<schedule::LoopKind> kinds;  ///< by variable, with room for all
  std::vector<Renaming> renamed;
  std::vector<std::int64_t> strides;  ///< of the parts of a split
  std::vector<char> fixed;            ///< by variable: around the window that is looked for
  std::vector<Piece> pieces;
  std::vector<std::uint32_t> place_around;  ///< by variable: of loops around a packed read, from inside; or none

  void start(const SchedulePlan& of, const schedule::Schedule& schedule, const ScheduleSignature& signature);
};

/// Base of the passes.
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

  /// Calls `f(variable, loop)` for all loops around an attached stage that run, from inside.
  template <class F>
  void for_each_loop_around(TensorId id, const F& f) const {
    for (const StagePlan* plan = &plan_.stages[id]; plan->is_attached; plan = &plan_.stages[plan->target]) {
      const std::vector<SchedulePlan::Loop>& loops = plan_.stages[plan->target].loops;
      const std::vector<Var>& var = work_[plan->target].var;
      for (std::size_t place = plan->place + 1; place-- > 0;)
        if (var[loops[place].iter] != no_var) f(var[loops[place].iter], loops[place]);
    }
  }

  /// An index over the loops around what reads; `room` for it where it is no axis.
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
