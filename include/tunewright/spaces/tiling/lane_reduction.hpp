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

namespace tunewright::spaces::tiling {

/// Sums products in vector lanes, where a vector is consecutive terms of the sum instead of consecutive columns: if the
/// columns of the output do not fill vectors, as in a product of a matrix with a vector or with ten columns; and if the
/// terms of the columns are contiguous and few rows use them, as in a product of a few rows with a transposed matrix,
/// where a transposition would cost more than the product. The partial sums of the lanes are tiled like any product,
/// and added up in the tile of the output that they belong to. The operand of the columns is copied in the order in
/// which the tiles read it, or read in place if its terms are contiguous. Derivations with vectors of columns are kept
/// as well. Not in Ansor, whose `rfactor` is for outputs with fewer elements than terms.
struct ReduceInLanes {
  [[nodiscard]] Answer meets(const Derivation& d, TensorId id, const Target& target) const;
  void apply(const Derivation& d, TensorId id, const Target& target, std::vector<Derivation>& out) const;

 private:
  /// The reduction axis along which the operand that all columns share is contiguous; empty if there is none.
  static std::optional<IterId> contiguous_terms(const program::Operator& op);
  /// Number of rows that use each element of the operand of the columns, if it is contiguous along `terms`; empty if it
  /// is not.
  static std::optional<std::int64_t> rows_of_contiguous_columns(const program::Operator& op, IterId terms);
  static Derivation factored(Derivation d, TensorId id, std::size_t fuse_level, const Target& target);
  /// Copies the operand of the columns in the order of the tiles' loops; constants are packed ahead of time.
  static void arrange_operands(ScheduleBuilder& s, TensorId partial, std::int64_t lanes);
};

}  // namespace tunewright::spaces::tiling

#if TUNEWRIGHT_DEFINES(spaces)

#include "tunewright/program/analysis.hpp"
#include "tunewright/schedule/schedule.hpp"
#include "tunewright/spaces/decisions/tile_sizes.hpp"
#include "tunewright/spaces/tiling/transformations.hpp"

namespace tunewright::spaces::tiling {

TUNEWRIGHT_INLINE std::optional<IterId> ReduceInLanes::contiguous_terms(const program::Operator& op) {
  const auto column = static_cast<program::Var>(op.rank() - 1);
  for (const program::Reads& reads : program::reads_of(op)) {
    for (const auto& access : reads.accesses) {
      if (uses_axis(access, column)) continue;
      for (auto axis = static_cast<program::Var>(op.rank()); axis < op.axes.size(); ++axis)
        if (is_contiguous(access, axis)) return static_cast<IterId>(axis);
    }
  }
  return std::nullopt;
}

TUNEWRIGHT_INLINE std::optional<std::int64_t> ReduceInLanes::rows_of_contiguous_columns(const program::Operator& op,
                                                                                        IterId terms) {
  const auto column = static_cast<program::Var>(op.rank() - 1);
  for (const program::Reads& reads : program::reads_of(op)) {
    for (const auto& access : reads.accesses) {
      const auto uses = [&](program::Var axis) { return uses_axis(access, axis); };
      if (!uses(column) || !is_contiguous(access, terms)) continue;
      std::int64_t rows = 1;
      for (program::Var axis = 0; axis < column; ++axis) rows *= uses(axis) ? 1 : op.axes[axis].extent;
      return rows;
    }
  }
  return std::nullopt;
}

TUNEWRIGHT_INLINE Answer ReduceInLanes::meets(const Derivation& d, TensorId id, const Target& target) const {
  const State& state = d.builder.state();
  const Stage& stage = state.stages[id];
  const program::Operator& op = *stage.op;
  if (!op.has_reduction() || !stage.is_untouched() || op.rank() == 0 || op.combiner != program::Combiner::Sum ||
      !program::needs_multi_level_tiling(op) || is_cached(d, id))
    return Answer::Skip;
  constexpr double most_idle = 0.25;
  constexpr std::int64_t fewest_vectors = 4, few_rows = 16;
  const std::int64_t lanes = target.vector_lanes(program::size_in_bytes(op.type));
  const std::optional<IterId> terms = contiguous_terms(op);
  if (!terms || op.axes[*terms].extent < fewest_vectors * lanes) return Answer::Skip;
  const TensorId reader = elementwise_reader(state, id);
  if (reader != id && !state.stages[reader].is_untouched()) return Answer::Skip;
  const std::int64_t columns = op.axes[op.rank() - 1].extent;
  const bool lanes_idle = columns < 2 * lanes && decisions::waste(columns, lanes) > most_idle;
  const std::optional<std::int64_t> rows = rows_of_contiguous_columns(op, *terms);
  return lanes_idle || (rows && *rows <= few_rows) ? Answer::Apply : Answer::Skip;
}

TUNEWRIGHT_INLINE void ReduceInLanes::apply(const Derivation& d, TensorId id, const Target& target,
                                            std::vector<Derivation>& out) const {
  for (const std::size_t fuse_level : {std::size_t{1}, std::size_t{2}})
    out.push_back(factored(d, id, fuse_level, target));
}

TUNEWRIGHT_INLINE Derivation ReduceInLanes::factored(Derivation d, TensorId id, std::size_t fuse_level,
                                                     const Target& target) {
  ScheduleBuilder& s = d.builder;
  const program::Operator& op = *s.state().stages[id].op;
  const std::int64_t lanes = target.vector_lanes(program::size_in_bytes(op.type));
  const TensorId outermost = elementwise_reader(s.state(), id);
  const TensorId partial = s.rfactor(id, s.split(id, *contiguous_terms(op), {lanes})[1]);
  const Tiled tiled = tile(s, partial);
  std::vector<std::vector<IterId>> copy;
  for (IterId axis = 0; axis + 1 < tiled.spatial.size(); ++axis)
    copy.push_back(s.follow_split(outermost, axis, tiled.split_steps[axis], static_cast<std::uint32_t>(fuse_level)));
  std::vector<IterId> order = outer_levels_first(copy, fuse_level);
  const auto lane = static_cast<IterId>(tiled.spatial.size() - 1);
  if (outermost == id) order.push_back(lane);
  s.reorder(outermost, order);
  s.vectorize(id, lane);
  if (outermost != id) s.vectorize(outermost, copy.back().back());
  compute_in_tile(s, partial, outermost, copy, fuse_level);
  if (outermost != id) s.compute_at(id, outermost, s.state().stages[partial].location.iter);
  arrange_operands(s, partial, lanes);
  d.place = place_of(s.state(), partial);
  return d;
}

TUNEWRIGHT_INLINE void ReduceInLanes::arrange_operands(ScheduleBuilder& s, TensorId partial, std::int64_t lanes) {
  const auto lane = static_cast<program::Var>(s.state().stages[partial].op->rank() - 1), column = lane - 1;
  const bool several_columns = s.state().stages[partial].op->axes[column].extent > 1;
  const std::vector<program::Reads> all = program::reads_of(*s.state().stages[partial].op);
  for (const program::Reads& reads : all) {
    const Stage& source = s.state().stages[reads.tensor];
    if (!source.is_source() || reads.accesses.size() != 1) continue;
    const std::vector<program::IndexExpr>& access = reads.accesses[0];
    if (source.op->role == program::Role::Constant) {
      if (readers(s.state(), reads.tensor).size() == 1) s.pack(reads.tensor, partial);
      continue;
    }
    const auto along = std::find_if(access.begin(), access.end(), [&](const auto& index) { return index.uses(lane); });
    const auto terms = static_cast<IterId>(along - access.begin());
    const bool of_columns = uses_axis(access, column);
    if (along == access.end() || !of_columns || !several_columns) continue;
    const std::vector<std::int64_t> extents = source.op->shape();
    const bool contiguous =
        std::all_of(extents.begin() + terms + 1, extents.end(), [](std::int64_t extent) { return extent == 1; });
    const TensorId copy = s.cache_read(reads.tensor, partial, Scope::Local);
    const Location at = s.state().stages[partial].location;
    std::vector<Location> choices{{Location::Kind::At, at.stage, s.loops(at.stage).front()}};
    if (contiguous) choices.insert(choices.begin(), {Location::Kind::Inline, 0, 0});
    s.choose_location(copy, std::move(choices));
    vectorize_innermost(s, copy, s.split(copy, terms, {lanes})[1]);
    s.pack(copy, partial);
  }
}

}  // namespace tunewright::spaces::tiling

#endif
