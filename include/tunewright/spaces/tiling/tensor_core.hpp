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
#include "tunewright/detail/config.hpp"
#include "tunewright/schedule/intrinsics.hpp"
#include "tunewright/schedule/schedule.hpp"
#include "tunewright/spaces/tiling/predicates.hpp"

/// Matrix products, batched products and convolutions on the tensor cores of a GPU.
namespace tunewright::spaces::tiling::gpu {

/// How an operator's axes map to a matrix multiply-accumulate instruction: the axes of its rows, columns and terms, and
/// its factors.
struct MmaAxes {
  const schedule::TensorIntrinsic* intrinsic = nullptr;
  IterId row = 0;
  IterId column = 0;
  IterId depth = 0;
  TensorId a = 0;
  TensorId b = 0;
};

namespace detail {

/// Whether `read` is a row-major or column-major matrix: neighbouring elements differ in only one of the axes, and the
/// index of some dimension is `depth` alone, so that elements beyond its end can be zero.
[[nodiscard]] bool is_matrix(const program::ExprNode& read, IterId along, IterId depth);

/// The only dimension of `read` that depends on `axis`, if its coefficient is one; otherwise empty.
[[nodiscard]] std::optional<std::uint32_t> only_dimension_along(const program::ExprNode& read, IterId axis);

/// Whether the matrix can be stored in core matrices: each of its axes moves along a single dimension, and these
/// differ.
[[nodiscard]] bool fits_core_matrices(const program::ExprNode& read, IterId along, IterId depth);

/// The multiple to which each axis is padded.
[[nodiscard]] std::vector<std::int64_t> multiples_of(const program::Operator& op, const MmaAxes& axes);

}  // namespace detail

/// The axes that `intrinsic` multiplies along. Empty unless some axes are the rows, columns and terms of a matrix
/// product and at least a quarter of the instruction's work is not padding. Columns are the last axis on which only one
/// factor depends; rows are the axis of the other factor with the least padding.
[[nodiscard]] std::optional<MmaAxes> mma_axes(const program::Operator& op, const schedule::TensorIntrinsic& intrinsic);

/// The axes for each of the target's tensor instructions that can compute `op`.
[[nodiscard]] std::vector<MmaAxes> all_mma_axes(const program::Operator& op, const Target& target);

/// Tiles a product for a tensor instruction of the target: S0 S1 R0 R1 S2 around one instruction, for blocks, warps and
/// the fragments of a warp (or of a warp group), with R1 of the reduction in shared memory at a time. Sums stay in
/// fragments, from which the elementwise reader, if there is one, reads them. Extents that are not multiples of the
/// instruction are padded with zeros in shared memory. How far the copies are prefetched is a choice.
struct TensorizeProducts {
  [[nodiscard]] Answer meets(const Derivation& d, TensorId id, const Target& target) const {
    return all_mma_axes(*d.builder.state().stages[id].op, target).empty() ? Answer::Skip : Answer::Apply;
  }
  void apply(const Derivation& d, TensorId id, const Target& target, std::vector<Derivation>& out) const;

 private:
  static Derivation tensorized(Derivation d, TensorId id, const Target& target, MmaAxes axes);

  struct Tile {
    std::vector<std::uint32_t> steps;            ///< that split the spatial axes
    std::vector<std::vector<IterId>> spatial;    ///< blocks, warps, fragments
    std::vector<std::vector<IterId>> reduction;  ///< steps, the part in shared memory
  };

  static void pad(ScheduleBuilder& s, TensorId sums, const MmaAxes& axes);

  static Tile tile(ScheduleBuilder& s, TensorId id, const MmaAxes& axes);

  /// Splits the stage that reads the sums like the one that computes them, binds its loops and returns the loop of
  /// warps.
  static IterId follow(ScheduleBuilder& s, TensorId reader, const MmaAxes& axes, const Tile& tiled);

  /// All threads of the block together copy the part of an operand for one step, each a vector of neighbouring
  /// elements; the vector width and the padding of rows are choices.
  static void fetch(ScheduleBuilder& s, TensorId sums, TensorId copy, const MmaAxes& axes, const Tile& tiled);
  /// The dimension order of a copy. Terms vary fastest, because bytes that one thread multiplies together must be
  /// adjacent. The two dimensions of core matrices are last.
  static std::vector<std::uint32_t> order_of(const ScheduleBuilder& s, TensorId sums, TensorId copy,
                                             const MmaAxes& axes);
  /// The dimension of a factor along an axis of its matrix; for the terms, one that no other axis indexes. `mma_axes`
  /// has checked that it exists.
  static std::uint32_t dimension_along(const ScheduleBuilder& s, TensorId sums, TensorId copy, IterId axis);
};

}  // namespace tunewright::spaces::tiling::gpu

#if TUNEWRIGHT_DEFINES(spaces)

#include "tunewright/program/analysis.hpp"
#include "tunewright/spaces/decisions/pipelining.hpp"
#include "tunewright/spaces/gpu_tiling_rules.hpp"
#include "tunewright/spaces/tiling/gpu_transformations.hpp"

namespace tunewright::spaces::tiling::gpu::detail {

TUNEWRIGHT_INLINE bool is_matrix(const program::ExprNode& read, IterId along, IterId depth) {
  const auto is_alone = [](const program::IndexExpr& index, IterId axis) {
    return index.as_variable() == std::optional<program::Var>(axis);
  };
  const auto affine = [](const program::IndexExpr& index) { return index.is_affine(); };
  if (read.indices.size() < 2 || !std::all_of(read.indices.begin(), read.indices.end(), affine)) return false;
  const program::IndexExpr& last = read.indices.back();
  if (!is_alone(last, along) && !is_alone(last, depth)) return false;
  return std::any_of(read.indices.begin(), read.indices.end(),
                     [&](const program::IndexExpr& index) { return is_alone(index, depth); });
}

TUNEWRIGHT_INLINE std::optional<std::uint32_t> only_dimension_along(const program::ExprNode& read, IterId axis) {
  std::optional<std::uint32_t> found;
  for (std::uint32_t d = 0; d < read.indices.size(); ++d) {
    if (!read.indices[d].uses(axis)) continue;
    if (found || !read.indices[d].is_affine() || read.indices[d].coefficient(axis) != 1) return std::nullopt;
    found = d;
  }
  return found;
}

TUNEWRIGHT_INLINE bool fits_core_matrices(const program::ExprNode& read, IterId along, IterId depth) {
  const std::optional<std::uint32_t> lines = only_dimension_along(read, along),
                                     terms = only_dimension_along(read, depth);
  return lines && terms && *lines != *terms;
}

TUNEWRIGHT_INLINE std::vector<std::int64_t> multiples_of(const program::Operator& op, const MmaAxes& axes) {
  std::vector<std::int64_t> multiples(op.axes.size(), 1);
  multiples[axes.row] = axes.intrinsic->m;
  multiples[axes.column] = axes.intrinsic->n;
  multiples[axes.depth] = axes.intrinsic->k;
  return multiples;
}

}  // namespace tunewright::spaces::tiling::gpu::detail

namespace tunewright::spaces::tiling::gpu {

TUNEWRIGHT_INLINE std::optional<MmaAxes> mma_axes(const program::Operator& op,
                                                  const schedule::TensorIntrinsic& intrinsic) {
  constexpr double least_used = 0.25;  // tensor cores are not four times as fast on all devices
  if (!schedule::multiplies(intrinsic, op)) return std::nullopt;
  const std::optional<schedule::Product> product = schedule::product_of(op);
  if (product->first->tensor == product->second->tensor) return std::nullopt;
  MmaAxes found;
  const program::ExprNode *a = product->first, *b = product->second;
  const auto only_by = [&](const program::ExprNode* one, const program::ExprNode* other, IterId axis) {
    return uses_axis(*one, axis) && !uses_axis(*other, axis);
  };
  const auto rank = static_cast<IterId>(op.rank());
  IterId column = rank;
  for (IterId axis = 0; axis < rank; ++axis) {
    if (only_by(a, b, axis) || only_by(b, a, axis)) column = axis;
  }
  if (column == rank) return std::nullopt;
  if (only_by(a, b, column)) std::swap(a, b);
  double best = 0;
  for (IterId row = 0; row < rank; ++row) {
    if (!only_by(a, b, row)) continue;
    for (IterId depth = rank; depth < op.axes.size(); ++depth) {
      if (!detail::is_matrix(*a, row, depth) || !detail::is_matrix(*b, column, depth)) continue;
      if (intrinsic.by_warp_group() &&
          !(detail::fits_core_matrices(*a, row, depth) && detail::fits_core_matrices(*b, column, depth)))
        continue;
      const MmaAxes here{&intrinsic, row, column, depth, a->tensor, b->tensor};
      const double used = share_not_padded(op, detail::multiples_of(op, here));
      if (used < std::max(best, least_used)) continue;
      best = used;
      found = here;
    }
  }
  return best > 0 ? std::optional(found) : std::nullopt;
}

TUNEWRIGHT_INLINE std::vector<MmaAxes> all_mma_axes(const program::Operator& op, const Target& target) {
  std::vector<MmaAxes> found;
  for (const schedule::TensorIntrinsic& intrinsic : schedule::tensor_intrinsics) {
    if (!schedule::is_on(intrinsic, target)) continue;
    if (const std::optional<MmaAxes> axes = mma_axes(op, intrinsic)) found.push_back(*axes);
  }
  return found;
}

TUNEWRIGHT_INLINE void TensorizeProducts::apply(const Derivation& d, TensorId id, const Target& target,
                                                std::vector<Derivation>& out) const {
  for (const MmaAxes& axes : all_mma_axes(*d.builder.state().stages[id].op, target))
    out.push_back(tensorized(d, id, target, axes));
}

TUNEWRIGHT_INLINE Derivation TensorizeProducts::tensorized(Derivation d, TensorId id, const Target& target,
                                                           MmaAxes axes) {
  ScheduleBuilder& s = d.builder;
  const TensorId reader = elementwise_reader(s.state(), id);
  const bool fused = reader != id && is_free(d, reader);
  const TensorId outer = fused ? reader : id;
  const TensorId sums = s.cache_write(id, Scope::Accumulator);
  if (fused) s.compute_inline(id);
  axes.a = s.cache_read(axes.a, sums, Scope::Shared);
  axes.b = s.cache_read(axes.b, sums, Scope::Shared);
  pad(s, sums, axes);
  const Tile tiled = tile(s, sums, axes);
  s.compute_at(sums, outer, follow(s, outer, axes, tiled));
  fetch(s, sums, axes.a, axes, tiled);
  fetch(s, sums, axes.b, axes, tiled);
  s.choose_pipelining(sums, tiled.reduction.back()[0], decisions::pipelinings(target));
  d.place = place_of(s.state(), sums);
  return d;
}

TUNEWRIGHT_INLINE void TensorizeProducts::pad(ScheduleBuilder& s, TensorId sums, const MmaAxes& axes) {
  const program::Operator& op = *s.state().stages[sums].op;
  std::vector<std::int64_t> multiples = detail::multiples_of(op, axes);
  bool divides = true;
  for (std::size_t a = 0; a < multiples.size(); ++a) divides = divides && op.axes[a].extent % multiples[a] == 0;
  if (!divides) s.pad(sums, std::move(multiples));
}

TUNEWRIGHT_INLINE TensorizeProducts::Tile TensorizeProducts::tile(ScheduleBuilder& s, TensorId id,
                                                                  const MmaAxes& axes) {
  const std::size_t rank = s.state().stages[id].op->rank(), count = s.state().stages[id].op->axes.size();
  Tile tiled;
  std::vector<IterId> instruction(3);
  for (IterId axis = 0; axis < count; ++axis) {
    IterId iter = axis;
    const auto take = [&](IterId of, std::size_t place, std::int64_t extent) {
      if (axis != of) return;
      const std::vector<IterId> parts = s.split(id, axis, {extent});
      iter = parts[0];
      instruction[place] = parts[1];
    };
    take(axes.row, 0, axes.intrinsic->m);
    take(axes.column, 1, axes.intrinsic->n);
    take(axes.depth, 2, axes.intrinsic->k);
    if (axis < rank) {
      tiled.steps.push_back(s.next_step());
      tiled.spatial.push_back(s.choose_tile(id, iter, 2, 0, LoopKind::ThreadY));
    } else {
      tiled.reduction.push_back(s.choose_tile(id, iter, 1, 0));
    }
  }
  std::vector<IterId> order;
  const auto add = [&order](const std::vector<IterId>& iters) {
    order.insert(order.end(), iters.begin(), iters.end());
  };
  add(level(tiled.spatial, 0));
  add(level(tiled.spatial, 1));
  add(level(tiled.reduction, 0));
  add(level(tiled.reduction, 1));
  add(level(tiled.spatial, 2));
  add(instruction);
  s.reorder(id, order);
  for (const IterId iter : level(tiled.spatial, 2)) s.unroll(id, iter);
  s.tensorize(id, instruction[0], std::string(axes.intrinsic->name));
  return tiled;
}

TUNEWRIGHT_INLINE IterId TensorizeProducts::follow(ScheduleBuilder& s, TensorId reader, const MmaAxes& axes,
                                                   const Tile& tiled) {
  std::vector<std::vector<IterId>> parts;
  std::vector<IterId> fragment(2);
  for (IterId axis = 0; axis < tiled.spatial.size(); ++axis) {
    IterId iter = axis;
    if (axis == axes.row || axis == axes.column) {
      const bool row = axis == axes.row;
      const std::vector<IterId> inside = s.split(reader, axis, {row ? axes.intrinsic->m : axes.intrinsic->n});
      iter = inside[0];
      fragment[row ? 0 : 1] = inside[1];
    }
    parts.push_back(s.follow_split(reader, iter, tiled.steps[axis], 2));
  }
  std::vector<IterId> order;
  for (const std::size_t index : {0U, 1U, 2U}) {
    for (const IterId iter : level(parts, index)) order.push_back(iter);
  }
  order.insert(order.end(), fragment.begin(), fragment.end());
  s.reorder(reader, order);
  s.bind(reader, fuse_all(s, reader, level(parts, 0)), LoopKind::BlockX);
  const IterId warps = fuse_all(s, reader, level(parts, 1));
  s.bind(reader, warps, LoopKind::ThreadY);
  for (const IterId iter : level(parts, 2)) s.unroll(reader, iter);
  return warps;
}

TUNEWRIGHT_INLINE void TensorizeProducts::fetch(ScheduleBuilder& s, TensorId sums, TensorId copy, const MmaAxes& axes,
                                                const Tile& tiled) {
  const program::Operator& op = *s.state().stages[copy].op;
  const auto rank = static_cast<std::uint32_t>(op.rank());
  const auto size = static_cast<std::int64_t>(program::size_in_bytes(op.type));
  s.compute_at(copy, sums, tiled.reduction.back()[0]);
  std::vector<std::uint32_t> order = order_of(s, sums, copy, axes);
  // Eight rows that an instruction reads at once are in different banks if their distance is an odd multiple of 16
  // bytes; the same holds for the pieces of a row when core matrices are stored. Rows of 128 bytes for warp groups are
  // swizzled if nothing is behind them. Samples mostly have the last choice.
  const std::int64_t padding = (axes.intrinsic->layout_is_known ? 16 : 32) / size;
  std::vector<std::int64_t> paddings{0, padding};
  if (axes.intrinsic->by_warp_group()) std::swap(paddings[0], paddings[1]);
  s.choose_layout(copy, {std::move(order)}, std::move(paddings));
  std::vector<IterId> iters = axes_between(0, rank);
  const std::vector<IterId> vector = s.choose_tile(copy, iters.back(), 1, most_lanes(op.type), LoopKind::Vectorized);
  iters.back() = vector[0];
  const std::vector<IterId> of_warp = s.split(copy, fuse_all(s, copy, std::move(iters)), {axes.intrinsic->threads});
  const std::vector<IterId> of_block = s.follow_fused_split(copy, of_warp[0], tiled.steps, 0);
  s.reorder(copy, {of_block[1], of_warp[1], of_block[0]});
  s.bind(copy, of_block[1], LoopKind::ThreadY);
  s.bind(copy, of_warp[1], LoopKind::ThreadX);
  s.vectorize(copy, vector[1]);
}

TUNEWRIGHT_INLINE std::vector<std::uint32_t> TensorizeProducts::order_of(const ScheduleBuilder& s, TensorId sums,
                                                                         TensorId copy, const MmaAxes& axes) {
  const program::Operator& op = *s.state().stages[copy].op;
  std::vector<std::uint32_t> order(op.rank());
  for (std::uint32_t d = 0; d < order.size(); ++d) order[d] = d;
  const bool of_bytes = program::size_in_bytes(op.type) == 1;
  if (of_bytes && axes.intrinsic->layout_is_known)
    std::swap(order[dimension_along(s, sums, copy, axes.depth)], order.back());
  if (!axes.intrinsic->by_warp_group()) return order;
  const std::uint32_t terms = dimension_along(s, sums, copy, axes.depth),
                      lines = dimension_along(s, sums, copy, copy == axes.a ? axes.row : axes.column);
  const std::uint32_t other = order.back() == terms ? lines : terms;
  order.erase(std::find(order.begin(), order.end(), other));
  order.insert(order.end() - 1, other);
  return order;
}

TUNEWRIGHT_INLINE std::uint32_t TensorizeProducts::dimension_along(const ScheduleBuilder& s, TensorId sums,
                                                                   TensorId copy, IterId axis) {
  const std::vector<program::Reads> all = program::reads_of(*s.state().stages[sums].op);
  const auto of_copy =
      std::find_if(all.begin(), all.end(), [&](const program::Reads& reads) { return reads.tensor == copy; });
  const auto& indices = of_copy->accesses.front();
  if (const std::optional<IterId> alone = dimension_of(indices, axis)) return *alone;
  const auto along =
      std::find_if(indices.begin(), indices.end(), [&](const program::IndexExpr& index) { return index.uses(axis); });
  return static_cast<std::uint32_t>(along - indices.begin());
}

}  // namespace tunewright::spaces::tiling::gpu

#endif
