// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tunewright/core/target.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/spaces/tiling/predicates.hpp"

namespace tunewright::spaces::tiling {

/// Reads the data of a reduction over one axis that is not the last, if they are larger than L2, in few long streams: a
/// few terms at a time, each along all columns of a thread, whose sums stay in L1. Keeping the sums of a few vectors in
/// registers over all terms would instead read a few hundred bytes of each row, too few for prefetchers. If rows of an
/// output are shorter than a page and a whole number of vectors, contiguous rows are fused into one axis, so that a
/// stream does not end with a row. The derivation of `ScheduleSimply` is kept as well. Not in Ansor.
struct ReduceInStreams {
  [[nodiscard]] Answer meets(const Derivation& d, TensorId id, const Target& target) const;
  void apply(Derivation d, TensorId id, const Target& target, std::vector<Derivation>& out) const;
};

}  // namespace tunewright::spaces::tiling

#if TUNEWRIGHT_DEFINES(spaces)

#include "tunewright/program/analysis.hpp"
#include "tunewright/spaces/tiling/transformations.hpp"

namespace tunewright::spaces::tiling {

TUNEWRIGHT_INLINE Answer ReduceInStreams::meets(const Derivation& d, TensorId id, const Target& target) const {
  const Stage& stage = d.builder.state().stages[id];
  const program::Operator& op = *stage.op;
  if (!op.has_reduction() || !stage.is_untouched() || op.axes.size() != op.rank() + 1 ||
      program::needs_multi_level_tiling(op) || !vectorizes_well(op))
    return Answer::Skip;
  constexpr std::int64_t fewest_terms = 8;
  const std::size_t element = program::size_in_bytes(op.type);
  const std::int64_t lanes = target.vector_lanes(element);
  const double bytes = program::spatial_points(op) * program::reduction_points(op) * static_cast<double>(element);
  return op.axes.back().extent >= fewest_terms && op.axes[op.rank() - 1].extent > lanes &&
                 bytes > static_cast<double>(target.l2_bytes)
             ? Answer::Apply
             : Answer::Skip;
}

TUNEWRIGHT_INLINE void ReduceInStreams::apply(Derivation d, TensorId id, const Target& target,
                                              std::vector<Derivation>& out) const {
  ScheduleBuilder& s = d.builder;
  const program::Operator& op = *s.state().stages[id].op;
  const auto last = static_cast<IterId>(op.rank() - 1);
  const std::int64_t lanes = target.vector_lanes(program::size_in_bytes(op.type));
  constexpr std::int64_t most_terms = 16;
  constexpr std::int64_t page_bytes = 4096;
  const std::int64_t row_bytes = op.axes[last].extent * static_cast<std::int64_t>(program::size_in_bytes(op.type));
  const bool short_rows = row_bytes < page_bytes && op.axes[last].extent % lanes == 0 && readers(s.state(), id).empty();
  IterId first = last;
  while (short_rows && first > 0 && runs_on(s.state(), op, first - 1)) --first;
  const IterId whole = fuse_all(s, id, axes_between(first, op.rank()));
  const std::vector<IterId> columns = s.choose_tile(id, whole, 2, most_vectors * lanes, LoopKind::Vectorized);
  const std::vector<IterId> terms = s.choose_tile(id, static_cast<IterId>(op.rank()), 1, most_terms);
  std::vector<IterId> outer = axes_between(0, first);
  outer.push_back(columns[0]);
  std::vector<IterId> order = outer;
  order.insert(order.end(), {terms[0], columns[1], terms[1], columns[2]});
  s.reorder(id, order);
  s.vectorize(id, columns[2]);
  s.parallel(id, s.choose_fuse(id, outer));
  s.choose_unroll_limit(id, unroll_limits());
  if (!readers(s.state(), id).empty()) s.choose_location(id, location_choices(d, id));
  --d.place;
  out.push_back(std::move(d));
}

}  // namespace tunewright::spaces::tiling

#endif
