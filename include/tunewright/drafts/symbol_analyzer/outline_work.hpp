// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tunewright/drafts/symbol_analyzer/outline.hpp"
#include "tunewright/drafts/symbol_analyzer/schedule_plan.hpp"

namespace tunewright::drafts {

/// An outline while it is made of a schedule: its passes share this. What they work out is what `loops::lower` works
/// out, without names, guards and bodies, in memory that is kept from one schedule to the next.
struct OutlineWork {
  using Var = program::Var;
  static constexpr std::int64_t no_var = -1;

  /// A variable for each kind of loop, or no_var.
  using VarOfKind = std::array<std::int64_t, schedule::loop_kind_names.size()>;

  /// A variable that stands for part of another one's range until all windows are known.
  struct Renaming {
    program::TensorId of = 0;  ///< stage
    Var from = 0, to = 0;
  };
  struct Stage {
    std::vector<std::int64_t> extent;    ///< by IterId
    std::vector<FlatIndex> value;        ///< by IterId, of those that are no loops
    std::vector<std::int64_t> var;       ///< by IterId; no_var for loops of extent 1
    std::vector<std::int64_t> index;     ///< by IterId: bound by a loop around, that it runs on; or no_var
    std::vector<std::int64_t> stride;    ///< by IterId, within what was split into it
    std::vector<FlatIndex> axis_values;  ///< by axis
    std::vector<FlatIndex> base;         ///< of the window
    std::vector<std::int64_t> window;    ///< its extent
    std::vector<Var> path;               ///< loops around
    VarOfKind outermost;                 ///< of the loops around

    /// Whether a loop around has one of the kinds from `first` to `last`.
    [[nodiscard]] bool is_inside(schedule::LoopKind first, schedule::LoopKind last) const {
      return std::any_of(outermost.begin() + static_cast<std::ptrdiff_t>(first),
                         outermost.begin() + static_cast<std::ptrdiff_t>(last) + 1,
                         [](std::int64_t of_kind) { return of_kind != no_var; });
    }
  };

  /// Part of an index of a packed buffer.
  struct Piece {
    std::size_t place = 0;  ///< of its loop
    loops::PackedDimension dimension{};
  };

  SchedulePlan* plan = nullptr;
  const schedule::Schedule* candidate = nullptr;
  Outline outline;
  std::vector<Stage> stages;              ///< by TensorId
  std::vector<schedule::LoopKind> kinds;  ///< by variable
  std::vector<Renaming> renamed;
  std::vector<char> fixed;  ///< by variable: around the window that is looked for
  std::vector<Piece> pieces;
  std::vector<Var> around;  ///< loops around the read that a buffer is packed for

  void start(SchedulePlan& of, const schedule::Schedule& schedule) {
    plan = &of;
    candidate = &schedule;
    outline.clear();
    renamed.clear();
    kinds.clear();
    if (stages.size() < of.stages.size()) stages.resize(of.stages.size());
  }
};

/// Base of the passes.
class OutlinePass {
 protected:
  using TensorId = program::TensorId;
  using IterId = schedule::IterId;
  using Var = program::Var;
  using Kind = schedule::Location::Kind;
  using LoopKind = schedule::LoopKind;
  using Work = OutlineWork::Stage;
  static constexpr std::int64_t no_var = OutlineWork::no_var;

  explicit OutlinePass(OutlineWork& all)
      : plan_(all.plan), outline_(all.outline), work_(all.stages), kinds_(all.kinds) {}

  [[nodiscard]] const schedule::State& state() const noexcept { return plan_->state; }
  [[nodiscard]] std::int64_t extent_of(Var var) const noexcept { return outline_.indices.extents[var]; }

  const SchedulePlan* plan_;
  Outline& outline_;
  std::vector<Work>& work_;  // by TensorId
  std::vector<LoopKind>& kinds_;
};

}  // namespace tunewright::drafts
