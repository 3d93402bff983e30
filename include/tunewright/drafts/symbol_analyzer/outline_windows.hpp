// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "tunewright/drafts/symbol_analyzer/outline_work.hpp"

namespace tunewright::drafts {

/// Windows, extents of loops and values of axes, as `loops::detail::WindowInference` finds them.
class OutlineWindows : OutlinePass {
 public:
  explicit OutlineWindows(OutlineWork& all) : OutlinePass(all), all_(all) {}

  /// False where lowering refuses.
  [[nodiscard]] bool run() {
    for (auto id = state().order.rbegin(); id != state().order.rend(); ++id)
      if (plan_->stages[*id].is_live && !infer(*id)) return false;
    return true;
  }

  /// Once buffers are made: what stood for part of a range becomes the whole.
  void rename() {
    for (const OutlineWork::Renaming& renaming : all_.renamed) rename(renaming);
  }

 private:
  bool infer(TensorId id) {
    const schedule::Stage& stage = state().stages[id];
    const std::vector<std::int64_t>& extents = plan_->stages[id].extents;
    const std::size_t rank = plan_->stages[id].rank, axes = extents.size();
    Work& w = work_[id];
    w.path.clear();
    w.outermost.fill(no_var);
    w.base.resize(rank);
    w.window.resize(rank);
    if (stage.location.kind == Kind::At) {
      const Work& target = work_[stage.location.stage];
      const std::vector<IterId>& order = state().stages[stage.location.stage].order;
      w.path = target.path;
      w.outermost = target.outermost;
      for (std::size_t p = 0; p <= plan_->stages[id].place; ++p)
        if (target.var[order[p]] != no_var) enter(w, static_cast<Var>(target.var[order[p]]));
      find_window(id, w);
    } else {
      for (std::size_t d = 0; d < rank; ++d) {
        w.base[d].set(0);
        w.window[d] = extents[d];
      }
    }
    const std::size_t count = stage.iterators.size();
    if (w.extent.size() < count) {
      for (std::vector<std::int64_t>* by_iter : {&w.extent, &w.var, &w.index, &w.stride})
        by_iter->resize(count);
      w.value.resize(count);
    }
    for (std::size_t a = 0; a < axes; ++a) w.extent[a] = a < rank ? w.window[a] : extents[a];
    schedule::detail::propagate_extents(stage, w.extent);
    if (!find_loops(id, w)) return false;
    w.axis_values.resize(axes);
    for (std::size_t a = 0; a < axes; ++a) {
      if (a < rank) {
        w.axis_values[a] = w.base[a];
      } else {
        w.axis_values[a].set(0);
      }
    }
    propagate_values(id, w);
    return true;
  }

  void enter(Work& w, Var var) const {
    w.path.push_back(var);
    std::int64_t& outermost = w.outermost[static_cast<std::size_t>(kinds_[var])];
    if (outermost == no_var) outermost = var;
  }

  /// Variables of all loops; false where lowering refuses.
  bool find_loops(TensorId id, Work& w) {
    const schedule::Stage& stage = state().stages[id];
    const bool is_root = stage.location.kind != Kind::At;
    std::uint32_t bound = 0;  // kinds of hardware indices that loops of more than one iteration have
    for (const IterId iter : stage.order) {
      w.var[iter] = w.index[iter] = no_var;
      const std::int64_t extent = w.extent[iter];
      const LoopKind kind = kind_of_loop(stage, w, iter);
      if (schedule::is_hardware_index(kind)) {
        const std::uint32_t bit = extent > 1 ? 1U << static_cast<unsigned>(kind) : 0;
        if ((bound & bit) != 0) return false;
        bound |= bit;
        if (const std::int64_t around = w.outermost[static_cast<std::size_t>(kind)]; around != no_var) {
          if (!rebind(id, w, iter, static_cast<Var>(around))) return false;
          continue;
        }
      }
      const bool starts_kernel = kind == LoopKind::BlockX && is_root;
      if (extent != 1 || starts_kernel) w.var[iter] = add_variable(extent, kind);
    }
    return true;
  }

  /// `to` += the value of an iterator: of a loop its variable, or nothing where it has a single iteration.
  void add_value(FlatIndex& to, const SchedulePlan::StagePlan& plan, const Work& w, IterId iter,
                 std::int64_t factor = 1) const {
    if (!plan.is_loop[iter])
      outline_.indices.add(to, w.value[iter], factor);
    else if (const std::int64_t var = w.var[iter]; var != no_var)
      outline_.indices.add_variable(to, static_cast<Var>(var), factor);
  }

  /// Values of iterators that are no loops, and of axes, which hold the bases of their windows.
  void propagate_values(TensorId id, Work& w) {
    const schedule::Stage& stage = state().stages[id];
    const SchedulePlan::StagePlan& plan = plan_->stages[id];
    for (auto r = stage.relations.rbegin(); r != stage.relations.rend(); ++r) {
      if (r->parents.size() > 1) {
        split_fused(plan, w, *r);
        continue;
      }
      const IterId whole = r->parents[0];
      FlatIndex* sum = &w.value[whole];
      if (plan.is_split_axis[whole])
        sum = &w.axis_values[whole];
      else
        sum->set(0);
      std::int64_t stride = 1;
      for (std::size_t c = r->children.size(); c-- > 0; stride *= w.extent[r->children[c]])
        w.stride[r->children[c]] = stride;
      for (const IterId part : r->children) add_value(*sum, plan, w, part, w.stride[part]);
    }
    for (std::size_t a = 0; a < w.axis_values.size(); ++a)
      if (!plan.is_split_axis[a]) add_value(w.axis_values[a], plan, w, static_cast<IterId>(a));
  }

  void split_fused(const SchedulePlan::StagePlan& plan, Work& w, const schedule::Relation& fused) {
    FlatIndex one, other, *rest = &one, *quotient = &other;
    rest->set(0);
    add_value(*rest, plan, w, fused.children[0]);
    for (std::size_t p = fused.parents.size(); p-- > 1;) {
      FlatIndex& remainder = w.value[fused.parents[p]];
      const std::int64_t extent = w.extent[fused.parents[p]];
      if (extent == 1) {
        remainder.set(0);
        continue;
      }
      outline_.indices.divide(*rest, extent, *quotient, remainder);
      std::swap(rest, quotient);
    }
    w.value[fused.parents[0]] = *rest;
  }

  Var add_variable(std::int64_t extent, LoopKind kind) {
    outline_.indices.extents.push_back(extent);
    kinds_.push_back(kind);
    return static_cast<Var>(kinds_.size() - 1);
  }

  [[nodiscard]] LoopKind kind_of_loop(const schedule::Stage& stage, const Work& w, IterId iter) const {
    const LoopKind kind = stage.iterators[iter].annotation;
    if (stage.location.kind != Kind::At) return kind;
    if (kind == LoopKind::Parallel) return LoopKind::Serial;
    const bool is_bound = kind == LoopKind::VirtualThread || schedule::is_hardware_index(kind);
    if (!is_bound || w.outermost[static_cast<std::size_t>(kind)] == no_var) return kind;
    const bool shares = stage.scope == schedule::Scope::Shared && schedule::is_thread_index(kind);
    return shares ? kind : LoopKind::Serial;
  }

  /// Runs a loop of an attached stage on an index that a loop around the stage binds; false where lowering refuses.
  bool rebind(TensorId id, Work& w, IterId iter, Var index) {
    const std::int64_t extent = w.extent[iter], available = extent_of(index);
    if (extent > available) return false;
    w.index[iter] = index;
    if (extent == 1) return true;
    w.var[iter] = index;
    if (extent < available) {
      w.var[iter] = add_variable(extent, kinds_[index]);
      all_.renamed.push_back({id, static_cast<Var>(w.var[iter]), index});
    }
    return true;
  }

  void rename(const OutlineWork::Renaming& renaming) {
    for (TensorId id = 0; id < plan_->stages.size(); ++id) {
      if (!plan_->stages[id].is_live) continue;
      const std::vector<Var>& path = work_[id].path;
      if (id != renaming.of && std::find(path.begin(), path.end(), renaming.from) == path.end()) continue;
      for (FlatIndex& value : work_[id].axis_values)
        outline_.indices.rename(value, renaming.from, renaming.to);
    }
  }

  /// What the readers inside its loop read of an attached stage.
  void find_window(TensorId id, Work& w) {
    const bool shared = state().stages[id].scope == schedule::Scope::Shared;
    all_.fixed.assign(kinds_.size(), false);
    for (const Var var : w.path) {
      const bool of_threads =
          schedule::is_thread_index(kinds_[var]) || kinds_[var] == LoopKind::VirtualThread;
      all_.fixed[var] = !(shared && of_threads);
    }
    for (std::size_t d = 0; d < w.window.size(); ++d) {
      const std::int64_t full = plan_->stages[id].extents[d];
      program::Range range;
      const bool whole =
          !find_reach(plan_->stages[id].readings, d, w.base[d], range) || range.extent() >= full;
      w.window[d] = whole ? full : range.extent();
      if (whole)
        w.base[d].set(0);
      else
        w.base[d].constant = range.min;
    }
  }

  /// The terms of fixed variables that the indices of all readings have in common, and the range of all others; false
  /// where there is more to an index, or no reading.
  bool find_reach(std::span<const SchedulePlan::Reading> readings, std::size_t dimension, FlatIndex& base,
                  program::Range& range) {
    bool seen = false;
    for (const SchedulePlan::Reading& reading : readings) {
      const program::IndexExpr& index = reading.load->indices[dimension];
      const std::vector<FlatIndex>& values = work_[reading.reader].axis_values;
      FlatIndex over_loops, another;
      const FlatIndex* read = &over_loops;
      if (const auto axis = index.as_variable())
        read = &values[*axis];
      else
        outline_.indices.substitute(
            index, [&](Var var) -> const FlatIndex& { return values[var]; }, over_loops);
      program::Range own;
      if (!divide_into_window(*read, seen ? another : base, own)) return false;
      if (seen && !outline_.indices.equal(base, another)) return false;
      range = seen ? program::Range{std::min(range.min, own.min), std::max(range.max, own.max)} : own;
      seen = true;
    }
    return seen;
  }

  /// `index` as a sum of terms of fixed variables and a rest of that range; false where a term has both.
  bool divide_into_window(const FlatIndex& index, FlatIndex& base, program::Range& range) const {
    base.set(0);
    range = {index.constant, index.constant};
    for (const FlatIndex::Term& term : index.terms()) {
      bool uses_fixed = false, uses_inner = false;
      find_uses(term, uses_fixed, uses_inner);
      if (uses_fixed && uses_inner) return false;
      if (uses_inner)
        outline_.indices.widen(range, term);
      else
        base.append(term, term.coefficient);
    }
    return true;
  }
  void find_uses(const FlatIndex::Term& term, bool& uses_fixed, bool& uses_inner) const {
    if (term.kind == FlatIndex::Kind::Variable) {
      (all_.fixed[term.of] ? uses_fixed : uses_inner) = true;
      return;
    }
    for (const FlatIndex::Term& inner : outline_.indices.numerator(term).terms())
      find_uses(inner, uses_fixed, uses_inner);
  }

  OutlineWork& all_;
};

}  // namespace tunewright::drafts
