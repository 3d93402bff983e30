// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tunewright/program/merge_axes.hpp"
#include "tunewright/schedule/state.hpp"

/// Semantics of steps that create and move stages.
namespace tunewright::schedule::detail {

inline void apply_step(State& state, const ComputeLocation& s) {
  Stage& stage = computed_stage(state, s.stage);
  if (s.selected >= s.choices.size()) {
    throw ScheduleError(ScheduleFault::BadChoice, "location " + std::to_string(s.selected) + " of stage '" +
                                                      stage.op->name + "' is not one of its choices");
  }
  const Location& location = s.choices[s.selected];
  const bool is_output = s.stage < state.graph->size() && !state.graph->is_read(s.stage);
  if (location.kind != Location::Kind::Root && is_output) {
    throw ScheduleError(ScheduleFault::BadLocation, "'" + stage.op->name + "' is an output and must stay at the root");
  }
  if (location.kind == Location::Kind::Inline && stage.op->has_reduction()) {
    throw ScheduleError(ScheduleFault::NotInlineable, "'" + stage.op->name + "' reduces and cannot be inlined");
  }
  if (location.kind == Location::Kind::At) {
    live_position(computed_stage(state, location.stage), location.iter);
    TensorId up = location.stage;  // a chain of attachments from the target must not lead back to this stage
    for (std::size_t hops = 0; hops <= state.stages.size(); ++hops) {
      if (up == s.stage) {
        throw ScheduleError(ScheduleFault::BadLocation, "'" + stage.op->name + "' cannot be computed inside itself");
      }
      if (state.stages[up].location.kind != Location::Kind::At) break;
      up = state.stages[up].location.stage;
    }
  }
  stage.location = location;
}

inline void require_untouched(const Stage& stage, std::string_view what) {
  if (!stage.is_untouched()) {
    throw ScheduleError(ScheduleFault::AlreadyScheduled,
                        std::string(what) + " of '" + stage.op->name + "' must come before other steps on that stage");
  }
}

/// For steps that give a stage new loops in place of the first `count`: reorders of these, annotations and instructions
/// would be lost.
inline void require_plain_loops(const Stage& stage, std::size_t count, std::string_view what) {
  bool in_order = true;
  for (IterId axis = 0; axis < count; ++axis) in_order = in_order && stage.order[axis] == axis;
  const bool annotated = std::any_of(stage.iterators.begin(), stage.iterators.end(),
                                     [](const Iterator& i) { return i.annotation != LoopKind::Serial; });
  if (annotated || stage.tensorized.intrinsic != nullptr || !in_order) {
    throw ScheduleError(ScheduleFault::AlreadyScheduled,
                        std::string(what) + " of '" + stage.op->name +
                            "' gives it new loops without its reorders, annotations and instructions; it must come "
                            "before them");
  }
}

inline void apply_step(State& state, const CacheWrite& s) {
  Stage& stage = computed_stage(state, s.stage);
  require_untouched(stage, "cache_write");
  require_plain_loops(stage, stage.order.size(), "cache_write");
  Operator cached = *stage.op;
  cached.name += "." + std::string(schedule::name(s.scope));
  const std::shared_ptr<const Operator> original = stage.op;
  const TensorId cache = add_stage(state, std::make_shared<const Operator>(std::move(cached)), s.scope, s.stage);
  Stage& copy = state.stages[s.stage];  // add_stage may have reallocated the stages
  copy.op = std::make_shared<const Operator>(copy_operator(original->name, *original, cache));
  reset_iterators(copy);
}

inline void apply_step(State& state, const CacheRead& s) {
  Stage& consumer = computed_stage(state, s.consumer);
  const Stage& source = state.stage(s.tensor);
  bool reads = false;
  const auto cache = static_cast<TensorId>(state.stages.size());
  Operator redirected = *consumer.op;
  redirected.body = program::rewrite(consumer.op->body, [&](const program::Expr& node) -> program::Expr {
    if (node->op != program::Op::Load || node->tensor != s.tensor) return {};
    reads = true;
    return program::load(cache, node->type, node->indices);
  });
  if (!reads) {
    throw ScheduleError(ScheduleFault::UnknownStage, "'" + consumer.op->name + "' does not read '" + source.op->name +
                                                         "', so there is nothing to cache");
  }
  consumer.op = std::make_shared<const Operator>(std::move(redirected));
  Operator copy = copy_operator(source.op->name + "." + std::string(schedule::name(s.scope)), *source.op, s.tensor);
  add_stage(state, std::make_shared<const Operator>(std::move(copy)), s.scope, s.consumer);
}

inline void apply_step(State& state, const MergeAxes&) {
  if (!state.factors_end.empty())
    throw ScheduleError(ScheduleFault::AlreadyScheduled, "merge_axes changes all stages and must be the first step");
  std::optional<ComputeGraph> merged = program::merge_axes(*state.graph);
  if (!merged)
    throw ScheduleError(ScheduleFault::Unsupported,
                        "this program has no two axes that all its operators visit as one; leave merge_axes out");
  state = initial_state(std::make_shared<const ComputeGraph>(*std::move(merged)));
}

inline void apply_step(State& state, const PermuteAxes& s) {
  Stage& stage = computed_stage(state, s.stage);
  require_untouched(stage, "permute_axes");
  require_plain_loops(stage, stage.order.size(), "permute_axes");
  const std::shared_ptr<const Operator> op = stage.op;
  const std::size_t rank = op->rank();
  if (!names_each_once(s.axes, rank)) {
    throw ScheduleError(ScheduleFault::BadOrder, "an order of the axes of '" + op->name + "' must name each of its " +
                                                     std::to_string(rank) + " spatial axes once");
  }
  if (s.stage < state.graph->size() && !state.graph->is_read(s.stage)) {
    throw ScheduleError(ScheduleFault::BadOrder,
                        "'" + op->name + "' is an output, which keeps its order; permute the axes of its cache_write");
  }
  const auto is_in = [&](const auto& steps, auto stage_of) {
    return std::any_of(steps.begin(), steps.end(), [&](const auto& step) { return step.*stage_of == s.stage; });
  };
  const bool hosts_another = std::any_of(state.stages.begin(), state.stages.end(), [&](const Stage& other) {
    return other.location.kind == Location::Kind::At && other.location.stage == s.stage;
  });
  if (is_in(state.packs, &Pack::tensor) || is_in(state.layouts, &TransformLayout::stage) ||
      is_in(state.pipelines, &Pipeline::stage) || hosts_another || !stage.multiples.empty() ||
      stage.tensorized.intrinsic != nullptr) {
    throw ScheduleError(ScheduleFault::AlreadyScheduled,
                        "permute_axes of '" + op->name +
                            "' must come before its layout, padding, instruction and pipelining, and before other "
                            "stages are computed in its loops");
  }
  Operator permuted = *op;
  std::vector<IndexExpr> value(op->axes.size());  // by old axis
  for (std::size_t axis = 0; axis < op->axes.size(); ++axis) {
    const std::size_t old = axis < rank ? s.axes[axis] : axis;
    permuted.axes[axis] = op->axes[old];
    value[old] = IndexExpr::variable(static_cast<program::Var>(axis));
  }
  permuted.body = program::substitute_indices(
      op->body, [&](program::Var axis) -> const IndexExpr& { return value[axis]; },
      [&](program::Var axis) { return program::Range{0, permuted.axes[axis].extent - 1}; });
  stage.op = std::make_shared<const Operator>(std::move(permuted));
  reset_iterators(stage);
  for (Stage& reader : state.stages) {
    if (reader.is_source()) continue;
    const program::Expr body = program::rewrite(reader.op->body, [&](const program::Expr& node) -> program::Expr {
      if (node->op != program::Op::Load || node->tensor != s.stage) return {};
      std::vector<IndexExpr> indices;
      for (const IterId axis : s.axes) indices.push_back(node->indices[axis]);
      return program::load(s.stage, node->type, std::move(indices));
    });
    if (body.get() == reader.op->body.get()) continue;
    Operator redirected = *reader.op;
    redirected.body = body;
    reader.op = std::make_shared<const Operator>(std::move(redirected));
  }
}

/// The operator that computes one partial result of `stage` for each iteration of the reduction iterator `factored`:
/// [spatial axes.., factored iterator | other reduction iterators..]. `extent` has the extents of all iterators.
[[nodiscard]] inline Operator partial_results(const Stage& stage, IterId factored,
                                              const std::vector<std::int64_t>& extent) {
  const Operator& op = *stage.op;
  const std::size_t rank = op.rank();
  Operator partial;
  partial.name = op.name + ".rf";
  partial.type = op.type;
  partial.combiner = op.combiner;
  partial.axes.assign(op.axes.begin(), op.axes.begin() + static_cast<std::ptrdiff_t>(rank));
  std::vector<IndexExpr> value(stage.iterators.size());
  const auto check_size = [&](std::size_t size, std::size_t most, const char* of_what) {
    if (size <= most) return;
    throw ScheduleError(ScheduleFault::Unsupported,
                        "rfactor of '" + op.name + "' makes " + std::to_string(size) + of_what + ", and at most " +
                            std::to_string(most) +
                            " are possible; do not factor again and again what was split and fused");
  };
  const auto add_axis = [&](IterId iter, AxisKind kind) {
    value[iter] = IndexExpr::variable(static_cast<program::Var>(partial.axes.size()));
    partial.axes.push_back({iterator_name(stage, iter), extent[iter], kind});
    check_size(partial.axes.back().name.size(), max_name, " letters of a name");
  };
  for (program::Var a = 0; a < rank; ++a) {
    if (stage.position(a) == stage.order.size()) {
      throw ScheduleError(ScheduleFault::AlreadyScheduled,
                          "rfactor of '" + op.name + "' must come before its spatial axes are split");
    }
    value[a] = IndexExpr::variable(a);
  }
  require_plain_loops(stage, rank, "rfactor");
  add_axis(factored, AxisKind::Spatial);
  for (const IterId iter : stage.order) {
    if (stage.iterators[iter].kind == AxisKind::Reduction && iter != factored) add_axis(iter, AxisKind::Reduction);
  }
  const auto range_of = [&](program::Var v) { return program::Range{0, partial.axes[v].extent - 1}; };
  propagate_values(stage, extent, value, range_of);
  partial.body = program::substitute_indices(
      op.body, [&](program::Var axis) -> const IndexExpr& { return value[axis]; }, range_of);
  // Iterations of a split beyond the end of its parent must contribute the identity: they lie outside the axis, or
  // would be counted twice.
  for (const Relation& relation : stage.relations) {
    const IterId parent = relation.parents[0];
    if (relation.parents.size() > 1 || value[parent].range(range_of).max < extent[parent]) continue;
    partial.body = program::select(program::in_bounds(value[parent], extent[parent]), partial.body,
                                   program::constant(program::identity(op.combiner, op.type), op.type));
  }
  check_size(program::size_of(partial.body), max_body, " terms of an expression");
  check_size(partial.body->levels, max_body_levels, " levels of an expression");
  if (partial.axes.size() == rank + 1) partial.combiner = program::Combiner::None;
  return partial;
}

inline void apply_step(State& state, const Rfactor& s) {
  Stage& stage = computed_stage(state, s.stage);
  live_position(stage, s.iter);
  if (stage.iterators[s.iter].kind != AxisKind::Reduction) {
    throw ScheduleError(ScheduleFault::NotReduction,
                        describe_iterator(stage, s.iter) + " is spatial; rfactor takes a reduction iterator");
  }
  std::vector<std::int64_t> extent(stage.iterators.size(), 1);
  for (std::size_t a = 0; a < stage.op->axes.size(); ++a) extent[a] = stage.op->axes[a].extent;
  propagate_extents(stage, extent);
  auto partial = std::make_shared<const Operator>(partial_results(stage, s.iter, extent));

  Operator final_op = *stage.op;
  const std::size_t rank = final_op.rank();
  final_op.axes.resize(rank);
  final_op.axes.push_back({iterator_name(stage, s.iter), extent[s.iter], AxisKind::Reduction});
  const TensorId rf = add_stage(state, std::move(partial), Scope::Local, s.stage);  // `stage` moves in memory
  final_op.body = program::load(rf, final_op.type, identity_indices(rank + 1));
  Stage& reduced = state.stages[s.stage];
  reduced.op = std::make_shared<const Operator>(std::move(final_op));
  reset_iterators(reduced);
}

}  // namespace tunewright::schedule::detail
