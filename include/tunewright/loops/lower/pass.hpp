// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
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
  std::vector<Attached> attached;       ///< in topological order
};

/// A program while it is lowered: passes fill in `info` and then `nest`.
struct Lowered {
  const State& state;
  std::vector<StageInfo> info;  ///< by TensorId
  LoopNest nest;
};

/// Base of the passes of lowering.
class Pass {
 protected:
  explicit Pass(Lowered& lowered) : state_(lowered.state), info_(lowered.info), nest_(lowered.nest) {}

  [[nodiscard]] auto range_of() const {
    return [this](Var v) { return Range{0, nest_.variables[v].extent - 1}; };
  }

  const State& state_;
  std::vector<StageInfo>& info_;
  LoopNest& nest_;
};

}  // namespace tunewright::loops::detail
