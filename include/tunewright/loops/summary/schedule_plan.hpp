// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/loops/lower/pass.hpp"
#include "tunewright/loops/nest_summary.hpp"
#include "tunewright/loops/summary/schedule_signature.hpp"
#include "tunewright/schedule/schedule.hpp"

namespace tunewright::loops {

/// The common part of schedules that differ only in tile sizes, unroll limits, layouts and pipeline depths: their state
/// without these numbers, and the results of lowering that do not depend on them.
struct SchedulePlan {
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  /// An index of a read.
  struct ReadIndex {
    program::TensorId reader = 0;
    program::Var axis = 0;                      ///< the axis that the index is, if `index` is null
    const program::IndexExpr* index = nullptr;  ///< any other index
  };
  /// A loop, if it has more than one iteration.
  struct Loop {
    schedule::IterId iter = 0;
    schedule::LoopKind kind = schedule::LoopKind::Serial;
    bool is_reduction = false;
    bool is_index = false;     ///< of a block, thread or virtual thread
    std::uint32_t inside = 0;  ///< number of stages computed in it
  };
  /// A split of one iterator into several, or a fusion of several into one.
  struct Relation {
    schedule::IterId whole = 0;                 ///< the iterator that is split
    std::span<const schedule::IterId> fused{};  ///< the iterators that are fused
    schedule::IterId first_part = 0;
    std::uint32_t parts = 1;
    std::uint32_t first_factor = 0;  ///< index into the factors of a schedule
    bool into_loops = false;         ///< the parts are neither split again nor fused
    bool splits_axis = false;
  };
  struct StagePlan {
    std::size_t rank = 0;               ///< of its result
    std::vector<std::int64_t> extents;  ///< of its operator's axes
    bool is_live = false;               ///< neither a source nor inlined
    bool is_sum = false;
    bool is_attached = false;
    bool is_shared = false;                 ///< among the threads of a block
    program::TensorId target = 0;           ///< to which it is attached
    std::size_t place = 0;                  ///< in the target's order
    std::size_t first_reduction = 0;        ///< position in its own order; the end if there is none
    std::vector<Loop> loops;                ///< in the stage's order
    std::vector<char> is_loop;              ///< by IterId: neither split nor fused
    std::vector<Relation> relations;        ///< in order of creation
    std::vector<schedule::IterId> unsplit;  ///< axes that are loops or fused
    std::vector<program::TensorId> inside;  ///< stages by place, then in topological order
    std::size_t reads = 0;                  ///< for an attached stage
    std::vector<ReadIndex> read_indices;    ///< by dimension, then by read
    std::vector<LoadSummary> loads;
    loops::BodyOperations operations;
    std::uint64_t body_hash = 0;
    const std::shared_ptr<const program::Operator>* op = nullptr;
    std::uint32_t unroll_limit = none;  ///< index into the unroll limits of a schedule
    std::vector<ReadIndex> packed_by;   ///< by dimension: the index of the only read of a packed tensor
    bool is_packed = false;
    loops::BufferId buffer = loops::LoopNest::no_buffer;
    bool is_output = false;

    [[nodiscard]] std::span<const ReadIndex> reads_of(std::size_t dimension) const noexcept {
      return std::span(read_indices).subspan(dimension * reads, reads);
    }
  };

  std::shared_ptr<const program::ComputeGraph> graph;  ///< of the schedules; that of `state` may have merged axes
  schedule::State state;
  std::vector<std::uint64_t> words;               ///< of the signature
  std::unique_ptr<SchedulePlan> next;             ///< another plan whose signature has the same hash
  std::vector<loops::detail::StageInfo> info;     ///< after stage placement
  std::vector<StagePlan> stages;                  ///< by TensorId
  std::vector<program::TensorId> inferred;        ///< live stages, readers first
  std::vector<program::TensorId> roots;           ///< live stages at the root, in topological order
  std::vector<program::TensorId> stored;          ///< live stages
  std::size_t most_variables = 0;                 ///< number of loops
  std::size_t most_parts = 0;                     ///< maximum number of parts of a split
  std::vector<BufferSummary> buffers;             ///< except for what tile sizes and layouts determine
  std::vector<std::vector<std::int64_t>> shapes;  ///< of the buffers, by BufferId
  std::vector<BufferId> buffer_of;                ///< by TensorId
  BufferId last_argument = LoopNest::no_buffer;
  std::vector<std::uint32_t> arranging, pipelining;  ///< indices of steps
  /// False for what only lowering handles: tensor instructions, padding for them, and illegal packing.
  bool is_complete = false;

  /// Throws `schedule::ScheduleError` for contradictory steps.
  [[nodiscard]] static std::unique_ptr<SchedulePlan> of(const schedule::Schedule& candidate,
                                                        const ScheduleSignature& signature);

 private:
  bool make(const schedule::Schedule& candidate, const ScheduleSignature& signature);

  bool describe_buffers();

  void describe_buffer(const schedule::Stage& stage, bool is_output, BufferSummary& b);

  void describe_body(program::TensorId id);

  void describe_loops(program::TensorId id);

  void describe_relations(const schedule::Stage& stage, StagePlan& plan);

  bool describe_reads(program::TensorId id);

  [[nodiscard]] static ReadIndex read_index(program::TensorId reader, const program::IndexExpr& index);

  /// Whether a reader runs inside that loop, as in window inference.
  [[nodiscard]] bool is_inside(program::TensorId reader, program::TensorId target, std::size_t place) const;

  bool describe_packs();
};

}  // namespace tunewright::loops

#if TUNEWRIGHT_DEFINES(loops)

#include "tunewright/loops/lower/stages.hpp"
#include "tunewright/schedule/apply.hpp"

namespace tunewright::loops {

TUNEWRIGHT_INLINE std::unique_ptr<SchedulePlan> SchedulePlan::of(const schedule::Schedule& candidate,
                                                                 const ScheduleSignature& signature) {
  auto plan = std::make_unique<SchedulePlan>();
  plan->words.assign(signature.words().begin(), signature.words().end());
  plan->is_complete = plan->make(candidate, signature);
  return plan;
}

TUNEWRIGHT_INLINE bool SchedulePlan::make(const schedule::Schedule& candidate, const ScheduleSignature& signature) {
  graph = candidate.graph;
  state = schedule::initial_state(graph);
  std::vector<std::vector<std::uint32_t>> made_by;  // by stage: the steps that created its relations
  std::vector<std::uint32_t> limits;                // by stage
  std::uint32_t limited = 0;
  for (std::uint32_t step = 0; step < candidate.steps.size(); ++step) {
    schedule::apply(state, candidate.steps[step]);
    made_by.resize(state.stages.size());
    limits.resize(state.stages.size(), none);
    const auto note = [&]<class S>(const S& s) {
      if constexpr (requires { s.stage; }) made_by[s.stage].resize(state.stages[s.stage].relations.size(), step);
      if constexpr (std::is_same_v<S, schedule::UnrollLimit>) limits[s.stage] = limited++;
      if constexpr (std::is_same_v<S, schedule::TransformLayout>) arranging.push_back(step);
      if constexpr (std::is_same_v<S, schedule::Pipeline>) pipelining.push_back(step);
    };
    std::visit(note, candidate.steps[step]);
  }
  made_by.resize(state.stages.size());
  limits.resize(state.stages.size(), none);
  info.resize(state.stages.size());
  loops::detail::Lowered lowered{state, std::move(info), {}};
  loops::detail::StagePlacement(lowered).run();
  info = std::move(lowered.info);
  stages.resize(state.stages.size());
  if (!describe_buffers()) return false;
  for (program::TensorId id = 0; id < stages.size(); ++id) {
    if (!info[id].live) continue;
    stages[id].unroll_limit = limits[id];
    describe_body(id);
    describe_loops(id);
    for (std::size_t r = 0; r < made_by[id].size(); ++r)
      stages[id].relations[r].first_factor = signature.first_factor(made_by[id][r]);
  }
  for (const program::TensorId id : stored)
    if (stages[id].is_attached && !describe_reads(id)) return false;
  for (const program::TensorId id : state.order) {
    if (!info[id].live) continue;
    inferred.insert(inferred.begin(), id);
    if (!stages[id].is_attached) roots.push_back(id);
  }
  return describe_packs();
}

TUNEWRIGHT_INLINE bool SchedulePlan::describe_buffers() {
  std::vector<bool> is_read(stages.size());
  for (const loops::detail::StageInfo& reader : info)
    if (reader.live)
      for (const program::TensorId read : reader.reads) is_read[read] = true;
  shapes.reserve(stages.size());  // buffers refer to the elements
  for (program::TensorId id = 0; id < stages.size(); ++id) {
    const schedule::Stage& stage = state.stages[id];
    if (stage.tensorized.intrinsic != nullptr || !stage.multiples.empty()) return false;
    if (!info[id].live && !stage.is_source()) continue;
    stages[id].buffer = static_cast<loops::BufferId>(buffers.size());
    stages[id].is_output = !stage.is_source() && !is_read[id];
    if (!stage.is_source()) stored.push_back(id);
    describe_buffer(stage, stages[id].is_output, buffers.emplace_back());
  }
  bool has_output = false;
  for (const StagePlan& stage : stages) {
    buffer_of.push_back(stage.buffer);
    if (stage.buffer == LoopNest::no_buffer || (has_output && !stage.is_output)) continue;
    if (stage.is_output || buffers[stage.buffer].role != BufferRole::Temporary) last_argument = stage.buffer;
    has_output = stage.is_output;
  }
  return true;
}

TUNEWRIGHT_INLINE void SchedulePlan::describe_buffer(const schedule::Stage& stage, bool is_output, BufferSummary& b) {
  b.element_bytes = static_cast<double>(program::size_in_bytes(stage.op->type));
  b.scope = stage.scope;
  b.role = stage.op->role == program::Role::Constant ? loops::BufferRole::Constant
           : stage.is_source()                       ? loops::BufferRole::Input
           : is_output                               ? loops::BufferRole::Output
                                                     : loops::BufferRole::Temporary;
  b.name = stage.op->name;
  b.shape = shapes.emplace_back(stage.op->shape());
  b.elements = 1;
  for (const std::int64_t extent : b.shape) b.elements *= extent;
}

TUNEWRIGHT_INLINE void SchedulePlan::describe_body(program::TensorId id) {
  const program::Operator& op = *info[id].op;
  StagePlan& plan = stages[id];
  if (op.body) collect_loads(op.body, buffer_of, buffers.size(), op.name, plan.loads);
  loops::Statement statement;
  statement.kind = op.has_reduction() ? loops::Statement::Kind::Update : loops::Statement::Kind::Assign;
  statement.op = info[id].op;
  plan.operations = loops::operations(statement);
  plan.body_hash = loops::body_hash(op, buffer_of);
  plan.op = &info[id].op;
  plan.rank = op.rank();
  for (const program::Axis& axis : op.axes) plan.extents.push_back(axis.extent);
  plan.is_live = true;
  plan.is_sum = op.has_reduction();
}

TUNEWRIGHT_INLINE void SchedulePlan::describe_loops(program::TensorId id) {
  using schedule::LoopKind;
  const schedule::Stage& stage = state.stages[id];
  StagePlan& plan = stages[id];
  plan.is_attached = stage.location.kind == schedule::Location::Kind::At;
  plan.is_shared = stage.scope == schedule::Scope::Shared;
  plan.is_loop.assign(stage.iterators.size(), false);
  for (const schedule::IterId iter : stage.order) {
    const LoopKind kind = stage.iterators[iter].annotation;
    Loop& loop = plan.loops.emplace_back();
    loop.iter = iter;
    loop.is_reduction = stage.iterators[iter].kind == program::AxisKind::Reduction;
    loop.kind = plan.is_attached && kind == LoopKind::Parallel ? LoopKind::Serial : kind;
    loop.is_index = schedule::is_hardware_index(kind) || kind == LoopKind::VirtualThread;
    plan.is_loop[iter] = true;
  }
  most_variables += plan.loops.size();
  const auto is_reduction = [](const Loop& loop) { return loop.is_reduction; };
  plan.first_reduction =
      static_cast<std::size_t>(std::find_if(plan.loops.begin(), plan.loops.end(), is_reduction) - plan.loops.begin());
  std::vector<loops::detail::Attached> attached = info[id].attached;
  std::stable_sort(attached.begin(), attached.end(), [](const auto& a, const auto& b) { return a.place < b.place; });
  for (const loops::detail::Attached& inside : attached) {
    plan.inside.push_back(inside.stage);
    ++plan.loops[inside.place].inside;
  }
  if (plan.is_attached) {
    plan.target = stage.location.stage;
    plan.place = state.stages[plan.target].position(stage.location.iter);
  }
  describe_relations(stage, plan);
}

TUNEWRIGHT_INLINE void SchedulePlan::describe_relations(const schedule::Stage& stage, StagePlan& plan) {
  std::vector<char> is_split(plan.extents.size(), false);
  for (const schedule::Relation& r : stage.relations) {
    Relation& made = plan.relations.emplace_back();
    made.whole = r.parents[0];
    if (r.parents.size() > 1) made.fused = {r.parents.data(), r.parents.size()};
    made.first_part = r.children[0];
    made.parts = static_cast<std::uint32_t>(r.children.size());
    most_parts = std::max(most_parts, r.children.size());
    made.into_loops = std::all_of(r.children.begin(), r.children.end(),
                                  [&](schedule::IterId part) { return plan.is_loop[part] != 0; });
    made.splits_axis = made.fused.empty() && made.whole < plan.extents.size();
    if (made.splits_axis) is_split[made.whole] = true;
  }
  for (schedule::IterId axis = 0; axis < is_split.size(); ++axis)
    if (is_split[axis] == 0) plan.unsplit.push_back(axis);
}

TUNEWRIGHT_INLINE bool SchedulePlan::describe_reads(program::TensorId id) {
  StagePlan& plan = stages[id];
  std::vector<std::pair<program::TensorId, const program::ExprNode*>> reads;
  for (const program::TensorId reader : state.order) {
    const std::vector<program::TensorId>& all = info[reader].reads;
    if (!info[reader].live || std::find(all.begin(), all.end(), id) == all.end()) continue;
    if (!is_inside(reader, plan.target, plan.place)) return false;
    program::visit(info[reader].op->body, [&](const program::ExprNode& node) {
      if (node.op != program::Op::Load || node.tensor != id) return;
      for (const auto& [by, load] : reads)
        if (by == reader && load->indices == node.indices) return;
      reads.emplace_back(reader, &node);
    });
  }
  plan.reads = reads.size();
  for (std::size_t d = 0; d < plan.rank; ++d) {
    for (const auto& [reader, load] : reads) {
      plan.read_indices.push_back(read_index(reader, load->indices[d]));
    }
  }
  return true;
}

TUNEWRIGHT_INLINE SchedulePlan::ReadIndex SchedulePlan::read_index(program::TensorId reader,
                                                                   const program::IndexExpr& index) {
  const auto axis = index.as_variable();
  return {reader, axis.value_or(0), axis ? nullptr : &index};
}

TUNEWRIGHT_INLINE bool SchedulePlan::is_inside(program::TensorId reader, program::TensorId target,
                                               std::size_t place) const {
  using schedule::Location;
  if (reader == target) return true;
  for (const Location* l = &state.stages[reader].location; l->kind == Location::Kind::At;
       l = &state.stages[l->stage].location) {
    if (l->stage == target) return state.stages[target].position(l->iter) >= place;
  }
  return false;
}

TUNEWRIGHT_INLINE bool SchedulePlan::describe_packs() {
  for (const schedule::Pack& pack : state.packs) {
    StagePlan& plan = stages[pack.tensor];
    if (plan.buffer == loops::LoopNest::no_buffer) continue;
    if (plan.is_output || plan.is_packed) return false;
    std::size_t reads = 0;
    for (program::TensorId reader = 0; reader < stages.size(); ++reader) {
      if (!info[reader].live) continue;
      program::visit(info[reader].op->body, [&](const program::ExprNode& node) {
        if (node.op != program::Op::Load || node.tensor != pack.tensor) return;
        reads += reader == pack.consumer ? 1 : 2;
        for (const program::IndexExpr& index : node.indices) plan.packed_by.push_back(read_index(reader, index));
      });
    }
    if (reads != 1) return false;
    plan.is_packed = true;
  }
  for (const schedule::TransformLayout& arranged : state.layouts)
    if (stages[arranged.stage].is_packed || stages[arranged.stage].is_output) return false;
  return true;
}

}  // namespace tunewright::loops

#endif
