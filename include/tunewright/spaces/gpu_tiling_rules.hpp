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

/// Sketch rules for GPUs; `tiling_rules.hpp` explains how rules are applied. Each stage at the root becomes one kernel.
namespace tunewright::spaces::tiling::gpu {

/// Whether a reduction is worth a tile in shared memory and registers: some operand that varies along the reduction is
/// read for several results.
[[nodiscard]] bool is_tiled(const program::Operator& op);

/// Whether a stage is at the root and its loops are unchanged.
[[nodiscard]] bool is_free(const Derivation& d, TensorId id);

/// Inlines every stage without a reduction that is not an output: repeating arithmetic costs less than a round trip to
/// memory. Includes special stages such as padding, which are computed while a tile of them is fetched (as in Ansor for
/// GPUs).
struct InlineElementwise {
  [[nodiscard]] Answer meets(const Derivation& d, TensorId id, const Target&) const;
  void apply(Derivation d, TensorId id, const Target& target, std::vector<Derivation>& out) const;
};

/// Splits a long reduction with few results into chunks for separate blocks (split-K for a matrix product); a second
/// kernel combines the partial results. Splits the longest reduction axis, into about twice as many blocks as there are
/// multiprocessors. Not in Ansor's rules for GPUs.
struct AddRfactor {
  static constexpr double points_a_block = 4096;  ///< results of a tiled block
  static constexpr double min_tiled_chunk = 128;  ///< minimum number of reduction points of a tiled block
  static constexpr double min_chunk = 256;        ///< the same if threads share the reduction
  static constexpr double max_tiled_chunks = 32;  ///< because each chunk writes a copy of the whole result
  static constexpr std::int64_t min_chunks = 4;   ///< fewer are not worth a second kernel

  [[nodiscard]] Answer meets(const Derivation& d, TensorId id, const Target& target) const;
  void apply(Derivation d, TensorId id, const Target& target, std::vector<Derivation>& out) const;

 private:
  [[nodiscard]] static IterId longest_reduction(const program::Operator& op);
  [[nodiscard]] static std::int64_t chunks(const program::Operator& op, const Target& target);
};

/// Lets the threads of a block share a reduction that is long enough to keep a warp busy (Ansor's cross-thread
/// reduction). If all readers compute the same row (as in a softmax), one block computes them and keeps the result in
/// shared memory.
struct ShareReduction {
  [[nodiscard]] Answer meets(const Derivation& d, TensorId id, const Target& target) const;
  void apply(Derivation d, TensorId id, const Target& target, std::vector<Derivation>& out) const;

 private:
  /// The elementwise root stage that computes, together with the stages in its blocks, all rows that need a result of
  /// `id`, one result per row; `id` if there is none.
  [[nodiscard]] static TensorId row_reader(const Derivation& d, TensorId id);
};

/// Tiles a stage as SSSRRSRS. It accumulates in registers, tile by tile, inside its elementwise reader or, without one,
/// inside a copy of itself (Ansor's write cache).
struct MultiLevelTiling {
  [[nodiscard]] Answer meets(const Derivation& d, TensorId id, const Target&) const {
    return is_tiled(*d.builder.state().stages[id].op) ? Answer::ApplyAndSkipRest : Answer::Skip;
  }
  void apply(Derivation d, TensorId id, const Target& target, std::vector<Derivation>& out) const;
};

/// Other reductions: each thread reduces its own points in registers, inside the elementwise reader or before it copies
/// the result out.
struct ReduceInThread {
  [[nodiscard]] Answer meets(const Derivation& d, TensorId id, const Target&) const;
  void apply(Derivation d, TensorId id, const Target& target, std::vector<Derivation>& out) const;
};

/// Leaves all other stages to their readers; a stage that is still at the root after all stages have been visited is
/// bound, with separate points per thread.
struct BindTheRest {
  [[nodiscard]] Answer meets(const Derivation&, TensorId, const Target&) const { return Answer::ApplyAndSkipRest; }
  void apply(Derivation d, TensorId, const Target&, std::vector<Derivation>& out) const;
  void finish(Derivation& d, const Target& target) const;
};

}  // namespace tunewright::spaces::tiling::gpu

#if TUNEWRIGHT_DEFINES(spaces)

#include "tunewright/program/analysis.hpp"
#include "tunewright/spaces/tiling/gpu_transformations.hpp"
#include "tunewright/spaces/tiling/transformations.hpp"
#include "tunewright/spaces/tiling_rules.hpp"

namespace tunewright::spaces::tiling::gpu {

TUNEWRIGHT_INLINE bool is_tiled(const program::Operator& op) {
  if (!op.has_reduction()) return false;
  for (const program::Reads& reads : program::reads_of(op)) {
    std::vector<bool> used(op.axes.size(), false);
    for (const std::vector<program::IndexExpr>& access : reads.accesses) {
      for (const program::IndexExpr& index : access)
        program::for_each_variable(index, [&](program::Var axis) { used[axis] = true; });
    }
    const auto rank = static_cast<std::ptrdiff_t>(op.rank());
    bool repeated = false;
    for (std::size_t a = 0; a < op.rank(); ++a) repeated = repeated || (op.axes[a].extent > 1 && !used[a]);
    if (repeated && std::find(used.begin() + rank, used.end(), true) != used.end()) return true;
  }
  return false;
}

TUNEWRIGHT_INLINE bool is_free(const Derivation& d, TensorId id) {
  return d.builder.state().stages[id].is_untouched() && bound_stage(d, id) == nullptr;
}

TUNEWRIGHT_INLINE Answer InlineElementwise::meets(const Derivation& d, TensorId id, const Target&) const {
  const State& state = d.builder.state();
  const bool reduces = state.stages[id].op->has_reduction();
  return !reduces && may_disappear(state, id) && fits_in_readers(state, id) ? Answer::ApplyAndSkipRest : Answer::Skip;
}

TUNEWRIGHT_INLINE void InlineElementwise::apply(Derivation d, TensorId id, const Target& target,
                                                std::vector<Derivation>& out) const {
  AlwaysInline{}.apply(std::move(d), id, target, out);
}

TUNEWRIGHT_INLINE Answer AddRfactor::meets(const Derivation& d, TensorId id, const Target& target) const {
  const Stage& stage = d.builder.state().stages[id];
  const bool is_new = !is_cached(d, id);
  return is_new && stage.op->has_reduction() && chunks(*stage.op, target) >= min_chunks ? Answer::Apply : Answer::Skip;
}

TUNEWRIGHT_INLINE void AddRfactor::apply(Derivation d, TensorId id, const Target& target,
                                         std::vector<Derivation>& out) const {
  ScheduleBuilder& s = d.builder;
  const program::Operator& op = *s.state().stages[id].op;
  const std::int64_t chunk = program::ceil_div(op.axes[longest_reduction(op)].extent, chunks(op, target));
  const std::vector<IterId> parts = s.split(id, longest_reduction(op), {chunk});
  const TensorId partial = s.rfactor(id, parts[0]);
  d.cached.push_back(partial);
  d.cached.push_back(id);
  // The chunks are the last axis; the results of one block are contiguous.
  if (is_tiled(*s.state().stages[partial].op)) store_last_axis_first(s, partial);
  // The combining stage is visited next, then the stage that reduces chunks.
  d.place = place_of(s.state(), id) + 1;
  out.push_back(std::move(d));
}

TUNEWRIGHT_INLINE IterId AddRfactor::longest_reduction(const program::Operator& op) {
  const auto first = op.axes.begin() + static_cast<std::ptrdiff_t>(op.rank());
  const auto shorter = [](const program::Axis& a, const program::Axis& b) { return a.extent < b.extent; };
  return static_cast<IterId>(std::max_element(first, op.axes.end(), shorter) - op.axes.begin());
}

TUNEWRIGHT_INLINE std::int64_t AddRfactor::chunks(const program::Operator& op, const Target& target) {
  const bool tiled = is_tiled(op);
  const double blocks = std::max(program::spatial_points(op) / (tiled ? points_a_block : 1.0), 1.0);
  const double reduction = program::reduction_points(op);
  const double most = tiled ? std::min(reduction / min_tiled_chunk, max_tiled_chunks) : reduction / min_chunk;
  const double longest = static_cast<double>(op.axes[longest_reduction(op)].extent);
  const double wanted = 2.0 * static_cast<double>(target.multiprocessors) / blocks;
  return static_cast<std::int64_t>(std::min({wanted, most, longest}));
}

TUNEWRIGHT_INLINE Answer ShareReduction::meets(const Derivation& d, TensorId id, const Target& target) const {
  const Stage& stage = d.builder.state().stages[id];
  if (!stage.op->has_reduction()) return Answer::Skip;
  const double space = program::spatial_points(*stage.op);
  const double reduction = program::reduction_points(*stage.op);
  if (is_tiled(*stage.op)) {
    return space <= target.max_threads_per_block && space < reduction ? Answer::Apply : Answer::Skip;
  }
  if (reduction <= target.warp_size) return Answer::Skip;
  // With fewer results than a warp has threads, no other rule is worth a try.
  return space < target.warp_size ? Answer::ApplyAndSkipRest : Answer::Apply;
}

TUNEWRIGHT_INLINE void ShareReduction::apply(Derivation d, TensorId id, const Target& target,
                                             std::vector<Derivation>& out) const {
  const TensorId row = row_reader(d, id);
  ScheduleBuilder& s = d.builder;
  const std::size_t rank = s.state().stages[id].op->rank();
  if (row == id) {
    if (rank > 0) s.bind(id, fuse_all(s, id, axes_between(0, rank)), LoopKind::BlockX);
    share_reduction(s, id, std::nullopt, target);
  } else {
    const BoundStage* known = bound_stage(d, row);
    const BoundStage bound = known != nullptr ? *known : bind_rows(d, row, rank, target);
    share_reduction(s, id, bound.thread_split, target);
    s.compute_at(id, row, bound.attach);
  }
  d.place = place_of(s.state(), id);
  out.push_back(std::move(d));
}

TUNEWRIGHT_INLINE TensorId ShareReduction::row_reader(const Derivation& d, TensorId id) {
  const State& state = d.builder.state();
  const std::size_t rank = state.stages[id].op->rank();
  const std::vector<TensorId> all = readers(state, id);
  if (all.empty() || rank == 0) return id;
  const TensorId root = all.back();
  const Stage& stage = state.stages[root];
  const BoundStage* bound = bound_stage(d, root);
  const bool bindable = bound != nullptr ? bound->row_axes == rank : is_free(d, root);
  if (!bindable || stage.op->has_reduction() || common_outer_axes(state, id, root) != rank) return id;
  for (const TensorId reader : all) {
    const Location& location = state.stages[reader].location;
    const bool inside = bound != nullptr && location.kind == Location::Kind::At && location.stage == root &&
                        location.iter == bound->attach;
    if (reader != root && !inside) return id;
  }
  return root;
}

TUNEWRIGHT_INLINE void MultiLevelTiling::apply(Derivation d, TensorId id, const Target& target,
                                               std::vector<Derivation>& out) const {
  ScheduleBuilder& s = d.builder;
  const TensorId reader = elementwise_reader(s.state(), id);
  const bool fused = reader != id && is_free(d, reader);
  const TensorId sums = fused ? id : s.cache_write(id, Scope::Local);
  const TensorId outer = fused ? reader : id;
  // Chunks of a reduction (the last axis of a factored stage) are far apart in memory, so a block has only one.
  const bool chunked = is_cached(d, id);
  const std::size_t rank = s.state().stages[sums].op->rank();
  const Tiled tiled = tile(s, sums, chunked ? rank - 1 : rank);
  const IterId threads = bind_tiles(s, outer, tiled);
  s.compute_at(sums, outer, threads);
  fetch_operands(s, sums, tiled, target);
  d.place = place_of(s.state(), sums);
  out.push_back(std::move(d));
}

TUNEWRIGHT_INLINE Answer ReduceInThread::meets(const Derivation& d, TensorId id, const Target&) const {
  const Stage& stage = d.builder.state().stages[id];
  return stage.op->has_reduction() && stage.op->rank() > 0 ? Answer::ApplyAndSkipRest : Answer::Skip;
}

TUNEWRIGHT_INLINE void ReduceInThread::apply(Derivation d, TensorId id, const Target& target,
                                             std::vector<Derivation>& out) const {
  ScheduleBuilder& s = d.builder;
  const TensorId reader = elementwise_reader(s.state(), id);
  const BoundStage* known = bound_stage(d, reader);
  const bool joins = known != nullptr && known->row_axes == 0;
  const bool fused = reader != id && (joins || is_free(d, reader));
  const TensorId sums = fused ? id : s.cache_write(id, Scope::Local);
  const BoundStage bound = fused && joins ? *known : bind_points(d, fused ? reader : id, target);
  s.compute_at(sums, bound.stage, bound.attach);
  // One load serves all points of a thread's vector.
  const program::Operator& op = *s.state().stages[sums].op;
  std::vector<IterId> order = axes_between(op.rank(), op.axes.size());
  for (const IterId axis : axes_between(0, op.rank())) order.push_back(axis);
  s.reorder(sums, std::move(order));
  s.choose_unroll_limit(sums, unroll_limits());
  d.place = place_of(s.state(), sums);
  out.push_back(std::move(d));
}

TUNEWRIGHT_INLINE void BindTheRest::apply(Derivation d, TensorId, const Target&, std::vector<Derivation>& out) const {
  --d.place;
  out.push_back(std::move(d));
}

TUNEWRIGHT_INLINE void BindTheRest::finish(Derivation& d, const Target& target) const {
  const std::vector<TensorId> order = d.builder.state().order;
  for (const TensorId id : order) {
    const Stage& stage = d.builder.state().stages[id];
    const bool binds = !stage.is_source() && stage.op->rank() > 0 && !stage.op->has_reduction();
    if (binds && is_free(d, id)) bind_points(d, id, target);
  }
}

}  // namespace tunewright::spaces::tiling::gpu

#endif
