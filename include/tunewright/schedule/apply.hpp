// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tunewright/core/order.hpp"
#include "tunewright/schedule/state.hpp"

/// The meaning of each step: `apply(state, step)` changes the state or throws `ScheduleError`, never anything
/// else.
namespace tunewright::schedule {

namespace detail {

/// Idle elements behind a row, at most.
inline constexpr std::int64_t max_padding = 1024;

inline void apply_step(State& state, const Split& s) { split(state, s.stage, s.iter, s.factors); }

inline Factors followed_factors(const State& state, const FollowSplit& s) {
  if (s.source >= state.factors_end.size() || s.parts < 1 ||
      s.parts > state.factors_of_step(s.source).size()) {
    throw ScheduleError(ScheduleFault::BadFactor,
                        "a split cannot follow step " + std::to_string(s.source) + " with " +
                            std::to_string(s.parts) +
                            " inner parts; follow an earlier split and make at most as many");
  }
  const std::span<const std::int64_t> source = state.factors_of_step(s.source);
  Factors factors(source.begin(), source.begin() + (s.parts - 1));
  std::int64_t rest = 1;
  for (std::size_t f = s.parts - 1; f < source.size(); ++f) rest *= source[f];
  factors.push_back(rest);
  return factors;
}

inline void apply_step(State& state, const FollowSplit& s) {
  const Factors factors = followed_factors(state, s);
  split(state, s.stage, s.iter, {factors.data(), factors.size()});
}

inline void apply_step(State& state, const FollowFusedSplit& s) {
  if (s.sources.empty())
    throw ScheduleError(ScheduleFault::BadFactor, "a fused split follows no step; name at least one split");
  std::int64_t product = 1;
  for (const std::uint32_t source : s.sources) {
    const bool known = source < state.factors_end.size() && s.level < state.factors_of_step(source).size();
    const std::int64_t factor = known ? state.factors_of_step(source)[s.level] : 0;
    if (!known || factor > max_split / product) {
      throw ScheduleError(ScheduleFault::BadFactor,
                          "a fused split cannot follow factor " + std::to_string(s.level) + " of step " +
                              std::to_string(source) +
                              (known ? "; the product is more than 2^31"
                                     : "; follow earlier splits that have as many factors"));
    }
    product *= factor;
  }
  split(state, s.stage, s.iter, {&product, 1});
}

inline void apply_step(State& state, const Fuse& s) {
  Stage& stage = computed_stage(state, s.stage);
  if (s.count < 1 || s.count > s.iters.size()) {
    throw ScheduleError(ScheduleFault::BadChoice, "cannot fuse " + std::to_string(s.count) + " of " +
                                                      std::to_string(s.iters.size()) +
                                                      " iterators of stage '" + stage.op->name + "'");
  }
  const std::size_t first = live_position(stage, s.iters[0]);
  Relation relation;
  for (std::size_t i = 0; i < s.count; ++i) {
    if (live_position(stage, s.iters[i]) != first + i) {
      throw ScheduleError(ScheduleFault::NotAdjacent,
                          describe_iterator(stage, s.iters[i]) +
                              " does not directly follow the one it is fused with; reorder first");
    }
    if (stage.iterators[s.iters[i]].kind != stage.iterators[s.iters[0]].kind) {
      throw ScheduleError(ScheduleFault::MixedKinds, describe_iterator(stage, s.iters[i]) +
                                                         ": spatial and reduction iterators cannot be fused");
    }
    relation.parents.push_back(s.iters[i]);
  }
  const auto child = static_cast<IterId>(stage.iterators.size());
  relation.children.push_back(child);
  stage.iterators.push_back({stage.iterators[s.iters[0]].kind, LoopKind::Serial});
  stage.order.erase(stage.order.begin() + static_cast<std::ptrdiff_t>(first + 1),
                    stage.order.begin() + static_cast<std::ptrdiff_t>(first + s.count));
  stage.order[first] = child;
  stage.relations.push_back(std::move(relation));  // of one iterator: a split into itself
}

inline void apply_step(State& state, const Reorder& s) {
  Stage& stage = computed_stage(state, s.stage);
  boost::container::small_vector<std::size_t, 32> sorted;
  for (const IterId iter : s.order) sorted.push_back(live_position(stage, iter));
  sort_few(sorted);
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    throw ScheduleError(ScheduleFault::BadOrder,
                        "an iterator of stage '" + stage.op->name + "' is named twice in a reorder");
  }
  for (std::size_t i = 0; i < sorted.size(); ++i) stage.order[sorted[i]] = s.order[i];
}

inline void apply_step(State& state, const Annotate& s) {
  Stage& stage = computed_stage(state, s.stage);
  live_position(stage, s.iter);
  Iterator& iterator = stage.iterators[s.iter];
  const bool may_carry_reduction = s.kind == LoopKind::Serial || s.kind == LoopKind::Unrolled ||
                                   s.kind == LoopKind::Vectorized || schedule::is_thread_index(s.kind);
  if (iterator.kind == AxisKind::Reduction && !may_carry_reduction) {
    throw ScheduleError(ScheduleFault::BadAnnotation,
                        describe_iterator(stage, s.iter) + " carries a reduction and cannot run " +
                            std::string(schedule::name(s.kind)) + "; use rfactor first");
  }
  iterator.annotation = s.kind;
}

inline void apply_step(State& state, const UnrollLimit& s) {
  Stage& stage = computed_stage(state, s.stage);
  if (s.selected >= s.choices.size() || s.choices[s.selected] < 0) {
    throw ScheduleError(ScheduleFault::BadChoice, "unroll limit " + std::to_string(s.selected) +
                                                      " of stage '" + stage.op->name +
                                                      "' is not one of its choices");
  }
  stage.unroll_limit = s.choices[s.selected];
}

inline void apply_step(State& state, const ComputeLocation& s) {
  Stage& stage = computed_stage(state, s.stage);
  if (s.selected >= s.choices.size()) {
    throw ScheduleError(ScheduleFault::BadChoice, "location " + std::to_string(s.selected) + " of stage '" +
                                                      stage.op->name + "' is not one of its choices");
  }
  const Location& location = s.choices[s.selected];
  const bool is_output = s.stage < state.graph->size() && !state.graph->is_read(s.stage);
  if (location.kind != Location::Kind::Root && is_output) {
    throw ScheduleError(ScheduleFault::BadLocation,
                        "'" + stage.op->name + "' is an output and must stay at the root");
  }
  if (location.kind == Location::Kind::Inline && stage.op->has_reduction()) {
    throw ScheduleError(ScheduleFault::NotInlineable,
                        "'" + stage.op->name + "' reduces and cannot be inlined");
  }
  if (location.kind == Location::Kind::At) {
    live_position(computed_stage(state, location.stage), location.iter);
    TensorId up = location.stage;  // following attachments from the target must not lead back here
    for (std::size_t hops = 0; hops <= state.stages.size(); ++hops) {
      if (up == s.stage) {
        throw ScheduleError(ScheduleFault::BadLocation,
                            "'" + stage.op->name + "' cannot be computed inside itself");
      }
      if (state.stages[up].location.kind != Location::Kind::At) break;
      up = state.stages[up].location.stage;
    }
  }
  stage.location = location;
}

inline void require_untouched(const Stage& stage, std::string_view what) {
  if (!stage.is_untouched()) {
    throw ScheduleError(ScheduleFault::AlreadyScheduled, std::string(what) + " of '" + stage.op->name +
                                                             "' must come before other steps on that stage");
  }
}

inline void apply_step(State& state, const CacheWrite& s) {
  Stage& stage = computed_stage(state, s.stage);
  require_untouched(stage, "cache_write");
  Operator cached = *stage.op;
  cached.name += "." + std::string(schedule::name(s.scope));
  const std::shared_ptr<const Operator> original = stage.op;
  const TensorId cache =
      add_stage(state, std::make_shared<const Operator>(std::move(cached)), s.scope, s.stage);
  Stage& copy = state.stages[s.stage];  // add_stage may have moved the stages
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
    throw ScheduleError(ScheduleFault::UnknownStage, "'" + consumer.op->name + "' does not read '" +
                                                         source.op->name + "', so there is nothing to cache");
  }
  consumer.op = std::make_shared<const Operator>(std::move(redirected));
  Operator copy =
      copy_operator(source.op->name + "." + std::string(schedule::name(s.scope)), *source.op, s.tensor);
  add_stage(state, std::make_shared<const Operator>(std::move(copy)), s.scope, s.consumer);
}

inline void apply_step(State& state, const Rfactor& s) {
  Stage& stage = computed_stage(state, s.stage);
  live_position(stage, s.iter);
  if (stage.iterators[s.iter].kind != AxisKind::Reduction) {
    throw ScheduleError(ScheduleFault::NotReduction,
                        describe_iterator(stage, s.iter) + " is spatial; rfactor takes a reduction iterator");
  }
  const std::shared_ptr<const Operator> op = stage.op;
  const std::size_t rank = op->rank();
  std::vector<std::int64_t> extent(stage.iterators.size(), 1);
  for (std::size_t a = 0; a < op->axes.size(); ++a) extent[a] = op->axes[a].extent;
  propagate_extents(stage, extent);

  Operator partial;  // [spatial axes.., factored iterator | other reduction iterators..]
  partial.name = op->name + ".rf";
  partial.type = op->type;
  partial.combiner = op->combiner;
  partial.axes.assign(op->axes.begin(), op->axes.begin() + static_cast<std::ptrdiff_t>(rank));
  std::vector<IndexExpr> value(stage.iterators.size());
  const auto add_axis = [&](IterId iter, AxisKind kind) {
    value[iter] = IndexExpr::variable(static_cast<program::Var>(partial.axes.size()));
    partial.axes.push_back({iterator_name(stage, iter), extent[iter], kind});
  };
  for (program::Var a = 0; a < rank; ++a) {
    if (stage.position(a) == stage.order.size()) {
      throw ScheduleError(ScheduleFault::AlreadyScheduled,
                          "rfactor of '" + op->name + "' must come before its spatial axes are split");
    }
    value[a] = IndexExpr::variable(a);
  }
  add_axis(s.iter, AxisKind::Spatial);
  for (const IterId iter : stage.order) {
    if (stage.iterators[iter].kind == AxisKind::Reduction && iter != s.iter)
      add_axis(iter, AxisKind::Reduction);
  }
  const auto range_of = [&](program::Var v) { return program::Range{0, partial.axes[v].extent - 1}; };
  propagate_values(stage, extent, value, range_of);
  partial.body = program::substitute_indices(
      op->body, [&](program::Var axis) -> const IndexExpr& { return value[axis]; }, range_of);
  // What a split leaves idle past the end of its parent must not count, neither beyond an axis nor a second
  // time.
  for (const Relation& relation : stage.relations) {
    const IterId parent = relation.parents[0];
    if (relation.parents.size() > 1 || value[parent].range(range_of).max < extent[parent]) continue;
    partial.body = program::select(program::in_bounds(value[parent], extent[parent]), partial.body,
                                   program::constant(program::identity(op->combiner, op->type), op->type));
  }
  if (partial.axes.size() == rank + 1) partial.combiner = program::Combiner::None;

  Operator final_op = *op;
  final_op.axes.resize(rank);
  final_op.axes.push_back({iterator_name(stage, s.iter), extent[s.iter], AxisKind::Reduction});
  const TensorId rf =
      add_stage(state, std::make_shared<const Operator>(std::move(partial)), Scope::Local, s.stage);
  final_op.body = program::load(rf, op->type, identity_indices(rank + 1));
  Stage& reduced = state.stages[s.stage];
  reduced.op = std::make_shared<const Operator>(std::move(final_op));
  reset_iterators(reduced);
}

inline void apply_step(State& state, const Pack& s) {
  computed_stage(state, s.consumer);
  const Stage& source = state.stage(s.tensor);
  if (source.op->role != program::Role::Constant && source.op->role != program::Role::Computed) {
    throw ScheduleError(
        ScheduleFault::NotPackable,
        "'" + source.op->name + "' is an input and arrives as it is; pack a constant, or a cache_read of it");
  }
  state.packs.push_back(s);
}

inline void apply_step(State& state, const Arrange& s) {
  const Stage& stage = computed_stage(state, s.stage);
  if (s.order >= s.orders.size() || s.padding >= s.paddings.size() || s.paddings[s.padding] < 0 ||
      s.paddings[s.padding] > max_padding) {
    throw ScheduleError(ScheduleFault::BadChoice, "order " + std::to_string(s.order) + " with padding " +
                                                      std::to_string(s.padding) + " of '" + stage.op->name +
                                                      "' is not one of its choices");
  }
  std::vector<std::uint32_t> sorted = s.orders[s.order];
  sort_few(sorted);
  bool all = sorted.size() == stage.op->rank();
  for (std::size_t d = 0; all && d < sorted.size(); ++d) all = sorted[d] == d;
  if (!all) {
    throw ScheduleError(ScheduleFault::BadOrder, "an arrangement of '" + stage.op->name +
                                                     "' must name each of its " +
                                                     std::to_string(stage.op->rank()) + " dimensions once");
  }
  state.arrangements.push_back(s);
}

inline void apply_step(State& state, const Pipeline& s) {
  const Stage& stage = computed_stage(state, s.stage);
  live_position(stage, s.iter);
  if (s.selected >= s.choices.size()) {
    throw ScheduleError(ScheduleFault::BadChoice, "pipelining " + std::to_string(s.selected) + " of stage '" +
                                                      stage.op->name + "' is not one of its choices");
  }
  const Pipelining& chosen = s.choices[s.selected];
  if (chosen.depth < 1 || chosen.depth > max_pipeline_depth || (chosen.asynchronous && chosen.depth == 1)) {
    throw ScheduleError(
        ScheduleFault::BadChoice,
        "copies in stage '" + stage.op->name + "' cannot be pipelined " + std::to_string(chosen.depth) +
            (chosen.asynchronous ? " deep and asynchronous" : " deep") + "; give 1 to " +
            std::to_string(max_pipeline_depth) + " tiles, at least 2 for asynchronous copies");
  }
  state.pipelines.push_back(s);
}

/// Lets `operand` reach as far as `reader`, whose axes have grown, reads it; zero beyond what there is.
inline void pad_operand(State& state, const Operator& reader, const program::ExprNode& read) {
  Stage& operand = computed_stage(state, read.tensor);
  require_untouched(operand, "padding");
  if (operand.op->has_reduction()) {
    throw ScheduleError(ScheduleFault::Unsupported,
                        "'" + operand.op->name + "' reduces and is not padded; cache_read it first");
  }
  const auto range_of = [&](program::Var v) { return program::Range{0, reader.axes[v].extent - 1}; };
  Operator larger = *operand.op;
  program::Expr inside;
  for (program::Var d = 0; d < larger.rank(); ++d) {
    const std::int64_t reach = read.indices[d].range(range_of).max + 1;
    if (reach <= larger.axes[d].extent) continue;
    const program::Expr here = program::in_bounds(IndexExpr::variable(d), larger.axes[d].extent);
    inside = inside ? inside && here : here;
    larger.axes[d].extent = reach;
  }
  if (!inside) return;
  larger.body = program::select(inside, larger.body, program::constant(0, larger.type));
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
        "'" + op->name +
            "' is no sum of products of two tensors that others read; pad what cache_write made");
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
    throw ScheduleError(ScheduleFault::BadFactor, "padding of '" + op->name +
                                                      "' must name a multiple of 1 to " +
                                                      std::to_string(max_padding) + " for each of its " +
                                                      std::to_string(padded.axes.size()) + " axes");
  }
  pad_operand(state, padded, *product->first);
  pad_operand(state, padded, *product->second);
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
    for (const TensorIntrinsic& one : tensor_intrinsics)
      known += (known.empty() ? "" : ", ") + std::string(one.name);
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

}  // namespace detail

/// Applies one step. Throws `ScheduleError` (the state is then unusable) when the step is illegal. Cost: a
/// few hundred nanoseconds; steps that make stages copy an operator.
inline void apply(State& state, const Step& step) {
  std::visit(
      [&](const auto& s) {
        detail::apply_step(state, s);
        using S = std::remove_cvref_t<decltype(s)>;
        if constexpr (std::is_same_v<S, Split> || std::is_same_v<S, FollowSplit> ||
                      std::is_same_v<S, FollowFusedSplit>) {
          const Factors& factors = state.stages[s.stage].relations.back().factors;
          state.split_factors.insert(state.split_factors.end(), factors.begin(), factors.end());
        }
      },
      step);
  state.factors_end.push_back(static_cast<std::uint32_t>(state.split_factors.size()));
}

}  // namespace tunewright::schedule
