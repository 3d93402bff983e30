// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tunewright/loops/nest.hpp"
#include "tunewright/schedule/state.hpp"

/// What the passes of lowering share.
namespace tunewright::loops::detail {

using program::AxisKind;
using program::Expr;
using program::Op;
using program::Operator;
using program::Range;
using schedule::IterId;
using schedule::Location;
using schedule::ScheduleError;
using schedule::ScheduleFault;
using schedule::Stage;
using schedule::State;

/// A window of a tensor: `base[d] .. base[d] + extent[d] - 1`, base over the loop variables around it.
struct Window {
  std::vector<IndexExpr> base;
  std::vector<std::int64_t> extent;
};

/// A stage computed inside the loop at `place` of another one's order.
struct Attached {
  std::size_t place = 0;
  TensorId stage = 0;
};

/// How an iterator of an attached stage runs on an index that a loop around the stage already binds.
struct Rebinding {
  IterId iter = 0;
  Var index = 0;            ///< variable of the loop around
  std::int64_t extent = 1;  ///< iterations; the threads beyond are idle
};

/// What lowering knows of a stage.
struct StageInfo {
  bool live = false;                   ///< neither a source nor inlined
  std::shared_ptr<const Operator> op;  ///< with inlined producers substituted
  std::vector<TensorId> reads;         ///< tensors its body reads
  Window window;
  std::vector<std::int64_t> extent;     ///< by IterId
  std::vector<IndexExpr> value;         ///< by IterId: relative to the window
  std::vector<std::optional<Var>> var;  ///< by IterId; none for loops of extent 1
  std::vector<IndexExpr> axis_values;   ///< tensor coordinates by axis
  std::vector<Var> path;                ///< variables of the loops around the stage, outermost first
  std::vector<Rebinding> rebound;
  std::vector<Attached> attached;  ///< in topological order
};

/// A program while it is lowered: passes fill in `info` and then `nest`.
struct Lowered {
  const State& state;
  std::vector<StageInfo> info;  ///< by TensorId
  LoopNest nest;
  std::vector<LoopKind> kinds{};                     ///< by variable
  std::vector<std::pair<Var, Var>> renamed_later{};  ///< variables that become another, larger one
};

/// Base of the passes of lowering.
class Pass {
 protected:
  explicit Pass(Lowered& lowered)
      : state_(lowered.state),
        info_(lowered.info),
        nest_(lowered.nest),
        kinds_(lowered.kinds),
        renamed_later_(lowered.renamed_later) {}

  [[nodiscard]] auto range_of() const {
    return [this](Var v) { return Range{0, nest_.variables[v].extent - 1}; };
  }

  const State& state_;
  std::vector<StageInfo>& info_;
  LoopNest& nest_;
  std::vector<LoopKind>& kinds_;
  std::vector<std::pair<Var, Var>>& renamed_later_;
};

}  // namespace tunewright::loops::detail
