// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/loops/device/core_matrices.hpp"
#include "tunewright/loops/device/pass.hpp"
#include "tunewright/loops/fragment_instructions.hpp"
#include "tunewright/loops/tensor_operands.hpp"
#include "tunewright/schedule/intrinsics.hpp"

/// Tensor instructions in kernels. A buffer in `Scope::Accumulator` is divided into fragments, each held by the 32
/// threads of a warp together, or by a warp group of four warps, depending on the instruction; threads cannot address
/// its elements. Every access is executed once by the warp or group as a whole, in loops over one fragment, of which
/// the outermost is marked:
///
///   fill        for i in 0..16 by wmma_fp16: for j in 0..16:                    C[i, j] = 0
///   multiply    for i in 0..16 by wmma_fp16: for j in 0..16: for k in 0..16:    C[i, j] += A[i, k] * B[k, j]
///   store       for i in 0..16 by wmma_fp16: for j in 0..16:                    D[i, j] = f(C[i, j])
///
/// ThreadX is the number of a thread in its warp or group, the other thread indices number the warps or groups.
namespace tunewright::loops::device {

/// `offset` with the given loops at their first iteration.
[[nodiscard]] IndexExpr at_first(const LoopNest& nest, const IndexExpr& offset, const std::vector<Var>& loops);

/// Whether `e` is a multiple of `m` for all values of its variables.
[[nodiscard]] bool is_multiple_of(const IndexExpr& e, std::int64_t m);

/// The layout of a factor in shared memory.
struct FragmentOperand {
  const program::ExprNode* read = nullptr;
  BufferId buffer = 0;
  IndexExpr first;          ///< offset of its first element
  bool by_columns = false;  ///< column-major, else row-major
  std::int64_t pitch = 0;   ///< elements between the starts of two rows, or columns
  CoreMatrices matrices{};  ///< instead of `pitch`, for warp groups
};

/// The work of a marked loop.
struct FragmentWork {
  const Statement* statement = nullptr;
  std::vector<Var> loops;  ///< over a fragment: rows, columns and, for a product, terms
  FragmentOperand a, b;    ///< for a product
};

/// Whether `body` consists only of products of warp groups and loops around them. These run asynchronously.
[[nodiscard]] bool multiplies_by_warp_groups_alone(const Body& body);

/// Analyses the loops that begin with the marked loop `loop`.
[[nodiscard]] FragmentWork fragment_work(const LoopNest& nest, const Loop& loop);

/// The number of the fragment on which the work operates, in its accumulator.
[[nodiscard]] IndexExpr fragment_number(const LoopNest& nest, const schedule::TensorIntrinsic& intrinsic,
                                        const FragmentWork& work, const IndexExpr& offset);

/// Finds and marks work that warps execute together.
class Fragments {
 public:
  Fragments(LoopNest& nest, ThreadIndices& threads) : nest_(nest), threads_(threads) {}

  /// Before loops over threads are flattened, ensures that ThreadX numbers the threads that hold fragments together, if
  /// there are fragments.
  void prepare(const Body& body);

  /// Whether there are fragments; after `prepare`.
  [[nodiscard]] bool any() const noexcept { return any_; }

  /// Marks the work; call it after loops over threads are flattened.
  void mark(Body& body);

 private:
  [[nodiscard]] bool is_accumulator(BufferId id) const { return nest_.buffers.at(id).scope == Scope::Accumulator; }

  [[noreturn]] void refuse(const Statement& s, const std::string& why) const {
    throw DeviceFormError("kernel '" + nest_.name + "': '" + s.op->name + "' " + why);
  }

  void mark(Body& body, std::vector<Loop*>& around, bool divided);

  void mark(Statement& s, const std::vector<Loop*>& around, bool divided);

  static std::vector<Var> variables_of(const std::vector<Loop*>& loops);

  /// Throws unless an access refers to the element of a fragment that its loops select.
  void check(const Statement& s, const Access& access, const schedule::TensorIntrinsic& intrinsic,
             const std::vector<Var>& loops) const;

  /// Makes the guards of a product independent of the element: a fragment is entirely inside or entirely outside.
  void make_guards_uniform(Statement& s, const std::vector<Var>& loops,
                           const std::array<std::int64_t, 3>& extents) const;

  [[nodiscard]] bool uses_lane(const std::vector<Guard>& guards) const;

  static constexpr const char* not_a_fragment =
      "touches fragments but not one after the other; its innermost loops must be the rows and columns of "
      "one";

  LoopNest& nest_;
  ThreadIndices& threads_;
  bool any_ = false;
  FragmentInstructions instructions_;
};

}  // namespace tunewright::loops::device

#if TUNEWRIGHT_DEFINES(loops)

namespace tunewright::loops::device {

TUNEWRIGHT_INLINE IndexExpr at_first(const LoopNest& nest, const IndexExpr& offset, const std::vector<Var>& loops) {
  return offset.substitute(
      [&](Var v) {
        const bool first = nest.variables[v].extent == 1 || std::find(loops.begin(), loops.end(), v) != loops.end();
        return first ? IndexExpr(0) : IndexExpr::variable(v);
      },
      [&](Var v) { return nest.range_of(v); });
}

TUNEWRIGHT_INLINE bool is_multiple_of(const IndexExpr& e, std::int64_t m) {
  return e.constant() % m == 0 && std::all_of(e.terms().begin(), e.terms().end(), [m](const IndexExpr::Term& t) {
           return t.coefficient % m == 0 ||
                  (t.kind == IndexExpr::Kind::Remainder && t.divisor % m == 0 && is_multiple_of(*t.numerator, m));
         });
}

TUNEWRIGHT_INLINE bool multiplies_by_warp_groups_alone(const Body& body) {
  const Body* inside = &body;
  bool by_warp_group = false;
  while (inside->size() == 1) {
    if (const auto* statement = std::get_if<Statement>(&inside->front().content))
      return by_warp_group && statement->kind == Statement::Kind::Update;
    const auto* loop = std::get_if<Loop>(&inside->front().content);
    if (loop == nullptr) return false;
    by_warp_group = by_warp_group || (loop->intrinsic != nullptr && loop->intrinsic->by_warp_group());
    inside = &loop->body;
  }
  return false;
}

/// The factor `read` of a product, that of the rows if `is_a`, that of the columns otherwise.
TUNEWRIGHT_INLINE FragmentOperand fragment_operand(const LoopNest& nest, const schedule::TensorIntrinsic& intrinsic,
                                                   const FragmentWork& work, const program::ExprNode& read, bool is_a) {
  const auto refuse = [&](const std::string& why) {
    const std::string name = nest.buffers[nest.buffer_of[read.tensor]].name;
    throw DeviceFormError("kernel '" + nest.name + "': " + std::string(intrinsic.name) + " cannot read '" + name +
                          "', " + why);
  };
  const Var row = work.loops[0], column = work.loops[1], term = work.loops[2];
  FragmentOperand o;
  o.read = &read;
  o.buffer = nest.buffer_of.at(read.tensor);
  const IndexExpr offset = load_offset(nest, *work.statement, read);
  o.first = at_first(nest, offset, work.loops);
  const auto size = static_cast<std::int64_t>(program::size_in_bytes(nest.buffers[o.buffer].type));
  if (nest.buffers[o.buffer].scope != Scope::Shared) refuse("which is not in shared memory; cache_read it there");
  if (intrinsic.by_warp_group()) {
    const std::int64_t bytes = nest.buffers[o.buffer].swizzled ? swizzled_row_bytes : matrix_row_bytes;
    const std::optional<CoreMatrices> matrices = core_matrices(nest, offset, is_a ? row : column, term, bytes / size);
    if (!matrices || !is_multiple_of(o.first, matrix_row_bytes / size))
      refuse(
          "which is not in matrices of 8 x 16 bytes, or of swizzled 8 x 128 bytes; arrange its copy so that rows or "
          "columns and terms are its last two dimensions");
    o.matrices = *matrices;
    o.by_columns = matrices->terms_are_neighbours != is_a;
  } else {
    const std::optional<std::int64_t> down = stride(offset, is_a ? row : term),
                                      across = stride(offset, is_a ? term : column);
    o.by_columns = across != 1;
    if (!down || !across || (o.by_columns ? *down : *across) != 1) refuse("whose rows and columns are both apart");
    o.pitch = o.by_columns ? *across : *down;
    // `ldmatrix` reads rows from multiples of 16 bytes; `wmma.load` from multiples of a thread's part of a fragment:
    // 32 bytes for fp16, 16 for bf16, 8 for int8 (PTX ISA, section "Matrix Storage for WMMA"). The CUDA C++
    // Programming Guide requires only multiples of 16 bytes, less than the instruction.
    const std::int64_t aligned = intrinsic.layout_is_known ? matrix_row_bytes / size : 16;
    if (o.pitch % aligned != 0 || !is_multiple_of(o.first, aligned))
      refuse("whose fragments and their rows do not begin at every " + std::to_string(aligned) +
             "th element; pad the product and its copy");
  }
  if (intrinsic.layout_is_known && size == 1 && o.by_columns == is_a)
    refuse("whose neighbours are not multiplied together; swap the dimensions of its copy");
  return o;
}

TUNEWRIGHT_INLINE FragmentWork fragment_work(const LoopNest& nest, const Loop& loop) {
  FragmentWork work;
  const Loop* inner = &loop;
  while (true) {
    work.loops.push_back(inner->var);
    if (inner->body.size() != 1) break;
    work.statement = std::get_if<Statement>(&inner->body[0].content);
    const auto* next = std::get_if<Loop>(&inner->body[0].content);
    if (next == nullptr) break;
    inner = next;
  }
  const bool multiplies = work.statement != nullptr && work.statement->kind == Statement::Kind::Update;
  if (work.statement == nullptr || work.loops.size() != (multiplies ? 3 : 2)) {
    throw DeviceFormError("kernel '" + nest.name + "': " + quoted(nest, loop.var) + " is marked for " +
                          std::string(loop.intrinsic->name) + " but does not run over one fragment");
  }
  if (!multiplies) return work;
  const std::optional<schedule::Product> product = schedule::product_of(*work.statement->op);
  if (!product) {
    throw DeviceFormError("kernel '" + nest.name + "': '" + work.statement->op->name + "' is marked for " +
                          std::string(loop.intrinsic->name) + " but is no sum of products of two tensors");
  }
  const bool first_has_rows = load_offset(nest, *work.statement, *product->first).uses(work.loops[0]);
  const program::ExprNode *rows = product->first, *columns = product->second;
  if (!first_has_rows) std::swap(rows, columns);
  work.a = fragment_operand(nest, *loop.intrinsic, work, *rows, true);
  work.b = fragment_operand(nest, *loop.intrinsic, work, *columns, false);
  return work;
}

TUNEWRIGHT_INLINE IndexExpr fragment_number(const LoopNest& nest, const schedule::TensorIntrinsic& intrinsic,
                                            const FragmentWork& work, const IndexExpr& offset) {
  const IndexExpr first = at_first(nest, offset, work.loops);
  return IndexExpr::quotient(first, intrinsic.m * intrinsic.n, [&](Var v) { return nest.range_of(v); });
}

TUNEWRIGHT_INLINE void Fragments::prepare(const Body& body) {
  visit_nodes<Allocate>(body, [this](const Allocate& a) { any_ = any_ || is_accumulator(a.buffer); });
  if (!any_) return;
  const FragmentInstructions instructions(body);
  if (instructions.mix_warps_and_groups())
    throw DeviceFormError("kernel '" + nest_.name + "' has instructions of warps and of warp groups");
  const std::int64_t together = instructions.threads_together();
  visit_nodes<Loop>(body, [&](const Loop& loop) {
    if (loop.kind == LoopKind::ThreadX && nest_.variables[loop.var].extent > together) {
      throw DeviceFormError("kernel '" + nest_.name + "': " + quoted(nest_, loop.var) + " has more than the " +
                            std::to_string(together) +
                            " threads that hold fragments together; bind what is beyond to thread_y");
    }
  });
  nest_.variables.push_back({"lane", together});
  threads_.x_y_z[0] = {static_cast<Var>(nest_.variables.size() - 1), together};
}

TUNEWRIGHT_INLINE void Fragments::mark(Body& body) {
  if (!any_) return;
  instructions_ = FragmentInstructions(body);
  std::vector<Loop*> around;
  mark(body, around, false);
}

TUNEWRIGHT_INLINE void Fragments::mark(Body& body, std::vector<Loop*>& around, bool divided) {
  for (Node& node : body) {
    if (auto* loop = std::get_if<Loop>(&node.content)) {
      around.push_back(loop);
      mark(loop->body, around, divided);
      around.pop_back();
    } else if (auto* branch = std::get_if<Branch>(&node.content)) {
      const bool some = divided || uses_lane(branch->conditions);
      std::vector<Loop*> none;  // loops of a fragment have no other content
      mark(branch->then, none, some);
      mark(branch->otherwise, none, some);
    } else if (auto* statement = std::get_if<Statement>(&node.content)) {
      mark(*statement, around, divided);
    }
  }
}

TUNEWRIGHT_INLINE void Fragments::mark(Statement& s, const std::vector<Loop*>& around, bool divided) {
  std::vector<Access> accumulators;
  bool of_thread = false, uses_lane_anywhere = uses_lane(s.guards);
  visit_accesses(nest_, s, [&](const Access& access) {
    if (is_accumulator(access.buffer)) accumulators.push_back(access);
    of_thread = of_thread || nest_.buffers[access.buffer].scope == Scope::Local;
    uses_lane_anywhere = uses_lane_anywhere || access.offset.uses(threads_.x_y_z[0].var);
  });
  if (accumulators.empty()) return;
  if (divided || uses_lane_anywhere || of_thread)
    refuse(s, "touches fragments, which a warp does as a whole, in a way that its threads differ in");
  const schedule::TensorIntrinsic* found = instructions_.storing_to(accumulators.front().buffer);
  if (found == nullptr) refuse(s, "touches fragments that no tensor instruction computes; tensorize their loops");
  const schedule::TensorIntrinsic& intrinsic = *found;
  if (!is_tensor_core(intrinsic.unit))
    refuse(s, "has fragments for " + std::string(intrinsic.name) + ", which no GPU has");
  const std::size_t depth = s.kind == Statement::Kind::Update ? 3 : 2;
  if (around.size() < depth) refuse(s, not_a_fragment);
  const std::vector<Loop*> loops(around.end() - static_cast<std::ptrdiff_t>(depth), around.end());
  const std::vector<Var> variables = variables_of(loops);
  for (const Access& access : accumulators) check(s, access, intrinsic, variables);
  const std::array<std::int64_t, 3> extents{intrinsic.m, intrinsic.n, intrinsic.k};
  for (std::size_t l = 0; l < depth; ++l) {
    loops[l]->kind = LoopKind::Serial;
    if (nest_.variables[loops[l]->var].extent > extents[l]) refuse(s, not_a_fragment);
  }
  loops[0]->intrinsic = &intrinsic;
  if (s.kind != Statement::Kind::Update) return;
  make_guards_uniform(s, variables, extents);
  static_cast<void>(fragment_work(nest_, *loops[0]));  // throws for operands that cannot be loaded
}

TUNEWRIGHT_INLINE std::vector<Var> Fragments::variables_of(const std::vector<Loop*>& loops) {
  std::vector<Var> variables;
  for (const Loop* loop : loops) variables.push_back(loop->var);
  return variables;
}

TUNEWRIGHT_INLINE void Fragments::check(const Statement& s, const Access& access,
                                        const schedule::TensorIntrinsic& intrinsic,
                                        const std::vector<Var>& loops) const {
  const bool each_once = stride(access.offset, loops[0]) == intrinsic.n && stride(access.offset, loops[1]) == 1 &&
                         is_multiple_of(at_first(nest_, access.offset, loops), intrinsic.m * intrinsic.n);
  if (!each_once || (loops.size() > 2 && stride(access.offset, loops[2]) != 0)) refuse(s, not_a_fragment);
}

TUNEWRIGHT_INLINE void Fragments::make_guards_uniform(Statement& s, const std::vector<Var>& loops,
                                                      const std::array<std::int64_t, 3>& extents) const {
  for (Guard& guard : s.guards) {
    const IndexExpr first = at_first(nest_, guard.value, loops);
    for (std::size_t l = 0; l < loops.size(); ++l) {
      const std::optional<std::int64_t> step = stride(guard.value, loops[l]);
      const bool whole =
          step == 0 || (step == 1 && guard.extent % extents[l] == 0 && is_multiple_of(first, extents[l]));
      if (!whole) refuse(s, "ends within a fragment; pad its axes to whole ones first");
    }
    guard.value = first;
  }
}

TUNEWRIGHT_INLINE bool Fragments::uses_lane(const std::vector<Guard>& guards) const {
  return std::any_of(guards.begin(), guards.end(),
                     [this](const Guard& g) { return g.value.uses(threads_.x_y_z[0].var); });
}

}  // namespace tunewright::loops::device

#endif
