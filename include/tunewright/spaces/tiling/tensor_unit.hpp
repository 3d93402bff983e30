// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/core/target.hpp"
#include "tunewright/program/analysis.hpp"
#include "tunewright/schedule/intrinsics.hpp"
#include "tunewright/schedule/schedule.hpp"
#include "tunewright/spaces/tiling/actions.hpp"
#include "tunewright/spaces/tiling/questions.hpp"

/// Matrix products, batches of them and convolutions by the tensor instructions of a CPU.
namespace tunewright::spaces::tiling {

/// How an operator is a product that an instruction computes: the spatial axes its rows and columns run along, the
/// reduction axis its sum runs along, how much of each one instruction takes, and the operands.
struct ProductAxes {
  IterId column = 0;
  IterId depth = 0;
  IterId row = 0;          ///< of instructions for several rows
  std::int64_t m = 1;      ///< rows of one instruction
  std::int64_t steps = 1;  ///< and sums of k terms
  TensorId rows = 0;
  TensorId columns = 0;
  bool columns_are_neighbours = false;       ///< in memory, as long as the operand is not copied
  std::optional<IterId> column_dimension{};  ///< of `columns` that the column axis alone counts
  std::optional<IterId> depth_dimension{};   ///< and that the depth axis alone counts
};

/// How many iterations of `extent` an instruction that takes up to `most` at once is best given: where some are left
/// over, they run as plain loops, each of which costs about as much as two instructions.
[[nodiscard]] inline std::int64_t share_of(std::int64_t extent, std::int64_t most) {
  std::int64_t best = 1;
  std::int64_t lowest = 2 * extent + 1;
  for (std::int64_t share = std::min(extent, most); share > 1; --share) {
    const std::int64_t cost = extent / share + 2 * (extent % share);
    if (cost < lowest) {
      best = share;
      lowest = cost;
    }
  }
  return best;
}

/// Nothing unless the last spatial axis and some reduction axis are long enough, and for an instruction of several rows
/// some other spatial axis as well, one factor does not depend on the last, and elements of that factor along the
/// reduction axis are neighbours.
[[nodiscard]] inline std::optional<ProductAxes> product_axes(const program::Operator& op,
                                                             const schedule::TensorIntrinsic& intrinsic) {
  if (!schedule::multiplies(intrinsic, op) || op.rank() == 0) return std::nullopt;
  const schedule::Product product = *schedule::product_of(op);
  const auto column = static_cast<program::Var>(op.rank() - 1);
  const auto uses = [](const program::ExprNode& read, program::Var var) {
    return std::any_of(read.indices.begin(), read.indices.end(),
                       [var](const program::IndexExpr& index) { return index.uses(var); });
  };
  const program::ExprNode* rows = product.first;
  const program::ExprNode* columns = product.second;
  if (uses(*rows, column)) std::swap(rows, columns);
  if (uses(*rows, column) || !uses(*columns, column) || rows->tensor == columns->tensor ||
      rows->indices.empty() || op.axes[column].extent < intrinsic.n)
    return std::nullopt;
  ProductAxes axes;
  axes.column = column;
  axes.rows = rows->tensor;
  axes.columns = columns->tensor;
  if (intrinsic.m > 1) {
    for (program::Var row = column; row-- > 0 && axes.m == 1;) {
      if (!uses(*rows, row) || uses(*columns, row)) continue;
      axes.row = row;
      axes.m = share_of(op.axes[row].extent, intrinsic.m);
    }
    if (axes.m == 1) return std::nullopt;
  }
  const auto dimension_of = [columns](program::Var var) -> std::optional<IterId> {
    for (std::size_t d = 0; d < columns->indices.size(); ++d) {
      if (columns->indices[d].as_variable() == std::optional<program::Var>(var))
        return static_cast<IterId>(d);
    }
    return std::nullopt;
  };
  axes.column_dimension = dimension_of(column);
  axes.columns_are_neighbours =
      axes.column_dimension && *axes.column_dimension + 1 == columns->indices.size();
  for (auto depth = static_cast<program::Var>(op.rank()); depth < op.axes.size(); ++depth) {
    const program::IndexExpr& last = rows->indices.back();
    const bool alone = std::none_of(rows->indices.begin(), rows->indices.end() - 1,
                                    [depth](const program::IndexExpr& index) { return index.uses(depth); });
    if (!alone || last.coefficient(depth) != 1 || !uses(*columns, depth)) continue;
    axes.steps = intrinsic.steps > 1 ? share_of(op.axes[depth].extent / intrinsic.k, intrinsic.steps) : 1;
    if (op.axes[depth].extent < intrinsic.k || (intrinsic.steps > 1 && axes.steps == 1)) continue;
    axes.depth = depth;
    axes.depth_dimension = dimension_of(depth);
    return axes;
  }
  return std::nullopt;
}

/// Tiles a product for a tensor instruction of the target: S0 S1 R0 S2 R1 S3 around one instruction, where S3 counts
/// instructions in registers: of four accumulators that are tiles, two by two or one by four. Constants are packed ahead
/// of time in the order in which it reads them, other operands may be copied into that order; elementwise producers are
/// computed into copies, elementwise readers follow the tiling.
///
/// Where an instruction divides the product no other tiling is tried. Instructions for several rows come first.
struct TensorizeProducts {
  [[nodiscard]] Answer meets(const Derivation& d, TensorId id, const Target& target) const {
    const program::Operator& op = *d.builder.state().stages[id].op;
    const std::vector<const schedule::TensorIntrinsic*> all = instructions_for(op, target);
    if (all.empty()) return Answer::Skip;
    return divides(op, *all.back()) ? Answer::ApplyAndSkipRest : Answer::Apply;
  }
  void apply(const Derivation& d, TensorId id, const Target& target, std::vector<Derivation>& out) const {
    const State& state = d.builder.state();
    const TensorId reader = elementwise_reader(state, id);
    const bool follows = reader != id && state.stages[reader].is_untouched();
    for (const schedule::TensorIntrinsic* intrinsic : instructions_for(*state.stages[id].op, target)) {
      for (const Block& block : blocks(*intrinsic)) {
        if (follows) {
          for (const std::size_t fuse_level : {std::size_t{1}, std::size_t{2}})
            out.push_back(tensorized(d, id, *intrinsic, block, reader, fuse_level));
        } else {
          out.push_back(tensorized(d, id, *intrinsic, block, id, 0));
        }
      }
    }
  }

  /// The instructions that the target has and `op` is a product for, down to the first that divides it, those for
  /// several rows first.
  [[nodiscard]] static std::vector<const schedule::TensorIntrinsic*> instructions_for(
      const program::Operator& op, const Target& target) {
    std::vector<const schedule::TensorIntrinsic*> found;
    if (target.kind != DeviceKind::Cpu || target.isa != Isa::Avx512) return found;
    for (const bool several_rows : {true, false}) {
      for (const schedule::TensorIntrinsic& intrinsic : schedule::tensor_intrinsics) {
        if ((intrinsic.m > 1) != several_rows || !target.has(intrinsic.unit)) continue;
        if (!product_axes(op, intrinsic)) continue;
        found.push_back(&intrinsic);
        if (divides(op, intrinsic)) return found;
      }
    }
    return found;
  }

 private:
  /// Most parts of the rows and of the columns in registers.
  struct Block {
    std::int64_t down = 1;
    std::int64_t across = 1;
  };
  [[nodiscard]] static std::vector<Block> blocks(const schedule::TensorIntrinsic& intrinsic) {
    if (intrinsic.m > 1) return {{2, 2}, {1, 4}};
    return {{64, 64}};
  }
  [[nodiscard]] static bool divides(const program::Operator& op, const schedule::TensorIntrinsic& intrinsic) {
    const ProductAxes axes = *product_axes(op, intrinsic);
    return op.axes[axes.column].extent % intrinsic.n == 0 &&
           op.axes[axes.depth].extent % (intrinsic.k * axes.steps) == 0 &&
           (axes.m == 1 || op.axes[axes.row].extent % axes.m == 0);
  }

  static Derivation tensorized(Derivation d, TensorId id, const schedule::TensorIntrinsic& intrinsic,
                               const Block& block, TensorId reader, std::size_t fuse_level) {
    ScheduleBuilder& s = d.builder;
    ProductAxes axes = *product_axes(*s.state().stages[id].op, intrinsic);
    // Copies change what the stage reads, and so come before its loops.
    const bool pack_ahead = s.state().stages[axes.columns].op->role == program::Role::Constant &&
                            readers(s.state(), axes.columns).size() == 1;
    std::vector<TensorId> copies;
    if (!pack_ahead) axes.columns = copies.emplace_back(s.cache_read(axes.columns, id, Scope::Local));
    if (!s.state().stages[axes.rows].is_source() && program::inlineable(*s.state().stages[axes.rows].op))
      copies.push_back(s.cache_read(axes.rows, id, Scope::Local));

    const Tiled tiled = tile_around(s, id, axes, intrinsic, block);
    if (reader == id) {
      s.parallel(id, s.choose_fuse(id, level(tiled.spatial, 0)));
    } else {
      follow(s, id, reader, tiled, fuse_level, axes, intrinsic);
    }
    for (const TensorId copy : copies) {
      const bool may_stay = copy == axes.columns && axes.columns_are_neighbours && is_plain(s, copy);
      std::vector<Location> choices;
      if (may_stay) choices.push_back({Location::Kind::Inline, 0, 0});
      for (const Location& point : attach_points(s.state(), id)) {
        if (!may_vanish(s, point)) choices.push_back(point);
      }
      if (choices.empty()) choices.push_back({Location::Kind::Root, 0, 0});
      s.choose_location(copy, std::move(choices));
      if (copy == axes.columns) {
        interleave(s, copy, axes, intrinsic);
      } else {
        const auto last = static_cast<IterId>(s.state().stages[copy].op->rank() - 1);
        s.vectorize(copy, s.split(copy, last, {intrinsic.n})[1]);
      }
    }
    s.pack(axes.columns, id);
    d.place = place_of(s.state(), id);
    return d;
  }

  /// Writes a copy in blocks of what the instruction reads at once, where each dimension of it is one of its axes.
  static void interleave(ScheduleBuilder& s, TensorId copy, const ProductAxes& axes,
                         const schedule::TensorIntrinsic& intrinsic) {
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

  /// Whether a copy is of an input or constant: then the stage can read that itself.
  static bool is_plain(const ScheduleBuilder& s, TensorId copy) {
    const program::Operator& op = *s.state().stages[copy].op;
    return s.state().stages[program::reads_of(op).front().tensor].is_source();
  }

  static Tiled tile_around(ScheduleBuilder& s, TensorId id, const ProductAxes& axes,
                           const schedule::TensorIntrinsic& intrinsic, const Block& block) {
    const program::Operator& op = *s.state().stages[id].op;
    const std::size_t rank = op.rank();
    const std::size_t count = op.axes.size();
    // Parts that the instruction leaves of each axis, and the loops it takes.
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
    const IterId down = axis_down(op, axes);
    Tiled tiled;
    for (IterId axis = 0; axis < count; ++axis) {
      if (axis < rank) {
        const std::int64_t most = axis == axes.column           ? block.across
                                  : axes.m == 1 || axis == down ? block.down
                                                                : 1;
        tiled.split_steps.push_back(s.next_step());
        tiled.spatial.push_back(s.choose_tile(id, left[axis], spatial_levels - 1, most, LoopKind::Unrolled));
      } else {
        tiled.reduction.push_back(s.choose_tile(id, left[axis], reduction_levels - 1, 0));
      }
    }
    std::vector<IterId> order;
    const auto add = [&](const std::vector<IterId>& iters) {
      order.insert(order.end(), iters.begin(), iters.end());
    };
    add(level(tiled.spatial, 0));
    add(level(tiled.spatial, 1));
    add(level(tiled.reduction, 0));
    // Columns first: what the instruction reads of them is the larger part, and stays in the innermost cache while rows
    // advance.
    add({tiled.spatial.back()[2]});
    for (std::size_t axis = 0; axis + 1 < rank; ++axis) order.push_back(tiled.spatial[axis][2]);
    add(level(tiled.reduction, 1));
    add(level(tiled.spatial, 3));
    add(taken);
    s.reorder(id, order);
    for (const IterId iter : level(tiled.spatial, 3)) s.unroll(id, iter);
    s.vectorize(id, columns);
    s.append(schedule::Tensorize{id, taken.front(), std::string(intrinsic.name)});
    return tiled;
  }
  /// The axis along which register blocks of several tiles are made: that of the rows if it has several tiles.
  static IterId axis_down(const program::Operator& op, const ProductAxes& axes) {
    if (op.axes[axes.row].extent > axes.m) return axes.row;
    for (IterId axis = axes.row; axis-- > 0;) {
      if (op.axes[axis].extent > 1) return axis;
    }
    return axes.row;
  }

  /// Computes the stage inside its reader, whose loops follow the tiling.
  static void follow(ScheduleBuilder& s, TensorId id, TensorId reader, const Tiled& tiled,
                     std::size_t fuse_level, const ProductAxes& axes,
                     const schedule::TensorIntrinsic& intrinsic) {
    std::vector<std::vector<IterId>> copy;
    std::vector<IterId> inner;
    for (IterId axis = 0; axis < tiled.spatial.size(); ++axis) {
      IterId followed = axis;
      const std::int64_t taken = axis == axes.column              ? intrinsic.n
                                 : axes.m > 1 && axis == axes.row ? axes.m
                                                                  : 1;
      if (taken > 1) {
        const std::vector<IterId> parts = s.split(reader, axis, {taken});
        followed = parts[0];
        inner.push_back(parts[1]);
      }
      copy.push_back(
          s.follow_split(reader, followed, tiled.split_steps[axis], static_cast<std::uint32_t>(fuse_level)));
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
};

}  // namespace tunewright::spaces::tiling
