// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/schedule/schedule.hpp"

/// Queries of sketch rules on a partly scheduled program: which stages read a stage, where it may be computed, whether
/// its loops suit vectors.
namespace tunewright::spaces::tiling {

using program::AxisKind;
using program::TensorId;
using schedule::IterId;
using schedule::Location;
using schedule::LoopKind;
using schedule::ScheduleBuilder;
using schedule::Scope;
using schedule::Stage;
using schedule::State;

/// A root stage in which others may be computed. On a GPU its loops are bound to blocks and threads; on a CPU its
/// outermost loop runs over rows in parallel.
struct BoundStage {
  TensorId stage = 0;
  IterId attach = 0;         ///< the loop at which others are computed: of threads, or of blocks or rows if by rows
  std::size_t row_axes = 0;  ///< leading axes that select the row of a block or iteration;
                             ///< 0: each thread has its own points
  std::optional<std::uint32_t> thread_split{};  ///< the step that determines how many threads share a row
};

/// A partly scheduled program. `place` is the number of stages that are still to be visited; the next is
/// `state.order[place - 1]`.
struct Derivation {
  ScheduleBuilder builder;
  std::size_t place = 0;
  std::vector<TensorId> cached{};  ///< stages that are write caches already
  std::vector<BoundStage> bound{};
};

/// Whether a stage is a write cache already.
[[nodiscard]] inline bool is_cached(const Derivation& d, TensorId id) {
  return std::find(d.cached.begin(), d.cached.end(), id) != d.cached.end();
}

enum class Answer : std::uint8_t {
  Skip,              ///< does not apply
  Apply,             ///< applies; later rules are tried as well
  ApplyAndSkipRest,  ///< applies; later rules are skipped
};

/// The axes `first` to `last` - 1 of a stage, as iterators.
[[nodiscard]] std::vector<IterId> axes_between(std::size_t first, std::size_t last);

/// The position of a stage in the topological order, which is also the number of stages left after it.
[[nodiscard]] inline std::size_t place_of(const State& state, TensorId id) {
  return static_cast<std::size_t>(std::find(state.order.begin(), state.order.end(), id) - state.order.begin());
}

/// Stages that read `id`, directly or through inlined stages, in topological order.
[[nodiscard]] std::vector<TensorId> readers(const State& state, TensorId id);

/// Whether `id` may be inlined into its readers as far as size goes: none of them gets more than half of the terms that
/// lowering accepts. A stage that is read twice is there twice, so terms may double from reader to reader.
[[nodiscard]] bool fits_in_readers(const State& state, TensorId id);

/// Whether a stage is neither an output nor a cache.
[[nodiscard]] inline bool may_disappear(const State& state, TensorId id) {
  return !readers(state, id).empty() && id < state.graph->size();
}

/// The only reader of `id` if it has the same shape and reads point by point, on every way through inlined stages;
/// otherwise `id`.
[[nodiscard]] TensorId elementwise_reader(const State& state, TensorId id);

/// The only reader of a tiled stage, if it reads each element once, with its axes in any order.
struct PointReader {
  TensorId stage = 0;
  std::vector<IterId> axes;  ///< by axis of the tiled stage: that of the reader
};

/// The elementwise reader of `id`, or that of a copy, the only reader of `id`, whose axes are permuted (the copy itself
/// if it is not inlined); empty if there is none.
[[nodiscard]] std::optional<PointReader> point_reader(const State& state, TensorId id);

/// Whether an operator equals its operand inside ranges and a constant outside.
[[nodiscard]] bool is_padding(const program::Operator& op);

/// Whether what `padding` adds to its operand changes nothing of the reduction `reader`, in a form for which
/// `loops::eliminate_padding` can skip it: zeros in sums of products with, or elements of, `id`, which is padded by
/// `padding`, converted or not; the identity of the combiner in other reductions of these elements.
[[nodiscard]] bool skips_padding(const program::Operator& reader, const program::Operator& padding, TensorId id);

/// Whether a read is worth a cache: some element is read for several values of the spatial axes.
[[nodiscard]] bool is_reused(const program::Operator& op, const std::vector<program::IndexExpr>& access);

/// The number of leading axes that the loops of stage `first` and its (indirect) reader `last` can share: the minimum
/// over all paths from one to the other (see `program::num_common_outer_axes`); zero if there is none.
[[nodiscard]] std::size_t common_outer_axes(const State& state, TensorId first, TensorId last);

/// Whether a tiled stage further up will be computed inside `id` (see `MultiLevelTilingWithFusion`): every stage
/// between them is elementwise, cheap, and the only reader of the stage before it. Stages that can be inlined count as
/// tiled by no rule.
[[nodiscard]] bool awaits_fusion(const State& state, TensorId id);

/// Loops of `consumer` at which a producer may be computed: after the parallel loops, at spatial loops or the last
/// outer reduction, never at vectorized or unrolled loops, and not inside an inner reduction.
[[nodiscard]] std::vector<Location> attach_points(const State& state, TensorId consumer);

/// Whether the loop of `l` disappears if more loops are fused.
[[nodiscard]] bool may_vanish(const ScheduleBuilder& s, const Location& l);

/// Where a stage that is not tiled itself may be computed: at the root, inside its reader, or where its reader may be
/// computed.
[[nodiscard]] std::vector<Location> location_choices(const Derivation& d, TensorId id);

/// Whether an index of a read depends on `axis`.
[[nodiscard]] bool uses_axis(std::span<const program::IndexExpr> access, program::Var axis);
[[nodiscard]] inline bool uses_axis(const program::ExprNode& read, program::Var axis) {
  return uses_axis(read.indices, axis);
}

/// The dimension whose index is `axis` alone.
[[nodiscard]] std::optional<IterId> dimension_of(std::span<const program::IndexExpr> access, program::Var axis);

/// Whether consecutive values of `axis` read elements that are `distance` apart: only the last index uses it, once.
[[nodiscard]] bool is_contiguous(std::span<const program::IndexExpr> access, program::Var axis,
                                 std::int64_t distance = 1);

/// Whether every read sees `axis` and the next one as a single axis: the elements of the next one run on from one value
/// of `axis` to the following.
[[nodiscard]] bool runs_on(const State& state, const program::Operator& op, program::Var axis);

/// Share of the work that is not padding if each axis is rounded up to its multiple.
[[nodiscard]] double share_not_padded(const program::Operator& op, std::span<const std::int64_t> multiples);

/// Whether every read that uses the last spatial axis is of consecutive elements along it, or of every second one,
/// which takes two vectors and a shuffle.
[[nodiscard]] bool vectorizes_well(const program::Operator& op);

/// Whether the last spatial axis vectorizes well and has several elements.
[[nodiscard]] inline bool has_columns(const program::Operator& op) {
  return vectorizes_well(op) && op.axes[op.rank() - 1].extent > 1;
}

/// The spatial axis along which every read that is strided along the last spatial axis is contiguous, as in a
/// transposition; empty if such reads disagree or there are none.
[[nodiscard]] std::optional<IterId> axis_of_rows_read_across(const program::Operator& op);

}  // namespace tunewright::spaces::tiling

#if TUNEWRIGHT_DEFINES(spaces)

#include "tunewright/loops/eliminate_padding.hpp"
#include "tunewright/program/analysis.hpp"

namespace tunewright::spaces::tiling {

TUNEWRIGHT_INLINE std::vector<IterId> axes_between(std::size_t first, std::size_t last) {
  std::vector<IterId> axes;
  for (std::size_t axis = first; axis < last; ++axis) axes.push_back(static_cast<IterId>(axis));
  return axes;
}

TUNEWRIGHT_INLINE std::vector<TensorId> readers(const State& state, TensorId id) {
  std::vector<TensorId> found;
  std::vector<bool> carries(state.stages.size());  // `id`, and the inlined stages that are computed from it
  carries[id] = true;
  for (std::size_t place = place_of(state, id) + 1; place < state.order.size(); ++place) {
    const Stage& stage = state.stages[state.order[place]];
    if (stage.is_source()) continue;
    bool reads = false;
    program::visit(stage.op->body, [&](const program::ExprNode& node) {
      reads = reads || (node.op == program::Op::Load && carries[node.tensor]);
    });
    if (!reads) continue;
    if (stage.location.kind == Location::Kind::Inline)
      carries[state.order[place]] = true;
    else
      found.push_back(state.order[place]);
  }
  return found;
}

TUNEWRIGHT_INLINE bool fits_in_readers(const State& state, TensorId id) {
  constexpr std::size_t too_many = schedule::detail::max_body / 2 + 1;
  std::vector<std::size_t> terms(state.stages.size());  // with all that is inlined, counted up to `too_many`
  std::vector<bool> carries(state.stages.size());       // as in `readers`
  carries[id] = true;
  for (const TensorId at : state.order) {
    const Stage& stage = state.stages[at];
    if (stage.is_source()) continue;
    terms[at] = program::size_of(stage.op->body);
    program::visit(stage.op->body, [&](const program::ExprNode& node) {
      if (node.op != program::Op::Load) return;
      if (node.tensor != id && state.stages[node.tensor].location.kind != Location::Kind::Inline) return;
      carries[at] = carries[at] || carries[node.tensor];
      terms[at] += terms[node.tensor];
    });
    terms[at] = std::min(terms[at], too_many);
    if (carries[at] && terms[at] == too_many) return false;
  }
  return true;
}

TUNEWRIGHT_INLINE TensorId elementwise_reader(const State& state, TensorId id) {
  const std::vector<TensorId> all = readers(state, id);
  if (all.size() != 1 || state.stages[all[0]].op->has_reduction()) return id;
  std::vector<bool> carries(state.stages.size());  // as in `readers`
  carries[id] = true;
  const std::size_t last = place_of(state, all[0]);
  for (std::size_t place = place_of(state, id) + 1; place <= last; ++place) {
    const TensorId at = state.order[place];
    if (state.stages[at].is_source()) continue;
    const program::Operator& op = *state.stages[at].op;
    for (const program::Reads& reads : program::reads_of(op)) {
      if (!carries[reads.tensor]) continue;
      if (!program::reads_elementwise(op, *state.stages[reads.tensor].op, reads.tensor)) return id;
      carries[at] = true;
    }
  }
  return all[0];
}

TUNEWRIGHT_INLINE std::optional<PointReader> point_reader(const State& state, TensorId id) {
  PointReader found{.stage = elementwise_reader(state, id), .axes = {}};
  if (found.stage != id) {
    found.axes = axes_between(0, state.stages[id].op->rank());
    return found;
  }
  const std::vector<TensorId> direct = state.readers_of(id);
  if (direct.size() != 1) return std::nullopt;
  found.stage = direct[0];
  const Stage& copy = state.stages[found.stage];
  if (copy.op->body->op != program::Op::Load || copy.op->has_reduction() ||
      copy.op->rank() != state.stages[id].op->rank())
    return std::nullopt;
  for (const program::IndexExpr& index : copy.op->body->indices) {
    const std::optional<program::Var> axis = index.as_variable();
    const std::int64_t extent = state.stages[id].op->axes[found.axes.size()].extent;
    if (!axis || copy.op->axes[*axis].extent != extent ||
        std::find(found.axes.begin(), found.axes.end(), *axis) != found.axes.end())
      return std::nullopt;
    found.axes.push_back(*axis);
  }
  if (copy.location.kind != Location::Kind::Inline) return found;
  const TensorId reader = elementwise_reader(state, found.stage);
  if (reader == found.stage) return std::nullopt;
  found.stage = reader;
  return found;
}

TUNEWRIGHT_INLINE bool is_padding(const program::Operator& op) {
  if (!op.body || op.has_reduction() || op.body->op != program::Op::Select) return false;
  return op.body->args[1]->op == program::Op::Load && op.body->args[2]->op == program::Op::Constant;
}

TUNEWRIGHT_INLINE bool skips_padding(const program::Operator& op, const program::Operator& padding, TensorId id) {
  if (op.combiner == program::Combiner::None || !loops::padding_conditions(padding.body, op.combiner)) return false;
  const std::vector<program::Expr> parts = loops::parts_of_term(op.body, op.combiner);
  return std::any_of(parts.begin(), parts.end(),
                     [&](const program::Expr& part) { return part->op == program::Op::Load && part->tensor == id; });
}

TUNEWRIGHT_INLINE bool is_reused(const program::Operator& op, const std::vector<program::IndexExpr>& access) {
  const program::AccessPattern pattern = program::access_pattern(op, access);
  return !pattern.simple || pattern.axis_missing;
}

TUNEWRIGHT_INLINE std::size_t common_outer_axes(const State& state, TensorId first, TensorId last) {
  std::vector<std::optional<std::size_t>> common(state.stages.size());  // over all paths from `first`, if there are any
  common[first] = state.stages[first].op->rank();
  const std::size_t end = place_of(state, last);
  for (std::size_t place = place_of(state, first) + 1; place <= end; ++place) {
    const TensorId at = state.order[place];
    if (state.stages[at].is_source()) continue;
    const program::Operator& op = *state.stages[at].op;
    for (const program::Reads& reads : program::reads_of(op)) {
      if (!common[reads.tensor]) continue;
      const std::size_t hop = program::num_common_outer_axes(op, *state.stages[reads.tensor].op, reads.tensor);
      common[at] = std::min({common[at].value_or(hop), hop, *common[reads.tensor]});
    }
  }
  return common[last].value_or(0);
}

TUNEWRIGHT_INLINE bool awaits_fusion(const State& state, TensorId id) {
  for (TensorId tiled = 0; tiled < state.stages.size(); ++tiled) {
    if (state.stages[tiled].is_source()) continue;
    const program::Operator& op = *state.stages[tiled].op;
    // An elementwise stage of several broadcast operands disappears into its reader instead.
    if (!program::needs_multi_level_tiling(op) || program::inlineable(op)) continue;
    for (TensorId at = tiled;;) {
      const std::vector<TensorId> next = state.readers_of(at);
      if (next.size() != 1 || state.stages[next[0]].op->has_reduction() ||
          !program::reads_elementwise(*state.stages[next[0]].op, *state.stages[at].op, at)) {
        break;
      }
      if (next[0] == id) return true;
      if (!program::strictly_inlineable(*state.stages[next[0]].op)) break;
      at = next[0];
    }
  }
  return false;
}

TUNEWRIGHT_INLINE std::vector<Location> attach_points(const State& state, TensorId consumer) {
  const Stage& stage = state.stages[consumer];
  std::vector<Location> points;
  bool in_reduction = false;
  for (const IterId iter : stage.order) {
    const schedule::Iterator& iterator = stage.iterators[iter];
    if (iterator.annotation == LoopKind::Vectorized || iterator.annotation == LoopKind::Unrolled) break;
    const bool reduction = iterator.kind == AxisKind::Reduction;
    if (in_reduction && !reduction) break;
    if (reduction && in_reduction) points.pop_back();  // of neighbouring reductions, keeps the innermost
    in_reduction = reduction;
    points.push_back({Location::Kind::At, consumer, iter});
  }
  return points;
}

TUNEWRIGHT_INLINE bool may_vanish(const ScheduleBuilder& s, const Location& l) {
  for (const schedule::Step& step : s.schedule().steps) {
    const auto* fuse = std::get_if<schedule::Fuse>(&step);
    if (fuse != nullptr && fuse->stage == l.stage &&
        std::find(fuse->iters.begin(), fuse->iters.end(), l.iter) != fuse->iters.end())
      return true;
  }
  return false;
}

TUNEWRIGHT_INLINE std::vector<Location> location_choices(const Derivation& d, TensorId id) {
  const State& state = d.builder.state();
  std::vector<Location> choices{{Location::Kind::Root, 0, 0}};
  const std::vector<TensorId> all = readers(state, id);
  if (all.empty()) return choices;
  const auto add = [&](const Location& l) {
    if (!may_vanish(d.builder, l) && std::find(choices.begin(), choices.end(), l) == choices.end())
      choices.push_back(l);
  };
  for (const Location& point : attach_points(state, all.back())) add(point);
  for (const schedule::Step& step : d.builder.schedule().steps) {
    const auto* location = std::get_if<schedule::ComputeLocation>(&step);
    if (location == nullptr || location->stage != all.back()) continue;
    for (const Location& choice : location->choices) {
      if (choice.kind == Location::Kind::At) add(choice);
    }
  }
  return choices;
}

TUNEWRIGHT_INLINE bool uses_axis(std::span<const program::IndexExpr> access, program::Var axis) {
  return std::any_of(access.begin(), access.end(),
                     [axis](const program::IndexExpr& index) { return index.uses(axis); });
}

TUNEWRIGHT_INLINE std::optional<IterId> dimension_of(std::span<const program::IndexExpr> access, program::Var axis) {
  for (std::size_t d = 0; d < access.size(); ++d) {
    if (access[d].as_variable() == std::optional(axis)) return static_cast<IterId>(d);
  }
  return std::nullopt;
}

TUNEWRIGHT_INLINE bool is_contiguous(std::span<const program::IndexExpr> access, program::Var axis,
                                     std::int64_t distance) {
  if (access.empty() || !access.back().uses(axis)) return false;
  if ((access.back() - distance * program::IndexExpr::variable(axis)).uses(axis)) return false;
  return std::none_of(access.begin(), access.end() - 1, [axis](const auto& index) { return index.uses(axis); });
}

TUNEWRIGHT_INLINE bool runs_on(const State& state, const program::Operator& op, program::Var axis) {
  for (const program::Reads& reads : program::reads_of(op)) {
    const std::vector<std::int64_t> extents = state.stages[reads.tensor].op->shape();
    for (const auto& access : reads.accesses) {
      const auto outer = dimension_of(access, axis), inner = dimension_of(access, axis + 1);
      if (!outer || !inner || *inner != *outer + 1 || extents[*inner] != op.axes[axis + 1].extent) return false;
    }
  }
  return true;
}

TUNEWRIGHT_INLINE double share_not_padded(const program::Operator& op, std::span<const std::int64_t> multiples) {
  double share = 1;
  for (std::size_t a = 0; a < multiples.size(); ++a) {
    const std::int64_t extent = op.axes[a].extent;
    share *= static_cast<double>(extent) / static_cast<double>(program::ceil_div(extent, multiples[a]) * multiples[a]);
  }
  return share;
}

TUNEWRIGHT_INLINE bool vectorizes_well(const program::Operator& op) {
  if (op.rank() == 0) return false;
  const auto last = static_cast<program::Var>(op.rank() - 1);
  bool well = true;
  for (const program::Reads& reads : program::reads_of(op)) {
    for (const auto& access : reads.accesses) {
      well = well && (!uses_axis(access, last) || is_contiguous(access, last) || is_contiguous(access, last, 2));
    }
  }
  return well;
}

TUNEWRIGHT_INLINE std::optional<IterId> axis_of_rows_read_across(const program::Operator& op) {
  if (op.rank() < 2) return std::nullopt;
  const auto last = static_cast<program::Var>(op.rank() - 1);
  std::optional<program::Var> along;
  for (const program::Reads& reads : program::reads_of(op)) {
    for (const auto& access : reads.accesses) {
      if (!uses_axis(access, last)) continue;
      const std::optional<program::Var> row = access.back().as_variable();
      if (!row || *row >= last || (along && *along != *row)) return std::nullopt;
      along = row;
    }
  }
  return along ? std::optional(static_cast<IterId>(*along)) : std::nullopt;
}

}  // namespace tunewright::spaces::tiling

#endif
