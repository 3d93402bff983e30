// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
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
      if (plan_->info[*id].live && !infer(*id)) return false;
    return true;
  }

  /// Once buffers are made: what stood for part of a range becomes the whole.
  void rename() {
    for (const OutlineWork::Renaming& renaming : all_.renamed) rename(renaming);
  }

 private:
  bool infer(TensorId id) {
    const schedule::Stage& stage = state().stages[id];
    const program::Operator& op = *plan_->info[id].op;
    const std::size_t rank = op.rank(), axes = op.axes.size();
    Work& w = work_[id];
    w.path.clear();
    w.rebound.clear();
    w.base.resize(rank);
    w.window.resize(rank);
    if (stage.location.kind == Kind::At) {
      const Work& target = work_[stage.location.stage];
      const std::vector<IterId>& order = state().stages[stage.location.stage].order;
      w.path = target.path;
      for (std::size_t p = 0; p <= plan_->stages[id].place; ++p)
        if (target.var[order[p]] != no_var) w.path.push_back(static_cast<Var>(target.var[order[p]]));
      find_window(id, w);
    } else {
      for (std::size_t d = 0; d < rank; ++d) {
        w.base[d].set(0);
        w.window[d] = op.axes[d].extent;
      }
    }
    const std::size_t count = stage.iterators.size();
    if (w.extent.size() < count) {
      w.extent.resize(count);
      w.var.resize(count);
      w.value.resize(count);
    }
    for (std::size_t a = 0; a < axes; ++a) w.extent[a] = a < rank ? w.window[a] : op.axes[a].extent;
    schedule::detail::propagate_extents(stage, w.extent);
    for (const IterId iter : stage.order) {
      w.var[iter] = no_var;
      const LoopKind kind = kind_of_loop(stage, w, iter);
      if (schedule::is_hardware_index(kind)) {
        bool bound = false;
        if (!rebind(id, w, iter, kind, bound)) return false;
        if (bound) continue;
      }
      const bool starts_kernel = kind == LoopKind::BlockX && stage.location.kind != Kind::At;
      if (w.extent[iter] == 1 && !starts_kernel) continue;
      const Var var = add_variable(w.extent[iter], kind);
      w.var[iter] = var;
    }
    propagate_values(id, w);
    w.axis_values.resize(axes);
    for (std::size_t a = 0; a < axes; ++a) {
      if (a < rank) {
        w.axis_values[a] = w.base[a];
      } else {
        w.axis_values[a].set(0);
      }
      add_value(w.axis_values[a], id, w, static_cast<IterId>(a));
    }
    return true;
  }

  /// `to` += the value of an iterator: of a loop its variable, or nothing where it has a single iteration.
  void add_value(FlatIndex& to, TensorId id, const Work& w, IterId iter, std::int64_t factor = 1) const {
    if (!plan_->stages[id].is_loop[iter])
      outline_.indices.add(to, w.value[iter], factor);
    else if (w.var[iter] != no_var)
      outline_.indices.add(to, {1, 1, static_cast<std::uint32_t>(w.var[iter]), FlatIndex::Kind::Variable},
                           factor);
  }

  void propagate_values(TensorId id, Work& w) {
    const schedule::Stage& stage = state().stages[id];
    for (auto r = stage.relations.rbegin(); r != stage.relations.rend(); ++r) {
      if (r->parents.size() == 1) {
        FlatIndex& sum = w.value[r->parents[0]];
        sum.set(0);
        std::int64_t stride = 1;
        for (std::size_t c = 1; c < r->children.size(); ++c) stride *= w.extent[r->children[c]];
        for (std::size_t c = 0;; stride /= w.extent[r->children[++c]]) {
          add_value(sum, id, w, r->children[c], stride);
          if (c + 1 == r->children.size()) break;
        }
        continue;
      }
      FlatIndex other(0), *rest = &w.value[r->parents[0]], *quotient = &other;
      if (r->parents.size() % 2 == 0)
        std::swap(rest, quotient);  // so that the last quotient is where it stays
      rest->set(0);
      add_value(*rest, id, w, r->children[0]);
      for (std::size_t p = r->parents.size(); p-- > 1; std::swap(rest, quotient))
        outline_.indices.divide(*rest, w.extent[r->parents[p]], *quotient, w.value[r->parents[p]]);
    }
  }

  Var add_variable(std::int64_t extent, LoopKind kind) {
    outline_.indices.extents.push_back(extent);
    kinds_.push_back(kind);
    return static_cast<Var>(kinds_.size() - 1);
  }

  /// The variable around a stage that is bound to `kind`, or no_var.
  [[nodiscard]] std::int64_t bound_on_path(const Work& w, LoopKind kind) const {
    for (const Var var : w.path)
      if (kinds_[var] == kind) return var;
    return no_var;
  }

  [[nodiscard]] LoopKind kind_of_loop(const schedule::Stage& stage, const Work& w, IterId iter) const {
    const LoopKind kind = stage.iterators[iter].annotation;
    if (stage.location.kind != Kind::At) return kind;
    if (kind == LoopKind::Parallel) return LoopKind::Serial;
    const bool is_bound = kind == LoopKind::VirtualThread || schedule::is_hardware_index(kind);
    if (!is_bound || bound_on_path(w, kind) == no_var) return kind;
    const bool shares = stage.scope == schedule::Scope::Shared && schedule::is_thread_index(kind);
    return shares ? kind : LoopKind::Serial;
  }

  /// False where lowering refuses.
  bool rebind(TensorId id, Work& w, IterId iter, LoopKind kind, bool& bound) {
    const schedule::Stage& stage = state().stages[id];
    const std::int64_t extent = w.extent[iter];
    if (extent > 1) {
      for (const IterId other : stage.order)
        if (other != iter && w.extent[other] > 1 && kind_of_loop(stage, w, other) == kind) return false;
    }
    const std::int64_t found = bound_on_path(w, kind);
    if (found == no_var) return true;
    const auto index = static_cast<Var>(found);
    const std::int64_t available = extent_of(index);
    if (extent > available) return false;
    bound = true;
    w.rebound.push_back({iter, index, extent});
    if (extent == 1) return true;
    w.var[iter] = index;
    if (extent < available) {
      w.var[iter] = add_variable(extent, kind);
      all_.renamed.push_back({id, static_cast<Var>(w.var[iter]), index});
    }
    return true;
  }

  void rename(const OutlineWork::Renaming& renaming) {
    for (TensorId id = 0; id < plan_->stages.size(); ++id) {
      if (!plan_->info[id].live) continue;
      const std::vector<Var>& path = work_[id].path;
      if (id != renaming.of && std::find(path.begin(), path.end(), renaming.from) == path.end()) continue;
      for (FlatIndex& value : work_[id].axis_values)
        outline_.indices.rename(value, renaming.from, renaming.to);
    }
  }

  struct Reach {
    bool seen = false;
    bool whole = false;
    FlatIndex base;
    program::Range range;
  };

  /// What the readers inside its loop read of an attached stage.
  void find_window(TensorId id, Work& w) {
    const bool shared = state().stages[id].scope == schedule::Scope::Shared;
    all_.fixed.assign(kinds_.size(), false);
    for (const Var var : w.path) {
      const bool of_threads =
          schedule::is_thread_index(kinds_[var]) || kinds_[var] == LoopKind::VirtualThread;
      all_.fixed[var] = !(shared && of_threads);
    }
    const std::vector<program::Axis>& axes = plan_->info[id].op->axes;
    for (std::size_t d = 0; d < w.window.size(); ++d) {
      Reach reach;
      for (const SchedulePlan::Reading& reading : plan_->stages[id].readings) {
        const program::IndexExpr& index = reading.load->indices[d];
        const std::vector<FlatIndex>& values = work_[reading.reader].axis_values;
        if (const auto axis = index.as_variable()) {
          widen(reach, values[*axis]);
        } else {
          FlatIndex over_loops;
          outline_.indices.substitute(
              index, [&](Var var) -> const FlatIndex& { return values[var]; }, over_loops);
          widen(reach, over_loops);
        }
      }
      const std::int64_t full = axes[d].extent, extent = reach.range.extent();
      const bool whole = !reach.seen || reach.whole || extent >= full;
      w.base[d].set(0);
      w.window[d] = whole ? full : extent;
      if (whole) continue;
      w.base[d] = reach.base;
      w.base[d].constant += reach.range.min;
    }
  }

  void widen(Reach& reach, const FlatIndex& index) {
    FlatIndex another;
    FlatIndex& base = reach.seen ? another : reach.base;
    program::Range range{index.constant, index.constant};
    bool mixed = false;
    for (const FlatIndex::Term& term : index.terms()) {
      bool uses_fixed = false, uses_inner = false;
      find_uses(term, uses_fixed, uses_inner);
      mixed = mixed || (uses_fixed && uses_inner);
      if (uses_inner)
        outline_.indices.widen(range, term);
      else
        base.append(term, term.coefficient);
    }
    if (!reach.seen) {
      reach.seen = true;
      reach.whole = mixed;
      reach.range = range;
    } else if (mixed || !outline_.indices.equal(reach.base, base)) {
      reach.whole = true;
    } else {
      reach.range = {std::min(reach.range.min, range.min), std::max(reach.range.max, range.max)};
    }
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
