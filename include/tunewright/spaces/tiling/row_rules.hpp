// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "tunewright/core/target.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/spaces/tiling/predicates.hpp"

/// Sketch rules for CPUs for rows that are reduced and then used, as in a softmax or a layer normalisation: one thread
/// computes all stages of a row while it is in its inner caches, so that memory is read once. Not in Ansor, whose rules
/// tile such a stage because it reads elements again, and draw the location of each reduction separately.
namespace tunewright::spaces::tiling {

/// Vectorizes the last axis, with a number of consecutive vectors that the search chooses.
void vectorize_row(ScheduleBuilder& s, TensorId id, const Target& target);

/// A stage that reads the result of a reduction of rows becomes a parallel loop over rows, with a vectorized loop along
/// the row inside. If there are too few rows to keep the threads busy, later rules also derive alternatives.
struct GoByRows {
  [[nodiscard]] Answer meets(const Derivation& d, TensorId id, const Target& target) const;
  void apply(Derivation d, TensorId id, const Target& target, std::vector<Derivation>& out) const;

 private:
  /// Number of leading axes of `id` that select a row; 0 if neither it nor what is inlined into it reads a reduced row.
  static std::size_t row_axes(const State& state, TensorId id);
};

/// Stages that only a loop over rows reads are computed in it, one row at a time: reductions with enough accumulators
/// to hide the latency of additions, elementwise stages in vectors.
struct ComputeInRow {
  [[nodiscard]] Answer meets(const Derivation& d, TensorId id, const Target& target) const;
  void apply(Derivation d, TensorId id, const Target& target, std::vector<Derivation>& out) const;

 private:
  /// The stage in whose rows `id` can be computed, or null.
  static const BoundStage* row_of(const Derivation& d, TensorId id);
  /// Splits a reduction into one of vector accumulators and one that combines them; returns the stage of the former, or
  /// `id` if the row has only a few vectors.
  static TensorId reduce_row(ScheduleBuilder& s, TensorId id, const Target& target);
};

}  // namespace tunewright::spaces::tiling

#if TUNEWRIGHT_DEFINES(spaces)

#include "tunewright/program/analysis.hpp"
#include "tunewright/spaces/tiling/transformations.hpp"

namespace tunewright::spaces::tiling {

TUNEWRIGHT_INLINE void vectorize_row(ScheduleBuilder& s, TensorId id, const Target& target) {
  const program::Operator& op = *s.state().stages[id].op;
  const std::int64_t lanes = target.vector_lanes(program::size_in_bytes(op.type));
  s.vectorize(id,
              s.choose_tile(id, static_cast<IterId>(op.rank() - 1), 1, most_vectors * lanes, LoopKind::Vectorized)[1]);
}

TUNEWRIGHT_INLINE std::size_t GoByRows::row_axes(const State& state, TensorId id) {
  std::size_t most = 0;
  std::vector<TensorId> inlined{id};  // and stages that will be part of it
  for (std::size_t next = 0; next < inlined.size(); ++next) {
    for (const program::Reads& reads : program::reads_of(*state.stages[inlined[next]].op)) {
      const Stage& source = state.stages[reads.tensor];
      if (source.is_source()) continue;
      if (program::strictly_inlineable(*source.op) &&
          std::find(inlined.begin(), inlined.end(), reads.tensor) == inlined.end())
        inlined.push_back(reads.tensor);
      if (!source.op->has_reduction() || vectorizes_well(*source.op) || program::needs_multi_level_tiling(*source.op))
        continue;
      const std::size_t shared = common_outer_axes(state, reads.tensor, id);
      if (shared == source.op->rank()) most = std::max(most, shared);
    }
  }
  return most;
}

TUNEWRIGHT_INLINE Answer GoByRows::meets(const Derivation& d, TensorId id, const Target& target) const {
  const State& state = d.builder.state();
  const Stage& stage = state.stages[id];
  if (stage.op->has_reduction() || !stage.is_untouched() || stage.op->rank() < 2 || awaits_fusion(state, id) ||
      !vectorizes_well(*stage.op) || !readers(state, id).empty())
    return Answer::Skip;
  const std::size_t axes = row_axes(state, id);
  if (axes == 0 || axes >= stage.op->rank()) return Answer::Skip;
  std::int64_t rows = 1;
  for (std::size_t axis = 0; axis < axes; ++axis) rows *= stage.op->axes[axis].extent;
  constexpr std::int64_t rows_for_each_thread = 8;
  return rows < rows_for_each_thread * static_cast<std::int64_t>(target.threads) ? Answer::Apply
                                                                                 : Answer::ApplyAndSkipRest;
}

TUNEWRIGHT_INLINE void GoByRows::apply(Derivation d, TensorId id, const Target& target,
                                       std::vector<Derivation>& out) const {
  ScheduleBuilder& s = d.builder;
  const std::size_t axes = row_axes(s.state(), id);
  vectorize_row(s, id, target);
  const IterId row = fuse_all(s, id, axes_between(0, axes));
  s.parallel(id, row);
  d.bound.push_back({id, row, axes, std::nullopt});
  --d.place;
  out.push_back(std::move(d));
}

TUNEWRIGHT_INLINE const BoundStage* ComputeInRow::row_of(const Derivation& d, TensorId id) {
  const State& state = d.builder.state();
  const Stage& stage = state.stages[id];
  if (stage.is_source() || !stage.is_untouched()) return nullptr;
  const std::vector<TensorId> all = readers(state, id);
  for (const BoundStage& bound : d.bound) {
    const auto is_in_row = [&](TensorId reader) {
      const Location& at = state.stages[reader].location;
      return reader == bound.stage || (at.kind == Location::Kind::At && at.stage == bound.stage);
    };
    if (!all.empty() && std::all_of(all.begin(), all.end(), is_in_row) &&
        common_outer_axes(state, id, bound.stage) >= bound.row_axes)
      return &bound;
  }
  return nullptr;
}

TUNEWRIGHT_INLINE Answer ComputeInRow::meets(const Derivation& d, TensorId id, const Target&) const {
  const BoundStage* row = row_of(d, id);
  if (row == nullptr) return Answer::Skip;
  const program::Operator& op = *d.builder.state().stages[id].op;
  const bool in_vectors = vectorizes_well(op);
  const bool suits = op.has_reduction()
                         ? op.rank() == row->row_axes && !program::needs_multi_level_tiling(op) && !in_vectors
                         : op.rank() > row->row_axes && in_vectors;
  return suits ? Answer::ApplyAndSkipRest : Answer::Skip;
}

TUNEWRIGHT_INLINE void ComputeInRow::apply(Derivation d, TensorId id, const Target& target,
                                           std::vector<Derivation>& out) const {
  const BoundStage row = *row_of(d, id);
  ScheduleBuilder& s = d.builder;
  if (s.state().stages[id].op->has_reduction()) {
    const TensorId first = reduce_row(s, id, target);
    s.compute_at(id, row.stage, row.attach);
    if (first != id) s.compute_at(first, row.stage, row.attach);
    d.place = place_of(s.state(), first);
  } else {
    vectorize_row(s, id, target);
    s.compute_at(id, row.stage, row.attach);
    --d.place;
  }
  out.push_back(std::move(d));
}

TUNEWRIGHT_INLINE TensorId ComputeInRow::reduce_row(ScheduleBuilder& s, TensorId id, const Target& target) {
  const program::Operator& op = *s.state().stages[id].op;
  const std::int64_t lanes = target.vector_lanes(program::size_in_bytes(op.type));
  const IterId whole = fuse_all(s, id, axes_between(op.rank(), op.axes.size()));
  const std::int64_t extent = s.extents_at_root(id)[whole];
  // Eight accumulators hide the latency of an addition or a multiply-add on any processor with two units. A short row
  // has fewer, because combining them would take longer than they save.
  constexpr std::int64_t visits = 4;
  std::int64_t sums = 8;
  while (sums > 1 && visits * sums * lanes > extent) sums /= 2;
  if (sums * lanes >= extent) {
    s.vectorize(id, whole);
    return id;
  }
  const std::vector<IterId> parts = s.split(id, whole, {sums * lanes});
  const TensorId partial = s.rfactor(id, parts[1]);
  s.vectorize(id, static_cast<IterId>(s.state().stages[id].op->axes.size() - 1));
  vectorize_innermost(s, partial, static_cast<IterId>(s.state().stages[partial].op->rank() - 1));
  s.choose_unroll_limit(partial, {0, 16, 64});
  return partial;
}

}  // namespace tunewright::spaces::tiling

#endif
