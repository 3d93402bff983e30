// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tunewright/core/order.hpp"
#include "tunewright/drafts/symbol_analyzer/outline.hpp"
#include "tunewright/drafts/symbol_analyzer/schedule_plan.hpp"

namespace tunewright::drafts {

/// Outlines of schedules, straight from their steps: the loops, windows and buffers of `loops::lower`, without building
/// the program. Plans of structures that were met before are kept, so that only tile sizes are worked on.
///
/// The outline is that of the lowered program, number for number.
///
/// Cost: a tenth of replaying and lowering.
class ScheduleOutliner {
 public:
  /// Valid until the next call, as long as the candidate's graph is. Null for what has to be lowered to be read:
  /// schedules with tensor instructions and those that lowering would refuse.
  [[nodiscard]] const Outline* outline(const schedule::Schedule& candidate) {
    try {
      plan_ = plan_of(candidate);
      if (!plan_->is_complete || !plan_->adopt(candidate)) return nullptr;
      candidate_ = &candidate;
      outline_.clear();
      renamed_.clear();
      kinds_.clear();
      if (work_.size() < plan_->stages.size()) work_.resize(plan_->stages.size());
      for (auto id = state().order.rbegin(); id != state().order.rend(); ++id)
        if (plan_->info[*id].live && !infer(*id)) return nullptr;
      if (!make_buffers()) return nullptr;
      for (const auto& [from, to] : renamed_)
        for (TensorId id = 0; id < plan_->stages.size(); ++id)
          if (plan_->info[id].live)
            for (FlatIndex& value : work_[id].axis_values) outline_.indices.rename(value, from, to);
      emit();
      return &outline_;
    } catch (const NoRoom&) {
    } catch (const schedule::ScheduleError&) {
    }
    return nullptr;
  }

 private:
  using TensorId = program::TensorId;
  using IterId = schedule::IterId;
  using Var = program::Var;
  using Kind = schedule::Location::Kind;
  using LoopKind = loops::LoopKind;
  static constexpr std::int64_t no_var = -1;

  struct Rebinding {
    IterId iter = 0;
    Var index = 0;
    std::int64_t extent = 1;
  };
  /// What is worked out for a stage.
  struct Work {
    std::vector<std::int64_t> extent;    // by IterId
    std::vector<FlatIndex> value;        // by IterId
    std::vector<std::int64_t> var;       // by IterId; no_var for loops of extent 1
    std::vector<FlatIndex> axis_values;  // by axis
    std::vector<FlatIndex> base;         // of the window
    std::vector<std::int64_t> window;    // its extent
    std::vector<Var> path;               // loops around
    std::vector<Rebinding> rebound;
    std::vector<std::int64_t> last;  // scratch, by IterId
  };

  [[nodiscard]] const schedule::State& state() const noexcept { return plan_->state; }
  [[nodiscard]] std::int64_t extent_of(Var var) const noexcept { return outline_.indices.extents[var]; }

  SchedulePlan* plan_of(const schedule::Schedule& candidate) {
    constexpr std::size_t most = 4096;
    std::vector<std::unique_ptr<SchedulePlan>>& known = plans_[SchedulePlan::key(candidate)];
    for (const auto& plan : known)
      if (plan->fits(candidate)) return plan.get();
    std::unique_ptr<SchedulePlan> made = SchedulePlan::of(candidate);
    if (++count_ > most) {
      plans_.clear();
      count_ = 1;
      return plans_[SchedulePlan::key(candidate)].emplace_back(std::move(made)).get();
    }
    return known.emplace_back(std::move(made)).get();
  }

  // Windows, as `loops::detail::WindowInference`.

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
    w.extent.assign(count, 1);
    w.var.assign(count, no_var);
    if (w.value.size() < count) w.value.resize(count);
    for (std::size_t a = 0; a < axes; ++a) w.extent[a] = a < rank ? w.window[a] : op.axes[a].extent;
    schedule::detail::propagate_extents(stage, w.extent);
    for (const IterId iter : stage.order) {
      w.value[iter].set(0);
      const LoopKind kind = kind_of_loop(stage, w, iter);
      if (schedule::is_hardware_index(kind)) {
        bool bound = false;
        if (!rebind(stage, w, iter, kind, bound)) return false;
        if (bound) continue;
      }
      const bool starts_kernel = kind == LoopKind::BlockX && stage.location.kind != Kind::At;
      if (w.extent[iter] == 1 && !starts_kernel) continue;
      const Var var = add_variable(w.extent[iter], kind);
      w.var[iter] = var;
      w.value[iter].set_variable(var);
    }
    propagate_values(stage, w);
    w.axis_values.resize(axes);
    for (std::size_t a = 0; a < axes; ++a) {
      if (a < rank) {
        w.axis_values[a] = w.base[a];
        outline_.indices.add(w.axis_values[a], w.value[a]);
      } else {
        w.axis_values[a] = w.value[a];
      }
    }
    return true;
  }

  void propagate_values(const schedule::Stage& stage, Work& w) {
    for (auto r = stage.relations.rbegin(); r != stage.relations.rend(); ++r) {
      if (r->parents.size() == 1) {
        FlatIndex& sum = w.value[r->parents[0]];
        sum.set(0);
        for (const IterId child : r->children) {
          sum.scale(w.extent[child]);
          outline_.indices.add(sum, w.value[child]);
        }
        continue;
      }
      FlatIndex rest = w.value[r->children[0]], quotient;
      for (std::size_t p = r->parents.size(); p-- > 1;) {
        outline_.indices.divide(rest, w.extent[r->parents[p]], quotient, w.value[r->parents[p]]);
        rest = quotient;
      }
      w.value[r->parents[0]] = rest;
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
  bool rebind(const schedule::Stage& stage, Work& w, IterId iter, LoopKind kind, bool& bound) {
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
      renamed_.emplace_back(static_cast<Var>(w.var[iter]), index);
    }
    w.value[iter].set_variable(static_cast<Var>(w.var[iter]));
    return true;
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
    fixed_.assign(kinds_.size(), false);
    for (const Var var : w.path) {
      const bool of_threads =
          schedule::is_thread_index(kinds_[var]) || kinds_[var] == LoopKind::VirtualThread;
      fixed_[var] = !(shared && of_threads);
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
    FlatIndex base, moving(index.constant);
    bool mixed = false;
    for (const FlatIndex::Term& term : index.terms()) {
      bool uses_fixed = false, uses_inner = false;
      find_uses(term, uses_fixed, uses_inner);
      mixed = mixed || (uses_fixed && uses_inner);
      FlatIndex& part = uses_inner ? moving : base;
      part.insert(part.count, term);
    }
    const program::Range range = outline_.indices.range(moving);
    if (!reach.seen) {
      reach.seen = true;
      reach.whole = mixed;
      reach.base = base;
      reach.range = range;
    } else if (mixed || !outline_.indices.equal(reach.base, base)) {
      reach.whole = true;
    } else {
      reach.range = {std::min(reach.range.min, range.min), std::max(reach.range.max, range.max)};
    }
  }
  void find_uses(const FlatIndex::Term& term, bool& uses_fixed, bool& uses_inner) const {
    if (term.kind == FlatIndex::Kind::Variable) {
      (fixed_[term.of] ? uses_fixed : uses_inner) = true;
      return;
    }
    for (const FlatIndex::Term& inner : outline_.indices.numerator(term).terms())
      find_uses(inner, uses_fixed, uses_inner);
  }

  // Buffers, as `loops::detail::StoragePlan`.

  bool make_buffers() {
    outline_.buffers.resize(plan_->buffers);
    for (TensorId id = 0; id < plan_->stages.size(); ++id) {
      if (plan_->buffer_of[id] == loops::LoopNest::no_buffer) continue;
      const schedule::Stage& stage = state().stages[id];
      OutlineBuffer& b = outline_.buffers[plan_->buffer_of[id]];
      b.element_bytes = static_cast<double>(program::size_in_bytes(stage.op->type));
      b.stages = 1;
      b.asynchronous = false;
      b.packed = false;
      if (stage.is_source() || plan_->stages[id].is_output) {
        b.role = !stage.is_source()                          ? loops::BufferRole::Output
                 : stage.op->role == program::Role::Constant ? loops::BufferRole::Constant
                                                             : loops::BufferRole::Input;
        b.shape.resize(stage.op->rank());
        for (std::size_t d = 0; d < b.shape.size(); ++d) b.shape[d] = stage.op->axes[d].extent;
      } else {
        b.role = loops::BufferRole::Temporary;
        find_stored(stage, plan_->info[id].op->axes.size(), plan_->info[id].op->rank(), work_[id], b.shape);
      }
      b.scope = stage.is_source() ? stage.scope : scope_of(stage, work_[id]);
    }
    // In this order, since what is packed is not kept apart.
    for (const schedule::Pack& pack : state().packs)
      if (plan_->buffer_of[pack.tensor] != loops::LoopNest::no_buffer) this->pack(pack.tensor);
    for (const std::uint32_t step : plan_->arranging)
      if (!arrange(*std::get_if<schedule::Arrange>(&candidate_->steps[step]))) return false;
    for (TensorId id = 0; id < plan_->stages.size(); ++id) keep_rows_apart(id);
    for (const std::uint32_t step : plan_->pipelining)
      if (!pipeline(*std::get_if<schedule::Pipeline>(&candidate_->steps[step]))) return false;
    for (OutlineBuffer& b : outline_.buffers) {
      if (!b.packed) {
        b.elements = 1;
        for (const std::int64_t extent : b.shape) b.elements *= extent;
      }
      b.elements *= b.stages;
    }
    return true;
  }

  static void find_stored(const schedule::Stage& stage, std::size_t axes, std::size_t rank, Work& w,
                          std::vector<std::int64_t>& shape) {
    w.last.assign(stage.iterators.size(), 0);
    for (const IterId iter : stage.order) w.last[iter] = w.extent[iter] - 1;
    for (auto r = stage.relations.rbegin(); r != stage.relations.rend(); ++r) {
      for (const IterId parent : r->parents) w.last[parent] = w.extent[parent] - 1;
      const IterId whole = r->parents[0];
      if (r->parents.size() > 1 || whole >= axes) continue;
      w.last[whole] = 0;
      for (const IterId part : r->children) w.last[whole] = w.last[whole] * w.extent[part] + w.last[part];
    }
    shape.resize(rank);
    for (std::size_t d = 0; d < rank; ++d) shape[d] = w.last[d] + 1;
  }

  [[nodiscard]] loops::Scope scope_of(const schedule::Stage& stage, const Work& w) const {
    if (stage.scope != loops::Scope::Global || stage.location.kind != Kind::At) return stage.scope;
    loops::Scope scope = loops::Scope::Global;
    for (const Var var : w.path) {
      if (schedule::is_thread_index(kinds_[var])) return loops::Scope::Local;
      if (schedule::is_hardware_index(kinds_[var])) scope = loops::Scope::Shared;
    }
    return scope;
  }

  struct Piece {
    std::size_t place;
    loops::PackedDimension dimension;
  };
  using Pieces = boost::container::small_vector<Piece, 16>;

  /// Only the innermost piece and the number of elements are kept.
  void pack(TensorId id) {
    const SchedulePlan::StagePlan& plan = plan_->stages[id];
    OutlineBuffer& b = outline_.buffers[plan_->buffer_of[id]];
    const Work& reader = work_[plan.packed_for];
    around_ = reader.path;
    for (const IterId iter : state().stages[plan.packed_for].order)
      if (reader.var[iter] != no_var) around_.push_back(static_cast<Var>(reader.var[iter]));
    b.elements = 1;
    Pieces all;
    for (std::uint32_t d = 0; d < plan.packed_read->indices.size(); ++d) {
      FlatIndex index;
      outline_.indices.substitute(
          plan.packed_read->indices[d],
          [&](Var axis) -> const FlatIndex& { return reader.axis_values[axis]; }, index);
      if (!state().stages[id].is_source()) outline_.indices.add(index, work_[id].base[d], -1);
      const std::size_t first = all.size();
      if (!add_pieces(d, index, b.shape[d], all)) {
        all.resize(first);
        b.elements *= b.shape[d];
        b.innermost = {d, 1, b.shape[d]};
      }
    }
    for (const Piece& piece : all) b.elements *= piece.dimension.extent;
    const auto inner = std::max_element(all.begin(), all.end(), [](const Piece& x, const Piece& y) {
      if (x.place != y.place) return x.place < y.place;
      if (x.dimension.divisor != y.dimension.divisor) return x.dimension.divisor > y.dimension.divisor;
      return x.dimension.dimension < y.dimension.dimension;
    });
    if (inner != all.end()) b.innermost = inner->dimension;
    b.packed = !plan.packed_read->indices.empty();
  }

  /// False where the index is no mixed-radix number of the loops around.
  [[nodiscard]] bool add_pieces(std::uint32_t d, const FlatIndex& index, std::int64_t extent,
                                Pieces& all) const {
    if (index.constant != 0 || index.count == 0) return false;
    const std::size_t first = all.size();
    for (const FlatIndex::Term& term : index.terms()) {
      Var var = term.of;
      if (term.kind != FlatIndex::Kind::Variable) {
        const FlatIndex& numerator = outline_.indices.numerator(term);
        const bool plain = numerator.constant == 0 && numerator.count == 1 &&
                           numerator.terms()[0].coefficient == 1 &&
                           numerator.terms()[0].kind == FlatIndex::Kind::Variable;
        if (!plain) return false;
        var = numerator.terms()[0].of;
      }
      const auto place = std::find(around_.begin(), around_.end(), var);
      if (place == around_.end() || term.coefficient <= 0) return false;
      all.push_back({static_cast<std::size_t>(place - around_.begin()),
                     {d, term.coefficient, outline_.indices.range(term).max + 1}});
    }
    std::span<Piece> own(all.data() + first, all.size() - first);
    sort_few(own, [](const Piece& a, const Piece& b) { return a.dimension.divisor < b.dimension.divisor; });
    std::int64_t expected = 1;
    for (const Piece& piece : own) {
      if (piece.dimension.divisor != expected) return false;
      expected *= piece.dimension.extent;
    }
    return expected >= extent;
  }

  /// False for what is no arrangement.
  [[nodiscard]] bool arrange(const schedule::Arrange& s) {
    const std::vector<std::uint32_t>& order = s.orders[s.order];
    const std::int64_t padding = s.paddings[s.padding];
    std::uint64_t named = 0;
    for (const std::uint32_t d : order) named |= d < 64 ? std::uint64_t{1} << d : 0;
    const std::size_t rank = state().stages[s.stage].op->rank();
    if (padding < 0 || padding > schedule::detail::max_padding || order.size() != rank || rank >= 64 ||
        named != (std::uint64_t{1} << rank) - 1)
      return false;
    if (plan_->buffer_of[s.stage] == loops::LoopNest::no_buffer) return true;
    OutlineBuffer& b = outline_.buffers[plan_->buffer_of[s.stage]];
    if (order.empty() || (padding == 0 && std::is_sorted(order.begin(), order.end()))) return true;
    b.packed = true;
    b.innermost = {order.back(), 1, b.shape[order.back()] + padding};
    b.elements = b.innermost.extent;
    for (std::size_t p = 0; p + 1 < order.size(); ++p) b.elements *= b.shape[order[p]];
    return true;
  }

  void keep_rows_apart(TensorId id) {
    if (plan_->buffer_of[id] == loops::LoopNest::no_buffer) return;
    OutlineBuffer& b = outline_.buffers[plan_->buffer_of[id]];
    const auto element = static_cast<std::int64_t>(b.element_bytes);
    if (b.role != loops::BufferRole::Temporary || b.packed || b.shape.size() < 2) return;
    if (state().stages[id].location.kind != Kind::At || b.scope == loops::Scope::Shared) return;
    for (const Var var : work_[id].path)
      if (schedule::is_hardware_index(kinds_[var])) return;
    if (b.shape.back() * element % 512 == 0) b.shape.back() += 64 / element;
  }

  bool pipeline(const schedule::Pipeline& s) {
    const schedule::Pipelining& chosen = s.choices[s.selected];
    if (chosen.depth < 1 || chosen.depth > schedule::max_pipeline_depth ||
        (chosen.asynchronous && chosen.depth == 1))
      return false;
    if (chosen.depth == 1) return true;
    const schedule::Stage& consumer = state().stages[s.stage];
    const std::size_t place = consumer.position(s.iter);
    if (place == consumer.order.size() || consumer.iterators[s.iter].annotation != LoopKind::Serial)
      return false;
    std::int64_t iterations = 1;
    for (std::size_t p = place + 1; p-- > 0;) {
      const IterId iter = consumer.order[p];
      if (consumer.iterators[iter].annotation != LoopKind::Serial) break;
      if (plan_->info[s.stage].live) iterations *= work_[s.stage].extent[iter];
    }
    const std::int64_t stages = std::min<std::int64_t>(chosen.depth, iterations);
    for (TensorId id = 0; id < plan_->stages.size(); ++id) {
      const schedule::Location& at = state().stages[id].location;
      if (plan_->buffer_of[id] == loops::LoopNest::no_buffer || at.kind != Kind::At || at.stage != s.stage ||
          at.iter != s.iter || state().stages[id].op->has_reduction())
        continue;
      OutlineBuffer& b = outline_.buffers[plan_->buffer_of[id]];
      if (b.scope != loops::Scope::Shared) continue;
      b.stages = static_cast<std::uint32_t>(stages);
      b.asynchronous = chosen.asynchronous && stages > 1;
    }
    return true;
  }

  // Loops, as `loops::detail::Emission`.

  [[nodiscard]] bool runs_at_root(TensorId id) const {
    return plan_->info[id].live && state().stages[id].location.kind != Kind::At;
  }

  void emit() {
    depth_ = 0;
    for (const TensorId id : state().order) {
      if (!runs_at_root(id)) continue;
      const loops::BufferId buffer = plan_->buffer_of[id];
      if (outline_.buffers[buffer].role == loops::BufferRole::Temporary)
        add(Outline::Event::Allocate, buffer);
    }
    for (const TensorId id : state().order)
      if (runs_at_root(id)) emit_stage(id);
  }

  void add(Outline::Event event, std::size_t of = 0) {
    outline_.add(event, of);
    if (event == Outline::Event::Enter) ++depth_;
    if (event == Outline::Event::Leave) --depth_;
    end_tree();
  }
  void end_tree() {
    if (depth_ > 0) return;
    outline_.add(Outline::Event::Next);
    ++outline_.kernels;
  }

  void emit_stage(TensorId id) {
    const schedule::Stage& stage = state().stages[id];
    const Work& w = work_[id];
    std::size_t initialised = stage.order.size() + 1;  // never
    if (plan_->info[id].op->has_reduction()) {
      initialised = stage.order.size();
      std::size_t first_listed = stage.order.size();
      for (std::size_t place = stage.order.size(); place-- > 0;) {
        const IterId iter = stage.order[place];
        if (stage.iterators[iter].kind != program::AxisKind::Reduction) continue;
        first_listed = place;
        if (runs(w, iter)) initialised = place;
      }
      if (initialised == stage.order.size()) initialised = first_listed;
    }
    emit_loops(id, initialised);
  }

  [[nodiscard]] static bool runs(const Work& w, IterId iter) {
    return w.var[iter] != no_var || rebinding_of(w, iter) != nullptr;
  }
  [[nodiscard]] static const Rebinding* rebinding_of(const Work& w, IterId iter) {
    for (const Rebinding& r : w.rebound)
      if (r.iter == iter) return &r;
    return nullptr;
  }

  void emit_loops(TensorId id, std::size_t initialised) {
    const schedule::Stage& stage = state().stages[id];
    const loops::detail::StageInfo& info = plan_->info[id];
    const Work& w = work_[id];
    std::size_t opened = 0;
    bool outermost = true;  // no loop or branch of this stage yet
    for (std::size_t place = 0;; ++place) {
      if (place == initialised) emit_initialisation(stage, w, place);
      if (place == stage.order.size()) break;
      const IterId iter = stage.order[place];
      const Rebinding* rebound = rebinding_of(w, iter);
      if (rebound != nullptr) {
        if (rebound->extent != extent_of(rebound->index)) outermost = false;
      } else if (w.var[iter] != no_var) {
        enter(w, iter, outermost ? stage.unroll_limit : 0,
              stage.iterators[iter].kind == program::AxisKind::Reduction);
        ++opened;
        outermost = false;
      }
      for (const loops::detail::Attached& child : info.attached)
        if (child.place == place) add(Outline::Event::Allocate, plan_->buffer_of[child.stage]);
      for (const loops::detail::Attached& child : info.attached)
        if (child.place == place) emit_stage(child.stage);
    }
    const SchedulePlan::StagePlan& plan = plan_->stages[id];
    const auto statement = outline_.statements.size();
    outline_.statements.push_back(
        {info.op->has_reduction() ? loops::Statement::Kind::Update : loops::Statement::Kind::Assign,
         plan_->buffer_of[id], plan.operations, plan.loads, w.axis_values});
    add(Outline::Event::Run, statement);
    for (; opened > 0; --opened) add(Outline::Event::Leave);
  }

  void enter(const Work& w, IterId iter, std::int64_t unroll_limit, bool reduction) {
    const auto var = static_cast<Var>(w.var[iter]);
    const std::size_t loop = outline_.loops.size();
    outline_.loops.push_back({var, extent_of(var), kinds_[var], reduction, unroll_limit});
    add(Outline::Event::Enter, loop);
  }

  void emit_initialisation(const schedule::Stage& stage, const Work& w, std::size_t place) {
    std::size_t opened = 0;
    for (std::size_t p = place; p < stage.order.size(); ++p) {
      const IterId iter = stage.order[p];
      if (stage.iterators[iter].kind == program::AxisKind::Reduction || w.var[iter] == no_var ||
          rebinding_of(w, iter) != nullptr)
        continue;
      enter(w, iter, 0, false);
      ++opened;
    }
    if (opened == 0) end_tree();  // of a single element
    for (; opened > 0; --opened) add(Outline::Event::Leave);
  }

  std::unordered_map<std::uint64_t, std::vector<std::unique_ptr<SchedulePlan>>> plans_;
  std::size_t count_ = 0;
  SchedulePlan* plan_ = nullptr;
  const schedule::Schedule* candidate_ = nullptr;
  Outline outline_;
  std::vector<Work> work_;  // by TensorId
  std::vector<LoopKind> kinds_;
  std::vector<std::pair<Var, Var>> renamed_;
  std::vector<char> fixed_;  // by variable
  std::vector<Var> around_;
  std::size_t depth_ = 0;
};

}  // namespace tunewright::drafts
