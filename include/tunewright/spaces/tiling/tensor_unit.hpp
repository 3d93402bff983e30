// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
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

/// How an operator is a product that an instruction computes: the spatial axis its columns run along, the reduction
/// axis its sum runs along, and the operands.
struct ProductAxes {
  IterId column = 0;
  IterId depth = 0;
  TensorId rows = 0;
  TensorId columns = 0;
  bool columns_are_neighbours = false;  ///< in memory, as long as the operand is not copied
};

/// Nothing unless the last spatial axis and some reduction axis are long enough, one factor does not depend on the
/// former, and elements of that factor along the latter are neighbours.
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
      rows->indices.empty())
    return std::nullopt;
  for (auto depth = static_cast<program::Var>(op.rank()); depth < op.axes.size(); ++depth) {
    const program::IndexExpr& last = rows->indices.back();
    const bool alone = std::none_of(rows->indices.begin(), rows->indices.end() - 1,
                                    [depth](const program::IndexExpr& index) { return index.uses(depth); });
    if (!alone || last.coefficient(depth) != 1 || !uses(*columns, depth)) continue;
    if (op.axes[column].extent < intrinsic.n || op.axes[depth].extent < intrinsic.k) continue;
    return ProductAxes{column, depth, rows->tensor, columns->tensor,
                       columns->indices.back().as_variable() == std::optional<program::Var>(column)};
  }
  return std::nullopt;
}

/// Tiles a product for a tensor instruction of the target: S0 S1 R0 S2 R1 S3 around one instruction, where S3 counts
/// instructions in registers. Constants are packed ahead of time in the order in which it reads them, other operands
/// may be copied into that order; elementwise producers are computed into copies, elementwise readers follow the
/// tiling.
///
/// Where the instruction divides the product no other tiling is tried.
struct TensorizeProducts {
  [[nodiscard]] Answer meets(const Derivation& d, TensorId id, const Target& target) const {
    const program::Operator& op = *d.builder.state().stages[id].op;
    const schedule::TensorIntrinsic* intrinsic = instruction_for(op, target);
    if (intrinsic == nullptr) return Answer::Skip;
    const ProductAxes axes = *product_axes(op, *intrinsic);
    const bool divides =
        op.axes[axes.column].extent % intrinsic->n == 0 && op.axes[axes.depth].extent % intrinsic->k == 0;
    return divides ? Answer::ApplyAndSkipRest : Answer::Apply;
  }
  void apply(const Derivation& d, TensorId id, const Target& target, std::vector<Derivation>& out) const {
    const State& state = d.builder.state();
    const TensorId reader = elementwise_reader(state, id);
    if (reader != id && state.stages[reader].is_untouched()) {
      for (const std::size_t fuse_level : {std::size_t{1}, std::size_t{2}})
        out.push_back(tensorized(d, id, target, reader, fuse_level));
    } else {
      out.push_back(tensorized(d, id, target, id, 0));
    }
  }

  /// The instruction for one row at a time that the target has and `op` is a product for, or null.
  [[nodiscard]] static const schedule::TensorIntrinsic* instruction_for(const program::Operator& op,
                                                                        const Target& target) {
    if (target.kind != DeviceKind::Cpu || target.isa != Isa::Avx512) return nullptr;
    for (const schedule::TensorIntrinsic& intrinsic : schedule::tensor_intrinsics) {
      if (intrinsic.m == 1 && target.has(intrinsic.unit) && product_axes(op, intrinsic)) return &intrinsic;
    }
    return nullptr;
  }

 private:
  static Derivation tensorized(Derivation d, TensorId id, const Target& target, TensorId reader,
                               std::size_t fuse_level) {
    ScheduleBuilder& s = d.builder;
    const schedule::TensorIntrinsic& intrinsic = *instruction_for(*s.state().stages[id].op, target);
    ProductAxes axes = *product_axes(*s.state().stages[id].op, intrinsic);
    // Copies change what the stage reads, and so come before its loops.
    const bool pack_ahead = s.state().stages[axes.columns].op->role == program::Role::Constant &&
                            readers(s.state(), axes.columns).size() == 1;
    std::vector<TensorId> copies;
    if (!pack_ahead) axes.columns = copies.emplace_back(s.cache_read(axes.columns, id, Scope::Local));
    if (!s.state().stages[axes.rows].is_source() && program::inlineable(*s.state().stages[axes.rows].op))
      copies.push_back(s.cache_read(axes.rows, id, Scope::Local));

    const Tiled tiled = tile_around(s, id, axes, intrinsic);
    if (reader == id) {
      s.parallel(id, s.choose_fuse(id, level(tiled.spatial, 0)));
    } else {
      follow(s, id, reader, tiled, fuse_level, intrinsic.n);
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
      const auto last = static_cast<IterId>(s.state().stages[copy].op->rank() - 1);
      const std::vector<IterId> parts = s.split(copy, last, {intrinsic.n});
      if (copy != axes.columns) s.vectorize(copy, parts[1]);  // a packed copy is written byte by byte
    }
    s.pack(axes.columns, id);
    d.place = place_of(s.state(), id);
    return d;
  }

  /// Whether a copy is of an input or constant: then the stage can read that itself.
  static bool is_plain(const ScheduleBuilder& s, TensorId copy) {
    const program::Operator& op = *s.state().stages[copy].op;
    return s.state().stages[program::reads_of(op).front().tensor].is_source();
  }

  static Tiled tile_around(ScheduleBuilder& s, TensorId id, const ProductAxes& axes,
                           const schedule::TensorIntrinsic& intrinsic) {
    const program::Operator& op = *s.state().stages[id].op;
    const std::size_t rank = op.rank();
    const std::size_t count = op.axes.size();
    const std::vector<IterId> columns = s.split(id, axes.column, {intrinsic.n});
    const std::vector<IterId> depths = s.split(id, axes.depth, {intrinsic.k});
    Tiled tiled;
    for (IterId axis = 0; axis < count; ++axis) {
      if (axis < rank) {
        tiled.split_steps.push_back(s.next_step());
        tiled.spatial.push_back(s.choose_tile(id, axis == axes.column ? columns[0] : axis, spatial_levels - 1,
                                              64, LoopKind::Unrolled));
      } else {
        tiled.reduction.push_back(
            s.choose_tile(id, axis == axes.depth ? depths[0] : axis, reduction_levels - 1, 0));
      }
    }
    std::vector<IterId> order;
    const auto add = [&](const std::vector<IterId>& iters) {
      order.insert(order.end(), iters.begin(), iters.end());
    };
    add(level(tiled.spatial, 0));
    add(level(tiled.spatial, 1));
    add(level(tiled.reduction, 0));
    add(level(tiled.spatial, 2));
    add(level(tiled.reduction, 1));
    add(level(tiled.spatial, 3));
    add({columns[1], depths[1]});
    s.reorder(id, order);
    for (const IterId iter : level(tiled.spatial, 3)) s.unroll(id, iter);
    s.vectorize(id, columns[1]);
    s.append(schedule::Tensorize{id, columns[1], std::string(intrinsic.name)});
    return tiled;
  }

  /// Computes the stage inside its reader, whose loops follow the tiling.
  static void follow(ScheduleBuilder& s, TensorId id, TensorId reader, const Tiled& tiled,
                     std::size_t fuse_level, std::int64_t columns) {
    const std::size_t rank = tiled.spatial.size();
    std::vector<std::vector<IterId>> copy;
    const std::vector<IterId> last = s.split(reader, static_cast<IterId>(rank - 1), {columns});
    for (std::size_t axis = 0; axis < rank; ++axis) {
      copy.push_back(s.follow_split(reader, axis + 1 == rank ? last[0] : static_cast<IterId>(axis),
                                    tiled.split_steps[axis], static_cast<std::uint32_t>(fuse_level)));
    }
    std::vector<IterId> order;
    for (std::size_t l = 0; l <= fuse_level; ++l) {
      for (const IterId iter : level(copy, l)) order.push_back(iter);
    }
    order.push_back(last[1]);
    s.reorder(reader, order);
    s.vectorize(reader, last[1]);
    compute_in_tile(s, id, reader, copy, fuse_level);
  }
};

}  // namespace tunewright::spaces::tiling
