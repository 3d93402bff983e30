// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/loops/summary/work.hpp"

namespace tunewright::loops {

/// Windows, loop extents and axis values, as `loops::detail::WindowInference` computes them.
class SummaryWindows : SummaryPass {
 public:
  explicit SummaryWindows(SummaryWork& all) : SummaryPass(all), all_(all) {}

  /// False for schedules that lowering rejects.
  [[nodiscard]] bool run();

  /// Replaces variables that stood for part of a range by the whole one; call it after buffers are created.
  void rename() {
    for (const SummaryWork::Renaming& renaming : all_.renamed) rename(renaming);
  }

 private:
  bool infer(TensorId id);

  /// Enters the hardware indices and virtual threads around an attached stage.
  void enter_target(const StagePlan& plan, Work& w) const;

  /// Computes the extents of the parts of all axes; false for schedules that lowering rejects.
  [[nodiscard]] bool find_extents(const StagePlan& plan, Work& w) const;

  /// Adds the variables of all loops; false for schedules that lowering rejects.
  bool find_loops(TensorId id, const StagePlan& plan, Work& w);

  bool find_index(TensorId id, const StagePlan& plan, Work& w, const SchedulePlan::Loop& loop, std::uint32_t& bound);

  /// `to` += the value of an iterator: the variable of a loop, or nothing for a single iteration.
  void add_value(FlatIndex& to, const StagePlan& plan, const Work& w, IterId iter, std::int64_t factor = 1) const;

  /// Values of iterators that are not loops, and of axes, which initially hold the bases of their windows.
  void find_values(const StagePlan& plan, Work& w);

  /// Computes the strides of the parts of a split in the whole; returns the extent of the whole.
  std::int64_t find_strides(const SchedulePlan::Relation& r, const Work& w);

  void add_parts(FlatIndex& sum, const StagePlan& plan, const Work& w, const SchedulePlan::Relation& r) const;

  void split_fused(const StagePlan& plan, Work& w, const SchedulePlan::Relation& r);

  Var add_variable(std::int64_t extent, LoopKind kind);

  /// Runs a loop of an attached stage on an index that a surrounding loop binds; false for schedules that lowering
  /// rejects.
  bool rebind(TensorId id, Work& w, IterId iter, Var index);

  void rename(const SummaryWork::Renaming& renaming);

  /// Computes the part of an attached stage that readers inside its loop read; false for schedules that lowering
  /// rejects.
  bool find_window(TensorId id, const StagePlan& plan, Work& w);

  /// The terms of fixed variables that an index has in all reads, and the range of all other terms; false if the reads
  /// differ in them, or there is no read.
  bool find_reach(std::span<const SchedulePlan::ReadIndex> reads, FlatIndex& base, program::Range& range);

  /// Divides `index` into terms of fixed variables and the range of the rest; false if a term has both.
  bool divide_into_window(const FlatIndex& index, FlatIndex& base, program::Range& range) const;
  void find_uses(const FlatIndex::Term& term, bool& uses_fixed, bool& uses_inner) const;

  SummaryWork& all_;
};

}  // namespace tunewright::loops

#if TUNEWRIGHT_DEFINES(loops)

namespace tunewright::loops {

TUNEWRIGHT_INLINE bool SummaryWindows::run() {
  for (const TensorId id : plan_.inferred)
    if (!infer(id)) return false;
  summary_.indices.extents.resize(all_.variables);
  return true;
}

TUNEWRIGHT_INLINE bool SummaryWindows::infer(TensorId id) {
  const StagePlan& plan = plan_.stages[id];
  Work& w = work_[id];
  std::copy(plan.extents.begin(), plan.extents.end(), w.extent.begin());
  for (std::size_t a = 0; a < plan.extents.size(); ++a) w.axis_values[a].set(0);
  w.kinds_around = 0;
  if (plan.is_attached) {
    enter_target(plan, w);
    if (!find_window(id, plan, w)) return false;
  }
  if (plan.is_attached)
    w.base.assign(w.axis_values.begin(), w.axis_values.begin() + static_cast<std::ptrdiff_t>(plan.rank));
  std::copy_n(w.extent.begin(), plan.extents.size(), w.reached.begin());
  if (!find_extents(plan, w) || !find_loops(id, plan, w)) return false;
  find_values(plan, w);
  return true;
}

TUNEWRIGHT_INLINE void SummaryWindows::enter_target(const StagePlan& plan, Work& w) const {
  const Work& target = work_[plan.target];
  w.kinds_around = target.kinds_around;
  w.outermost = target.outermost;
  for (const SchedulePlan::Loop& loop : std::span(plan_.stages[plan.target].loops).first(plan.place + 1))
    if (const Var var = target.var[loop.iter]; loop.is_index && var != no_var) w.enter(var, kinds_[var]);
}

TUNEWRIGHT_INLINE bool SummaryWindows::find_extents(const StagePlan& plan, Work& w) const {
  for (const SchedulePlan::Relation& r : plan.relations) {
    if (r.fused.empty()) {
      schedule::detail::split_extents(w.extent[r.whole], all_.numbers->factors().subspan(r.first_factor, r.parts - 1),
                                      &w.extent[r.first_part]);
    } else {
      std::int64_t product = 1;
      for (const IterId one : r.fused)
        if (!schedule::detail::multiply_fused(product, w.extent[one])) return false;
      w.extent[r.first_part] = product;
    }
  }
  return true;
}

TUNEWRIGHT_INLINE bool SummaryWindows::find_loops(TensorId id, const StagePlan& plan, Work& w) {
  std::uint32_t bound = 0;  // bits of the hardware indices that loops with more than one iteration use
  for (const SchedulePlan::Loop& loop : plan.loops) {
    const std::int64_t extent = w.extent[loop.iter];
    if (loop.is_index) {
      if (!find_index(id, plan, w, loop, bound)) return false;
    } else {
      w.var[loop.iter] = extent == 1 ? no_var : add_variable(extent, loop.kind);
    }
  }
  return true;
}

TUNEWRIGHT_INLINE bool SummaryWindows::find_index(TensorId id, const StagePlan& plan, Work& w,
                                                  const SchedulePlan::Loop& loop, std::uint32_t& bound) {
  w.var[loop.iter] = w.index[loop.iter] = no_var;
  const std::int64_t extent = w.extent[loop.iter];
  LoopKind kind = loop.kind;
  const Var around = w.around(kind);
  if (around != no_var) {
    // The stage is executed by one of the threads or blocks already; threads can share its work if they share its
    // storage.
    const bool shares = plan.is_shared && schedule::is_thread_index(kind) && !loop.is_reduction;
    if (!shares) kind = LoopKind::Serial;
  }
  if (schedule::is_hardware_index(kind)) {
    const std::uint32_t bit = extent > 1 ? 1U << static_cast<unsigned>(kind) : 0;
    if ((bound & bit) != 0) return false;
    bound |= bit;
    if (around != no_var) return rebind(id, w, loop.iter, around);
  }
  const bool starts_kernel = kind == LoopKind::BlockX && !plan.is_attached;
  if (extent != 1 || starts_kernel) w.var[loop.iter] = add_variable(extent, kind);
  return true;
}

TUNEWRIGHT_INLINE void SummaryWindows::add_value(FlatIndex& to, const StagePlan& plan, const Work& w, IterId iter,
                                                 std::int64_t factor) const {
  if (!plan.is_loop[iter])
    summary_.indices.add(to, w.value[iter], factor);
  else if (const Var var = w.var[iter]; var != no_var)
    summary_.indices.add_variable(to, var, factor);
}

TUNEWRIGHT_INLINE void SummaryWindows::find_values(const StagePlan& plan, Work& w) {
  for (auto r = plan.relations.rbegin(); r != plan.relations.rend(); ++r) {
    if (!r->fused.empty()) {
      split_fused(plan, w, *r);
      continue;
    }
    const std::int64_t reached = find_strides(*r, w);
    if (!r->splits_axis) {
      w.value[r->whole].set(0);
      add_parts(w.value[r->whole], plan, w, *r);
      continue;
    }
    w.reached[r->whole] = reached;
    FlatIndex& sum = w.axis_values[r->whole];
    if (r->into_loops || sum.is_plain()) {  // in place, because no terms are joined with the base
      add_parts(sum, plan, w, *r);
    } else {
      FlatIndex parts;
      add_parts(parts, plan, w, *r);
      summary_.indices.add(sum, parts);
    }
  }
  for (const IterId axis : plan.unsplit) add_value(w.axis_values[axis], plan, w, axis);
}

TUNEWRIGHT_INLINE std::int64_t SummaryWindows::find_strides(const SchedulePlan::Relation& r, const Work& w) {
  const std::int64_t* const extent = &w.extent[r.first_part];
  std::int64_t* const strides = all_.strides.data();
  std::int64_t stride = 1;
  for (std::size_t part = r.parts; part-- > 0; stride *= extent[part]) strides[part] = stride;
  return stride;
}

TUNEWRIGHT_INLINE void SummaryWindows::add_parts(FlatIndex& sum, const StagePlan& plan, const Work& w,
                                                 const SchedulePlan::Relation& r) const {
  const std::int64_t* const strides = all_.strides.data();
  if (r.into_loops) {
    const Var* const var = &w.var[r.first_part];
    for (std::size_t part = 0, parts = r.parts; part < parts; ++part)
      if (var[part] != no_var) summary_.indices.add_variable(sum, var[part], strides[part]);
    return;
  }
  for (std::uint32_t part = 0; part < r.parts; ++part) add_value(sum, plan, w, r.first_part + part, strides[part]);
}

TUNEWRIGHT_INLINE void SummaryWindows::split_fused(const StagePlan& plan, Work& w, const SchedulePlan::Relation& r) {
  FlatIndex one, other, *rest = &one, *quotient = &other;
  add_value(*rest, plan, w, r.first_part);
  for (std::size_t p = r.fused.size(); p-- > 1;) {
    FlatIndex& remainder = w.value[r.fused[p]];
    const std::int64_t extent = w.extent[r.fused[p]];
    if (extent == 1) {
      remainder.set(0);
      continue;
    }
    summary_.indices.divide(*rest, extent, *quotient, remainder);
    std::swap(rest, quotient);
  }
  w.value[r.fused[0]] = *rest;
}

TUNEWRIGHT_INLINE Var SummaryWindows::add_variable(std::int64_t extent, LoopKind kind) {
  summary_.indices.extents[all_.variables] = extent;
  kinds_[all_.variables] = kind;
  return all_.variables++;
}

TUNEWRIGHT_INLINE bool SummaryWindows::rebind(TensorId id, Work& w, IterId iter, Var index) {
  const std::int64_t extent = w.extent[iter], available = extent_of(index);
  if (extent > available) return false;
  w.index[iter] = index;
  if (extent == 1) return true;
  w.var[iter] = index;
  if (extent < available) {
    w.var[iter] = add_variable(extent, kinds_[index]);
    all_.renamed.push_back({id, w.var[iter], index});
  }
  return true;
}

TUNEWRIGHT_INLINE void SummaryWindows::rename(const SummaryWork::Renaming& renaming) {
  for (const TensorId id : plan_.stored) {
    bool is_inside = id == renaming.of;
    for_each_loop_around(id, [&](Var var, const auto&) { is_inside |= var == renaming.from; });
    if (!is_inside) continue;
    for (std::size_t a = 0; a < plan_.stages[id].extents.size(); ++a)
      summary_.indices.rename(work_[id].axis_values[a], renaming.from, renaming.to);
    if (!plan_.stages[id].is_attached) continue;
    for (FlatIndex& base : work_[id].base) summary_.indices.rename(base, renaming.from, renaming.to);
  }
}

TUNEWRIGHT_INLINE bool SummaryWindows::find_window(TensorId id, const StagePlan& plan, Work& w) {
  all_.fixed.assign(all_.variables, false);
  for_each_loop_around(id, [&](Var var, const SchedulePlan::Loop& loop) {
    const bool of_threads =
        loop.is_index && (schedule::is_thread_index(kinds_[var]) || kinds_[var] == LoopKind::VirtualThread);
    all_.fixed[var] = !(plan.is_shared && of_threads);
  });
  for (std::size_t d = 0; d < plan.rank; ++d) {
    FlatIndex& base = w.axis_values[d];
    program::Range range;
    const bool found = find_reach(plan.reads_of(d), base, range);
    if (found && range.extent() < plan.extents[d]) {
      w.extent[d] = range.extent();
      base.constant = range.min;
    } else {
      base.set(0);
    }
    if (summary_.indices.size(base) > loops::detail::max_window_terms) return false;
  }
  return true;
}

TUNEWRIGHT_INLINE bool SummaryWindows::find_reach(std::span<const SchedulePlan::ReadIndex> reads, FlatIndex& base,
                                                  program::Range& range) {
  bool seen = false;
  for (const SchedulePlan::ReadIndex& read : reads) {
    FlatIndex room, another;
    program::Range own;
    if (!divide_into_window(over_loops(read, room), seen ? another : base, own)) return false;
    if (seen && !summary_.indices.equal(base, another)) return false;
    range = seen ? program::Range{std::min(range.min, own.min), std::max(range.max, own.max)} : own;
    seen = true;
  }
  return seen;
}

TUNEWRIGHT_INLINE bool SummaryWindows::divide_into_window(const FlatIndex& index, FlatIndex& base,
                                                          program::Range& range) const {
  base.set(0);
  range = {index.constant, index.constant};
  for (const FlatIndex::Term& term : index.terms()) {
    bool uses_fixed = false, uses_inner = false;
    find_uses(term, uses_fixed, uses_inner);
    if (uses_fixed && uses_inner) return false;
    if (uses_inner)
      summary_.indices.widen(range, term);
    else
      base.append(term, term.coefficient);
  }
  return true;
}

TUNEWRIGHT_INLINE void SummaryWindows::find_uses(const FlatIndex::Term& term, bool& uses_fixed,
                                                 bool& uses_inner) const {
  if (term.kind == FlatIndex::Kind::Variable) {
    (all_.fixed[term.of] ? uses_fixed : uses_inner) = true;
    return;
  }
  for (const FlatIndex::Term& inner : summary_.indices.numerator(term).terms())
    find_uses(inner, uses_fixed, uses_inner);
}

}  // namespace tunewright::loops

#endif
