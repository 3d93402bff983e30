// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "tunewright/detail/config.hpp"
#include "tunewright/loops/summary/work.hpp"

namespace tunewright::loops {

/// Loops and statements in program order, as `loops::detail::Emission` emits them.
class SummaryLoops : SummaryPass {
 public:
  explicit SummaryLoops(SummaryWork& all) : SummaryPass(all), limits_(all.numbers->unroll_limits()) {}

  void run();

 private:
  void add(NestSummary::Event event, std::size_t of);
  void leave();
  void end_tree();

  void emit_stage(TensorId id);

  /// Whether a surrounding loop binds the index of the loop.
  [[nodiscard]] static bool is_rebound(const SchedulePlan::Loop& loop, const Work& w) {
    return loop.is_index && w.index[loop.iter] != no_var;
  }
  /// Iterations of a surrounding loop in which a stage runs: those of the longest of its loops that the index binds.
  [[nodiscard]] static std::int64_t busy(const StagePlan& plan, const Work& w, Var index);
  /// Position of the outermost reduction loop that runs, or is listed, before which sums are initialised.
  [[nodiscard]] static std::size_t initialised_at(const StagePlan& plan, const Work& w);

  void enter(Var var, std::int64_t unroll_limit, bool is_reduction);

  void emit_initialisation(const StagePlan& plan, const Work& w, std::size_t first);

  std::span<const std::int64_t> limits_;
  std::size_t depth_ = 0;
};

}  // namespace tunewright::loops

#if TUNEWRIGHT_DEFINES(loops)

namespace tunewright::loops {

TUNEWRIGHT_INLINE void SummaryLoops::run() {
  for (const TensorId id : plan_.roots) {
    const loops::BufferId buffer = plan_.stages[id].buffer;
    if (summary_.buffers[buffer].role == loops::BufferRole::Temporary) add(NestSummary::Event::Allocate, buffer);
  }
  for (const TensorId id : plan_.roots) emit_stage(id);
}

TUNEWRIGHT_INLINE void SummaryLoops::add(NestSummary::Event event, std::size_t of) {
  summary_.add(event, of);
  end_tree();
}

TUNEWRIGHT_INLINE void SummaryLoops::leave() {
  summary_.add(NestSummary::Event::Leave);
  --depth_;
  end_tree();
}

TUNEWRIGHT_INLINE void SummaryLoops::end_tree() {
  if (depth_ > 0) return;
  summary_.add(NestSummary::Event::Next);
  ++summary_.kernels;
}

TUNEWRIGHT_INLINE void SummaryLoops::emit_stage(TensorId id) {
  const StagePlan& plan = plan_.stages[id];
  const Work& w = work_[id];
  const std::size_t outside = depth_, places = plan.loops.size();
  const std::size_t initialised = plan.is_sum ? initialised_at(plan, w) : places + 1;
  const TensorId* inside = plan.inside.data();
  std::int64_t unroll_limit = plan.unroll_limit == SchedulePlan::none ? 0 : limits_[plan.unroll_limit];
  for (std::size_t place = 0; place < places; ++place) {
    if (place == initialised) emit_initialisation(plan, w, place);
    const SchedulePlan::Loop& loop = plan.loops[place];
    const Var var = w.var[loop.iter];
    if (is_rebound(loop, w)) {
      if (busy(plan, w, w.index[loop.iter]) != extent_of(w.index[loop.iter])) unroll_limit = 0;  // inside a branch
    } else if (var != no_var) {
      enter(var, unroll_limit, loop.is_reduction);
      unroll_limit = 0;  // applies to the outermost loop only
    }
    if (loop.inside == 0) continue;
    const std::span<const TensorId> children(inside, loop.inside);
    inside += loop.inside;
    for (const TensorId child : children) add(NestSummary::Event::Allocate, plan_.stages[child].buffer);
    for (const TensorId child : children) emit_stage(child);
  }
  if (places == initialised) emit_initialisation(plan, w, places);
  const auto statement = summary_.statements.size();
  summary_.statements.push_back({plan.is_sum ? loops::Statement::Kind::Update : loops::Statement::Kind::Assign,
                                 plan.buffer, plan.operations, plan.loads,
                                 std::span(w.axis_values).first(plan.extents.size()), plan.op, plan.body_hash});
  add(NestSummary::Event::Run, statement);
  while (depth_ > outside) leave();
}

TUNEWRIGHT_INLINE std::int64_t SummaryLoops::busy(const StagePlan& plan, const Work& w, Var index) {
  std::int64_t iterations = 1;
  for (const SchedulePlan::Loop& loop : plan.loops)
    if (is_rebound(loop, w) && w.index[loop.iter] == index) iterations = std::max(iterations, w.extent[loop.iter]);
  return iterations;
}

TUNEWRIGHT_INLINE std::size_t SummaryLoops::initialised_at(const StagePlan& plan, const Work& w) {
  for (std::size_t place = plan.first_reduction; place < plan.loops.size(); ++place) {
    const SchedulePlan::Loop& loop = plan.loops[place];
    if (loop.is_reduction && (w.var[loop.iter] != no_var || is_rebound(loop, w))) return place;
  }
  return plan.first_reduction;
}

TUNEWRIGHT_INLINE void SummaryLoops::enter(Var var, std::int64_t unroll_limit, bool is_reduction) {
  summary_.add(NestSummary::Event::Enter, summary_.loops.size());
  summary_.loops.push_back({var, extent_of(var), kinds_[var], is_reduction, unroll_limit});
  ++depth_;
}

TUNEWRIGHT_INLINE void SummaryLoops::emit_initialisation(const StagePlan& plan, const Work& w, std::size_t first) {
  const std::size_t outside = depth_;
  for (const SchedulePlan::Loop& loop : std::span(plan.loops).subspan(first))
    if (const Var var = w.var[loop.iter]; var != no_var && !loop.is_reduction && !is_rebound(loop, w))
      enter(var, 0, false);
  add(NestSummary::Event::Fill, summary_.fills.size());
  summary_.fills.push_back(
      {Statement::Kind::Initialise, plan.buffer, {}, {}, std::span(w.axis_values).first(plan.extents.size()), plan.op});
  while (depth_ > outside) leave();
}

}  // namespace tunewright::loops

#endif
