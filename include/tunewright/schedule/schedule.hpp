// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tunewright/core/hash.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/program/graph.hpp"
#include "tunewright/schedule/kinds.hpp"
#include "tunewright/schedule/state.hpp"
#include "tunewright/schedule/step.hpp"

namespace tunewright::schedule {

/// A program and the steps that schedule it: the candidate of a search. A regular type; copies share the graph.
struct Schedule {
  std::shared_ptr<const ComputeGraph> graph;
  std::vector<Step> steps;

  // Defined out of line, because copying and destroying steps of all kinds is a lot of code.
  Schedule() noexcept;
  Schedule(std::shared_ptr<const ComputeGraph> scheduled, std::vector<Step> by) noexcept;
  Schedule(const Schedule& other);
  Schedule(Schedule&& other) noexcept;
  Schedule& operator=(const Schedule& other);
  Schedule& operator=(Schedule&& other) noexcept;
  ~Schedule();
  bool operator==(const Schedule& other) const;
};

/// Applies all steps in order. Throws `ScheduleError` that names the illegal step.
[[nodiscard]] State replay(const Schedule& schedule);

namespace detail {
inline void hash_field(StableHash& h, const std::string& text) { h.add(std::string_view(text)); }
inline void hash_field(StableHash& h, const Location& l) { h.add(static_cast<int>(l.kind)).add(l.stage).add(l.iter); }
inline void hash_field(StableHash& h, const Pipelining& p) { h.add(p.depth).add(p.asynchronous ? 1 : 0); }
template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>)
void hash_field(StableHash& h, T value) {
  h.add(static_cast<std::int64_t>(value));
}
template <class T>
void hash_field(StableHash& h, const std::vector<T>& values) {
  h.add(static_cast<std::uint64_t>(values.size()));
  for (const T& value : values) hash_field(h, value);
}
}  // namespace detail

/// Content hash of the steps; together with the task's hash it identifies a candidate.
[[nodiscard]] std::uint64_t stable_hash(const std::vector<Step>& steps);

/// Builds a schedule by calls of primitives. Each call appends a step and applies it, so an illegal step throws
/// `ScheduleError` at its call. The functions return the iterators or stages that they create.
class ScheduleBuilder {
 public:
  explicit ScheduleBuilder(std::shared_ptr<const ComputeGraph> graph)
      : schedule_{graph, {}}, state_(initial_state(std::move(graph))) {}

  [[nodiscard]] const Schedule& schedule() const noexcept { return schedule_; }
  [[nodiscard]] const State& state() const noexcept { return state_; }

  /// The stage that computes tensor `name`. Throws `ScheduleError` if there is none.
  [[nodiscard]] TensorId stage(std::string_view name) const;
  /// The current loops of a stage, outermost first.
  [[nodiscard]] const std::vector<IterId>& loops(TensorId stage) const { return state_.stage(stage).order; }

  std::vector<IterId> split(TensorId stage, IterId iter, std::vector<std::int64_t> factors);
  /// Splits into 1 + `parts` loops with factors that the search chooses; `inner` is the kind of the innermost loop.
  std::vector<IterId> choose_tile(TensorId stage, IterId iter, std::size_t parts, std::int64_t max_innermost = 64,
                                  LoopKind inner = LoopKind::Serial);
  std::vector<IterId> follow_split(TensorId stage, IterId iter, std::uint32_t source_step, std::uint32_t parts) {
    return append_split(stage, FollowSplit{stage, iter, source_step, parts});
  }
  /// Splits in two by the product of factor number `level` of the source steps.
  std::vector<IterId> follow_fused_split(TensorId stage, IterId iter, std::vector<std::uint32_t> source_steps,
                                         std::uint32_t level) {
    return append_split(stage, FollowFusedSplit{stage, iter, std::move(source_steps), level});
  }
  /// Fuses as many of the outermost loops of `iters` as the search chooses.
  IterId choose_fuse(TensorId stage, std::vector<IterId> iters);
  void choose_location(TensorId stage, std::vector<Location> choices) {
    append(ComputeLocation{stage, std::move(choices), 0});
  }
  void choose_unroll_limit(TensorId stage, std::vector<std::int64_t> choices) {
    append(UnrollLimit{stage, std::move(choices), 0});
  }
  IterId fuse(TensorId stage, std::vector<IterId> iters);
  void reorder(TensorId stage, std::vector<IterId> order) { append(Reorder{stage, std::move(order)}); }
  void annotate(TensorId stage, IterId iter, LoopKind kind) { append(Annotate{stage, iter, kind}); }
  void parallel(TensorId stage, IterId iter) { annotate(stage, iter, LoopKind::Parallel); }
  void vectorize(TensorId stage, IterId iter) { annotate(stage, iter, LoopKind::Vectorized); }
  void unroll(TensorId stage, IterId iter) { annotate(stage, iter, LoopKind::Unrolled); }
  void bind(TensorId stage, IterId iter, LoopKind kind) { annotate(stage, iter, kind); }
  void unroll_limit(TensorId stage, std::int64_t limit) { append(UnrollLimit{stage, {limit}, 0}); }
  void compute_at(TensorId stage, TensorId consumer, IterId iter) {
    append(ComputeLocation{stage, {{Location::Kind::At, consumer, iter}}, 0});
  }
  void compute_inline(TensorId stage) { append(ComputeLocation{stage, {{Location::Kind::Inline, 0, 0}}, 0}); }
  void compute_root(TensorId stage) { append(ComputeLocation{stage, {{Location::Kind::Root, 0, 0}}, 0}); }
  TensorId cache_write(TensorId stage, Scope scope = Scope::Local) { return append_stage(CacheWrite{stage, scope}); }
  TensorId cache_read(TensorId tensor, TensorId consumer, Scope scope = Scope::Local) {
    return append_stage(CacheRead{tensor, consumer, scope});
  }
  TensorId rfactor(TensorId stage, IterId iter) { return append_stage(Rfactor{stage, iter}); }
  void permute_axes(TensorId stage, std::vector<IterId> axes) { append(PermuteAxes{stage, std::move(axes)}); }
  void merge_axes() { append(MergeAxes{}); }
  void pack(TensorId tensor, TensorId consumer) { append(Pack{tensor, consumer}); }

  void pad(TensorId stage, std::vector<std::int64_t> multiples) { append(Pad{stage, std::move(multiples)}); }
  void tensorize(TensorId stage, IterId iter, std::string intrinsic) {
    append(Tensorize{stage, iter, std::move(intrinsic)});
  }

  /// Lets the search choose the dimension order of a temporary and the padding of its rows.
  void choose_layout(TensorId stage, std::vector<std::vector<std::uint32_t>> orders,
                     std::vector<std::int64_t> paddings) {
    append(TransformLayout{stage, std::move(orders), std::move(paddings), 0, 0});
  }
  /// Lets the search choose how far the copies computed in loop `iter` are prefetched.
  void choose_pipelining(TensorId stage, IterId iter, std::vector<Pipelining> choices) {
    append(Pipeline{stage, iter, std::move(choices), 0});
  }
  void pipeline(TensorId stage, IterId iter, Pipelining pipelining) { append(Pipeline{stage, iter, {pipelining}, 0}); }

  /// The index of the next step, for `follow_split` and `follow_fused_split`.
  [[nodiscard]] std::uint32_t next_step() const noexcept { return static_cast<std::uint32_t>(schedule_.steps.size()); }

  /// Extents of all iterators of a stage if it were computed at the root.
  [[nodiscard]] std::vector<std::int64_t> extents_at_root(TensorId stage) const;

  void append(Step step);

 private:
  std::vector<IterId> append_split(TensorId stage, Step step);
  TensorId append_stage(Step step);

  Schedule schedule_;
  State state_;
};

}  // namespace tunewright::schedule

#if TUNEWRIGHT_DEFINES(schedule)

#include "tunewright/schedule/apply.hpp"

namespace tunewright::schedule {

TUNEWRIGHT_INLINE Schedule::Schedule() noexcept = default;
TUNEWRIGHT_INLINE Schedule::Schedule(std::shared_ptr<const ComputeGraph> scheduled, std::vector<Step> by) noexcept
    : graph(std::move(scheduled)), steps(std::move(by)) {}
TUNEWRIGHT_INLINE Schedule::Schedule(const Schedule& other) = default;
TUNEWRIGHT_INLINE Schedule::Schedule(Schedule&& other) noexcept = default;
TUNEWRIGHT_INLINE Schedule& Schedule::operator=(const Schedule& other) = default;
TUNEWRIGHT_INLINE Schedule& Schedule::operator=(Schedule&& other) noexcept = default;
TUNEWRIGHT_INLINE Schedule::~Schedule() = default;
TUNEWRIGHT_INLINE bool Schedule::operator==(const Schedule& other) const {
  return graph == other.graph && steps == other.steps;
}

TUNEWRIGHT_INLINE State replay(const Schedule& schedule) {
  State state = initial_state(schedule.graph);
  state.factors_end.reserve(schedule.steps.size());
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    try {
      schedule::apply(state, schedule.steps[i]);
    } catch (const ScheduleError& error) {
      throw ScheduleError(error.fault(), "step " + std::to_string(i) + ": " + error.what());
    }
  }
  return state;
}

TUNEWRIGHT_INLINE std::uint64_t stable_hash(const std::vector<Step>& steps) {
  StableHash h;
  for (const Step& step : steps) {
    h.add(static_cast<std::uint64_t>(step.index()));
    describe(step, [&](std::string_view, const auto&... fields) { (detail::hash_field(h, fields), ...); });
  }
  return h.value();
}

TUNEWRIGHT_INLINE TensorId ScheduleBuilder::stage(std::string_view name) const {
  for (TensorId id = 0; id < state_.stages.size(); ++id) {
    if (state_.stages[id].op->name == name) return id;
  }
  std::string names;
  for (const Stage& stage : state_.stages) names += (names.empty() ? "'" : ", '") + stage.op->name + "'";
  throw ScheduleError(ScheduleFault::UnknownStage,
                      "no tensor is called '" + std::string(name) + "'; there are " + names);
}

TUNEWRIGHT_INLINE std::vector<IterId> ScheduleBuilder::split(TensorId stage, IterId iter,
                                                             std::vector<std::int64_t> factors) {
  const Operator& op = *state_.stage(stage).op;
  const std::int64_t extent = iter < op.axes.size() ? op.axes[iter].extent : 0;
  return append_split(stage, Split{stage, iter, std::move(factors), extent, -1, LoopKind::Serial});
}

TUNEWRIGHT_INLINE std::vector<IterId> ScheduleBuilder::choose_tile(TensorId stage, IterId iter, std::size_t parts,
                                                                   std::int64_t max_innermost, LoopKind inner) {
  const std::vector<std::int64_t> extents = extents_at_root(stage);
  const std::int64_t extent = iter < extents.size() ? extents[iter] : 0;  // the split rejects unknown iterators
  return append_split(stage, Split{stage, iter, std::vector<std::int64_t>(parts, 1), extent, max_innermost, inner});
}

TUNEWRIGHT_INLINE IterId ScheduleBuilder::choose_fuse(TensorId stage, std::vector<IterId> iters) {
  append(Fuse{stage, std::move(iters), 1, true});
  return static_cast<IterId>(state_.stages[stage].iterators.size() - 1);
}

TUNEWRIGHT_INLINE IterId ScheduleBuilder::fuse(TensorId stage, std::vector<IterId> iters) {
  const auto count = static_cast<std::uint32_t>(iters.size());
  append(Fuse{stage, std::move(iters), count, false});
  return static_cast<IterId>(state_.stages[stage].iterators.size() - 1);
}

TUNEWRIGHT_INLINE std::vector<std::int64_t> ScheduleBuilder::extents_at_root(TensorId stage) const {
  const Stage& s = state_.stage(stage);
  std::vector<std::int64_t> extents(s.iterators.size(), 1);
  for (std::size_t a = 0; a < s.op->axes.size(); ++a) extents[a] = s.op->axes[a].extent;
  detail::propagate_extents(s, extents);
  return extents;
}

TUNEWRIGHT_INLINE void ScheduleBuilder::append(Step step) {
  schedule::apply(state_, step);
  schedule_.steps.push_back(std::move(step));
}

TUNEWRIGHT_INLINE std::vector<IterId> ScheduleBuilder::append_split(TensorId stage, Step step) {
  append(std::move(step));
  const IterIds& parts = state_.stages[stage].relations.back().children;
  return {parts.begin(), parts.end()};
}

TUNEWRIGHT_INLINE TensorId ScheduleBuilder::append_stage(Step step) {
  append(std::move(step));
  return static_cast<TensorId>(state_.stages.size() - 1);
}

}  // namespace tunewright::schedule

#endif
