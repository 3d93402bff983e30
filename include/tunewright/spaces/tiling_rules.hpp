// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "tunewright/core/target.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/spaces/tiling/predicates.hpp"

/// Sketch rules for CPUs. A derivation starts at the last stage and proceeds to the first; the rules are tried in order
/// at each stage, and every rule that applies adds its derivations (Zheng et al., Ansor, OSDI 2020, section 4.1).
namespace tunewright::spaces::tiling {

/// First of all, makes one axis of those that all operators visit as one, so that tiles cross the ends of rows, say of
/// an image in a 1x1 convolution. Not in Ansor.
struct MergeAxes {
  [[nodiscard]] Answer meets(const Derivation& d, TensorId, const Target&) const;
  void apply(Derivation d, TensorId, const Target&, std::vector<Derivation>& out) const;
};

/// Inputs and constants have no loops.
struct SkipSource {
  [[nodiscard]] Answer meets(const Derivation& d, TensorId id, const Target&) const;
  void apply(Derivation d, TensorId, const Target&, std::vector<Derivation>& out) const;
};

/// Inlines cheap elementwise stages.
struct AlwaysInline {
  [[nodiscard]] Answer meets(const Derivation& d, TensorId id, const Target&) const;
  void apply(Derivation d, TensorId id, const Target&, std::vector<Derivation>& out) const;
};

/// May inline a costly elementwise stage: each reader then recomputes it, which pays if it replaces waiting for memory.
/// There is a choice for the last `most_choices` such stages, because each doubles the number of sketches; those before
/// them are not inlined. Not in Ansor.
struct MayInline {
  static constexpr std::size_t most_choices = 8;

  /// Whether an elementwise operator is costly to compute again for each reader.
  [[nodiscard]] static bool is_costly(const program::Operator& op);

  [[nodiscard]] Answer meets(const Derivation& d, TensorId id, const Target&) const;
  void apply(Derivation d, TensorId id, const Target& target, std::vector<Derivation>& out) const {
    AlwaysInline{}.apply(std::move(d), id, target, out);
  }
};

/// May inline padding into reductions that it does not change, such as zeros in sums of products and minus infinity in
/// maxima: such terms are then skipped (`loops::eliminate_padding`), and the padded tensor is not stored. An
/// instruction of several rows needs the padded tensor, because its rows lack different terms. Not in Ansor.
struct MayInlinePadding {
  [[nodiscard]] Answer meets(const Derivation& d, TensorId id, const Target&) const;
  void apply(Derivation d, TensorId id, const Target& target, std::vector<Derivation>& out) const {
    AlwaysInline{}.apply(std::move(d), id, target, out);
  }

 private:
  static bool may_leave_out(const Stage& reader, const Stage& padding, TensorId id);
};

/// A copy made by `cache_operands` is already scheduled.
struct SkipScheduled {
  [[nodiscard]] Answer meets(const Derivation& d, TensorId id, const Target&) const;
  void apply(Derivation d, TensorId, const Target&, std::vector<Derivation>& out) const;
};

/// Lets a tiled stage without an elementwise reader, and no cache itself, accumulate in a separate tile and copies it
/// out once.
struct AddCacheWrite {
  [[nodiscard]] Answer meets(const Derivation& d, TensorId id, const Target&) const;
  void apply(Derivation d, TensorId id, const Target&, std::vector<Derivation>& out) const;
};

/// Tiles a stage and computes it, tile by tile, inside the reader of its points, which follows the tiling.
struct MultiLevelTilingWithFusion {
  [[nodiscard]] Answer meets(const Derivation& d, TensorId id, const Target&) const;
  void apply(const Derivation& d, TensorId id, const Target& target, std::vector<Derivation>& out) const;

 private:
  static Derivation fused(Derivation d, TensorId id, std::size_t fuse_level, const Target& target);
};

/// Tiles a stage that writes its tensor directly.
struct MultiLevelTiling {
  [[nodiscard]] Answer meets(const Derivation& d, TensorId id, const Target&) const;
  void apply(Derivation d, TensorId id, const Target& target, std::vector<Derivation>& out) const;
};

/// Every other stage: parallel, vectorized, and computed somewhere near its reader.
struct ScheduleSimply {
  [[nodiscard]] Answer meets(const Derivation&, TensorId, const Target&) const { return Answer::ApplyAndSkipRest; }
  void apply(Derivation d, TensorId id, const Target& target, std::vector<Derivation>& out) const;
};

}  // namespace tunewright::spaces::tiling

#if TUNEWRIGHT_DEFINES(spaces)

#include "tunewright/program/analysis.hpp"
#include "tunewright/program/merge_axes.hpp"
#include "tunewright/schedule/schedule.hpp"
#include "tunewright/spaces/tiling/add_rfactor.hpp"
#include "tunewright/spaces/tiling/transformations.hpp"

namespace tunewright::spaces::tiling {

TUNEWRIGHT_INLINE Answer MergeAxes::meets(const Derivation& d, TensorId, const Target&) const {
  const bool is_first = d.builder.schedule().steps.empty();
  return is_first && program::merge_axes(*d.builder.state().graph) ? Answer::ApplyAndSkipRest : Answer::Skip;
}

TUNEWRIGHT_INLINE void MergeAxes::apply(Derivation d, TensorId, const Target&, std::vector<Derivation>& out) const {
  d.builder.merge_axes();
  out.push_back(std::move(d));
}

TUNEWRIGHT_INLINE Answer SkipSource::meets(const Derivation& d, TensorId id, const Target&) const {
  return d.builder.state().stages[id].is_source() ? Answer::ApplyAndSkipRest : Answer::Skip;
}

TUNEWRIGHT_INLINE void SkipSource::apply(Derivation d, TensorId, const Target&, std::vector<Derivation>& out) const {
  --d.place;
  out.push_back(std::move(d));
}

TUNEWRIGHT_INLINE Answer AlwaysInline::meets(const Derivation& d, TensorId id, const Target&) const {
  const State& state = d.builder.state();
  return may_disappear(state, id) && program::strictly_inlineable(*state.stages[id].op) && fits_in_readers(state, id)
             ? Answer::ApplyAndSkipRest
             : Answer::Skip;
}

TUNEWRIGHT_INLINE void AlwaysInline::apply(Derivation d, TensorId id, const Target&,
                                           std::vector<Derivation>& out) const {
  d.builder.compute_inline(id);
  --d.place;
  out.push_back(std::move(d));
}

TUNEWRIGHT_INLINE bool MayInline::is_costly(const program::Operator& op) {
  return program::inlineable(op) && !program::strictly_inlineable(op);
}

TUNEWRIGHT_INLINE Answer MayInline::meets(const Derivation& d, TensorId id, const Target&) const {
  const State& state = d.builder.state();
  if (!may_disappear(state, id) || !program::inlineable(*state.stages[id].op) || !fits_in_readers(state, id))
    return Answer::Skip;
  std::size_t choices = 0;
  for (std::size_t p = d.place; p < state.order.size() && choices < most_choices; ++p) {
    const TensorId later = state.order[p];
    choices += may_disappear(state, later) && is_costly(*state.stages[later].op) ? 1U : 0U;
  }
  return choices < most_choices ? Answer::Apply : Answer::Skip;
}

TUNEWRIGHT_INLINE Answer MayInlinePadding::meets(const Derivation& d, TensorId id, const Target&) const {
  const State& state = d.builder.state();
  const Stage& padding = state.stages[id];
  if (!may_disappear(state, id) || !is_padding(*padding.op)) return Answer::Skip;
  const std::vector<TensorId> all = readers(state, id);
  return std::all_of(all.begin(), all.end(),
                     [&](TensorId reader) { return may_leave_out(state.stages[reader], padding, id); })
             ? Answer::Apply
             : Answer::Skip;
}

TUNEWRIGHT_INLINE bool MayInlinePadding::may_leave_out(const Stage& reader, const Stage& padding, TensorId id) {
  const schedule::TensorIntrinsic* intrinsic = reader.tensorized.intrinsic;
  return skips_padding(*reader.op, *padding.op, id) && (intrinsic == nullptr || intrinsic->m == 1);
}

TUNEWRIGHT_INLINE Answer SkipScheduled::meets(const Derivation& d, TensorId id, const Target&) const {
  return d.builder.state().stages[id].relations.empty() ? Answer::Skip : Answer::ApplyAndSkipRest;
}

TUNEWRIGHT_INLINE void SkipScheduled::apply(Derivation d, TensorId, const Target&, std::vector<Derivation>& out) const {
  --d.place;
  out.push_back(std::move(d));
}

TUNEWRIGHT_INLINE Answer AddCacheWrite::meets(const Derivation& d, TensorId id, const Target&) const {
  const State& state = d.builder.state();
  if (!state.stages[id].op->has_reduction() || !program::needs_multi_level_tiling(*state.stages[id].op) ||
      is_cached(d, id))
    return Answer::Skip;
  const TensorId reader = elementwise_reader(state, id);
  return reader == id || !state.stages[reader].is_untouched() ? Answer::Apply : Answer::Skip;
}

TUNEWRIGHT_INLINE void AddCacheWrite::apply(Derivation d, TensorId id, const Target&,
                                            std::vector<Derivation>& out) const {
  const TensorId cache = d.builder.cache_write(id, Scope::Local);
  d.cached.push_back(cache);
  // The cache takes the position of the stage, so it is visited next.
  out.push_back(std::move(d));
}

TUNEWRIGHT_INLINE Answer MultiLevelTilingWithFusion::meets(const Derivation& d, TensorId id, const Target&) const {
  const State& state = d.builder.state();
  if (!program::needs_multi_level_tiling(*state.stages[id].op)) return Answer::Skip;
  const std::optional<PointReader> reader = point_reader(state, id);
  return reader && state.stages[reader->stage].is_untouched() ? Answer::ApplyAndSkipRest : Answer::Skip;
}

TUNEWRIGHT_INLINE void MultiLevelTilingWithFusion::apply(const Derivation& d, TensorId id, const Target& target,
                                                         std::vector<Derivation>& out) const {
  for (const std::size_t fuse_level : {std::size_t{1}, std::size_t{2}}) out.push_back(fused(d, id, fuse_level, target));
}

TUNEWRIGHT_INLINE Derivation MultiLevelTilingWithFusion::fused(Derivation d, TensorId id, std::size_t fuse_level,
                                                               const Target& target) {
  ScheduleBuilder& s = d.builder;
  const PointReader reader = *point_reader(s.state(), id);
  const bool transposes = reader.axes.back() + 1 != reader.axes.size();
  const Tiled tiled = tile(s, id);
  const std::size_t rank = tiled.spatial.size();
  std::vector<std::vector<IterId>> copy;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    // The last axis follows all factors, so that its innermost part is the vector of the register tile.
    const bool vectorized = axis + 1 == rank && !transposes;
    copy.push_back(s.follow_split(reader.stage, reader.axes[axis], tiled.split_steps[axis],
                                  static_cast<std::uint32_t>(vectorized ? spatial_levels - 1 : fuse_level)));
  }
  std::vector<IterId> order = outer_levels_first(copy, fuse_level);
  if (transposes) {
    const auto last = std::find(reader.axes.begin(), reader.axes.end(), rank - 1) - reader.axes.begin();
    const IterId rows = copy.back().back(), columns = copy[static_cast<std::size_t>(last)].back();
    const std::array<IterId, 4> squares = split_in_squares(s, reader.stage, rows, columns, target);
    std::erase_if(order, [&](IterId iter) { return iter == rows || iter == columns; });
    order.insert(order.end(), squares.begin(), squares.end());
  }
  s.reorder(reader.stage, order);
  s.vectorize(reader.stage, order.back());
  compute_in_tile(s, id, reader.stage, copy, fuse_level);
  cache_operands(s, id, tiled, target);
  d.place = place_of(s.state(), id);
  return d;
}

TUNEWRIGHT_INLINE Answer MultiLevelTiling::meets(const Derivation& d, TensorId id, const Target&) const {
  return program::needs_multi_level_tiling(*d.builder.state().stages[id].op) ? Answer::ApplyAndSkipRest : Answer::Skip;
}

TUNEWRIGHT_INLINE void MultiLevelTiling::apply(Derivation d, TensorId id, const Target& target,
                                               std::vector<Derivation>& out) const {
  ScheduleBuilder& s = d.builder;
  const Tiled tiled = tile(s, id);
  s.parallel(id, s.choose_fuse(id, level(tiled.spatial, 0)));
  cache_operands(s, id, tiled, target);
  d.place = place_of(s.state(), id);
  out.push_back(std::move(d));
}

TUNEWRIGHT_INLINE void ScheduleSimply::apply(Derivation d, TensorId id, const Target& target,
                                             std::vector<Derivation>& out) const {
  if (awaits_fusion(d.builder.state(), id)) {
    --d.place;
    out.push_back(std::move(d));
    return;
  }
  schedule_simply(d, id, target);
  if (!readers(d.builder.state(), id).empty()) d.builder.choose_location(id, location_choices(d, id));
  --d.place;
  out.push_back(std::move(d));
}

}  // namespace tunewright::spaces::tiling

#endif
