// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "tunewright/core/target.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/schedule/schedule.hpp"
#include "tunewright/spaces/tiling/predicates.hpp"

/// Transformations of stages by sketch rules: tile, change the layout of operands, or schedule simply.
namespace tunewright::spaces::tiling {

/// The loops of a stage tiled as SSRSRS, and the steps that choose the sizes of its spatial axes.
struct Tiled {
  std::vector<std::vector<IterId>> spatial;    ///< [axis][level 0..3]
  std::vector<std::vector<IterId>> reduction;  ///< [axis][level 0..1]
  std::vector<std::uint32_t> split_steps;      ///< [axis]
};

inline constexpr std::size_t spatial_levels = 4;
inline constexpr std::size_t reduction_levels = 2;

/// Consecutive vectors that one step of a loop bound by memory bandwidth reads or writes, at most.
inline constexpr std::int64_t most_vectors = 8;

/// Statements up to which the loops of a reduction may be unrolled (as in Ansor for CPUs).
[[nodiscard]] inline std::vector<std::int64_t> unroll_limits() { return {0, 16, 64, 512}; }

/// Splits and reorders: S0 S1 R0 S2 R1 S3, where the loop of S2 over the last axis is outermost. The innermost spatial
/// tile is a register tile: its last axis is vectorized, the others are unrolled.
Tiled tile(ScheduleBuilder& s, TensorId id);

std::vector<IterId> level(const std::vector<std::vector<IterId>>& parts, std::size_t index);
/// The first `levels` levels of all axes, then what is left of each axis.
std::vector<IterId> outer_levels_first(const std::vector<std::vector<IterId>>& parts, std::size_t levels);

/// Fuses the loops, if there are several; returns the one that is left.
[[nodiscard]] inline IterId fuse_all(ScheduleBuilder& s, TensorId id, std::vector<IterId> iters) {
  return iters.size() == 1 ? iters[0] : s.fuse(id, std::move(iters));
}

/// Makes a loop the innermost of its stage and vectorizes it.
void vectorize_innermost(ScheduleBuilder& s, TensorId id, IterId iter);

/// The axis of a tile that the panels of a copied operand follow, and the dimension of the operand along it.
struct PanelAxis {
  program::Var axis = 0;
  IterId dimension = 0;
};
/// The vectorized axis of the tile where it moves along the operand, else another one along its last dimension. Nothing
/// for an operand that keeps its rows.
std::optional<PanelAxis> panel_axis(const program::Operator& op, const std::vector<program::IndexExpr>& access);

/// Schedules the copy of an operand. If the vectorized axis of the tile moves along the operand, it is stored panel by
/// panel, in the order in which the tiles read it: its dimension along that axis follows the tiling. If that is not the
/// last dimension, as in a transposed operand, the copy transposes it, so that strided elements are read once instead
/// of for each row of register tiles. An operand along whose last dimension another axis of the tile moves, as the left
/// one of A^T B, is stored in panels of a register tile's rows: each term of a reduction would read another line of it.
/// Panels along the last dimension are filled by a few rows at a time, so that what is read is read along, and what is
/// written, which may be parts of lines in many panels a power of two apart, is not evicted meanwhile. Where such a
/// copy of a matrix is not inside the tile, threads share the rows. Other operands keep their rows.
void schedule_operand_copy(ScheduleBuilder& s, TensorId copy, TensorId id, const Tiled& tiled,
                           const std::vector<program::IndexExpr>& access, const Target& target);

/// Changes the layout of the operands of a tiled stage: constants are packed ahead of time in loop order; other
/// operands may be copied tile by tile, at a location where the copy stays in cache, or not at all (`Inline`), or,
/// where panels are along the last dimension of a matrix, once for all threads (`Root`).
void cache_operands(ScheduleBuilder& s, TensorId id, const Tiled& tiled, const Target& target);

/// Runs the outermost tile loops of `reader`, whose axes are split into `parts`, in parallel, and computes `id` inside
/// the first `levels` levels of its tile loops.
void compute_in_tile(ScheduleBuilder& s, TensorId id, TensorId reader, const std::vector<std::vector<IterId>>& parts,
                     std::size_t levels);

/// Splits two loops, along the rows and the last axis of a stage that reads its operand across rows, in square tiles
/// that are transposed in registers, `squares` side by side. Returns the loops over rows and columns of tiles, then
/// those inside a tile, of which the last is the one to vectorize.
std::array<IterId, 4> split_in_squares(ScheduleBuilder& s, TensorId id, IterId row, IterId column, const Target& target,
                                       std::int64_t squares = 1);

/// Stores the last axis of a temporary outermost, so that what one of its iterations computes is contiguous.
void store_last_axis_first(ScheduleBuilder& s, TensorId id);

/// Vectorizes the last spatial axis of a stage, in steps of several vectors where memory bounds it, with the reduction
/// in the loop over steps. Returns the loops around the reduction: the other spatial axes and the steps.
std::vector<IterId> vectorize_columns(ScheduleBuilder& s, TensorId id, const Target& target);

/// For stages that are not tiled: parallel outer loops and a vectorized innermost loop.
void schedule_simply(Derivation& d, TensorId id, const Target& target);

/// Schedules the reader that rules left to `id` because it could have been tiled and computed there, if there is one.
void schedule_waiting_reader(Derivation& d, TensorId id, const Target& target);

}  // namespace tunewright::spaces::tiling

#if TUNEWRIGHT_DEFINES(spaces)

#include "tunewright/program/analysis.hpp"
#include "tunewright/spaces/decisions/register_tile.hpp"

namespace tunewright::spaces::tiling {

TUNEWRIGHT_INLINE Tiled tile(ScheduleBuilder& s, TensorId id) {
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
  // The vectorized axis is outermost: its operand is the larger part of what a register tile reads, and stays in L1
  // while the other axes advance.
  std::rotate(order.end() - static_cast<std::ptrdiff_t>(rank), order.end() - 1, order.end());
  add(tiled.reduction, 1);
  add(tiled.spatial, 3);
  s.reorder(id, order);
  for (std::size_t axis = 0; axis < rank; ++axis) {
    s.annotate(id, tiled.spatial[axis][3], axis + 1 == rank ? LoopKind::Vectorized : LoopKind::Unrolled);
  }
  if (axes > rank) s.choose_unroll_limit(id, unroll_limits());
  return tiled;
}

TUNEWRIGHT_INLINE std::vector<IterId> level(const std::vector<std::vector<IterId>>& parts, std::size_t index) {
  std::vector<IterId> iters;
  for (const std::vector<IterId>& axis : parts) iters.push_back(axis[index]);
  return iters;
}

TUNEWRIGHT_INLINE std::vector<IterId> outer_levels_first(const std::vector<std::vector<IterId>>& parts,
                                                         std::size_t levels) {
  std::vector<IterId> order;
  for (std::size_t l = 0; l < levels; ++l) {
    for (const IterId iter : level(parts, l)) order.push_back(iter);
  }
  for (const std::vector<IterId>& axis : parts)
    order.insert(order.end(), axis.begin() + static_cast<std::ptrdiff_t>(levels), axis.end());
  return order;
}

TUNEWRIGHT_INLINE void vectorize_innermost(ScheduleBuilder& s, TensorId id, IterId iter) {
  std::vector<IterId> order = s.loops(id);
  order.erase(std::find(order.begin(), order.end(), iter));
  order.push_back(iter);
  s.reorder(id, std::move(order));
  s.vectorize(id, iter);
}

TUNEWRIGHT_INLINE std::optional<PanelAxis> panel_axis(const program::Operator& op,
                                                      const std::vector<program::IndexExpr>& access) {
  for (auto axis = static_cast<program::Var>(op.rank()); axis-- > 0;) {
    const std::optional<IterId> dimension = dimension_of(access, axis);
    if (dimension && (axis + 1 == op.rank() || *dimension + 1 == access.size())) return PanelAxis{axis, *dimension};
  }
  return std::nullopt;
}

TUNEWRIGHT_INLINE void schedule_operand_copy(ScheduleBuilder& s, TensorId copy, TensorId id, const Tiled& tiled,
                                             const std::vector<program::IndexExpr>& access, const Target& target) {
  const auto rank = static_cast<IterId>(s.state().stages[copy].op->rank());
  const std::size_t element = program::size_in_bytes(s.state().stages[copy].op->type);
  const std::int64_t lanes = decisions::CoreLimits(target, element).lanes;
  const std::optional<PanelAxis> along = panel_axis(*s.state().stages[id].op, access);
  if (!along) {
    s.vectorize(copy, s.split(copy, rank - 1, {lanes})[1]);
    return;
  }
  const IterId dimension = along->dimension;
  std::vector<IterId> panels = s.follow_split(copy, dimension, tiled.split_steps[along->axis], spatial_levels - 1);
  if (dimension + 1 < rank) {
    // Square tiles of one vector per row, which are transposed in registers.
    const std::vector<IterId> vectors = s.split(copy, panels.back(), {lanes});
    const std::vector<IterId> row = s.split(copy, rank - 1, {lanes});
    panels.back() = vectors[0];
    std::vector<IterId> order;
    for (IterId axis = 0; axis < rank; ++axis) {
      if (axis == dimension)
        order.insert(order.end(), panels.begin(), panels.end());
      else
        order.push_back(axis + 1 == rank ? row[0] : axis);
    }
    order.insert(order.end(), {row[1], vectors[1]});
    s.reorder(copy, order);
    panels.back() = vectors[1];
  } else if (dimension > 0) {
    constexpr std::int64_t rows_at_once = 16;
    const std::vector<IterId> rows = s.split(copy, dimension - 1, {rows_at_once});
    std::vector<IterId> order = axes_between(0, dimension - 1);
    order.push_back(rows[0]);
    order.insert(order.end(), panels.begin(), panels.end() - 1);
    order.insert(order.end(), {rows[1], panels.back()});
    s.reorder(copy, order);
    if (rank == 2) s.parallel(copy, rows[0]);
  }
  s.vectorize(copy, panels.back());
  s.pack(copy, id);
}

TUNEWRIGHT_INLINE void cache_operands(ScheduleBuilder& s, TensorId id, const Tiled& tiled, const Target& target) {
  const std::vector<program::Reads> all = program::reads_of(*s.state().stages[id].op);
  if (!s.state().stages[id].op->has_reduction()) return;
  for (const program::Reads& reads : all) {
    const Stage& source = s.state().stages[reads.tensor];
    if (!source.is_source() || reads.accesses.size() != 1 || reads.accesses[0].empty()) continue;
    if (source.op->role == program::Role::Constant) {
      if (readers(s.state(), reads.tensor).size() == 1) s.pack(reads.tensor, id);
      continue;
    }
    if (!is_reused(*s.state().stages[id].op, reads.accesses[0])) continue;
    const TensorId copy = s.cache_read(reads.tensor, id, Scope::Local);
    std::vector<Location> choices{{Location::Kind::Inline, 0, 0}};
    for (const Location& point : attach_points(s.state(), id)) {
      if (!may_vanish(s, point)) choices.push_back(point);
    }
    const std::optional<PanelAxis> along = panel_axis(*s.state().stages[id].op, reads.accesses[0]);
    if (along && along->dimension == 1 && reads.accesses[0].size() == 2)
      choices.push_back({Location::Kind::Root, 0, 0});
    s.choose_location(copy, std::move(choices));
    schedule_operand_copy(s, copy, id, tiled, reads.accesses[0], target);
  }
}

TUNEWRIGHT_INLINE void compute_in_tile(ScheduleBuilder& s, TensorId id, TensorId reader,
                                       const std::vector<std::vector<IterId>>& parts, std::size_t levels) {
  if (levels == 1) {
    const IterId outer = s.fuse(reader, level(parts, 0));
    s.parallel(reader, outer);
    s.compute_at(id, reader, outer);
  } else {
    s.parallel(reader, s.choose_fuse(reader, level(parts, 0)));
    s.compute_at(id, reader, level(parts, levels - 1).back());
  }
}

TUNEWRIGHT_INLINE std::array<IterId, 4> split_in_squares(ScheduleBuilder& s, TensorId id, IterId row, IterId column,
                                                         const Target& target, std::int64_t squares) {
  const std::int64_t lanes = target.vector_lanes(program::size_in_bytes(s.state().stages[id].op->type));
  const std::vector<IterId> columns = s.split(id, column, {squares * lanes}), rows = s.split(id, row, {lanes});
  return {rows[0], columns[0], rows[1], columns[1]};
}

TUNEWRIGHT_INLINE void store_last_axis_first(ScheduleBuilder& s, TensorId id) {
  const auto last = static_cast<std::uint32_t>(s.state().stages[id].op->rank() - 1);
  std::vector<std::uint32_t> order{last};
  for (std::uint32_t axis = 0; axis < last; ++axis) order.push_back(axis);
  s.choose_layout(id, {std::move(order)}, {0});
}

TUNEWRIGHT_INLINE std::vector<IterId> vectorize_columns(ScheduleBuilder& s, TensorId id, const Target& target) {
  const program::Operator& op = *s.state().stages[id].op;
  const auto last = static_cast<IterId>(op.rank() - 1);
  const std::int64_t lanes = target.vector_lanes(program::size_in_bytes(op.type));
  // A reduction, and an elementwise stage at the end of a program, are bound by memory bandwidth: each of their steps
  // reads or writes several consecutive vectors, which also complete cache lines.
  const bool is_bound_by_memory = op.has_reduction() || readers(s.state(), id).empty();
  const std::vector<IterId> parts = is_bound_by_memory && op.axes[last].extent > lanes
                                        ? s.choose_tile(id, last, 1, most_vectors * lanes, LoopKind::Vectorized)
                                        : s.split(id, last, {std::min(lanes, op.axes[last].extent)});
  std::vector<IterId> outer = axes_between(0, last);
  outer.push_back(parts[0]);
  if (op.has_reduction()) {
    std::vector<IterId> order = outer;
    for (const IterId axis : axes_between(op.rank(), op.axes.size())) order.push_back(axis);
    order.push_back(parts[1]);
    s.reorder(id, order);
  }
  s.vectorize(id, parts[1]);
  return outer;
}

TUNEWRIGHT_INLINE void schedule_simply(Derivation& d, TensorId id, const Target& target) {
  ScheduleBuilder& s = d.builder;
  const program::Operator& op = *s.state().stages[id].op;
  if (op.rank() == 0) return;
  const auto last = static_cast<IterId>(op.rank() - 1);
  std::vector<IterId> outer = axes_between(0, last);
  if (has_columns(op)) {
    outer = vectorize_columns(s, id, target);
  } else if (const std::optional<IterId> row = axis_of_rows_read_across(op); row && !op.has_reduction()) {
    // Where rows begin with a cache line, tiles write whole lines. Blocks of tiles read them whole, too.
    const auto line = static_cast<std::int64_t>(target.cache_line_bytes),
               vector = static_cast<std::int64_t>(target.vector_bytes());
    const bool by_lines =
        line > vector && op.axes[last].extent * static_cast<std::int64_t>(program::size_in_bytes(op.type)) % line == 0;
    const std::array<IterId, 4> squares = split_in_squares(s, id, *row, last, target, by_lines ? line / vector : 1);
    constexpr std::int64_t most_tiles = 64;
    const std::vector<IterId> rows = s.choose_tile(id, squares[0], 1, most_tiles);
    const std::vector<IterId> columns = s.choose_tile(id, squares[1], 1, most_tiles);
    std::replace(outer.begin(), outer.end(), *row, rows[0]);
    outer.push_back(columns[0]);
    std::vector<IterId> order = outer;
    order.insert(order.end(), {rows[1], columns[1], squares[2], squares[3]});
    s.reorder(id, order);
    s.vectorize(id, squares[3]);
  } else {
    outer.push_back(last);
  }
  s.parallel(id, s.choose_fuse(id, outer));
  if (op.has_reduction()) s.choose_unroll_limit(id, unroll_limits());
}

TUNEWRIGHT_INLINE void schedule_waiting_reader(Derivation& d, TensorId id, const Target& target) {
  const State& state = d.builder.state();
  const TensorId reader = elementwise_reader(state, id);
  const bool waits = reader != id && program::needs_multi_level_tiling(*state.stages[id].op);
  if (waits && state.stages[reader].is_untouched()) schedule_simply(d, reader, target);
}

}  // namespace tunewright::spaces::tiling

#endif
