// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/codegen/statement_plan.hpp"
#include "tunewright/codegen/streamed_stores.hpp"
#include "tunewright/core/target.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/loops/nest.hpp"

/// Decisions of a CPU code generator about a loop nest before it emits code: which loops become straight-line code, and
/// the address of each access. Independent of LLVM.
namespace tunewright::codegen {

struct EmissionPlanOptions {
  std::int64_t max_unrolled_instances = 1024;  ///< unrolled loops with more statements stay loops
  /// Limit of statements for unrolling reductions that decide guards of straight-line code.
  std::int64_t max_guarded_instances = 512;
  std::int64_t max_unrolled_chunks = 16;  ///< limit of vectors for unrolling a vectorised loop; longer ones stay loops
  std::int64_t max_iterations_per_step = 4;  ///< of a reduction loop that stays a loop
  /// Limit of statements for more than one iteration per step. Tiles of more statements than a quarter spend little on
  /// counting, and LLVM runs out of registers for several iterations of those that fill 32 registers.
  std::int64_t max_instances_per_step = 64;
  std::int64_t max_bytes_per_step = 2048;  ///< limit of what a load moves by in a step of more than one iteration
};

/// A nest whose loop kinds are those that a CPU executes: Serial, Parallel (only outermost), Vectorized, Unrolled.
class EmissionPlan {
 public:
  EmissionPlan(const loops::LoopNest& nest, const Target& target, const EmissionPlanOptions& options = {});
  EmissionPlan(const EmissionPlan&) = delete;
  EmissionPlan& operator=(const EmissionPlan&) = delete;

  [[nodiscard]] const loops::LoopNest& nest() const noexcept { return nest_; }
  [[nodiscard]] const StatementPlan& of(const loops::Statement& s) const { return statements_.at(&s); }
  [[nodiscard]] loops::Var lane_variable() const noexcept { return lane_variable_; }
  [[nodiscard]] loops::Var chunk_variable() const noexcept { return chunk_variable_; }
  void set_extent(loops::Var var, std::int64_t extent) { nest_.variables[var].extent = extent; }
  [[nodiscard]] std::int64_t extent(loops::Var var) const { return nest_.variables[var].extent; }

  /// Whether some statement is stored around the caches: such stores are ordered by a fence only.
  [[nodiscard]] bool bypasses_caches() const noexcept { return bypasses_caches_; }

  /// Elements per vector register inside `body`, for the widest type that is stored, read or cast to.
  [[nodiscard]] std::int64_t lanes(const loops::Body& body) const;
  /// Consecutive iterations of a vectorised loop that one vector computes.
  struct Chunk {
    std::int64_t start = 0;
    std::int64_t lanes = 1;
    std::int64_t active = 1;  ///< the first lanes, which have an iteration; the others access no memory
  };
  /// The vectors of a vectorised loop from iteration `from` on: full ones, then the rest, as the narrowest vector that
  /// holds it if idle lanes can be masked, otherwise in falling powers of two. Narrow, since processors take hundreds
  /// of cycles for a masked load whose idle lanes lie in a page that may not be read, as behind the end of a buffer.
  [[nodiscard]] std::vector<Chunk> chunks(const loops::Loop& loop, std::int64_t from = 0) const;
  /// Whether a masked load of consecutive elements is one instruction.
  [[nodiscard]] bool masks_vectors() const noexcept { return target_.isa == Isa::Avx512 || target_.isa == Isa::Avx2; }
  /// Whether the loop becomes straight-line code.
  [[nodiscard]] bool is_static(const loops::Loop& loop) const;

  /// The number of consecutive iterations of a serial loop that one step of the emitted loop executes, as straight-line
  /// code. Reductions take several: counting and branching are up to four instructions, which delay others where nearly
  /// every slot is needed, as on a core that a neighbour shares. Loads that walk down a matrix with long rows remain in
  /// steps of one iteration, because prefetchers follow the distance between executions of one instruction, up to half
  /// a page.
  [[nodiscard]] std::int64_t iterations_per_step(const loops::Loop& loop) const;

  /// Whether the target has the tensor instruction of the loop.
  [[nodiscard]] bool has_instruction(const loops::Loop& loop) const;

 private:
  loops::Var add_variable(std::string name, std::int64_t extent);

  struct Shape {
    std::int64_t instances = 0;  ///< emitted statements or tensor instructions
    std::int64_t targets = 1;    ///< maximum number of vectors that one statement writes
    bool straight = true;        ///< no loop remains
    bool guarded = false;        ///< some statement has conditions, including those of skipped terms
    bool tensors = false;        ///< some loop is a tensor instruction
  };

  /// Sets the kinds of all loops in `body`, innermost first. `unroll_limit` is the limit of the surrounding loops.
  Shape settle(loops::Body& body, std::int64_t unroll_limit, bool inside_parallel);
  /// Throws `Unsupported` for buffers that the iterations of a loop over threads would share.
  void refuse_shared_buffers(const loops::Body& body) const;

  Shape settle(loops::Loop& loop, std::int64_t unroll_limit, bool inside_parallel);

  /// Whether guards of skipped terms depend on the loop together with inner loops that become straight-line code: for a
  /// known value of the loop, most of these guards are decided at compile time.
  [[nodiscard]] bool decides_guards(const loops::Loop& loop) const;

  /// Reduces iterations per step so that no load moves further than `max_bytes_per_step`.
  void limit_steps();

  [[nodiscard]] std::size_t widest_operand(const loops::Statement& s) const;

  [[nodiscard]] const loops::IndexExpr& target_offset(const loops::Statement& s);

  /// Whether idle lanes of the loop cost nothing: memory accesses are of consecutive elements, and the target has masks
  /// for them. AVX2 has masks for elements of 4 and 8 bytes; masked stores are slow, so only sums have idle lanes.
  [[nodiscard]] bool can_mask(const loops::Body& body, loops::Var var);
  /// Finds the vectorised loops with idle lanes; all loops over a variable have them, or none.
  void find_masked(const loops::Body& body);

  /// Whether the loop can be vectorised: it needs one storage for all iterations, a target that each iteration writes
  /// at another place (or an update, which is then reduced across the vector), and conditions that all iterations
  /// share.
  [[nodiscard]] bool can_vectorise(const loops::Body& body, loops::Var var);

  void plan_statements(const loops::Body& body, loops::Var vector_variable);

  /// Whether coordinates over loop variables are always inside the buffer's window.
  [[nodiscard]] bool within_window(const loops::Buffer& buffer, const std::vector<loops::IndexExpr>& coordinates) const;
  /// Whether a read is inside the whole tensor for every point of the operator's axes.
  [[nodiscard]] bool within_tensor(const loops::Buffer& buffer, const loops::Statement& s,
                                   const program::ExprNode& load) const;

  void plan_statement(const loops::Statement& s, loops::Var vector_variable);
  /// Plans what the body reads. `clamped` is the statement with clamped coordinates.
  void plan_body(const loops::Statement& s, const loops::Statement& clamped, StatementPlan& plan) const;

  loops::LoopNest nest_;
  const Target target_;
  const EmissionPlanOptions options_;
  const std::vector<bool> streamed_;  ///< by BufferId
  bool bypasses_caches_ = false;
  std::vector<bool> masked_;  ///< by loop variable
  loops::Var lane_variable_ = 0;
  loops::Var chunk_variable_ = 0;
  std::unordered_map<const loops::Statement*, loops::IndexExpr> target_offsets_;
  std::unordered_map<const loops::Statement*, StatementPlan> statements_;
  std::unordered_map<const loops::Loop*, std::int64_t> iterations_per_step_;  ///< where several fit
  mutable std::unordered_map<const program::Operator*, std::size_t> widest_operands_;
};

}  // namespace tunewright::codegen

#if TUNEWRIGHT_DEFINES(codegen)

#include <optional>

#include "tunewright/loops/device/pass.hpp"
#include "tunewright/loops/tensor_operands.hpp"

namespace tunewright::codegen {

TUNEWRIGHT_INLINE EmissionPlan::EmissionPlan(const loops::LoopNest& nest, const Target& target,
                                             const EmissionPlanOptions& options)
    : nest_(nest), target_(target), options_(options), streamed_(streamed_buffers(nest, target)) {
  lane_variable_ = add_variable("lane", 1);
  chunk_variable_ = add_variable("chunk", 1);
  masked_.assign(nest_.variables.size(), true);
  find_masked(nest_.body);
  (void)settle(nest_.body, 0, false);
  plan_statements(nest_.body, no_variable);
  limit_steps();
}

TUNEWRIGHT_INLINE std::int64_t EmissionPlan::lanes(const loops::Body& body) const {
  std::size_t bytes = 1;
  loops::for_each_statement(body, [&](const loops::Statement& s) {
    bytes = std::max({bytes, register_bytes(nest_.buffers[s.target].type), widest_operand(s)});
  });
  return target_.vector_lanes(bytes);
}

TUNEWRIGHT_INLINE std::vector<EmissionPlan::Chunk> EmissionPlan::chunks(const loops::Loop& loop,
                                                                        std::int64_t from) const {
  const std::int64_t extent = nest_.variables[loop.var].extent, lanes = this->lanes(loop.body);
  std::vector<Chunk> list;
  for (std::int64_t at = from; at < extent;) {
    const std::int64_t left = extent - at;
    std::int64_t width = lanes;
    if (left < lanes) {
      const auto rest = static_cast<std::uint64_t>(left);
      width = static_cast<std::int64_t>(masked_[loop.var] ? std::bit_ceil(rest) : std::bit_floor(rest));
    }
    list.push_back({at, width, std::min(width, left)});
    at += width;
  }
  return list;
}

TUNEWRIGHT_INLINE bool EmissionPlan::is_static(const loops::Loop& loop) const {
  if (extent(loop.var) == 1 || loop.kind == loops::LoopKind::Unrolled) return true;
  return loop.kind == loops::LoopKind::Vectorized &&
         static_cast<std::int64_t>(chunks(loop).size()) <= options_.max_unrolled_chunks;
}

TUNEWRIGHT_INLINE std::int64_t EmissionPlan::iterations_per_step(const loops::Loop& loop) const {
  const auto found = iterations_per_step_.find(&loop);
  return found == iterations_per_step_.end() ? 1 : found->second;
}

TUNEWRIGHT_INLINE bool EmissionPlan::has_instruction(const loops::Loop& loop) const {
  if (loop.intrinsic == nullptr) return false;
  const auto kind = loop.intrinsic->m == 1 ? loops::LoopKind::Vectorized : loops::LoopKind::Serial;
  return loop.kind == kind && schedule::is_on(*loop.intrinsic, target_) && lanes(loop.body) == loop.intrinsic->n;
}

TUNEWRIGHT_INLINE loops::Var EmissionPlan::add_variable(std::string name, std::int64_t extent) {
  nest_.variables.push_back({std::move(name), extent});
  return static_cast<loops::Var>(nest_.variables.size() - 1);
}

TUNEWRIGHT_INLINE EmissionPlan::Shape EmissionPlan::settle(loops::Body& body, std::int64_t unroll_limit,
                                                           bool inside_parallel) {
  Shape total;
  const auto add = [&](const Shape& part) {
    total.instances += part.instances;
    total.targets = std::max(total.targets, part.targets);
    total.straight = total.straight && part.straight;
    total.guarded = total.guarded || part.guarded;
    total.tensors = total.tensors || part.tensors;
  };
  for (loops::Node& node : body) {
    if (auto* loop = std::get_if<loops::Loop>(&node.content)) {
      if (schedule::is_thread_index(loop->kind)) refuse_shared_buffers(loop->body);
      add(settle(*loop, unroll_limit, inside_parallel));
    } else if (auto* branch = std::get_if<loops::Branch>(&node.content)) {
      add(settle(branch->then, unroll_limit, inside_parallel));
      add(settle(branch->otherwise, unroll_limit, inside_parallel));
      total.guarded = total.guarded || !branch->conditions.empty();
    } else if (const auto* s = std::get_if<loops::Statement>(&node.content)) {
      ++total.instances;
      total.guarded = total.guarded || !s->guards.empty();
    } else if (std::holds_alternative<loops::Barrier>(node.content)) {
      throw Unsupported("loop nest '" + nest_.name + "' has a barrier; kernels for CPUs have no thread blocks");
    }
  }
  return total;
}

TUNEWRIGHT_INLINE void EmissionPlan::refuse_shared_buffers(const loops::Body& body) const {
  loops::device::visit_nodes<loops::Allocate>(body, [&](const loops::Allocate& allocate) {
    if (nest_.buffers[allocate.buffer].scope != loops::Scope::Shared) return;
    throw Unsupported("buffer '" + nest_.buffers[allocate.buffer].name +
                      "' is filled by all threads of a block; kernels for CPUs have no thread blocks");
  });
}

TUNEWRIGHT_INLINE EmissionPlan::Shape EmissionPlan::settle(loops::Loop& loop, std::int64_t unroll_limit,
                                                           bool inside_parallel) {
  using loops::LoopKind;
  const std::int64_t count = extent(loop.var);
  if (loop.kind == LoopKind::Parallel && (inside_parallel || target_.threads == 1 || count == 1))
    loop.kind = LoopKind::Serial;
  if (loop.kind > LoopKind::Unrolled) loop.kind = LoopKind::Serial;
  if (loop.kind == LoopKind::Vectorized && !can_vectorise(loop.body, loop.var)) loop.kind = LoopKind::Serial;
  unroll_limit = std::max(unroll_limit, loop.unroll_limit);
  Shape shape = settle(loop.body, unroll_limit, inside_parallel || loop.kind == LoopKind::Parallel);
  if (count == 1) return shape;
  if (has_instruction(loop)) return {.instances = 1, .guarded = shape.guarded, .tensors = true};
  bool moves = false;
  loops::for_each_statement(loop.body,
                            [&](const loops::Statement& s) { moves = moves || target_offset(s).uses(loop.var); });
  const auto repeat = [&](std::int64_t times) {
    shape.instances *= times;
    if (moves) shape.targets *= times;
    return shape;
  };
  // Guarded statements are not unrolled, because boundaries are executed rarely and conditional blocks take longest to
  // compile. Guards of skipped terms are handled below, where unrolling decides them.
  if (loop.kind == LoopKind::Serial && shape.straight && !shape.guarded && shape.instances * count <= unroll_limit)
    loop.kind = LoopKind::Unrolled;
  if (loop.kind == LoopKind::Serial && loop.reduction && decides_guards(loop) &&
      shape.instances * count <= options_.max_guarded_instances)
    loop.kind = LoopKind::Unrolled;
  if (loop.kind == LoopKind::Unrolled) {
    // With more targets than registers, straight-line code has no advantage and takes long to compile.
    const bool too_many = moves && shape.targets * count > 2 * static_cast<std::int64_t>(target_.vector_registers());
    if (!too_many && shape.instances * count <= options_.max_unrolled_instances) return repeat(count);
    loop.kind = LoopKind::Serial;
  }
  if (loop.kind == LoopKind::Vectorized && is_static(loop)) {
    return repeat(static_cast<std::int64_t>(chunks(loop).size()));
  }
  if (loop.kind == LoopKind::Serial && loop.reduction && shape.straight && !shape.guarded && !shape.tensors) {
    const std::int64_t iterations = std::min(options_.max_iterations_per_step, count);
    if (iterations > 1 && shape.instances * iterations <= options_.max_instances_per_step)
      iterations_per_step_.emplace(&loop, iterations);
  }
  shape.straight = false;
  return shape;
}

TUNEWRIGHT_INLINE bool EmissionPlan::decides_guards(const loops::Loop& loop) const {
  std::vector<loops::Var> straight;
  const loops::Body* body = &loop.body;
  while (body->size() == 1) {
    const auto* inner = std::get_if<loops::Loop>(&body->front().content);
    if (inner == nullptr) break;
    if (extent(inner->var) > 1 && is_static(*inner)) straight.push_back(inner->var);
    body = &inner->body;
  }
  const auto* s = body->size() == 1 ? std::get_if<loops::Statement>(&body->front().content) : nullptr;
  if (s == nullptr) return false;
  return std::any_of(s->guards.begin(), s->guards.end(), [&](const loops::Guard& guard) {
    return guard.axis == loops::Guard::padding && guard.value.uses(loop.var) &&
           std::any_of(straight.begin(), straight.end(), [&](loops::Var v) { return guard.value.uses(v); });
  });
}

TUNEWRIGHT_INLINE void EmissionPlan::limit_steps() {
  for (auto& [loop, iterations] : iterations_per_step_) {
    std::int64_t furthest = 1;
    loops::for_each_statement(loop->body, [&](const loops::Statement& s) {
      for (const auto& [node, access] : of(s).loads)
        furthest = std::max(furthest, std::abs(access.offset.coefficient(loop->var)) *
                                          static_cast<std::int64_t>(program::size_in_bytes(node->type)));
    });
    iterations = std::clamp<std::int64_t>(options_.max_bytes_per_step / furthest, 1, iterations);
  }
}

TUNEWRIGHT_INLINE std::size_t EmissionPlan::widest_operand(const loops::Statement& s) const {
  if (s.kind == loops::Statement::Kind::Initialise) return 1;
  const auto [found, fresh] = widest_operands_.try_emplace(s.op.get(), 1);
  if (fresh) {
    program::visit(s.op->body, [&bytes = found->second](const program::ExprNode& node) {
      if (node.op == program::Op::Load || node.op == program::Op::Cast)
        bytes = std::max(bytes, register_bytes(node.type));
    });
  }
  return found->second;
}

TUNEWRIGHT_INLINE const loops::IndexExpr& EmissionPlan::target_offset(const loops::Statement& s) {
  const auto [found, fresh] = target_offsets_.try_emplace(&s);
  if (fresh) found->second = loops::store_offset(nest_, s);
  return found->second;
}

TUNEWRIGHT_INLINE bool EmissionPlan::can_mask(const loops::Body& body, loops::Var var) {
  if (!masks_vectors()) return false;
  const bool masks_all = target_.isa == Isa::Avx512;
  bool can = true;
  loops::for_each_statement(body, [&](const loops::Statement& s) {
    const auto consecutive = [&](const loops::IndexExpr& offset, std::size_t bytes) {
      const std::optional<std::int64_t> step = loops::stride(offset, var);
      return step && (*step == 0 || (*step == 1 && (masks_all || bytes >= 4)));
    };
    can = can && (masks_all || s.kind != loops::Statement::Kind::Assign) &&
          consecutive(target_offset(s), program::size_in_bytes(nest_.buffers[s.target].type));
    if (s.kind == loops::Statement::Kind::Initialise) return;
    program::visit(s.op->body, [&](const program::ExprNode& node) {
      if (node.op != program::Op::Load || nest_.buffer_of[node.tensor] == loops::LoopNest::no_buffer) return;
      can = can && consecutive(loops::load_offset(nest_, s, node), program::size_in_bytes(node.type));
    });
  });
  return can;
}

TUNEWRIGHT_INLINE void EmissionPlan::find_masked(const loops::Body& body) {
  for (const loops::Node& node : body) {
    if (const auto* loop = std::get_if<loops::Loop>(&node.content)) {
      if (loop->kind == loops::LoopKind::Vectorized && !can_mask(loop->body, loop->var)) masked_[loop->var] = false;
      find_masked(loop->body);
    }
    if (const auto* branch = std::get_if<loops::Branch>(&node.content)) {
      find_masked(branch->then);
      find_masked(branch->otherwise);
    }
  }
}

TUNEWRIGHT_INLINE bool EmissionPlan::can_vectorise(const loops::Body& body, loops::Var var) {
  for (const loops::Node& node : body) {
    if (const auto* s = std::get_if<loops::Statement>(&node.content)) {
      const bool moves = target_offset(*s).uses(var);
      if (s->kind == loops::Statement::Kind::Assign && !moves) return false;
      if (s->kind == loops::Statement::Kind::Update && !moves && s->op->combiner == program::Combiner::None)
        return false;
    } else if (const auto* loop = std::get_if<loops::Loop>(&node.content)) {
      if (loop->kind == loops::LoopKind::Parallel || loop->kind == loops::LoopKind::Vectorized) return false;
      if (!can_vectorise(loop->body, var)) return false;
    } else if (const auto* branch = std::get_if<loops::Branch>(&node.content)) {
      for (const loops::Guard& guard : branch->conditions) {
        if (guard.value.uses(var)) return false;
      }
      if (!can_vectorise(branch->then, var) || !can_vectorise(branch->otherwise, var)) return false;
    } else {
      return false;
    }
  }
  return true;
}

TUNEWRIGHT_INLINE void EmissionPlan::plan_statements(const loops::Body& body, loops::Var vector_variable) {
  for (const loops::Node& node : body) {
    if (const auto* s = std::get_if<loops::Statement>(&node.content)) plan_statement(*s, vector_variable);
    if (const auto* loop = std::get_if<loops::Loop>(&node.content)) {
      plan_statements(loop->body,
                      loop->kind == loops::LoopKind::Vectorized && extent(loop->var) > 1 ? loop->var : vector_variable);
    }
    if (const auto* branch = std::get_if<loops::Branch>(&node.content)) {
      plan_statements(branch->then, vector_variable);
      plan_statements(branch->otherwise, vector_variable);
    }
  }
}

TUNEWRIGHT_INLINE bool EmissionPlan::within_window(const loops::Buffer& buffer,
                                                   const std::vector<loops::IndexExpr>& coordinates) const {
  for (std::size_t d = 0; d < buffer.shape.size(); ++d) {
    const auto range = (coordinates[d] - buffer.origin[d]).range([&](loops::Var v) { return nest_.range_of(v); });
    if (range.min < 0 || range.max >= buffer.shape[d]) return false;
  }
  return true;
}

TUNEWRIGHT_INLINE bool EmissionPlan::within_tensor(const loops::Buffer& buffer, const loops::Statement& s,
                                                   const program::ExprNode& load) const {
  for (std::size_t d = 0; d < buffer.shape.size(); ++d) {
    const auto range = load.indices[d].range([&](loops::Var a) { return program::Range{0, s.op->axes[a].extent - 1}; });
    if (range.min < 0 || range.max >= buffer.shape[d]) return false;
  }
  return true;
}

TUNEWRIGHT_INLINE void EmissionPlan::plan_statement(const loops::Statement& s, loops::Var vector_variable) {
  StatementPlan& plan = statements_[&s];
  const loops::Buffer& target = nest_.buffers[s.target];
  const std::size_t rank = target.shape.size();
  const std::vector<loops::IndexExpr> written(s.axis_values.begin(),
                                              s.axis_values.begin() + static_cast<std::ptrdiff_t>(rank));
  plan.target = {s.target, target_offset(s), true};
  plan.target_holds_all = within_window(target, written);
  for (const loops::Guard& guard : s.guards) {
    const bool is_split = guard.axis == loops::Guard::no_axis;
    bool moves_target = false;
    program::for_each_variable(guard.value,
                               [&](loops::Var v) { moves_target = moves_target || plan.target.offset.uses(v); });
    plan.guards_target.push_back(guard.axis < rank || (is_split && moves_target));
    plan.target_holds_all = plan.target_holds_all && !(is_split && moves_target);
  }
  plan.bypasses_caches = streamed_[s.target] && vector_variable != no_variable &&
                         writes_whole_lines(plan.target.offset, vector_variable, extent(vector_variable),
                                            static_cast<std::int64_t>(program::size_in_bytes(target.type)));
  bypasses_caches_ = bypasses_caches_ || plan.bypasses_caches;
  loops::Statement clamped = s;
  for (const loops::Guard& guard : s.guards) {
    loops::Var stand_in = no_variable;
    if (guard.axis < rank && (vector_variable == no_variable || !guard.value.uses(vector_variable))) {
      stand_in = add_variable("clamped", guard.extent);
      clamped.axis_values[guard.axis] = loops::IndexExpr::variable(stand_in);
    }
    plan.clamp_variables.push_back(stand_in);
  }
  // The read of a skipped term is known to be in bounds for the original coordinates, but not for clamped ones.
  plan.loads_can_be_clamped = std::none_of(
      s.guards.begin(), s.guards.end(), [](const loops::Guard& guard) { return guard.axis == loops::Guard::padding; });
  if (s.kind != loops::Statement::Kind::Initialise) plan_body(s, clamped, plan);
}

TUNEWRIGHT_INLINE void EmissionPlan::plan_body(const loops::Statement& s, const loops::Statement& clamped,
                                               StatementPlan& plan) const {
  program::visit(s.op->body, [&](const program::ExprNode& node) {
    if (node.op == program::Op::Index) {
      plan.indices.emplace(&node, loops::over_loops(nest_, s, node.index));
      plan.clamped_indices.emplace(&node, loops::over_loops(nest_, clamped, node.index));
    }
    if (node.op != program::Op::Load || plan.loads.count(&node) != 0) return;
    const loops::BufferId id = nest_.buffer_of[node.tensor];
    if (id == loops::LoopNest::no_buffer) throw Unsupported(loops::no_buffer_text("operator", s.op->name, node.tensor));
    const loops::Buffer& buffer = nest_.buffers[id];
    const auto coordinates = [&](const loops::Statement& from) {
      std::vector<loops::IndexExpr> list;
      for (const loops::IndexExpr& index : node.indices) list.push_back(loops::over_loops(nest_, from, index));
      return list;
    };
    Access access{id, loops::load_offset(nest_, s, node), within_window(buffer, coordinates(s))};
    if (buffer.role == loops::BufferRole::Temporary) {
      plan.loads_can_be_clamped = plan.loads_can_be_clamped && access.inside;
      plan.clamped_loads.emplace(&node, access);
    } else {
      access.inside = access.inside || within_tensor(buffer, s, node);
      plan.clamped_loads.emplace(&node, Access{id, loops::load_offset(nest_, clamped, node), access.inside});
    }
    plan.loads.emplace(&node, std::move(access));
  });
}

}  // namespace tunewright::codegen

#endif
