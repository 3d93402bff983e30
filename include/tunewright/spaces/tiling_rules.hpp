// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/core/target.hpp"
#include "tunewright/program/analysis.hpp"
#include "tunewright/schedule/schedule.hpp"

/// Sketch rules for CPUs. A derivation starts with the last stage and walks to the first; at each stage the rules are asked
/// in order, and every rule that applies adds its derivations (Zheng et al., Ansor, OSDI 2020, section 4.1).
namespace tunewright::spaces::tiling {

using program::AxisKind;
using program::TensorId;
using schedule::IterId;
using schedule::Location;
using schedule::LoopKind;
using schedule::ScheduleBuilder;
using schedule::Scope;
using schedule::Stage;
using schedule::State;

/// A partly scheduled program. `place` counts the stages still to visit: the next is `state.order[place - 1]`.
struct Derivation {
  ScheduleBuilder builder;
  std::size_t place = 0;
  std::vector<TensorId> cached;  ///< stages that already are a write cache
};

enum class Answer : std::uint8_t {
  Skip,              ///< does not apply
  Apply,             ///< applies; later rules are asked as well
  ApplyAndSkipRest,  ///< applies, and no later rule may
};

// ---- what rules ask ---------------------------------------------------------------------------------------------------

/// Stages that read `id`, looking through inlined ones, in topological order.
[[nodiscard]] inline std::vector<TensorId> readers(const State& state, TensorId id) {
  std::vector<TensorId> found;
  for (const TensorId other : state.order) {
    const Stage& stage = state.stages[other];
    if (stage.is_source()) continue;
    bool reads = false;
    program::visit(stage.op->body, [&](const program::ExprNode& node) {
      reads = reads || (node.op == program::Op::Load && node.tensor == id);
    });
    if (!reads) continue;
    if (stage.location.kind == Location::Kind::Inline) {
      for (const TensorId further : readers(state, other)) found.push_back(further);
    } else {
      found.push_back(other);
    }
  }
  std::sort(found.begin(), found.end(), [&](TensorId a, TensorId b) {
    return std::find(state.order.begin(), state.order.end(), a) < std::find(state.order.begin(), state.order.end(), b);
  });
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

/// The only reader of `id` if it has the same shape and reads point by point (through inlined elementwise stages), else `id`.
[[nodiscard]] inline TensorId elementwise_reader(const State& state, TensorId id) {
  const std::vector<TensorId> all = readers(state, id);
  if (all.size() != 1) return id;
  const program::Operator& reader = *state.stages[all[0]].op;
  const program::Operator& own = *state.stages[id].op;
  if (reader.has_reduction() || reader.shape() != own.shape()) return id;
  // Follow the chain of inlined stages from `id` to the reader; each hop must be elementwise.
  TensorId at = id;
  while (at != all[0]) {
    TensorId next = at;
    for (const TensorId other : state.order) {
      const Stage& stage = state.stages[other];
      if (stage.is_source()) continue;
      for (const program::Reads& reads : program::reads_of(*stage.op)) {
        if (reads.tensor == at) next = other;
      }
    }
    if (next == at || !program::reads_elementwise(*state.stages[next].op, *state.stages[at].op, at)) return id;
    at = next;
  }
  return all[0];
}

/// True when a tiled stage further up will be computed inside `id` (see `MultiLevelTilingWithFusion`): every stage between
/// them is elementwise, cheap, and the only reader of the one before.
[[nodiscard]] inline bool awaits_fusion(const State& state, TensorId id) {
  const auto direct_readers = [&](TensorId of) {
    std::vector<TensorId> found;
    for (const TensorId other : state.order) {
      if (state.stages[other].is_source()) continue;
      for (const program::Reads& reads : program::reads_of(*state.stages[other].op)) {
        if (reads.tensor == of) found.push_back(other);
      }
    }
    return found;
  };
  for (TensorId tiled = 0; tiled < state.stages.size(); ++tiled) {
    if (state.stages[tiled].is_source() || !program::needs_multi_level_tiling(*state.stages[tiled].op)) continue;
    for (TensorId at = tiled;;) {
      const std::vector<TensorId> next = direct_readers(at);
      if (next.size() != 1 || state.stages[next[0]].op->has_reduction() ||
          !program::reads_elementwise(*state.stages[next[0]].op, *state.stages[at].op, at)) {
        break;
      }
      if (next[0] == id) return true;
      if (!program::strictly_inlineable(*state.stages[next[0]].op)) break;
      at = next[0];
    }
  }
  return false;
}

/// Loops of `consumer` a producer may be computed at: after the parallel ones, spatial or the last outer reduction, never
/// vectorized or unrolled, and not behind an inner reduction.
[[nodiscard]] inline std::vector<Location> attach_points(const State& state, TensorId consumer) {
  const Stage& stage = state.stages[consumer];
  std::vector<Location> points;
  bool in_reduction = false;
  for (const IterId iter : stage.order) {
    const schedule::Iterator& iterator = stage.iterators[iter];
    if (iterator.annotation == LoopKind::Vectorized || iterator.annotation == LoopKind::Unrolled) break;
    const bool reduction = iterator.kind == AxisKind::Reduction;
    if (in_reduction && !reduction) break;
    if (reduction && in_reduction) points.pop_back();  // the innermost of neighbouring reductions stands for them
    in_reduction = reduction;
    points.push_back({Location::Kind::At, consumer, iter});
  }
  return points;
}

/// True when the loop of `l` is gone as soon as a larger number of loops is fused.
[[nodiscard]] inline bool may_vanish(const ScheduleBuilder& s, const Location& l) {
  for (const schedule::Step& step : s.schedule().steps) {
    const auto* fuse = std::get_if<schedule::Fuse>(&step);
    if (fuse != nullptr && fuse->stage == l.stage && std::find(fuse->iters.begin(), fuse->iters.end(), l.iter) != fuse->iters.end()) return true;
  }
  return false;
}

/// Where a stage that is not tiled itself may be computed: at the root, inside its reader, or wherever that may be computed.
[[nodiscard]] inline std::vector<Location> location_choices(const Derivation& d, TensorId id) {
  const State& state = d.builder.state();
  std::vector<Location> choices{{Location::Kind::Root, 0, 0}};
  const std::vector<TensorId> all = readers(state, id);
  if (all.empty()) return choices;
  const auto add = [&](const Location& l) {
    if (!may_vanish(d.builder, l) && std::find(choices.begin(), choices.end(), l) == choices.end()) choices.push_back(l);
  };
  for (const Location& point : attach_points(state, all.back())) add(point);
  for (const schedule::Step& step : d.builder.schedule().steps) {
    const auto* location = std::get_if<schedule::ComputeLocation>(&step);
    if (location == nullptr || location->stage != all.back()) continue;
    for (const Location& choice : location->choices) {
      if (choice.kind == Location::Kind::At) add(choice);
    }
  }
  return choices;
}

/// True when neighbouring values of the last spatial axis are neighbours in memory in every read that uses it.
[[nodiscard]] inline bool vectorizes_well(const program::Operator& op) {
  if (op.rank() == 0) return false;
  const auto last = static_cast<program::Var>(op.rank() - 1);
  bool well = true;
  for (const program::Reads& reads : program::reads_of(op)) {
    for (const auto& access : reads.accesses) {
      for (std::size_t i = 0; i < access.size(); ++i) {
        if (!access[i].uses(last)) continue;
        well = well && i + 1 == access.size() && access[i].is_affine() && access[i].coefficient(last) == 1;
      }
    }
  }
  return well;
}

// ---- what rules do ----------------------------------------------------------------------------------------------------

/// Loops of a stage tiled as SSRSRS, and the steps that chose the sizes of its spatial axes.
struct Tiled {
  std::vector<std::vector<IterId>> spatial;    ///< [axis][level 0..3]
  std::vector<std::vector<IterId>> reduction;  ///< [axis][level 0..1]
  std::vector<std::uint32_t> split_steps;      ///< [axis]
};

inline constexpr std::size_t spatial_levels = 4;
inline constexpr std::size_t reduction_levels = 2;

/// Splits and reorders: S0 S1 R0 S2 R1 S3. The innermost spatial tile is meant for registers: its last axis is vectorized,
/// the others are unrolled.
inline Tiled tile(ScheduleBuilder& s, TensorId id) {
  const std::size_t rank = s.state().stages[id].op->rank();
  const std::size_t axes = s.state().stages[id].op->axes.size();
  Tiled tiled;
  for (IterId axis = 0; axis < axes; ++axis) {
    if (axis < rank) {
      tiled.split_steps.push_back(s.next_step());
      const LoopKind inner = axis + 1 == rank ? LoopKind::Vectorized : LoopKind::Unrolled;
      tiled.spatial.push_back(s.choose_tile(id, axis, spatial_levels - 1, 64, inner));
    } else {
      tiled.reduction.push_back(s.choose_tile(id, axis, reduction_levels - 1, 0));
    }
  }
  std::vector<IterId> order;
  const auto add = [&](const std::vector<std::vector<IterId>>& parts, std::size_t level) {
    for (const std::vector<IterId>& axis : parts) order.push_back(axis[level]);
  };
  add(tiled.spatial, 0);
  add(tiled.spatial, 1);
  add(tiled.reduction, 0);
  add(tiled.spatial, 2);
  add(tiled.reduction, 1);
  add(tiled.spatial, 3);
  s.reorder(id, order);
  for (std::size_t axis = 0; axis < rank; ++axis) {
    s.annotate(id, tiled.spatial[axis][3], axis + 1 == rank ? LoopKind::Vectorized : LoopKind::Unrolled);
  }
  if (axes > rank) s.choose_unroll_limit(id, {0, 16, 64, 512});
  return tiled;
}

inline std::vector<IterId> level(const std::vector<std::vector<IterId>>& parts, std::size_t index) {
  std::vector<IterId> iters;
  for (const std::vector<IterId>& axis : parts) iters.push_back(axis[index]);
  return iters;
}

/// Gives the operands of a tiled stage a layout of their own: constants are packed ahead of time in the order of the loops,
/// others may be copied, tile by tile, to where the copy stays in cache (or not at all: `Inline`).
inline void cache_operands(ScheduleBuilder& s, TensorId id, const Target& target) {
  const std::vector<program::Reads> all = program::reads_of(*s.state().stages[id].op);
  if (!s.state().stages[id].op->has_reduction()) return;
  for (const program::Reads& reads : all) {
    const Stage& source = s.state().stages[reads.tensor];
    if (!source.is_source() || reads.accesses.size() != 1) continue;
    if (source.op->role == program::Role::Constant) {
      s.pack(reads.tensor, id);
      continue;
    }
    const program::AccessPattern pattern = program::access_pattern(*s.state().stages[id].op, reads.accesses[0]);
    if (pattern.simple && !pattern.axis_missing) continue;  // every element is used once
    const TensorId copy = s.cache_read(reads.tensor, id, Scope::Local);
    std::vector<Location> choices{{Location::Kind::Inline, 0, 0}};
    for (const Location& point : attach_points(s.state(), id)) {
      if (!may_vanish(s, point)) choices.push_back(point);
    }
    s.choose_location(copy, std::move(choices));
    const auto last = static_cast<IterId>(s.state().stages[copy].op->rank() - 1);
    s.vectorize(copy, s.split(copy, last, {static_cast<std::int64_t>(target.vector_bytes() / 4)})[1]);
  }
}

/// Parallel outer loops and a vectorized innermost one, for stages that are not tiled.
inline void schedule_simply(Derivation& d, TensorId id, const Target& target) {
  ScheduleBuilder& s = d.builder;
  const program::Operator& op = *s.state().stages[id].op;
  std::vector<IterId> outer;
  const std::size_t rank = op.rank();
  if (rank == 0) return;
  const auto last = static_cast<IterId>(rank - 1);
  for (IterId axis = 0; axis + 1 < rank; ++axis) outer.push_back(axis);
  if (vectorizes_well(op) && op.axes[last].extent > 1) {
    const auto lanes = static_cast<std::int64_t>(target.vector_bytes() / program::size_in_bytes(op.type));
    const std::vector<IterId> parts = s.split(id, last, {std::min(lanes, op.axes[last].extent)});
    if (op.has_reduction()) {
      std::vector<IterId> order = outer;
      order.push_back(parts[0]);
      for (IterId axis = static_cast<IterId>(rank); axis < op.axes.size(); ++axis) order.push_back(axis);
      order.push_back(parts[1]);
      s.reorder(id, order);
    }
    s.vectorize(id, parts[1]);
    outer.push_back(parts[0]);
  } else {
    outer.push_back(last);
  }
  s.parallel(id, s.choose_fuse(id, outer));
  if (op.has_reduction()) s.choose_unroll_limit(id, {0, 16, 64, 512});
}

// ---- the rules --------------------------------------------------------------------------------------------------------

/// Inputs and constants have no loops.
struct SkipSource {
  [[nodiscard]] Answer meets(const Derivation& d, TensorId id, const Target&) const {
    return d.builder.state().stages[id].is_source() ? Answer::ApplyAndSkipRest : Answer::Skip;
  }
  void apply(Derivation d, TensorId, const Target&, std::vector<Derivation>& out) const {
    --d.place;
    out.push_back(std::move(d));
  }
};

/// Cheap elementwise stages disappear into their readers.
struct AlwaysInline {
  [[nodiscard]] Answer meets(const Derivation& d, TensorId id, const Target&) const {
    const State& state = d.builder.state();
    const bool is_output = readers(state, id).empty();
    const bool is_copy = id >= state.graph->size();
    return !is_output && !is_copy && program::strictly_inlineable(*state.stages[id].op) ? Answer::ApplyAndSkipRest : Answer::Skip;
  }
  void apply(Derivation d, TensorId id, const Target&, std::vector<Derivation>& out) const {
    d.builder.compute_inline(id);
    --d.place;
    out.push_back(std::move(d));
  }
};

/// A copy made by `cache_operands` is scheduled already.
struct SkipScheduled {
  [[nodiscard]] Answer meets(const Derivation& d, TensorId id, const Target&) const {
    return d.builder.state().stages[id].relations.empty() ? Answer::Skip : Answer::ApplyAndSkipRest;
  }
  void apply(Derivation d, TensorId, const Target&, std::vector<Derivation>& out) const {
    --d.place;
    out.push_back(std::move(d));
  }
};

/// Splits a long reduction, so that parts of it run in vector lanes (and, with few outputs, on several threads).
/// Deviates: Ansor leaves the factored loop to its vectorization rule; here the lanes are annotated at once.
struct AddRfactor {
  [[nodiscard]] Answer meets(const Derivation& d, TensorId id, const Target& target) const {
    const Stage& stage = d.builder.state().stages[id];
    if (!stage.op->has_reduction() || !stage.is_untouched()) return Answer::Skip;
    if (std::find(d.cached.begin(), d.cached.end(), id) != d.cached.end()) return Answer::Skip;
    const double space = program::spatial_points(*stage.op);
    const double reduction = program::reduction_points(*stage.op);
    if (program::needs_multi_level_tiling(*stage.op)) {
      return space > reduction || space > 16.0 * target.threads ? Answer::Skip : Answer::Apply;
    }
    return reduction > target.threads && reduction >= 8 && !vectorizes_well(*stage.op) ? Answer::Apply : Answer::Skip;
  }
  void apply(const Derivation& d, TensorId id, const Target& target, std::vector<Derivation>& out) const {
    out.push_back(factored(d, id, target, false));
    if (program::spatial_points(*d.builder.state().stages[id].op) < 16.0 * target.threads) {
      out.push_back(factored(d, id, target, true));
    }
  }

 private:
  static Derivation factored(Derivation d, TensorId id, const Target& target, bool threads) {
    ScheduleBuilder& s = d.builder;
    const program::Operator& op = *s.state().stages[id].op;
    const std::size_t rank = op.rank();
    const auto lanes = static_cast<std::int64_t>(target.vector_bytes() / program::size_in_bytes(op.type));
    std::vector<IterId> reductions;
    for (IterId axis = static_cast<IterId>(rank); axis < op.axes.size(); ++axis) reductions.push_back(axis);
    const IterId whole = reductions.size() > 1 ? s.fuse(id, reductions) : reductions[0];
    // [outer | middle | lanes]; only the outer part is a choice.
    const std::int64_t extent = s.extents_at_root(id)[whole];
    const std::int64_t width = std::min(2 * lanes, extent);
    TensorId partial = 0;
    if (threads) {
      const std::int64_t chunk = program::ceil_div(program::ceil_div(extent, width), 4 * static_cast<std::int64_t>(target.threads));
      const std::vector<IterId> parts = s.split(id, whole, {chunk, width});
      const TensorId by_thread = s.rfactor(id, parts[0]);
      // Reduction axes of the new stage: the middle part, then the lanes.
      partial = s.rfactor(by_thread, static_cast<IterId>(rank + 2));
      finish_final(d, id, target);
      finish_final(d, by_thread, target);
    } else {
      const std::vector<IterId> parts = s.split(id, whole, {width});
      partial = s.rfactor(id, parts[1]);
      finish_final(d, id, target);
    }
    // partial: [spatial.., lanes | rest]; the lanes go innermost.
    const Stage& stage = s.state().stages[partial];
    const auto lane = static_cast<IterId>(stage.op->rank() - 1);
    std::vector<IterId> order = stage.order;
    order.erase(std::find(order.begin(), order.end(), lane));
    order.push_back(lane);
    s.reorder(partial, order);
    s.vectorize(partial, lane);
    std::vector<IterId> outer;
    for (IterId axis = 0; axis < lane; ++axis) outer.push_back(axis);
    if (!outer.empty()) s.parallel(partial, s.choose_fuse(partial, outer));
    s.choose_unroll_limit(partial, {0, 16, 64, 512});
    s.choose_location(partial, location_choices(d, partial));
    // Next is whatever comes before the partial stage.
    const State& state = s.state();
    d.place = static_cast<std::size_t>(std::find(state.order.begin(), state.order.end(), partial) - state.order.begin());
    return d;
  }

  /// The stage that sums up what is left.
  static void finish_final(Derivation& d, TensorId id, const Target&) {
    ScheduleBuilder& s = d.builder;
    std::vector<IterId> outer;
    for (IterId axis = 0; axis < s.state().stages[id].op->rank(); ++axis) outer.push_back(axis);
    if (!outer.empty()) s.parallel(id, s.choose_fuse(id, outer));
    if (!readers(s.state(), id).empty()) s.choose_location(id, location_choices(d, id));
  }
};

/// Lets a tiled stage without an elementwise reader accumulate in a tile of its own and copy it out once.
struct AddCacheWrite {
  [[nodiscard]] Answer meets(const Derivation& d, TensorId id, const Target&) const {
    const State& state = d.builder.state();
    if (!state.stages[id].op->has_reduction() || !program::needs_multi_level_tiling(*state.stages[id].op)) return Answer::Skip;
    return elementwise_reader(state, id) == id ? Answer::Apply : Answer::Skip;
  }
  void apply(Derivation d, TensorId id, const Target&, std::vector<Derivation>& out) const {
    const TensorId cache = d.builder.cache_write(id, Scope::Local);
    d.cached.push_back(cache);
    // The cache now stands where the stage stood, so it is visited next.
    out.push_back(std::move(d));
  }
};

/// Tiles a stage and computes it, tile by tile, inside its elementwise reader, which follows the tiling.
struct MultiLevelTilingWithFusion {
  [[nodiscard]] Answer meets(const Derivation& d, TensorId id, const Target&) const {
    const State& state = d.builder.state();
    if (!program::needs_multi_level_tiling(*state.stages[id].op) || elementwise_reader(state, id) == id) return Answer::Skip;
    return state.stages[elementwise_reader(state, id)].is_untouched() ? Answer::ApplyAndSkipRest : Answer::Skip;
  }
  void apply(const Derivation& d, TensorId id, const Target& target, std::vector<Derivation>& out) const {
    for (const std::size_t fuse_level : {std::size_t{1}, std::size_t{2}}) out.push_back(fused(d, id, fuse_level, target));
  }

 private:
  static Derivation fused(Derivation d, TensorId id, std::size_t fuse_level, const Target& target) {
    ScheduleBuilder& s = d.builder;
    const TensorId reader = elementwise_reader(s.state(), id);
    const Tiled tiled = tile(s, id);
    const std::size_t rank = tiled.spatial.size();
    std::vector<std::vector<IterId>> copy;
    for (std::size_t axis = 0; axis < rank; ++axis) {
      // The last axis follows to the end, so that its innermost part is the vector of the register tile.
      const bool vectorized = axis + 1 == rank;
      copy.push_back(s.follow_split(reader, static_cast<IterId>(axis), tiled.split_steps[axis],
                                    static_cast<std::uint32_t>(vectorized ? spatial_levels - 1 : fuse_level)));
    }
    std::vector<IterId> order;
    for (std::size_t l = 0; l < fuse_level; ++l) {
      for (const IterId iter : level(copy, l)) order.push_back(iter);
    }
    for (const std::vector<IterId>& axis : copy) order.insert(order.end(), axis.begin() + static_cast<std::ptrdiff_t>(fuse_level), axis.end());
    s.reorder(reader, order);
    s.vectorize(reader, copy.back().back());
    if (fuse_level == 1) {
      const IterId outer = s.fuse(reader, level(copy, 0));
      s.parallel(reader, outer);
      s.compute_at(id, reader, outer);
    } else {
      s.parallel(reader, s.choose_fuse(reader, level(copy, 0)));
      s.compute_at(id, reader, level(copy, fuse_level - 1).back());
    }
    cache_operands(s, id, target);
    const State& state = s.state();
    d.place = static_cast<std::size_t>(std::find(state.order.begin(), state.order.end(), id) - state.order.begin());
    return d;
  }
};

/// Tiles a stage that writes its tensor directly.
struct MultiLevelTiling {
  [[nodiscard]] Answer meets(const Derivation& d, TensorId id, const Target&) const {
    return program::needs_multi_level_tiling(*d.builder.state().stages[id].op) ? Answer::ApplyAndSkipRest : Answer::Skip;
  }
  void apply(Derivation d, TensorId id, const Target& target, std::vector<Derivation>& out) const {
    ScheduleBuilder& s = d.builder;
    const Tiled tiled = tile(s, id);
    s.parallel(id, s.choose_fuse(id, level(tiled.spatial, 0)));
    cache_operands(s, id, target);
    const State& state = s.state();
    d.place = static_cast<std::size_t>(std::find(state.order.begin(), state.order.end(), id) - state.order.begin());
    out.push_back(std::move(d));
  }
};

/// Everything else: parallel, vectorized, and somewhere near its reader.
struct ScheduleSimply {
  [[nodiscard]] Answer meets(const Derivation&, TensorId, const Target&) const { return Answer::ApplyAndSkipRest; }
  void apply(Derivation d, TensorId id, const Target& target, std::vector<Derivation>& out) const {
    if (awaits_fusion(d.builder.state(), id)) {
      --d.place;
      out.push_back(std::move(d));
      return;
    }
    schedule_simply(d, id, target);
    if (!readers(d.builder.state(), id).empty()) d.builder.choose_location(id, location_choices(d, id));
    --d.place;
    out.push_back(std::move(d));
  }
};

}  // namespace tunewright::spaces::tiling
