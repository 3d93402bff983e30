// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "tunewright/program/analysis.hpp"
#include "tunewright/schedule/apply/stage_steps.hpp"
#include "tunewright/schedule/apply/storage_steps.hpp"

/// Semantics of steps that map products to tensor units.
namespace tunewright::schedule::detail {

/// Throws `ScheduleError` for a padded operator with more iterations than any may have.
inline void check_iterations(const Operator& padded) {
  std::int64_t iterations = 1;
  for (const program::Axis& axis : padded.axes) {
    if (multiply_fused(iterations, axis.extent)) continue;
    throw ScheduleError(ScheduleFault::BadFactor,
                        "'" + padded.name + "' is padded to more than 2^53 iterations; give smaller multiples");
  }
}

/// Extends the operand of `read` to all indices that `reader` reads once its axes have grown to those of `padded`. What
/// lies beyond the operand, or beyond the terms of `reader`, is zero.
inline void pad_operand(State& state, const Operator& reader, const Operator& padded, const program::ExprNode& read) {
  Stage& operand = computed_stage(state, read.tensor);
  require_untouched(operand, "padding");
  if (operand.op->has_reduction()) {
    throw ScheduleError(ScheduleFault::Unsupported,
                        "'" + operand.op->name + "' reduces and is not padded; cache_read it first");
  }
  const auto range_of = [&](program::Var v) { return program::Range{0, padded.axes[v].extent - 1}; };
  Operator larger = *operand.op;
  program::Expr inside;
  for (program::Var d = 0; d < larger.rank(); ++d) {
    const program::Range range = read.indices[d].range(range_of);
    if (range.min < 0) {
      throw ScheduleError(ScheduleFault::Unsupported,
                          "'" + reader.name + "' would read '" + operand.op->name + "' at index " +
                              std::to_string(range.min) + " of dimension " + std::to_string(d) +
                              ", and zeros are added behind the last element only; do not pad an axis along which it "
                              "is read backwards");
    }
    const std::int64_t reach = range.max + 1;
    std::int64_t kept = larger.axes[d].extent;
    // A sum may read a part of an operand that is longer than it.
    if (const auto axis = read.indices[d].as_variable(); axis && reader.axes[*axis].kind == AxisKind::Reduction)
      kept = std::min(kept, reader.axes[*axis].extent);
    if (reach <= kept) continue;
    if (kept < larger.axes[d].extent && state.readers_of(read.tensor).size() > 1) {
      throw ScheduleError(ScheduleFault::Unsupported, "'" + operand.op->name +
                                                          "' is longer than the sum and has other readers, which "
                                                          "would find zeros in it; cache_read it first");
    }
    const program::Expr here = program::in_bounds(IndexExpr::variable(d), kept);
    inside = inside ? inside && here : here;
    larger.axes[d].extent = std::max(larger.axes[d].extent, reach);
  }
  if (!inside) return;
  check_iterations(larger);
  larger.body = program::select(inside, larger.body, program::constant(0, larger.type));
  if (larger.body->levels > max_body_levels) {
    throw ScheduleError(ScheduleFault::Unsupported,
                        "padding of '" + larger.name + "' makes " + std::to_string(larger.body->levels) +
                            " levels of an expression, and at most " + std::to_string(max_body_levels) +
                            " are possible; do not pad again and again");
  }
  operand.op = std::make_shared<const Operator>(std::move(larger));
}

inline void apply_step(State& state, const Pad& s) {
  const std::shared_ptr<const Operator> op = computed_stage(state, s.stage).op;
  require_untouched(state.stages[s.stage], "padding");
  const std::optional<Product> product = product_of(*op);
  const bool is_output = s.stage < state.graph->size() && !state.graph->is_read(s.stage);
  if (!product || is_output || product->first->tensor == product->second->tensor) {
    throw ScheduleError(
        ScheduleFault::Unsupported,
        "'" + op->name + "' is no sum of products of two tensors that others read; pad what cache_write made");
  }
  Operator padded = *op;
  bool legal = s.multiples.size() == padded.axes.size();
  for (program::Var a = 0; legal && a < padded.axes.size(); ++a) {
    program::Axis& axis = padded.axes[a];
    legal = s.multiples[a] >= 1 && s.multiples[a] <= max_padding;
    if (!legal || axis.extent % s.multiples[a] == 0) continue;
    axis.extent = program::ceil_div(axis.extent, s.multiples[a]) * s.multiples[a];
    if (axis.kind == AxisKind::Spatial) continue;
    for (const program::ExprNode* read : {product->first, product->second}) {
      if (std::none_of(read->indices.begin(), read->indices.end(),
                       [a](const IndexExpr& index) { return index.as_variable() == std::optional(a); })) {
        throw ScheduleError(ScheduleFault::Unsupported,
                            "axis '" + axis.name + "' of '" + op->name +
                                "' cannot be padded: an operand has other elements, not zeros, beyond it");
      }
    }
  }
  if (!legal) {
    throw ScheduleError(ScheduleFault::BadFactor, "padding of '" + op->name + "' must name a multiple of 1 to " +
                                                      std::to_string(max_padding) + " for each of its " +
                                                      std::to_string(padded.axes.size()) + " axes");
  }
  check_iterations(padded);
  pad_operand(state, *op, padded, *product->first);
  pad_operand(state, *op, padded, *product->second);
  Stage& stage = state.stages[s.stage];
  stage.op = std::make_shared<const Operator>(std::move(padded));
  stage.multiples = s.multiples;
}

inline void apply_step(State& state, const Tensorize& s) {
  Stage& stage = computed_stage(state, s.stage);
  live_position(stage, s.iter);
  const TensorIntrinsic* intrinsic = find_intrinsic(s.intrinsic);
  if (intrinsic == nullptr) {
    std::string known;
    for (const TensorIntrinsic& one : tensor_intrinsics) known += (known.empty() ? "" : ", ") + std::string(one.name);
    throw ScheduleError(ScheduleFault::Unsupported,
                        "no tensor instruction is named '" + s.intrinsic + "'; there are " + known);
  }
  if (!multiplies(*intrinsic, *stage.op)) {
    throw ScheduleError(
        ScheduleFault::Unsupported,
        "'" + stage.op->name + "' is no sum of products of the types that " + s.intrinsic + " multiplies");
  }
  stage.tensorized = {intrinsic, s.iter};
}

}  // namespace tunewright::schedule::detail
