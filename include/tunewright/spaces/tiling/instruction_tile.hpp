// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/schedule/intrinsics.hpp"
#include "tunewright/schedule/schedule.hpp"
#include "tunewright/spaces/tiling/product_axes.hpp"
#include "tunewright/spaces/tiling/transformations.hpp"

/// The loops around a tensor instruction of a CPU, of its operands, and of the consumer of its sums.
namespace tunewright::spaces::tiling {

/// An instruction and the tiling of a product for it: the maximum number of row tiles (`down`) and column tiles
/// (`across`) in registers.
struct InstructionTile {
  const schedule::TensorIntrinsic* intrinsic = nullptr;
  ProductAxes axes;
  std::int64_t down = 1;
  std::int64_t across = 1;
};

/// The number of tiles along an axis of rows.
[[nodiscard]] inline std::int64_t tiles_down(const program::Operator& op, const ProductAxes& axes, IterId axis) {
  return program::ceil_div(op.axes[axis].extent, axis == axes.row ? axes.m : 1);
}

/// The maximum number of parts of each spatial axis in registers. For instructions of several rows: up to `down` tiles
/// along their row axis and, if it has fewer, along the axes around it, except for axes along which other columns are
/// read.
[[nodiscard]] std::vector<std::int64_t> parts_in_registers(const program::Operator& op, const InstructionTile& tile);

/// Loops of one level of the spatial axes, with the columns outermost.
[[nodiscard]] std::vector<IterId> columns_first(const Tiled& tiled, std::size_t depth);

/// Splits and reorders: S0 S1 R0 S2 R1 S3 around the instruction, each S with the columns first; the instruction
/// replaces the loops inside.
Tiled tile_around(ScheduleBuilder& s, TensorId id, const InstructionTile& tile);

/// Computes the stage inside its reader, whose loops follow the tiling.
void follow_instructions(ScheduleBuilder& s, TensorId id, TensorId reader, const Tiled& tiled, std::size_t fuse_level,
                         const InstructionTile& tile);

/// Stores a copy in blocks that the instruction reads at once, if each dimension of it is one of the instruction's
/// axes.
void interleave(ScheduleBuilder& s, TensorId copy, const InstructionTile& tile);

}  // namespace tunewright::spaces::tiling

#if TUNEWRIGHT_DEFINES(spaces)

namespace tunewright::spaces::tiling {

TUNEWRIGHT_INLINE std::vector<std::int64_t> parts_in_registers(const program::Operator& op,
                                                               const InstructionTile& tile) {
  const ProductAxes& axes = tile.axes;
  std::vector<std::int64_t> most(op.rank(), axes.m == 1 ? tile.down : 1);
  most[axes.column] = tile.across;
  if (axes.m == 1) return most;
  std::int64_t down = tile.down;
  for (IterId axis = axes.row + 1; axis-- > 0;) {
    if (std::count(axes.other_columns.begin(), axes.other_columns.end(), axis) > 0) continue;
    most[axis] = std::min(down, tiles_down(op, axes, axis));
    down /= most[axis];
  }
  return most;
}

TUNEWRIGHT_INLINE std::vector<IterId> columns_first(const Tiled& tiled, std::size_t depth) {
  std::vector<IterId> iters = level(tiled.spatial, depth);
  std::rotate(iters.begin(), iters.end() - 1, iters.end());
  return iters;
}

TUNEWRIGHT_INLINE Tiled tile_around(ScheduleBuilder& s, TensorId id, const InstructionTile& tile) {
  const ProductAxes& axes = tile.axes;
  const schedule::TensorIntrinsic& intrinsic = *tile.intrinsic;
  const program::Operator& op = *s.state().stages[id].op;
  const std::size_t rank = op.rank();
  const std::size_t count = op.axes.size();
  // The outer parts of each axis, and the loops that the instruction replaces.
  std::vector<IterId> left(count);
  std::iota(left.begin(), left.end(), IterId{0});
  std::vector<IterId> taken;
  const auto take = [&](IterId axis, std::vector<std::int64_t> factors) {
    const std::vector<IterId> parts = s.split(id, axis, std::move(factors));
    left[axis] = parts[0];
    return parts;
  };
  if (axes.m > 1) taken.push_back(take(axes.row, {axes.m})[1]);
  const IterId columns = take(axes.column, {intrinsic.n})[1];
  const std::vector<IterId> depths =
      axes.steps > 1 ? take(axes.depth, {axes.steps, intrinsic.k}) : take(axes.depth, {intrinsic.k});
  if (axes.steps > 1) taken.push_back(depths[1]);
  taken.push_back(columns);
  taken.push_back(depths.back());
  const std::vector<std::int64_t> most = parts_in_registers(op, tile);
  Tiled tiled;
  for (IterId axis = 0; axis < count; ++axis) {
    if (axis < rank) {
      tiled.split_steps.push_back(s.next_step());
      tiled.spatial.push_back(s.choose_tile(id, left[axis], spatial_levels - 1, most[axis], LoopKind::Unrolled));
    } else {
      tiled.reduction.push_back(s.choose_tile(id, left[axis], reduction_levels - 1, 0));
    }
  }
  std::vector<IterId> order;
  const auto add = [&](const std::vector<IterId>& iters) { order.insert(order.end(), iters.begin(), iters.end()); };
  // Columns are outermost: their operand is larger, and the part that the instruction reads stays in L1 while rows
  // advance. It is copied once for all following rows, and threads that divide the columns also divide the copying. If
  // a reader of the sums is followed, its loops decide the order.
  add(columns_first(tiled, 0));
  add(columns_first(tiled, 1));
  add(level(tiled.reduction, 0));
  add(columns_first(tiled, 2));
  add(level(tiled.reduction, 1));
  add(level(tiled.spatial, 3));
  add(taken);
  s.reorder(id, order);
  for (const IterId iter : level(tiled.spatial, 3)) s.unroll(id, iter);
  s.vectorize(id, columns);
  s.append(schedule::Tensorize{id, taken.front(), std::string(intrinsic.name)});
  return tiled;
}

TUNEWRIGHT_INLINE void follow_instructions(ScheduleBuilder& s, TensorId id, TensorId reader, const Tiled& tiled,
                                           std::size_t fuse_level, const InstructionTile& tile) {
  const ProductAxes& axes = tile.axes;
  std::vector<std::vector<IterId>> copy;
  std::vector<IterId> inner;
  for (IterId axis = 0; axis < tiled.spatial.size(); ++axis) {
    IterId followed = axis;
    const std::int64_t taken = axis == axes.column ? tile.intrinsic->n : axes.m > 1 && axis == axes.row ? axes.m : 1;
    if (taken > 1) {
      const std::vector<IterId> parts = s.split(reader, axis, {taken});
      followed = parts[0];
      inner.push_back(parts[1]);
    }
    copy.push_back(s.follow_split(reader, followed, tiled.split_steps[axis], static_cast<std::uint32_t>(fuse_level)));
  }
  std::vector<IterId> order;
  for (std::size_t l = 0; l <= fuse_level; ++l) {
    for (const IterId iter : level(copy, l)) order.push_back(iter);
  }
  order.insert(order.end(), inner.begin(), inner.end());
  s.reorder(reader, order);
  s.vectorize(reader, inner.back());
  compute_in_tile(s, id, reader, copy, fuse_level);
}

TUNEWRIGHT_INLINE void interleave(ScheduleBuilder& s, TensorId copy, const InstructionTile& tile) {
  const ProductAxes& axes = tile.axes;
  const schedule::TensorIntrinsic& intrinsic = *tile.intrinsic;
  const auto rank = static_cast<IterId>(s.state().stages[copy].op->rank());
  if (!axes.column_dimension || !axes.depth_dimension) {
    s.split(copy, rank - 1, {intrinsic.n});
    return;
  }
  const std::vector<IterId> columns = s.split(copy, *axes.column_dimension, {intrinsic.n});
  const std::vector<IterId> depths = s.split(copy, *axes.depth_dimension, {intrinsic.k});
  std::vector<IterId> order;
  for (IterId dimension = 0; dimension < rank; ++dimension) {
    order.push_back(dimension == *axes.column_dimension  ? columns[0]
                    : dimension == *axes.depth_dimension ? depths[0]
                                                         : dimension);
  }
  order.insert(order.end(), {columns[1], depths[1]});
  s.reorder(copy, order);
  s.unroll(copy, depths[1]);
}

}  // namespace tunewright::spaces::tiling

#endif
