// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tunewright/core/target.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/spaces/tiling/predicates.hpp"

namespace tunewright::spaces::tiling {

/// Splits a long reduction, so that parts of it run in vector lanes (and, with few outputs, on several threads).
/// Deviates: Ansor leaves the factored loop to its vectorization rule; here the lanes are vectorized at once.
struct AddRfactor {
  [[nodiscard]] Answer meets(const Derivation& d, TensorId id, const Target& target) const;
  void apply(const Derivation& d, TensorId id, const Target& target, std::vector<Derivation>& out) const;

 private:
  static Derivation factored(Derivation d, TensorId id, const Target& target, bool threads);

  /// Schedules the final stage: a few neighbouring values, which are combined across vector lanes.
  static void finish_final(Derivation& d, TensorId id);
};

}  // namespace tunewright::spaces::tiling

#if TUNEWRIGHT_DEFINES(spaces)

#include "tunewright/program/analysis.hpp"
#include "tunewright/schedule/schedule.hpp"
#include "tunewright/spaces/tiling/transformations.hpp"

namespace tunewright::spaces::tiling {

TUNEWRIGHT_INLINE Answer AddRfactor::meets(const Derivation& d, TensorId id, const Target& target) const {
  const Stage& stage = d.builder.state().stages[id];
  if (!stage.op->has_reduction() || !stage.is_untouched()) return Answer::Skip;
  if (is_cached(d, id)) return Answer::Skip;
  const double space = program::spatial_points(*stage.op);
  const double reduction = program::reduction_points(*stage.op);
  if (program::needs_multi_level_tiling(*stage.op)) {
    return space > reduction || space > 16.0 * target.threads ? Answer::Skip : Answer::Apply;
  }
  return reduction >= 8 && !has_columns(*stage.op) ? Answer::Apply : Answer::Skip;
}

TUNEWRIGHT_INLINE void AddRfactor::apply(const Derivation& d, TensorId id, const Target& target,
                                         std::vector<Derivation>& out) const {
  out.push_back(factored(d, id, target, false));
  const program::Operator& op = *d.builder.state().stages[id].op;
  if (program::spatial_points(op) < 16.0 * target.threads && program::reduction_points(op) > target.threads) {
    out.push_back(factored(d, id, target, true));
  }
}

TUNEWRIGHT_INLINE Derivation AddRfactor::factored(Derivation d, TensorId id, const Target& target, bool threads) {
  schedule_waiting_reader(d, id, target);
  ScheduleBuilder& s = d.builder;
  const program::Operator& op = *s.state().stages[id].op;
  const std::size_t rank = op.rank();
  const std::int64_t lanes = target.vector_lanes(program::size_in_bytes(op.type));
  // Lanes are neighbours in memory: only axes that run on are divided together.
  std::vector<IterId> run{static_cast<IterId>(op.axes.size() - 1)};
  while (run[0] > rank && runs_on(s.state(), op, run[0] - 1)) run.insert(run.begin(), run[0] - 1);
  const IterId whole = fuse_all(s, id, std::move(run));
  // [outer | middle | lanes]; only the outer part is a choice.
  const std::int64_t extent = s.extents_at_root(id)[whole];
  const std::int64_t width = std::min(2 * lanes, extent);
  TensorId partial = 0;
  if (threads) {
    const std::int64_t chunk =
        program::ceil_div(program::ceil_div(extent, width), 4 * static_cast<std::int64_t>(target.threads));
    const std::vector<IterId> parts = s.split(id, whole, {chunk, width});
    const TensorId by_thread = s.rfactor(id, parts[0]);
    // The lanes are the last reduction axis of the new stage.
    partial = s.rfactor(by_thread, static_cast<IterId>(s.state().stages[by_thread].op->axes.size() - 1));
    finish_final(d, id);
    finish_final(d, by_thread);
  } else {
    const std::vector<IterId> parts = s.split(id, whole, {width});
    partial = s.rfactor(id, parts[1]);
    finish_final(d, id);
  }
  // partial: [spatial.., lanes | rest]; the lanes become the innermost loop.
  const auto lane = static_cast<IterId>(s.state().stages[partial].op->rank() - 1);
  vectorize_innermost(s, partial, lane);
  if (lane > 0) s.parallel(partial, s.choose_fuse(partial, axes_between(0, lane)));
  s.choose_unroll_limit(partial, unroll_limits());
  s.choose_location(partial, location_choices(d, partial));
  // The stage before the partial stage is visited next.
  d.place = place_of(s.state(), partial);
  return d;
}

TUNEWRIGHT_INLINE void AddRfactor::finish_final(Derivation& d, TensorId id) {
  ScheduleBuilder& s = d.builder;
  s.vectorize(id, static_cast<IterId>(s.state().stages[id].op->axes.size() - 1));
  const std::size_t rank = s.state().stages[id].op->rank();
  if (rank > 0) s.parallel(id, s.choose_fuse(id, axes_between(0, rank)));
  if (!readers(s.state(), id).empty()) s.choose_location(id, location_choices(d, id));
}

}  // namespace tunewright::spaces::tiling

#endif
