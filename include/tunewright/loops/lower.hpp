// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/loops/nest.hpp"
#include "tunewright/schedule/schedule.hpp"

/// From a scheduled state to a loop nest: inlining, bound inference, guards, storage.
///
/// Stages are visited from the outputs to the inputs. A stage at the root computes its whole tensor. A stage inside a loop
/// of a consumer computes the window that the consumers inside that loop read: loop variables outside are symbols, those
/// inside range over their extents. Splits divide the window, so outer tile loops of an attached stage vanish by themselves.
namespace tunewright::loops {

namespace detail {

using program::AxisKind;
using program::Expr;
using program::Op;
using program::Operator;
using program::Range;
using schedule::IterId;
using schedule::Location;
using schedule::ScheduleError;
using schedule::ScheduleFault;
using schedule::Stage;
using schedule::State;

/// A window of a tensor: `base[d] .. base[d] + extent[d] - 1`, base over the loop variables around it.
struct Window {
  std::vector<IndexExpr> base;
  std::vector<std::int64_t> extent;
};

/// What lowering knows of a stage.
struct StageInfo {
  bool live = false;                    ///< neither a source nor inlined
  std::shared_ptr<const Operator> op;   ///< with inlined producers substituted
  std::vector<TensorId> reads;          ///< tensors its body reads
  Window window;
  std::vector<std::int64_t> extent;     ///< by IterId
  std::vector<IndexExpr> value;         ///< by IterId: relative to the window
  std::vector<std::optional<Var>> var;  ///< by IterId; none for loops of extent 1
  std::vector<IndexExpr> axis_values;   ///< tensor coordinates by axis
  std::vector<Var> path;                ///< variables of the loops around the stage, outermost first
  std::vector<std::vector<TensorId>> attached;  ///< by place in the stage's order, in topological order
};

class Lowering {
 public:
  explicit Lowering(const State& state) : state_(state), info_(state.stages.size()) {}

  LoopNest run() {
    inline_stages();
    attach_stages();
    for (auto id = state_.order.rbegin(); id != state_.order.rend(); ++id) {
      if (info_[*id].live) infer(*id);
    }
    make_buffers();
    pack_buffers();
    keep_rows_apart();
    for (const TensorId id : state_.order) {
      if (!info_[id].live || state_.stages[id].location.kind == Location::Kind::At) continue;
      const BufferId buffer = nest_.buffer_of[id];
      if (nest_.buffers[buffer].role == BufferRole::Temporary) nest_.body.push_back(Allocate{buffer});
    }
    for (const TensorId id : state_.order) {
      if (info_[id].live && state_.stages[id].location.kind != Location::Kind::At) emit_stage(id, nest_.body);
    }
    return std::move(nest_);
  }

 private:
  [[nodiscard]] auto range_of() const {
    return [this](Var v) { return Range{0, nest_.variables[v].extent - 1}; };
  }

  /// Substitutes inlined producers into the bodies of their consumers.
  void inline_stages() {
    for (const TensorId id : state_.order) {
      const Stage& stage = state_.stages[id];
      StageInfo& info = info_[id];
      info.op = stage.op;
      if (stage.is_source()) continue;
      info.live = stage.location.kind != Location::Kind::Inline;
      bool reads_inlined = false;
      collect_reads(info.op->body, [&](TensorId read) { reads_inlined = reads_inlined || is_inlined(read); });
      if (reads_inlined) {
        Operator substituted = *stage.op;
        const auto axis_range = [&](Var v) { return Range{0, stage.op->axes[v].extent - 1}; };
        substituted.body = program::rewrite(stage.op->body, [&](const Expr& node) -> Expr {
          if (node->op != Op::Load || !is_inlined(node->tensor)) return {};
          return program::substitute_indices(
              info_[node->tensor].op->body, [&](Var v) -> const IndexExpr& { return node->indices[v]; }, axis_range);
        });
        info.op = std::make_shared<const Operator>(std::move(substituted));
      }
      collect_reads(info.op->body, [&](TensorId read) {
        if (std::find(info.reads.begin(), info.reads.end(), read) == info.reads.end()) info.reads.push_back(read);
      });
    }
  }

  [[nodiscard]] bool is_inlined(TensorId id) const {
    return !state_.stages[id].is_source() && state_.stages[id].location.kind == Location::Kind::Inline;
  }

  template <class F>
  static void collect_reads(const Expr& body, const F& f) {
    program::visit(body, [&](const program::ExprNode& node) {
      if (node.op == Op::Load) f(node.tensor);
    });
  }

  void attach_stages() {
    for (const TensorId id : state_.order) info_[id].attached.resize(state_.stages[id].order.size());
    for (const TensorId id : state_.order) {
      const Location& location = state_.stages[id].location;
      if (!info_[id].live || location.kind != Location::Kind::At) continue;
      const Stage& target = state_.stages[location.stage];
      const std::size_t place = target.position(location.iter);
      if (!info_[location.stage].live || place == target.order.size()) {
        throw ScheduleError(ScheduleFault::BadLocation, "'" + state_.stages[id].op->name + "' is computed at a loop of '" +
                                                            target.op->name + "' that no longer exists");
      }
      info_[location.stage].attached[place].push_back(id);
    }
  }

  /// True when `consumer` runs inside the loop at `place` of `target`: it is that stage, or attached below it.
  [[nodiscard]] bool is_inside(TensorId consumer, TensorId target, std::size_t place) const {
    if (consumer == target) return true;
    for (const Location* l = &state_.stages[consumer].location; l->kind == Location::Kind::At;
         l = &state_.stages[l->stage].location) {
      if (l->stage == target) return state_.stages[target].position(l->iter) >= place;
    }
    return false;
  }

  /// Window, loop extents and axis values of a stage whose consumers are done.
  void infer(TensorId id) {
    const Stage& stage = state_.stages[id];
    StageInfo& info = info_[id];
    const Operator& op = *info.op;
    const std::size_t rank = op.rank();
    if (stage.location.kind == Location::Kind::At) {
      const StageInfo& target = info_[stage.location.stage];
      const Stage& target_stage = state_.stages[stage.location.stage];
      const std::size_t place = target_stage.position(stage.location.iter);
      info.path = target.path;
      for (std::size_t p = 0; p <= place; ++p) {
        if (const auto var = target.var[target_stage.order[p]]) info.path.push_back(*var);
      }
      info.window = window_read_inside(id, stage.location.stage, place);
    } else {
      info.window.base.assign(rank, IndexExpr(0));
      for (std::size_t a = 0; a < rank; ++a) info.window.extent.push_back(op.axes[a].extent);
    }
    const std::size_t count = stage.iterators.size();
    info.extent.assign(count, 1);
    info.value.assign(count, IndexExpr(0));
    info.var.assign(count, std::nullopt);
    for (std::size_t a = 0; a < op.axes.size(); ++a) info.extent[a] = a < rank ? info.window.extent[a] : op.axes[a].extent;
    schedule::detail::propagate_extents(stage, info.extent);
    for (const IterId iter : stage.order) {
      if (info.extent[iter] == 1) continue;
      const auto var = static_cast<Var>(nest_.variables.size());
      nest_.variables.push_back({stage.iterators[iter].name, info.extent[iter]});
      info.var[iter] = var;
      info.value[iter] = IndexExpr::variable(var);
    }
    schedule::detail::propagate_values(stage, info.extent, info.value, range_of());
    for (std::size_t a = 0; a < op.axes.size(); ++a) {
      info.axis_values.push_back(a < rank ? info.window.base[a] + info.value[a] : info.value[a]);
    }
  }

  /// The part of tensor `id` that stages inside the loop at `place` of `target` read.
  Window window_read_inside(TensorId id, TensorId target, std::size_t place) const {
    const StageInfo& info = info_[id];
    const std::size_t rank = info.op->rank();
    std::vector<char> fixed(nest_.variables.size(), 0);
    for (const Var v : info.path) fixed[v] = 1;
    struct Reach {
      bool seen = false;
      bool whole = false;
      IndexExpr base;
      Range range;
    };
    std::vector<Reach> reach(rank);
    for (const TensorId consumer : state_.order) {
      const StageInfo& reader = info_[consumer];
      if (!reader.live || std::find(reader.reads.begin(), reader.reads.end(), id) == reader.reads.end()) continue;
      if (!is_inside(consumer, target, place)) {
        throw ScheduleError(ScheduleFault::BadLocation, "'" + info.op->name + "' is also read by '" + reader.op->name +
                                                            "', which runs outside the loop it is computed at");
      }
      program::visit(reader.op->body, [&](const program::ExprNode& node) {
        if (node.op != Op::Load || node.tensor != id) return;
        for (std::size_t d = 0; d < rank; ++d) {
          const IndexExpr index = node.indices[d].substitute(
              [&](Var axis) -> const IndexExpr& { return reader.axis_values[axis]; }, range_of());
          IndexExpr base;
          IndexExpr moving(index.constant());
          bool mixed = false;
          for (const IndexExpr::Term& term : index.terms()) {
            const auto [uses_fixed, uses_inner] = variables_used(term, fixed);
            mixed = mixed || (uses_fixed && uses_inner);
            (uses_inner ? moving : base) += IndexExpr::from_term(term);
          }
          const Range range = moving.range(range_of());
          Reach& r = reach[d];
          if (!r.seen) {
            r = {true, mixed, std::move(base), range};
          } else if (mixed || !(r.base == base)) {
            r.whole = true;
          } else {
            r.range = {std::min(r.range.min, range.min), std::max(r.range.max, range.max)};
          }
        }
      });
    }
    Window window;
    for (std::size_t d = 0; d < rank; ++d) {
      const std::int64_t full = info.op->axes[d].extent;
      const Reach& r = reach[d];
      if (!r.seen || r.whole || r.range.extent() >= full) {
        window.base.emplace_back(0);
        window.extent.push_back(full);
      } else {
        window.base.push_back(r.base + IndexExpr(r.range.min));
        window.extent.push_back(r.range.extent());
      }
    }
    return window;
  }

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

  void make_buffers() {
    nest_.buffer_of.assign(state_.stages.size(), LoopNest::no_buffer);
    std::vector<BufferId> outputs;
    std::vector<char> is_read(state_.stages.size(), 0);
    for (const StageInfo& info : info_) {
      if (!info.live) continue;
      for (const TensorId read : info.reads) is_read[read] = 1;
    }
    for (TensorId id = 0; id < state_.stages.size(); ++id) {
      const Stage& stage = state_.stages[id];
      const StageInfo& info = info_[id];
      if (!info.live && !stage.is_source()) continue;
      const auto buffer = static_cast<BufferId>(nest_.buffers.size());
      Buffer b;
      b.name = stage.op->name;
      b.tensor = id;
      b.type = stage.op->type;
      b.scope = stage.scope;
      if (stage.is_source()) {
        b.role = stage.op->role == program::Role::Constant ? BufferRole::Constant : BufferRole::Input;
        b.shape = stage.op->shape();
        b.origin.assign(b.shape.size(), IndexExpr(0));
        nest_.arguments.push_back(buffer);
      } else {
        const bool is_output = is_read[id] == 0;
        b.role = is_output ? BufferRole::Output : BufferRole::Temporary;
        b.origin = info.window.base;
        b.shape = is_output ? stage.op->shape() : std::vector<std::int64_t>{};
        for (std::size_t d = b.shape.size(); d < info.op->rank(); ++d) {
          // Where tiles do not divide the window the rest of the last tile is stored as well, unused.
          b.shape.push_back(info.value[d].range(range_of()).max + 1);
        }
        if (is_output) outputs.push_back(buffer);
      }
      nest_.buffer_of[id] = buffer;
      nest_.buffers.push_back(std::move(b));
    }
    nest_.arguments.insert(nest_.arguments.end(), outputs.begin(), outputs.end());
  }

  /// Rows a multiple of 512 bytes apart fall into few cache sets and evict each other while a tile walks down a column; one
  /// cache line more keeps them apart.
  void keep_rows_apart() {
    for (Buffer& buffer : nest_.buffers) {
      const auto element = static_cast<std::int64_t>(program::size_in_bytes(buffer.type));
      if (buffer.role != BufferRole::Temporary || !buffer.packing.empty() || buffer.shape.size() < 2) continue;
      if (state_.stages[buffer.tensor].location.kind != Location::Kind::At) continue;
      if (buffer.shape.back() * element % 512 == 0) buffer.shape.back() += 64 / element;
    }
  }

  void pack_buffers() {
    for (const schedule::Pack& pack : state_.packs) {
      const BufferId id = nest_.buffer_of[pack.tensor];
      if (id == LoopNest::no_buffer) continue;  // inlined since: nothing is stored
      Buffer& buffer = nest_.buffers[id];
      if (buffer.role == BufferRole::Output) {
        throw ScheduleError(ScheduleFault::NotPackable, "'" + buffer.name + "' is an output and keeps its layout");
      }
      const StageInfo& consumer = info_[pack.consumer];
      const program::ExprNode* only = nullptr;
      bool several = false;
      for (const StageInfo& reader : info_) {
        if (!reader.live) continue;
        program::visit(reader.op->body, [&](const program::ExprNode& node) {
          if (node.op != Op::Load || node.tensor != pack.tensor) return;
          several = several || only != nullptr || &reader != &consumer;
          only = &node;
        });
      }
      if (only == nullptr || several) {
        throw ScheduleError(ScheduleFault::NotPackable,
                            "'" + buffer.name + "' must be read exactly once, by the stage it is packed for");
      }
      buffer.packing = packing_for(buffer, *only, pack.consumer);
    }
  }

  /// Storage order that follows the consumer's loops; dimensions whose index is not a clean mixed-radix number of loop
  /// variables stay whole and come first.
  std::vector<PackedDimension> packing_for(const Buffer& buffer, const program::ExprNode& load, TensorId consumer) const {
    const StageInfo& info = info_[consumer];
    std::vector<Var> loops = info.path;
    for (const IterId iter : state_.stages[consumer].order) {
      if (info.var[iter]) loops.push_back(*info.var[iter]);
    }
    struct Piece {
      std::size_t place;
      PackedDimension dimension;
    };
    std::vector<PackedDimension> whole;
    std::vector<Piece> pieces;
    for (std::uint32_t d = 0; d < load.indices.size(); ++d) {
      const IndexExpr local =
          load.indices[d].substitute([&](Var axis) -> const IndexExpr& { return info.axis_values[axis]; }, range_of()) -
          buffer.origin[d];
      std::vector<Piece> own;
      bool clean = local.constant() == 0;
      for (const IndexExpr::Term& term : local.terms()) {
        // A fused loop shows as a quotient or remainder of its variable and counts like a loop of its own.
        const bool plain = term.kind == IndexExpr::Kind::Variable;
        const std::optional<Var> var = plain ? std::optional<Var>(term.var) : term.numerator->as_variable();
        const auto place = var ? std::find(loops.begin(), loops.end(), *var) : loops.end();
        clean = clean && place != loops.end() && term.coefficient > 0;
        IndexExpr::Term unit = term;
        unit.coefficient = 1;
        own.push_back({static_cast<std::size_t>(place - loops.begin()),
                       {d, term.coefficient, IndexExpr::from_term(unit).range(range_of()).max + 1}});
      }
      std::sort(own.begin(), own.end(),
                [](const Piece& a, const Piece& b) { return a.dimension.divisor < b.dimension.divisor; });
      std::int64_t expected = 1;
      for (const Piece& piece : own) {
        clean = clean && piece.dimension.divisor == expected;
        expected *= piece.dimension.extent;
      }
      clean = clean && !own.empty() && expected >= buffer.shape[d];
      if (clean) {
        pieces.insert(pieces.end(), own.begin(), own.end());
      } else {
        whole.push_back({d, 1, buffer.shape[d]});
      }
    }
    std::stable_sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
      return a.place != b.place ? a.place < b.place : a.dimension.divisor > b.dimension.divisor;
    });
    for (const Piece& piece : pieces) whole.push_back(piece.dimension);
    return whole;
  }

  /// Appends the loops of a stage, with everything attached to it.
  void emit_stage(TensorId id, Body& into) {
    const StageInfo& info = info_[id];
    const Buffer& buffer = nest_.buffers[nest_.buffer_of[id]];
    // A window that lies outside the tensor altogether computes nothing anybody reads.
    std::vector<Guard> outside;
    for (std::uint32_t d = 0; d < info.window.base.size(); ++d) {
      const Range base = info.window.base[d].range(range_of());
      const std::int64_t extent = info.op->axes[d].extent;
      if (base.max >= extent) outside.push_back({info.window.base[d], extent, false, true, d});
      if (base.min + info.window.extent[d] <= 0) {
        outside.push_back({info.window.base[d] + IndexExpr(info.window.extent[d] - 1), extent, true, false, d});
      }
    }
    Statement update;
    update.op = info.op;
    update.target = nest_.buffer_of[id];
    update.axis_values = info.axis_values;
    update.kind = info.op->has_reduction() ? Statement::Kind::Update : Statement::Kind::Assign;
    update.may_overcompute = buffer.role == BufferRole::Temporary;
    for (std::uint32_t a = 0; a < info.op->axes.size(); ++a) {
      const Range range = info.axis_values[a].range(range_of());
      const std::int64_t extent = info.op->axes[a].extent;
      if (range.min < 0 || range.max >= extent) {
        update.guards.push_back({info.axis_values[a], extent, range.min < 0, range.max >= extent, a});
      }
    }
    add_inner_split_guards(id, update);
    Body own;
    emit_loops(id, 0, update, own);
    if (!own.empty() && std::holds_alternative<Loop>(own.back().content)) {
      std::get<Loop>(own.back().content).unroll_limit = state_.stages[id].unroll_limit;
    }
    if (outside.empty()) {
      for (Node& node : own) into.push_back(std::move(node));
    } else {
      into.push_back(Branch{std::move(outside), std::move(own), {}});
    }
  }

  /// A split of a part that is itself a part of an axis must not run past its parent into the neighbouring part.
  void add_inner_split_guards(TensorId id, Statement& statement) const {
    const StageInfo& info = info_[id];
    for (const schedule::Relation& r : state_.stages[id].relations) {
      if (r.parents.size() != 1 || r.parents[0] < info.op->axes.size()) continue;
      const std::int64_t extent = info.extent[r.parents[0]];
      if (info.value[r.parents[0]].range(range_of()).max >= extent) {
        statement.guards.push_back({info.value[r.parents[0]], extent, false, true, Guard::no_axis});
      }
    }
  }

  void emit_loops(TensorId id, std::size_t place, const Statement& update, Body& into) {
    const Stage& stage = state_.stages[id];
    const StageInfo& info = info_[id];
    if (update.kind == Statement::Kind::Update && place == first_reduction(stage)) emit_initialisation(id, place, update, into);
    if (place == stage.order.size()) {
      into.push_back(update);
      return;
    }
    const IterId iter = stage.order[place];
    const bool is_loop = info.var[iter].has_value();
    Body inner;
    Body& target = is_loop ? inner : into;
    for (const TensorId child : info.attached[place]) target.push_back(Allocate{nest_.buffer_of[child]});
    for (const TensorId child : info.attached[place]) emit_stage(child, target);
    emit_loops(id, place + 1, update, target);
    if (is_loop) into.push_back(make_loop(stage, info, iter, std::move(inner)));
  }

  static Loop make_loop(const Stage& stage, const StageInfo& info, IterId iter, Body body) {
    Loop loop;
    loop.var = *info.var[iter];
    loop.kind = stage.iterators[iter].annotation;
    // A stage inside another one's loops is already run by one of the threads.
    if (loop.kind == LoopKind::Parallel && stage.location.kind == Location::Kind::At) loop.kind = LoopKind::Serial;
    loop.reduction = stage.iterators[iter].kind == AxisKind::Reduction;
    loop.body = std::move(body);
    return loop;
  }

  static std::size_t first_reduction(const Stage& stage) {
    std::size_t place = 0;
    while (place < stage.order.size() && stage.iterators[stage.order[place]].kind != AxisKind::Reduction) ++place;
    return place;
  }

  /// The spatial loops from `place` on, around a store of the identity.
  void emit_initialisation(TensorId id, std::size_t place, const Statement& update, Body& into) const {
    const Stage& stage = state_.stages[id];
    const StageInfo& info = info_[id];
    Statement initialise = update;
    initialise.kind = Statement::Kind::Initialise;
    std::vector<Guard> spatial;
    for (const Guard& guard : update.guards) {
      if (guard.axis < info.op->rank() && !update.may_overcompute) spatial.push_back(guard);
    }
    initialise.guards = std::move(spatial);
    Body body;
    body.push_back(std::move(initialise));
    for (std::size_t p = stage.order.size(); p-- > place;) {
      const IterId iter = stage.order[p];
      if (!info.var[iter] || stage.iterators[iter].kind == AxisKind::Reduction) continue;
      Body wrapped;
      wrapped.push_back(make_loop(stage, info, iter, std::move(body)));
      body = std::move(wrapped);
    }
    for (Node& node : body) into.push_back(std::move(node));
  }

  const State& state_;
  std::vector<StageInfo> info_;
  LoopNest nest_;
};

}  // namespace detail

/// Lowers a scheduled state. Throws `schedule::ScheduleError` when the steps do not fit together (a stage computed at a loop
/// that does not cover its readers, a tensor that cannot be packed). Guards stay where they were born, in the statements;
/// `partition` hoists them. Cost: some tens of microseconds for a tiled convolution.
[[nodiscard]] inline LoopNest lower(const schedule::State& state) { return detail::Lowering(state).run(); }

/// Replays and lowers.
[[nodiscard]] inline LoopNest lower(const schedule::Schedule& candidate) { return lower(schedule::replay(candidate)); }

}  // namespace tunewright::loops
