// SPDX-License-Identifier: Apache-2.0
#pragma once

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

  /// How an iterator of an attached stage runs on an index that a loop around the stage already binds.
  struct Rebinding {
    schedule::IterId iter = 0;
    Var index = 0;
    std::int64_t extent = 1;
  };
  /// A variable that stands for part of another one's range until all windows are known.
  struct Renaming {
    program::TensorId of = 0;  ///< stage
    Var from = 0, to = 0;
  };
  struct Stage {
    std::vector<std::int64_t> extent;    ///< by IterId
    std::vector<FlatIndex> value;        ///< by IterId, of those that are no loops
    std::vector<std::int64_t> var;       ///< by IterId; no_var for loops of extent 1
    std::vector<FlatIndex> axis_values;  ///< by axis
    std::vector<FlatIndex> base;         ///< of the window
    std::vector<std::int64_t> window;    ///< its extent
    std::vector<Var> path;               ///< loops around
    std::vector<Rebinding> rebound;
    std::vector<std::int64_t> last;  ///< of each iterator, while buffers are made
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
  using Rebinding = OutlineWork::Rebinding;
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
