// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tunewright/core/target.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/schedule/schedule.hpp"
#include "tunewright/spaces/tiling/predicates.hpp"
#include "tunewright/spaces/tiling/transformations.hpp"

/// Transformations of stages by GPU sketch rules: bind loops to blocks and threads, tile, copy operands to shared
/// memory, share a reduction among threads.
namespace tunewright::spaces::tiling::gpu {

inline constexpr std::size_t spatial_levels = 5;    ///< of SSSRRSRS
inline constexpr std::size_t reduction_levels = 3;  ///< of SSSRRSRS
inline constexpr std::uint32_t thread_factor = 1;  ///< index into the factors of a spatial split: [vthread, thread, ..]
inline constexpr std::int64_t max_innermost = 64;  ///< as in Ansor
inline constexpr std::int64_t max_vector_bytes = 16;

/// Statements up to which the loops of a kernel may be unrolled (as in Ansor for GPUs).
[[nodiscard]] inline std::vector<std::int64_t> unroll_limits() { return {0, 16, 64, 512, 1024}; }

/// The most elements of `type` that one instruction moves.
[[nodiscard]] inline std::int64_t most_lanes(program::ScalarType type) {
  return max_vector_bytes / static_cast<std::int64_t>(program::size_in_bytes(type));
}

/// The largest number of elements of `type`, a power of two, that one instruction moves along a contiguous axis of
/// `extent`: at most 16 bytes, and a divisor of the extent.
[[nodiscard]] std::int64_t max_vector(program::ScalarType type, std::int64_t extent);

[[nodiscard]] const BoundStage* bound_stage(const Derivation& d, TensorId id);

/// Binds an elementwise root stage: each thread computes one vector of neighbouring points. The number of threads per
/// block and the vector width are choices.
BoundStage bind_points(Derivation& d, TensorId id, const Target& target);

/// Binds an elementwise root stage: each block computes one row, i.e. the axes from `row_axes` on, with all its
/// threads.
BoundStage bind_rows(Derivation& d, TensorId id, std::size_t row_axes, const Target& target);

/// Lets threads share the reduction of a stage; neighbouring threads take neighbouring elements. Their number is that
/// of the threads that share the row of `bound`, if given.
void share_reduction(ScheduleBuilder& s, TensorId id, const std::optional<std::uint32_t>& thread_split,
                     const Target& target);

/// Splits and reorders as S0 S1 S2 R0 R1 S3 R2 S4: blocks, virtual threads, threads, the part in shared memory at a
/// time, and the registers of a thread. Axes from `whole_from` on are not split: each block has one of their points.
Tiled tile(ScheduleBuilder& s, TensorId id, std::size_t whole_from);

/// Splits the elementwise reader of a tiled stage like that stage, binds its outer loops and returns the loop of
/// threads.
IterId bind_tiles(ScheduleBuilder& s, TensorId reader, const Tiled& tiled);

/// Lets the search choose the layout of a fetched operand: unchanged, or with the dimensions that only the reduction
/// moves along outermost, so that one reduction step reads contiguous elements; with or without one vector of padding
/// after each row.
void arrange_copy(ScheduleBuilder& s, TensorId copy, const program::Operator& reader,
                  const std::vector<program::IndexExpr>& access);

/// Copies operands that are read more than once to shared memory, one step of the outermost reduction at a time. All
/// threads of the block fetch together, each a vector of neighbouring elements whose width is a choice.
///
/// Operands that are read in several places, or at an index with a quotient or remainder of loops (the channels of a
/// grouped convolution), are left to the device's caches: the window that covers them would be most of the tensor. How
/// far the copies are prefetched is a choice, too.
void fetch_operands(ScheduleBuilder& s, TensorId id, const Tiled& tiled, const Target& target);

}  // namespace tunewright::spaces::tiling::gpu

#if TUNEWRIGHT_DEFINES(spaces)

#include "tunewright/program/analysis.hpp"
#include "tunewright/spaces/decisions/pipelining.hpp"

namespace tunewright::spaces::tiling::gpu {

TUNEWRIGHT_INLINE std::int64_t max_vector(program::ScalarType type, std::int64_t extent) {
  std::int64_t width = most_lanes(type);
  while (width > 1 && extent % width != 0) width /= 2;
  return std::max<std::int64_t>(width, 1);
}

TUNEWRIGHT_INLINE const BoundStage* bound_stage(const Derivation& d, TensorId id) {
  const auto found = std::find_if(d.bound.begin(), d.bound.end(), [&](const BoundStage& b) { return b.stage == id; });
  return found == d.bound.end() ? nullptr : &*found;
}

TUNEWRIGHT_INLINE BoundStage bind_points(Derivation& d, TensorId id, const Target& target) {
  ScheduleBuilder& s = d.builder;
  const program::Operator& op = *s.state().stages[id].op;
  std::vector<IterId> outer = axes_between(0, op.rank());
  const std::int64_t width = vectorizes_well(op) ? max_vector(op.type, op.axes[op.rank() - 1].extent) : 1;
  if (width > 1) {
    const std::vector<IterId> parts = s.choose_tile(id, outer.back(), 1, width, LoopKind::Vectorized);
    s.vectorize(id, parts[1]);
    outer.back() = parts[0];
  }
  const IterId all = fuse_all(s, id, std::move(outer));
  const std::vector<IterId> parts = s.choose_tile(id, all, 1, target.max_threads_per_block, LoopKind::ThreadX);
  s.bind(id, parts[0], LoopKind::BlockX);
  s.bind(id, parts[1], LoopKind::ThreadX);
  d.bound.push_back({id, parts[1]});
  return d.bound.back();
}

TUNEWRIGHT_INLINE BoundStage bind_rows(Derivation& d, TensorId id, std::size_t row_axes, const Target& target) {
  ScheduleBuilder& s = d.builder;
  const std::size_t rank = s.state().stages[id].op->rank();
  BoundStage bound{id, fuse_all(s, id, axes_between(0, row_axes)), row_axes};
  s.bind(id, bound.attach, LoopKind::BlockX);
  if (row_axes < rank) {
    const IterId row = fuse_all(s, id, axes_between(row_axes, rank));
    bound.thread_split = s.next_step();
    const std::vector<IterId> parts = s.choose_tile(id, row, 1, target.max_threads_per_block, LoopKind::ThreadX);
    s.reorder(id, {parts[1], parts[0]});
    s.bind(id, parts[1], LoopKind::ThreadX);
  }
  d.bound.push_back(bound);
  return bound;
}

TUNEWRIGHT_INLINE void share_reduction(ScheduleBuilder& s, TensorId id,
                                       const std::optional<std::uint32_t>& thread_split, const Target& target) {
  const program::Operator& op = *s.state().stages[id].op;
  const IterId all = fuse_all(s, id, axes_between(op.rank(), op.axes.size()));
  const std::vector<IterId> parts = thread_split
                                        ? s.follow_split(id, all, *thread_split, 1)
                                        : s.choose_tile(id, all, 1, target.max_threads_per_block, LoopKind::ThreadX);
  s.reorder(id, {parts[1], parts[0]});
  s.bind(id, parts[1], LoopKind::ThreadX);
  s.choose_unroll_limit(id, unroll_limits());
}

TUNEWRIGHT_INLINE Tiled tile(ScheduleBuilder& s, TensorId id, std::size_t whole_from) {
  const std::size_t rank = s.state().stages[id].op->rank();
  const std::size_t axes = s.state().stages[id].op->axes.size();
  Tiled tiled;
  for (IterId axis = 0; axis < axes; ++axis) {
    if (axis < rank) {
      tiled.split_steps.push_back(s.next_step());
      tiled.spatial.push_back(axis < whole_from ? s.choose_tile(id, axis, spatial_levels - 1, max_innermost)
                                                : s.split(id, axis, std::vector<std::int64_t>(spatial_levels - 1, 1)));
    } else {
      tiled.reduction.push_back(s.choose_tile(id, axis, reduction_levels - 1, max_innermost));
    }
  }
  std::vector<IterId> order;
  const auto add = [&](const std::vector<std::vector<IterId>>& parts, std::size_t index) {
    for (const IterId iter : level(parts, index)) order.push_back(iter);
  };
  for (const std::size_t index : {0U, 1U, 2U}) add(tiled.spatial, index);
  for (const std::size_t index : {0U, 1U}) add(tiled.reduction, index);
  add(tiled.spatial, 3);
  add(tiled.reduction, 2);
  add(tiled.spatial, 4);
  s.reorder(id, order);
  s.choose_unroll_limit(id, unroll_limits());
  return tiled;
}

TUNEWRIGHT_INLINE IterId bind_tiles(ScheduleBuilder& s, TensorId reader, const Tiled& tiled) {
  std::vector<std::vector<IterId>> parts;
  for (std::size_t axis = 0; axis < tiled.spatial.size(); ++axis) {
    parts.push_back(s.follow_split(reader, static_cast<IterId>(axis), tiled.split_steps[axis], 3));
  }
  std::vector<IterId> order;
  for (std::size_t index = 0; index < parts[0].size(); ++index) {
    for (const IterId iter : level(parts, index)) order.push_back(iter);
  }
  s.reorder(reader, order);
  IterId bound = 0;
  constexpr LoopKind kinds[] = {LoopKind::BlockX, LoopKind::VirtualThread, LoopKind::ThreadX};
  for (std::size_t index = 0; index < std::size(kinds); ++index) {
    bound = fuse_all(s, reader, level(parts, index));
    s.bind(reader, bound, kinds[index]);
  }
  return bound;
}

TUNEWRIGHT_INLINE void arrange_copy(ScheduleBuilder& s, TensorId copy, const program::Operator& reader,
                                    const std::vector<program::IndexExpr>& access) {
  const program::Operator& op = *s.state().stages[copy].op;
  if (op.rank() < 2) return;
  std::vector<std::uint32_t> plain, reduced, kept;
  for (std::uint32_t d = 0; d < op.rank(); ++d) {
    bool spatial = false;
    program::for_each_variable(access[d], [&](program::Var axis) { spatial = spatial || axis < reader.rank(); });
    plain.push_back(d);
    (spatial ? kept : reduced).push_back(d);
  }
  std::vector<std::vector<std::uint32_t>> orders{plain};
  if (!kept.empty() && kept.back() != plain.back()) {
    reduced.insert(reduced.end(), kept.begin(), kept.end());
    orders.push_back(std::move(reduced));
  }
  s.choose_layout(copy, std::move(orders), {0, most_lanes(op.type)});
}

TUNEWRIGHT_INLINE void fetch_operands(ScheduleBuilder& s, TensorId id, const Tiled& tiled, const Target& target) {
  const IterId step = tiled.reduction.back()[0];
  bool fetches = false;
  for (const program::Reads& reads : program::reads_of(*s.state().stages[id].op)) {
    const program::Operator& op = *s.state().stages[id].op;
    const std::vector<program::IndexExpr>& access = reads.accesses[0];
    const bool affine =
        std::all_of(access.begin(), access.end(), [](const program::IndexExpr& i) { return i.is_affine(); });
    if (reads.accesses.size() != 1 || access.empty() || !affine || !is_reused(op, access)) continue;
    const program::Operator& operand = *s.state().stages[reads.tensor].op;
    const std::size_t rank = operand.rank();
    const std::int64_t width = most_lanes(operand.type);
    const TensorId copy = s.cache_read(reads.tensor, id, Scope::Shared);
    s.compute_at(copy, id, step);
    fetches = true;
    std::vector<IterId> iters = axes_between(0, rank);
    const std::vector<IterId> vector = s.choose_tile(copy, iters.back(), 1, width, LoopKind::Vectorized);
    iters.back() = vector[0];
    const std::vector<IterId> parts =
        s.follow_fused_split(copy, fuse_all(s, copy, std::move(iters)), tiled.split_steps, thread_factor);
    s.bind(copy, parts[1], LoopKind::ThreadX);
    s.vectorize(copy, vector[1]);
    arrange_copy(s, copy, *s.state().stages[id].op, access);
  }
  if (fetches) s.choose_pipelining(id, step, decisions::pipelinings(target));
}

}  // namespace tunewright::spaces::tiling::gpu

#endif
