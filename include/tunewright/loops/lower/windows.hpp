// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/loops/lower/pass.hpp"

namespace tunewright::loops::detail {

/// Bound inference: computes windows, loop extents and axis values of all stages, from the outputs to the inputs.
///
/// A stage at the root computes its whole tensor. A stage inside a loop of a consumer computes the window that the
/// consumers inside that loop read: loop variables outside are symbols, those inside range over their extents. Splits
/// divide the window, so outer tile loops of an attached stage have a single iteration and disappear. Shared memory
/// belongs to all threads of a block: its window covers the reads of all of them.
class WindowInference : Pass {
 public:
  explicit WindowInference(Lowered& lowered) : Pass(lowered) {}

  void run() {
    for (auto id = state_.order.rbegin(); id != state_.order.rend(); ++id) {
      if (info_[*id].live) infer(*id);
    }
  }

 private:
  /// Whether `consumer` runs inside the loop at `place` of `target`: it is that stage, or attached below it.
  [[nodiscard]] bool is_inside(TensorId consumer, TensorId target, std::size_t place) const {
    if (consumer == target) return true;
    for (const Location* l = &state_.stages[consumer].location; l->kind == Location::Kind::At;
         l = &state_.stages[l->stage].location) {
      if (l->stage == target) return state_.stages[target].position(l->iter) >= place;
    }
    return false;
  }

  /// Computes window, loop extents and axis values of a stage whose consumers are finished.
  void infer(TensorId id) {
    const Stage& stage = state_.stages[id];
    StageInfo& info = info_[id];
    const Operator& op = *info.op;
    const std::size_t rank = op.rank();
    if (stage.location.kind == Location::Kind::At) {
      const StageInfo& target = info_[stage.location.stage];
      const Stage& target_stage = state_.stages[stage.location.stage];
      const std::size_t place = target_stage.position(stage.location.iter);
      info.path.reserve(target.path.size() + place + 1);
      info.path = target.path;
      for (std::size_t p = 0; p <= place; ++p) {
        if (const auto var = target.var[target_stage.order[p]]) info.path.push_back(*var);
      }
      info.window = window_read_inside(id, stage.location.stage, place);
      for (const IndexExpr& base : info.window.base) {
        if (base.size() <= max_window_terms) continue;
        throw ScheduleError(ScheduleFault::BadLocation, "the part of '" + op.name +
                                                            "' that is read in a loop begins at an index of " +
                                                            std::to_string(base.size()) + " terms, and at most " +
                                                            std::to_string(max_window_terms) +
                                                            " are possible; compute some of its readers at the root");
      }
    } else {
      info.window.base.assign(rank, IndexExpr(0));
      info.window.extent = op.shape();
    }
    const std::size_t count = stage.iterators.size();
    info.extent.assign(count, 1);
    info.value.resize(count);
    info.var.assign(count, std::nullopt);
    for (std::size_t a = 0; a < op.axes.size(); ++a)
      info.extent[a] = a < rank ? info.window.extent[a] : op.axes[a].extent;
    schedule::detail::propagate_extents(stage, info.extent);
    for (const IterId iter : stage.order) {
      const LoopKind kind = kind_of_loop(stage, info, iter);
      if (schedule::is_hardware_index(kind) && rebind(stage, info, iter, kind)) continue;
      if (info.extent[iter] == 1 && !starts_kernel(stage, kind)) continue;
      info.var[iter] = add_variable(stage, iter, info.extent[iter], kind);
      info.value[iter] = IndexExpr::variable(*info.var[iter]);
    }
    schedule::detail::propagate_values(stage, info.extent, info.value, range_of());
    info.axis_values.reserve(op.axes.size());
    for (std::size_t a = 0; a < op.axes.size(); ++a) {
      info.axis_values.push_back(a < rank ? info.window.base[a] + info.value[a] : info.value[a]);
    }
  }

  /// A kernel of one block keeps its loop, because the loop delimits the kernel.
  static bool starts_kernel(const Stage& stage, LoopKind kind) noexcept {
    return kind == LoopKind::BlockX && stage.location.kind != Location::Kind::At;
  }

  Var add_variable(const Stage& stage, IterId iter, std::int64_t extent, LoopKind kind) {
    nest_.variables.push_back({schedule::iterator_name(stage, iter), extent});
    kinds_.push_back(kind);
    return static_cast<Var>(nest_.variables.size() - 1);
  }

  /// The variable of the surrounding loop that is bound to `kind`, if any.
  [[nodiscard]] std::optional<Var> bound_on_path(const StageInfo& info, LoopKind kind) const {
    const auto found = std::find_if(info.path.begin(), info.path.end(), [&](Var v) { return kinds_[v] == kind; });
    return found == info.path.end() ? std::nullopt : std::optional<Var>(*found);
  }

  /// The kind of an iterator's loop at its location. A stage inside another stage's loops is already executed by one of
  /// the threads or blocks; it can share work among threads only if all threads of the block share its storage. Each
  /// computes whole sums, whose loops are serial.
  [[nodiscard]] LoopKind kind_of_loop(const Stage& stage, const StageInfo& info, IterId iter) const {
    const LoopKind kind = stage.iterators[iter].annotation;
    if (stage.location.kind != Location::Kind::At) return kind;
    if (kind == LoopKind::Parallel) return LoopKind::Serial;
    const bool is_bound = kind == LoopKind::VirtualThread || schedule::is_hardware_index(kind);
    if (!is_bound || !bound_on_path(info, kind)) return kind;
    const bool shares = stage.scope == schedule::Scope::Shared && schedule::is_thread_index(kind) &&
                        stage.iterators[iter].kind == AxisKind::Spatial;
    return shares ? kind : LoopKind::Serial;
  }

  /// Runs `iter` on the hardware index `kind` if a surrounding loop binds it; otherwise returns false.
  bool rebind(const Stage& stage, StageInfo& info, IterId iter, LoopKind kind) {
    const std::int64_t extent = info.extent[iter];
    const auto same_index = [&](IterId other) {
      return other != iter && kind_of_loop(stage, info, other) == kind && info.extent[other] > 1;
    };
    if (extent > 1 && std::any_of(stage.order.begin(), stage.order.end(), same_index)) {
      throw ScheduleError(ScheduleFault::BadAnnotation, "two loops of '" + stage.op->name + "' are bound to " +
                                                            std::string(schedule::name(kind)) +
                                                            "; fuse them or bind one to another index");
    }
    const std::optional<Var> index = bound_on_path(info, kind);
    if (!index) return false;
    const std::int64_t available = nest_.variables[*index].extent;
    if (extent > available) {
      throw ScheduleError(ScheduleFault::BadAnnotation,
                          schedule::detail::describe_iterator(stage, iter) + " has " + std::to_string(extent) +
                              " iterations for the " + std::to_string(available) + " of " +
                              std::string(schedule::name(kind)) +
                              " around it; split it by at most as many and run the rest serially");
    }
    // A loop of one iteration may share the index with one of several, whose threads are then all busy.
    std::int64_t busy = extent;
    for (const IterId other : stage.order)
      if (kind_of_loop(stage, info, other) == kind) busy = std::max(busy, info.extent[other]);
    info.rebound.push_back({iter, *index, busy});
    if (extent == 1) return true;
    info.var[iter] = *index;
    if (extent < available) {
      // A separate variable until all windows are known, because its smaller range keeps them tight.
      info.var[iter] = add_variable(stage, iter, extent, kind);
      renamed_later_.emplace_back(*info.var[iter], *index);
    }
    info.value[iter] = IndexExpr::variable(*info.var[iter]);
    return true;
  }

  static bool is_of_threads(LoopKind kind) noexcept {
    return schedule::is_thread_index(kind) || kind == LoopKind::VirtualThread;
  }

  /// The part of one dimension that readers access: `base` over the surrounding loops of the window, plus `range`.
  struct Reach {
    bool seen = false;
    bool whole = false;  ///< not of that form, or different for several readers
    IndexExpr base;
    Range range;
  };

  /// The part of tensor `id` that stages inside the loop at `place` of `target` read.
  [[nodiscard]] Window window_read_inside(TensorId id, TensorId target, std::size_t place) const {
    const StageInfo& info = info_[id];
    std::vector<char> fixed(nest_.variables.size(), 0);
    const bool shared = state_.stages[id].scope == schedule::Scope::Shared;
    for (const Var v : info.path) fixed[v] = !(shared && is_of_threads(kinds_[v]));
    std::vector<Reach> reach(info.op->rank());
    for (const TensorId consumer : state_.order) {
      const StageInfo& reader = info_[consumer];
      const bool reads = std::find(reader.reads.begin(), reader.reads.end(), id) != reader.reads.end();
      if (!reader.live || !reads) continue;
      if (!is_inside(consumer, target, place)) {
        throw ScheduleError(ScheduleFault::BadLocation, "'" + info.op->name + "' is also read by '" + reader.op->name +
                                                            "', which runs outside the loop it is computed at");
      }
      program::visit(reader.op->body, [&](const program::ExprNode& node) {
        if (node.op != Op::Load || node.tensor != id) return;
        for (std::size_t d = 0; d < reach.size(); ++d) {
          widen(reach[d],
                node.indices[d].substitute([&](Var axis) -> const IndexExpr& { return reader.axis_values[axis]; },
                                           range_of()),
                fixed);
        }
      });
    }
    return window_of(*info.op, state_.stages[id].multiples, reach);
  }

  /// Extends `reach` by `index`. Loops marked in `fixed` surround the window, the others run inside it.
  void widen(Reach& reach, const IndexExpr& index, const std::vector<char>& fixed) const {
    IndexExpr base;
    IndexExpr moving(index.constant());
    bool mixed = false;
    for (const IndexExpr::Term& term : index.terms()) {
      const auto [uses_fixed, uses_inner] = variables_used(term, fixed);
      mixed = mixed || (uses_fixed && uses_inner);
      (uses_inner ? moving : base).add(term);
    }
    const Range range = moving.range(range_of());
    if (!reach.seen) {
      reach = {true, mixed, std::move(base), range};
    } else if (mixed || !(reach.base == base)) {
      reach.whole = true;
    } else {
      reach.range = {std::min(reach.range.min, range.min), std::max(reach.range.max, range.max)};
    }
  }

  /// Windows are rounded up to `multiples` unless that is empty.
  [[nodiscard]] static Window window_of(const Operator& op, const std::vector<std::int64_t>& multiples,
                                        const std::vector<Reach>& reach) {
    Window window;
    window.base.reserve(reach.size());
    window.extent.reserve(reach.size());
    for (std::size_t d = 0; d < reach.size(); ++d) {
      const std::int64_t full = op.axes[d].extent;
      const Reach& r = reach[d];
      const std::int64_t multiple = multiples.empty() ? 1 : multiples[d];
      const std::int64_t extent = program::ceil_div(r.range.extent(), multiple) * multiple;
      const bool whole = !r.seen || r.whole || extent >= full;
      window.base.push_back(whole ? IndexExpr(0) : r.base + IndexExpr(r.range.min));
      window.extent.push_back(whole ? full : extent);
    }
    return window;
  }

  /// Whether `term` uses loops outside the window, and loops inside.
  static std::pair<bool, bool> variables_used(const IndexExpr::Term& term, const std::vector<char>& fixed) {
    if (term.kind == IndexExpr::Kind::Variable) {
      const bool is_fixed = fixed[term.var] != 0;
      return {is_fixed, !is_fixed};
    }
    std::pair<bool, bool> used{false, false};
    for (const IndexExpr::Term& inner : term.numerator->terms()) {
      const auto [f, i] = variables_used(inner, fixed);
      used = {used.first || f, used.second || i};
    }
    return used;
  }
};

}  // namespace tunewright::loops::detail
