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

/// Common parts of the lowering passes.
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

/// Maximum size of the index at which a window begins. Where stages read at indices that repeat their axes, each one
/// that is computed in a loop multiplies it.
inline constexpr std::size_t max_window_terms = 1024;

/// Maximum number of loops of a stage and of those in which it is computed, those of one iteration counted: emission
/// calls itself for each.
inline constexpr std::size_t max_nested_loops = 1024;

/// A window of a tensor: `base[d] .. base[d] + extent[d] - 1`, with base over the surrounding loop variables.
struct Window {
  std::vector<IndexExpr> base;
  std::vector<std::int64_t> extent;
};

/// A stage that is computed inside the loop at `place` of another stage's order.
struct Attached {
  std::size_t place = 0;
  TensorId stage = 0;
};

/// An iterator of an attached stage whose index a surrounding loop already binds.
struct Rebinding {
  IterId iter = 0;
  Var index = 0;            ///< variable of the surrounding loop
  std::int64_t extent = 1;  ///< iterations; threads beyond are idle
};

/// The state of a stage during lowering.
struct StageInfo {
  bool live = false;                   ///< neither a source nor inlined
  std::shared_ptr<const Operator> op;  ///< with inlined producers substituted
  std::vector<TensorId> reads;         ///< tensors its body reads
  Window window;
  std::vector<std::int64_t> extent;     ///< by IterId
  std::vector<IndexExpr> value;         ///< by IterId: relative to the window
  std::vector<std::optional<Var>> var;  ///< by IterId; none for loops of extent 1
  std::vector<IndexExpr> axis_values;   ///< tensor coordinates by axis
  std::vector<Var> path;                ///< variables of the surrounding loops, outermost first
  std::vector<Rebinding> rebound;
  std::vector<Attached> attached;  ///< in topological order
  std::size_t nested_loops = 0;    ///< its own, and those of the stages in which it is computed
};

/// A program during lowering: passes fill in `info` and then `nest`.
struct Lowered {
  const State& state;
  std::vector<StageInfo> info;  ///< by TensorId
  LoopNest nest;
  std::vector<LoopKind> kinds{};                     ///< by variable
  std::vector<std::pair<Var, Var>> renamed_later{};  ///< variables, each with the larger one that will replace it
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
