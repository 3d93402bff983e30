// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/loops/eliminate_padding.hpp"
#include "tunewright/loops/lower/pass.hpp"

namespace tunewright::loops::detail {

/// Emits the loops, statements and guards.
class Emission : Pass {
 public:
  explicit Emission(Lowered& lowered) : Pass(lowered) {}

  void run() {
    for (const TensorId id : state_.order) {
      if (!runs_at_root(id)) continue;
      const BufferId buffer = nest_.buffer_of[id];
      if (nest_.buffers[buffer].role == BufferRole::Temporary) nest_.body.push_back(Allocate{buffer});
    }
    for (const TensorId id : state_.order) {
      if (runs_at_root(id)) emit_stage(id, nest_.body);
    }
    if (renamed_later_.empty()) return;
    rename(nest_.body);
    for (Buffer& buffer : nest_.buffers) rename(buffer.origin);
  }

 private:
  [[nodiscard]] bool runs_at_root(TensorId id) const {
    return info_[id].live && state_.stages[id].location.kind != Location::Kind::At;
  }

  /// Appends the loops of a stage and everything attached to it.
  void emit_stage(TensorId id, Body& into) {
    const Stage& stage = state_.stages[id];
    const bool replaced =
        stage.tensorized.intrinsic != nullptr && (stage.position(stage.tensorized.iter) == stage.order.size() ||
                                                  !multiplies(*stage.tensorized.intrinsic, *info_[id].op));
    if (replaced) refuse_instruction(stage);  // by a later split, or because a producer was inlined
    // All threads take part in filling shared memory, even if their own part is outside.
    std::vector<Guard> outside = fills_shared_memory(id) ? std::vector<Guard>{} : conditions_to_run(id);
    Statement update = store(id);
    std::optional<Statement> initialise;
    if (update.kind == Statement::Kind::Update) initialise = initialisation(id, update);
    add_inner_split_guards(id, update);
    if (initialise) add_inner_split_guards(id, *initialise);
    Body own;
    emit_loops(id, 0, update, initialise, own);
    if (!own.empty() && std::holds_alternative<Loop>(own.back().content)) {
      std::get<Loop>(own.back().content).unroll_limit = state_.stages[id].unroll_limit;
    }
    if (outside.empty()) {
      for (Node& node : own) into.push_back(std::move(node));
    } else {
      into.push_back(Branch{std::move(outside), std::move(own), {}});
    }
  }

  /// Whether `intrinsic` still multiplies the factors of `op` after its producers are inlined. These may include
  /// padding if the instruction is for one row, whose terms are skipped together.
  [[nodiscard]] static bool multiplies(const schedule::TensorIntrinsic& intrinsic, const program::Operator& op) {
    return schedule::multiplies(intrinsic, op) ||
           (intrinsic.m == 1 && schedule::multiplies(intrinsic, *loops::without_padding(op)));
  }

  /// Whether a stage inside the loops of `id` is kept in shared memory.
  [[nodiscard]] bool fills_shared_memory(TensorId id) const {
    const std::vector<Attached>& inside = info_[id].attached;
    return std::any_of(inside.begin(), inside.end(), [this](const Attached& child) {
      return nest_.buffers[nest_.buffer_of[child.stage]].scope == Scope::Shared || fills_shared_memory(child.stage);
    });
  }

  /// The conditions under which a window is not entirely outside the tensor, in which case nothing reads it.
  [[nodiscard]] std::vector<Guard> conditions_to_run(TensorId id) const {
    const StageInfo& info = info_[id];
    const std::vector<IndexExpr>& origin = nest_.buffers[nest_.buffer_of[id]].origin;
    std::vector<Guard> outside;
    for (std::uint32_t d = 0; d < origin.size(); ++d) {
      const Range base = origin[d].range(range_of());
      const std::int64_t extent = info.op->axes[d].extent;
      if (base.max >= extent) outside.push_back({origin[d], extent, false, true, d});
      if (base.min + info.window.extent[d] <= 0) {
        outside.push_back({origin[d] + IndexExpr(info.window.extent[d] - 1), extent, true, false, d});
      }
    }
    return outside;
  }

  /// The statement of a stage, with guards where tiles extend beyond its axes. Moves from the axis values.
  [[nodiscard]] Statement store(TensorId id) {
    StageInfo& info = info_[id];
    Statement update;
    update.op = info.op;
    update.target = nest_.buffer_of[id];
    update.axis_values = std::move(info.axis_values);
    update.kind = info.op->has_reduction() ? Statement::Kind::Update : Statement::Kind::Assign;
    update.may_overcompute = nest_.buffers[update.target].role == BufferRole::Temporary;
    for (std::uint32_t a = 0; a < info.op->axes.size(); ++a) {
      const Range range = update.axis_values[a].range(range_of());
      const std::int64_t extent = info.op->axes[a].extent;
      if (range.min < 0 || range.max >= extent) {
        update.guards.push_back({update.axis_values[a], extent, range.min < 0, range.max >= extent, a});
      }
    }
    return update;
  }

  /// The initialisation that belongs to `update`.
  [[nodiscard]] Statement initialisation(TensorId id, const Statement& update) const {
    Statement initialise;
    initialise.kind = Statement::Kind::Initialise;
    initialise.target = update.target;
    initialise.op = update.op;
    initialise.axis_values = update.axis_values;
    initialise.may_overcompute = update.may_overcompute;
    for (const Guard& guard : update.guards) {
      if (guard.axis < info_[id].op->rank() && !update.may_overcompute) initialise.guards.push_back(guard);
    }
    return initialise;
  }

  /// A split of a part of an axis must not extend beyond its parent into the neighbouring part: elements would be added
  /// to a sum twice, or belong to another thread.
  void add_inner_split_guards(TensorId id, Statement& statement) const {
    const StageInfo& info = info_[id];
    for (const schedule::Relation& r : state_.stages[id].relations) {
      if (r.parents.size() != 1 || r.parents[0] < info.op->axes.size()) continue;
      const bool reduction = state_.stages[id].iterators[r.parents[0]].kind == AxisKind::Reduction;
      if (reduction && statement.kind == Statement::Kind::Initialise) continue;
      const std::int64_t extent = info.extent[r.parents[0]];
      if (info.value[r.parents[0]].range(range_of()).max >= extent) {
        statement.guards.push_back({info.value[r.parents[0]], extent, false, true, Guard::no_axis});
      }
    }
  }

  /// Appends the loops from `place` on with the statements, which are moved from.
  void emit_loops(TensorId id, std::size_t place, Statement& update, std::optional<Statement>& initialise, Body& into) {
    const Stage& stage = state_.stages[id];
    const StageInfo& info = info_[id];
    if (initialise && place == first_reduction(stage, info)) emit_initialisation(id, place, *initialise, into);
    if (place == stage.order.size()) {
      into.push_back(std::move(update));
      return;
    }
    const IterId iter = stage.order[place];
    const bool is_whole = !info.var[iter] && rebinding_of(info, iter) == nullptr;
    Body inner;
    Body& target = is_whole ? into : inner;
    target.reserve(target.size() + 2 + 3 * info.attached.size());  // maximum, except for branches
    for (const Attached& child : info.attached) {
      if (child.place == place) target.push_back(Allocate{nest_.buffer_of[child.stage]});
    }
    for (const Attached& child : info.attached) {
      if (child.place == place) emit_stage(child.stage, target);
    }
    emit_loops(id, place + 1, update, initialise, target);
    if (!is_whole) append_loop(stage, info, iter, std::move(inner), into);
    if (stage.tensorized.intrinsic != nullptr && stage.tensorized.iter == iter) mark_instruction_loops(stage, into);
  }

  [[noreturn]] static void refuse_instruction(const Stage& stage) {
    const schedule::TensorIntrinsic& intrinsic = *stage.tensorized.intrinsic;
    throw ScheduleError(ScheduleFault::Unsupported,
                        "the loops of '" + stage.op->name + "' from " +
                            schedule::iterator_name(stage, stage.tensorized.iter) + " inwards are not the " +
                            std::to_string(intrinsic.m) + " x " +
                            (intrinsic.steps == 1 ? "" : std::to_string(intrinsic.steps) + " x ") +
                            std::to_string(intrinsic.n) + " x " + std::to_string(intrinsic.k) + " of " +
                            std::string(intrinsic.name) + "; split and reorder so that they are");
  }

  /// Marks the last node of `body` as the work of the stage's tensor instruction. Its loops get the kinds that are
  /// fastest without the instruction.
  void mark_instruction_loops(const Stage& stage, Body& body) const {
    const schedule::TensorIntrinsic& intrinsic = *stage.tensorized.intrinsic;
    struct Wanted {
      std::int64_t extent;
      bool reduction;
      LoopKind kind;
      bool or_less = false;
    };
    constexpr std::int64_t longest_unrolled = 8;
    const LoopKind reducing = intrinsic.k <= longest_unrolled ? LoopKind::Unrolled : LoopKind::Serial;
    const LoopKind columns = is_tensor_core(intrinsic.unit) ? LoopKind::Serial : LoopKind::Vectorized;
    Loop* outermost = nullptr;
    Body* inside = &body;
    for (const Wanted& wanted : {Wanted{intrinsic.m, false, LoopKind::Serial, intrinsic.takes_fewer},
                                 Wanted{intrinsic.steps, true, LoopKind::Serial, intrinsic.takes_fewer},
                                 Wanted{intrinsic.n, false, columns}, Wanted{intrinsic.k, true, reducing}}) {
      if (wanted.extent == 1) continue;
      const bool alone = !inside->empty() && (inside == &body || inside->size() == 1);
      Loop* loop = alone ? std::get_if<Loop>(&inside->back().content) : nullptr;
      if (loop == nullptr || loop->reduction != wanted.reduction) refuse_instruction(stage);
      const std::int64_t extent = nest_.variables[loop->var].extent;
      if (extent != wanted.extent && !(wanted.or_less && extent < wanted.extent)) refuse_instruction(stage);
      loop->kind = wanted.kind;
      if (outermost == nullptr) outermost = loop;
      inside = &loop->body;
    }
    if (inside->size() != 1 || !std::holds_alternative<Statement>(inside->front().content)) refuse_instruction(stage);
    outermost->intrinsic = &intrinsic;
  }

  static const Rebinding* rebinding_of(const StageInfo& info, IterId iter) {
    const auto found =
        std::find_if(info.rebound.begin(), info.rebound.end(), [iter](const Rebinding& r) { return r.iter == iter; });
    return found == info.rebound.end() ? nullptr : &*found;
  }

  /// Appends the loop of an iterator or, if a surrounding loop executes its iterations, its body.
  void append_loop(const Stage& stage, const StageInfo& info, IterId iter, Body body, Body& into) const {
    const Rebinding* rebound = rebinding_of(info, iter);
    if (rebound != nullptr && rebound->extent == nest_.variables[rebound->index].extent) {
      for (Node& node : body) into.push_back(std::move(node));
    } else if (rebound != nullptr) {
      const Guard busy{IndexExpr::variable(rebound->index), rebound->extent, false, true, Guard::no_axis};
      into.push_back(Branch{{busy}, std::move(body), {}});
    } else {
      Loop loop;
      loop.var = *info.var[iter];
      loop.kind = kinds_[loop.var];
      loop.reduction = stage.iterators[iter].kind == AxisKind::Reduction;
      loop.body = std::move(body);
      into.push_back(std::move(loop));
    }
  }

  /// Position at which elements are initialised: before the outermost reduction loop with more than one iteration, and
  /// before the tensor instruction.
  static std::size_t first_reduction(const Stage& stage, const StageInfo& info) {
    std::size_t first = stage.order.size();
    for (std::size_t place = stage.order.size(); place-- > 0;) {
      const IterId iter = stage.order[place];
      if (stage.iterators[iter].kind != AxisKind::Reduction) continue;
      if (info.var[iter] || rebinding_of(info, iter) != nullptr) first = place;
    }
    if (stage.tensorized.intrinsic != nullptr) first = std::min(first, stage.position(stage.tensorized.iter));
    if (first < stage.order.size()) return first;
    const auto reduction = std::find_if(stage.order.begin(), stage.order.end(),
                                        [&](IterId iter) { return stage.iterators[iter].kind == AxisKind::Reduction; });
    return static_cast<std::size_t>(reduction - stage.order.begin());
  }

  /// Emits the spatial loops from `place` on around an initialisation.
  void emit_initialisation(TensorId id, std::size_t place, Statement& initialise, Body& into) const {
    const Stage& stage = state_.stages[id];
    const StageInfo& info = info_[id];
    Body body;
    body.push_back(std::move(initialise));
    for (std::size_t p = stage.order.size(); p-- > place;) {
      const IterId iter = stage.order[p];
      if (stage.iterators[iter].kind == AxisKind::Reduction) continue;
      if (!info.var[iter] && rebinding_of(info, iter) == nullptr) continue;
      Body wrapped;
      append_loop(stage, info, iter, std::move(body), wrapped);
      body = std::move(wrapped);
    }
    for (Node& node : body) into.push_back(std::move(node));
  }

  /// Replaces variables that stood for part of another variable's range.
  void rename(std::vector<IndexExpr>& values) const {
    for (IndexExpr& value : values) rename(value);
  }
  void rename(IndexExpr& value) const {
    for (const auto& renaming : renamed_later_) {
      if (!value.uses(renaming.first)) continue;
      value = value.substitute(
          [&renaming](Var v) { return IndexExpr::variable(v == renaming.first ? renaming.second : v); }, range_of());
    }
  }
  void rename(std::vector<Guard>& guards) const {
    for (Guard& guard : guards) rename(guard.value);
  }
  void rename(Body& body) const {
    for (Node& node : body) {
      if (auto* loop = std::get_if<Loop>(&node.content)) rename(loop->body);
      if (auto* statement = std::get_if<Statement>(&node.content)) {
        rename(statement->axis_values);
        rename(statement->guards);
      }
      if (auto* branch = std::get_if<Branch>(&node.content)) {
        rename(branch->conditions);
        rename(branch->then);
        rename(branch->otherwise);
      }
    }
  }
};

}  // namespace tunewright::loops::detail
