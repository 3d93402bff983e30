// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "tunewright/core/target.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/spaces/tiling/predicates.hpp"

namespace tunewright::spaces::tiling {

/// Divides the terms of sums over large data among the threads, so that each reads whole rows that follow one another
/// in memory: a product of a vector with a matrix that is no constant, or a sum over an axis that is not the last,
/// whose results fit into L1. Dividing the columns instead, as all other sketches do, lets each thread read pieces of
/// rows, at half of the speed or less where prefetchers need many pages in a row; rows of one vector are work for one
/// thread. Each thread takes a few rows at a time, and its sums stay in L1; the sums of all threads are added in the
/// end. Constants are packed in the order in which they are read, which needs none of this. Not in Ansor, whose
/// `rfactor` is for fewer outputs than terms.
struct ShareTerms {
  [[nodiscard]] Answer meets(const Derivation& d, TensorId id, const Target& target) const;
  void apply(Derivation d, TensorId id, const Target& target, std::vector<Derivation>& out) const;

 private:
  static bool reads_constants(const State& state, const program::Operator& op);
  /// Schedules the sums of each thread.
  static void schedule_shares(ScheduleBuilder& s, TensorId partial, const Target& target);
};

}  // namespace tunewright::spaces::tiling

#if TUNEWRIGHT_DEFINES(spaces)

#include <algorithm>

#include "tunewright/program/analysis.hpp"
#include "tunewright/spaces/tiling/transformations.hpp"

namespace tunewright::spaces::tiling {

TUNEWRIGHT_INLINE Answer ShareTerms::meets(const Derivation& d, TensorId id, const Target& target) const {
  const State& state = d.builder.state();
  const Stage& stage = state.stages[id];
  const program::Operator& op = *stage.op;
  if (target.threads < 2 || !op.has_reduction() || !stage.is_untouched() || is_cached(d, id) ||
      op.axes.size() != op.rank() + 1 || !vectorizes_well(op)) {
    return Answer::Skip;
  }
  constexpr double fewest_terms_a_thread = 64;
  const auto element = static_cast<double>(program::size_in_bytes(op.type));
  const double results = program::spatial_points(op), terms = program::reduction_points(op);
  const auto columns = static_cast<double>(op.axes[op.rank() - 1].extent);
  const double rows = results / columns;
  const std::vector<TensorId> next = readers(state, id);
  const auto waits_for_another = [&](TensorId reader) {
    return awaits_fusion(state, reader) && reader != elementwise_reader(state, id);
  };
  // Several rows of a product read a matrix faster otherwise; several rows of a sum are work for several threads.
  const bool few_rows = program::needs_multi_level_tiling(op) ? rows == 1 : rows < target.threads;
  return few_rows && terms >= fewest_terms_a_thread * target.threads &&
                 results * element <= static_cast<double>(target.l1_bytes) &&
                 results * terms * element > static_cast<double>(target.l2_bytes) && !reads_constants(state, op) &&
                 std::none_of(next.begin(), next.end(), waits_for_another)
             ? Answer::Apply
             : Answer::Skip;
}

TUNEWRIGHT_INLINE bool ShareTerms::reads_constants(const State& state, const program::Operator& op) {
  const std::vector<program::Reads> reads = program::reads_of(op);
  return std::any_of(reads.begin(), reads.end(), [&](const program::Reads& one) {
    return state.stages[one.tensor].op->role == program::Role::Constant;
  });
}

TUNEWRIGHT_INLINE void ShareTerms::apply(Derivation d, TensorId id, const Target& target,
                                         std::vector<Derivation>& out) const {
  schedule_waiting_reader(d, id, target);
  ScheduleBuilder& s = d.builder;
  const program::Operator& op = *s.state().stages[id].op;
  const auto terms = static_cast<IterId>(op.rank());
  const std::int64_t share = program::ceil_div(op.axes[terms].extent, static_cast<std::int64_t>(target.threads));
  const TensorId partial = s.rfactor(id, s.split(id, terms, {share})[0]);
  s.parallel(id, s.choose_fuse(id, vectorize_columns(s, id, target)));
  if (!readers(s.state(), id).empty()) s.choose_location(id, location_choices(d, id));
  schedule_shares(s, partial, target);
  d.place = place_of(s.state(), partial);
  out.push_back(std::move(d));
}

TUNEWRIGHT_INLINE void ShareTerms::schedule_shares(ScheduleBuilder& s, TensorId partial, const Target& target) {
  const program::Operator& op = *s.state().stages[partial].op;
  const auto terms = static_cast<IterId>(op.rank()), thread = terms - 1, last = thread - 1;
  const std::int64_t lanes = target.vector_lanes(program::size_in_bytes(op.type));
  store_last_axis_first(s, partial);  // each thread has its sums on lines of its own
  constexpr std::int64_t most_terms = 16;
  const std::vector<IterId> columns = s.choose_tile(partial, last, 1, most_vectors * lanes, LoopKind::Vectorized);
  const std::vector<IterId> rows_read = s.choose_tile(partial, terms, 1, most_terms);
  std::vector<IterId> order{thread, rows_read[0], columns[0]};
  for (IterId axis = 0; axis < last; ++axis) order.push_back(axis);
  order.insert(order.end(), {rows_read[1], columns[1]});
  s.reorder(partial, order);
  s.vectorize(partial, columns[1]);
  s.parallel(partial, thread);
  s.choose_unroll_limit(partial, unroll_limits());
}

}  // namespace tunewright::spaces::tiling

#endif
