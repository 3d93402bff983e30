// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/core/target.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/loops/guard_share.hpp"
#include "tunewright/loops/nest.hpp"
#include "tunewright/schedule/intrinsics.hpp"

namespace tunewright::loops {

/// A set of loops around a statement: bit l is the l-th loop from outside.
using DepthSet = std::uint64_t;

/// A statement whose innermost loops a CPU code generator replaces by a tensor instruction, or a copy into the order in
/// which such an instruction reads.
struct TensorStatement {
  enum class Kind : std::uint8_t { Product, Interleaving };
  Kind kind = Kind::Product;
  const Statement* statement = nullptr;
  std::size_t number = 0;      ///< of the statement, without counting fills; equal on both sides of a branch
  const Loop* loop = nullptr;  ///< the outermost of the replaced loops
  std::size_t own = 0;         ///< number of replaced loops
  Share share = whole_share;   ///< of all iterations: those that reach the statement

  const schedule::TensorIntrinsic* intrinsic = nullptr;  ///< for a product
  std::int64_t m = 1;                                    ///< rows per instruction
  std::int64_t steps = 1;                                ///< sums of `k` terms per instruction
  std::int64_t columns = 1;
  std::int64_t terms = 1;  ///< adjacent terms of one column in 32 bits
  std::size_t around = 0;  ///< number of loops directly around, without other content
  std::size_t kept = 0;    ///< of these: the innermost ones during which sums stay in tile registers
  bool guarded = false;    ///< some of them evaluate a guard
  bool starts = false;     ///< sums start at zero, and the node `fill` that stores zeros is omitted
  const Node* fill = nullptr;
  DepthSet moves_sums = 0;
  const program::ExprNode* row = nullptr;  ///< the load that all columns share
  DepthSet moves_rows = 0;
  DepthSet moves_columns = 0;
  bool interleaved = false;          ///< terms of a column that meet in one product are adjacent
  bool same_signs = false;           ///< factors are bytes, both signed or both unsigned
  std::int64_t row_widening = 0;     ///< operations that widen the bytes of a row, see `widening_operations`
  std::int64_t column_widening = 0;  ///< of a vector of columns
  std::int64_t vectors_of_sums = 1;  ///< vectors per row of sums
  std::int64_t vectors_read = 0;     ///< for one term of all columns of a copy
};

/// Whether it is an instruction of CPUs.
[[nodiscard]] inline bool is_for_cpu(const schedule::TensorIntrinsic* intrinsic) {
  return intrinsic != nullptr && !is_tensor_core(intrinsic->unit);
}

/// Whether code for `target` uses the instruction.
[[nodiscard]] bool is_emitted(const TensorStatement& tensor, const Target& target);

/// Finds tensor statements of a nest from which code is generated, see `prepare_for_codegen`. In another nest it misses
/// those whose guards `partition` would hoist (`is_final`).
class TensorStatements {
 public:
  /// Finds them in program order. Pointers refer to the nest.
  void find(const LoopNest& nest, std::vector<TensorStatement>& found);

  /// Whether the same statements are found in `nest` as in the nest for code generation, and guards do not divide them.
  [[nodiscard]] static bool is_final(const LoopNest& nest);

 private:
  static bool is_final(const LoopNest& nest, const Body& body, std::vector<Var>& own, bool in_tiles);
  /// `own`: loops of the surrounding instruction.
  static bool is_final(const LoopNest& nest, const Statement& s, const std::vector<Var>& own, bool in_tiles);

  struct Open {
    const Loop* loop = nullptr;
    const Node* before = nullptr;  // the previous node in the same body
    bool alone = false;            // the only node of the surrounding loop
  };

  void visit(const Body& body, bool in_branch);

  void visit(const Branch& branch);

  void visit(const Statement& s);

  void add_product(const Statement& s, std::size_t first);

  /// The factors of a product with padding, which is converted to guards.
  [[nodiscard]] std::optional<schedule::Product> unpadded(const Statement& s, std::vector<Guard>& guards) const;

  /// Whether all guards are evaluated outside the loops that are then directly around.
  [[nodiscard]] bool is_whole(TensorStatement& t, std::size_t first) const;

  [[nodiscard]] bool is_tile_product(TensorStatement& t, std::size_t first, const IndexExpr& sums,
                                     const IndexExpr& rows, const IndexExpr& columns) const;

  [[nodiscard]] bool is_row_product(TensorStatement& t, std::size_t first, const std::vector<Guard>& guards,
                                    const IndexExpr& sums, const IndexExpr& rows, const IndexExpr& columns) const;

  /// Finds the outermost surrounding loop during which the sums can stay in tile registers: it does not move them, and
  /// the loops inside that do are few and straight-line code.
  void find_accumulators(TensorStatement& t, const Statement& s, std::size_t first, const IndexExpr& sums) const;

  /// Adds a copy of 8 or 16 columns of two 16-bit or four 8-bit terms, which is stored as one vector.
  void add_copy(const Statement& s);

  [[nodiscard]] TensorStatement described(TensorStatement::Kind kind, const Statement& s, std::size_t first) const;

  /// The outermost loop, from depth `from` on, before which a guard is evaluated because no loop inside moves it; empty
  /// if there is none before depth `to`, and for guards that are evaluated with the statement, if at all.
  [[nodiscard]] std::optional<std::size_t> evaluation_depth(const Statement& s, const Guard& guard, std::size_t from,
                                                            std::size_t to) const;
  [[nodiscard]] std::int64_t extent(std::size_t depth) const { return nest_->variables[open_[depth].loop->var].extent; }
  [[nodiscard]] bool alone_from(std::size_t depth) const;
  /// Whether a surrounding loop is vectorized outside; instructions are not found in such code.
  [[nodiscard]] bool has_lanes_outside(std::size_t first) const;
  [[nodiscard]] std::vector<const Loop*> own(std::size_t first) const;
  [[nodiscard]] DepthSet moved_by(const IndexExpr& offset) const;

  const LoopNest* nest_ = nullptr;
  std::vector<TensorStatement>* found_ = nullptr;
  std::vector<Open> open_;
  std::vector<Guard> holding_;  // conditions of surrounding branches that hold
  Share share_ = whole_share;
  std::size_t number_ = 0;
};

}  // namespace tunewright::loops

#if TUNEWRIGHT_DEFINES(loops)

#include "tunewright/loops/eliminate_padding.hpp"
#include "tunewright/loops/tensor_operands.hpp"

namespace tunewright::loops {

TUNEWRIGHT_INLINE bool is_emitted(const TensorStatement& tensor, const Target& target) {
  return tensor.kind == TensorStatement::Kind::Interleaving || schedule::is_on(*tensor.intrinsic, target);
}

TUNEWRIGHT_INLINE void TensorStatements::find(const LoopNest& nest, std::vector<TensorStatement>& found) {
  nest_ = &nest;
  found_ = &found;
  found.clear();
  open_.clear();
  holding_.clear();
  share_ = whole_share;
  number_ = 0;
  visit(nest.body, false);
}

TUNEWRIGHT_INLINE bool TensorStatements::is_final(const LoopNest& nest) {
  std::vector<Var> own;
  return is_final(nest, nest.body, own, false);
}

TUNEWRIGHT_INLINE bool TensorStatements::is_final(const LoopNest& nest, const Body& body, std::vector<Var>& own,
                                                  bool in_tiles) {
  return std::all_of(body.begin(), body.end(), [&](const Node& node) {
    if (std::holds_alternative<Branch>(node.content)) return false;
    if (const auto* s = std::get_if<Statement>(&node.content)) return is_final(nest, *s, own, in_tiles);
    const auto* loop = std::get_if<Loop>(&node.content);
    if (loop == nullptr) return true;
    const std::size_t outside = own.size();
    const bool starts = own.empty() && is_for_cpu(loop->intrinsic);
    if (starts || !own.empty()) own.push_back(loop->var);
    const bool found = is_final(nest, loop->body, own, starts ? loop->intrinsic->m > 1 : in_tiles);
    own.resize(outside);
    return found;
  });
}

TUNEWRIGHT_INLINE bool TensorStatements::is_final(const LoopNest& nest, const Statement& s, const std::vector<Var>& own,
                                                  bool in_tiles) {
  if (s.kind == Statement::Kind::Initialise || s.guards.empty()) return true;
  if (own.empty()) return s.kind == Statement::Kind::Update || nest.buffers[s.target].packing.empty();
  return !in_tiles && std::none_of(s.guards.begin(), s.guards.end(), [&own](const Guard& guard) {
    return std::any_of(own.begin(), own.end(), [&guard](Var var) { return guard.value.uses(var); });
  });
}

TUNEWRIGHT_INLINE void TensorStatements::visit(const Body& body, bool in_branch) {
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (const auto* loop = std::get_if<Loop>(&body[i].content)) {
      open_.push_back({loop, i == 0 ? nullptr : &body[i - 1], body.size() == 1 && !in_branch});
      visit(loop->body, false);
      open_.pop_back();
    } else if (const auto* branch = std::get_if<Branch>(&body[i].content)) {
      visit(*branch);
    } else if (const auto* s = std::get_if<Statement>(&body[i].content)) {
      if (s->kind == Statement::Kind::Initialise) continue;
      if (body.size() == 1 && !in_branch && open_.size() <= std::numeric_limits<DepthSet>::digits) visit(*s);
      ++number_;
    }
  }
}

TUNEWRIGHT_INLINE void TensorStatements::visit(const Branch& branch) {
  const std::size_t first = number_, known = holding_.size();
  const Share around = share_;
  holding_.insert(holding_.end(), branch.conditions.begin(), branch.conditions.end());
  share_ = std::min(share_where(*nest_, holding_), around);
  const Share otherwise = around - share_;
  visit(branch.then, true);
  holding_.resize(known);
  const std::size_t last = std::exchange(number_, first);
  share_ = otherwise;
  visit(branch.otherwise, true);
  number_ = std::max(number_, last);
  share_ = around;
}

TUNEWRIGHT_INLINE void TensorStatements::visit(const Statement& s) {
  const auto first =
      std::find_if(open_.begin(), open_.end(), [](const Open& o) { return is_for_cpu(o.loop->intrinsic); });
  if (first != open_.end())
    add_product(s, static_cast<std::size_t>(first - open_.begin()));
  else
    add_copy(s);
}

TUNEWRIGHT_INLINE void TensorStatements::add_product(const Statement& s, std::size_t first) {
  const schedule::TensorIntrinsic& intrinsic = *open_[first].loop->intrinsic;
  const bool tiles = intrinsic.m > 1;
  std::vector<Guard> guards = s.guards;
  std::optional<schedule::Product> factors = schedule::product_of(*s.op);
  if (!factors && !tiles) factors = unpadded(s, guards);
  if (!factors || s.kind != Statement::Kind::Update || open_.size() - first != (tiles ? 4U : 2U) ||
      open_[first].loop->kind != (tiles ? LoopKind::Serial : LoopKind::Vectorized) || !alone_from(first + 1) ||
      has_lanes_outside(first))
    return;
  TensorStatement t = described(TensorStatement::Kind::Product, s, first);
  t.intrinsic = &intrinsic;
  t.terms = intrinsic.k;
  t.columns = intrinsic.n;
  t.same_signs = factors->first->type == factors->second->type;
  if (tiles && !is_whole(t, first)) return;
  const IndexExpr sums = store_offset(*nest_, s);
  IndexExpr rows = load_offset(*nest_, s, *factors->first);
  IndexExpr columns = load_offset(*nest_, s, *factors->second);
  t.row = factors->first;
  const bool swapped =
      tiles ? !lies(rows, own(first), strides_of_rows(intrinsic)) : stride(rows, open_[first].loop->var) != 0;
  if (swapped) {
    std::swap(rows, columns);
    t.row = factors->second;
  }
  if (intrinsic.unit == TensorUnit::Avx2) {
    t.row_widening = schedule::widening_operations(t.row->type);
    t.column_widening = schedule::widening_operations((swapped ? factors->first : factors->second)->type);
  }
  if (tiles ? !is_tile_product(t, first, sums, rows, columns) : !is_row_product(t, first, guards, sums, rows, columns))
    return;
  t.moves_sums = moved_by(sums);
  t.moves_rows = moved_by(rows);
  t.moves_columns = moved_by(columns);
  if (tiles) find_accumulators(t, s, first, sums);
  found_->push_back(t);
}

TUNEWRIGHT_INLINE std::optional<schedule::Product> TensorStatements::unpadded(const Statement& s,
                                                                              std::vector<Guard>& guards) const {
  std::vector<program::Expr> factors;
  detail::add_factors(s.op->body, factors);
  for (const program::Expr& factor : factors) {
    const auto own = padding_guards(*nest_, s, factor);
    if (own) guards.insert(guards.end(), own->begin(), own->end());
  }
  return schedule::product_of(*without_padding(*s.op));
}

TUNEWRIGHT_INLINE bool TensorStatements::is_whole(TensorStatement& t, std::size_t first) const {
  for (const Guard& guard : t.statement->guards) {
    const std::optional<std::size_t> guard_depth = evaluation_depth(*t.statement, guard, first - t.around, first);
    if (!guard_depth) return false;
    t.around = std::min(t.around, first - *guard_depth - 1);
  }
  return true;
}

TUNEWRIGHT_INLINE bool TensorStatements::is_tile_product(TensorStatement& t, std::size_t first, const IndexExpr& sums,
                                                         const IndexExpr& rows, const IndexExpr& columns) const {
  const std::vector<const Loop*> loops = own(first);
  if (!lies(rows, loops, strides_of_rows(*t.intrinsic)) || !lies(columns, loops, strides_of_columns(*t.intrinsic)) ||
      !lies(sums, loops, strides_of_sums()))
    return false;
  t.m = extent(first);
  t.steps = extent(first + 1);
  t.interleaved = true;
  return true;
}

TUNEWRIGHT_INLINE bool TensorStatements::is_row_product(TensorStatement& t, std::size_t first,
                                                        const std::vector<Guard>& guards, const IndexExpr& sums,
                                                        const IndexExpr& rows, const IndexExpr& columns) const {
  const Var column = open_[first].loop->var, term = open_[first + 1].loop->var;
  t.interleaved = stride(columns, column) == t.terms && stride(columns, term) == 1;
  if (stride(rows, column) != 0 || stride(rows, term) != 1 || !stride(columns, term) ||
      (!t.interleaved && stride(columns, column) != 1) || !stride(sums, column))
    return false;
  t.vectors_of_sums = stride(sums, column) == 1 ? 1 : t.columns;
  const auto range_of = [this](Var var) { return nest_->range_of(var); };
  return std::all_of(guards.begin(), guards.end(), [&](const Guard& guard) {
    return decided_at_first(guard, column, t.columns, false, range_of) &&
           decided_at_first(guard, term, t.terms, false, range_of);
  });
}

TUNEWRIGHT_INLINE void TensorStatements::find_accumulators(TensorStatement& t, const Statement& s, std::size_t first,
                                                           const IndexExpr& sums) const {
  const auto stay_from = [&](std::size_t from) {
    std::int64_t places = 1;
    bool outermost = true;
    for (std::size_t l = from; l < first; ++l) {
      const LoopKind kind = open_[l].loop->kind;
      if (kind == LoopKind::Parallel || kind == LoopKind::Vectorized) return false;
      if (extent(l) == 1) continue;
      if ((t.moves_sums >> l & 1U) != 0) {
        if (outermost || kind != LoopKind::Unrolled) return false;
        places *= extent(l);
      }
      outermost = false;
      if (places > max_tile_accumulators) return false;
    }
    return true;
  };
  std::size_t from = first - t.around;
  while (from < first && !stay_from(from)) ++from;
  t.kept = first - from;
  if (from + t.around != first || !s.guards.empty() || open_[from].before == nullptr) return;
  std::vector<const Loop*> filled, added;
  const Node* node = open_[from].before;
  const auto* loop = std::get_if<Loop>(&node->content);
  for (; loop != nullptr; loop = std::get_if<Loop>(&node->content)) {
    if (loop->body.size() != 1) return;
    filled.push_back(loop);
    node = &loop->body.front();
  }
  const auto* initialise = std::get_if<Statement>(&node->content);
  if (initialise == nullptr) return;
  for (std::size_t l = from; l < open_.size(); ++l) added.push_back(open_[l].loop);
  t.starts = loops::starts(*initialise, filled, s, added, sums);
  if (t.starts) t.fill = open_[from].before;
}

TUNEWRIGHT_INLINE void TensorStatements::add_copy(const Statement& s) {
  const auto size = static_cast<std::int64_t>(program::size_in_bytes(nest_->buffers[s.target].type));
  if (s.kind != Statement::Kind::Assign || size >= 4 || open_.size() < 2) return;
  const std::size_t column = open_.size() - 2;
  if (!schedule::reads_columns(extent(column)) || extent(column + 1) * size != 4 || !open_[column + 1].alone ||
      open_[column].loop->kind == LoopKind::Parallel || has_lanes_outside(column))
    return;
  const IndexExpr offset = store_offset(*nest_, s);
  if (stride(offset, open_[column + 1].loop->var) != 1 || stride(offset, open_[column].loop->var) != extent(column + 1))
    return;
  TensorStatement t = described(TensorStatement::Kind::Interleaving, s, column);
  const bool cut = std::any_of(s.guards.begin(), s.guards.end(), [&](const Guard& guard) {
    return can_fail(guard, [this](Var var) { return nest_->range_of(var); }) &&
           !evaluation_depth(s, guard, column - t.around, column + 1);
  });
  if (cut) return;
  t.terms = extent(column + 1);
  t.columns = extent(column);
  std::vector<const program::ExprNode*> loads;
  program::visit(s.op->body, [&](const program::ExprNode& node) {
    const auto is_same = [&node](const program::ExprNode* known) {
      return known->tensor == node.tensor && known->indices == node.indices;
    };
    if (node.op != program::Op::Load || std::any_of(loads.begin(), loads.end(), is_same)) return;
    loads.push_back(&node);
    const bool is_vector = stride(load_offset(*nest_, s, node), open_[column].loop->var) == 1;
    t.vectors_read += is_vector ? 1 : t.columns;
  });
  found_->push_back(t);
}

TUNEWRIGHT_INLINE TensorStatement TensorStatements::described(TensorStatement::Kind kind, const Statement& s,
                                                              std::size_t first) const {
  TensorStatement t{.kind = kind,
                    .statement = &s,
                    .number = number_,
                    .loop = open_[first].loop,
                    .own = open_.size() - first,
                    .share = share_};
  std::size_t outermost = first;
  while (outermost > 0 && open_[outermost].alone) --outermost;
  t.around = first - outermost;
  t.guarded = !s.guards.empty();
  return t;
}

TUNEWRIGHT_INLINE std::optional<std::size_t> TensorStatements::evaluation_depth(const Statement& s, const Guard& guard,
                                                                                std::size_t from,
                                                                                std::size_t to) const {
  if (s.may_overcompute && guard.axis < nest_->buffers[s.target].shape.size()) return std::nullopt;
  std::size_t guard_depth = open_.size();
  while (guard_depth > from && !guard.value.uses(open_[guard_depth - 1].loop->var)) --guard_depth;
  return guard_depth < to ? std::optional(guard_depth) : std::nullopt;
}

TUNEWRIGHT_INLINE bool TensorStatements::alone_from(std::size_t depth) const {
  return std::all_of(open_.begin() + static_cast<std::ptrdiff_t>(depth), open_.end(),
                     [](const Open& o) { return o.alone; });
}

TUNEWRIGHT_INLINE bool TensorStatements::has_lanes_outside(std::size_t first) const {
  for (std::size_t l = 0; l < first; ++l)
    if (open_[l].loop->kind == LoopKind::Vectorized && extent(l) > 1) return true;
  return false;
}

TUNEWRIGHT_INLINE std::vector<const Loop*> TensorStatements::own(std::size_t first) const {
  std::vector<const Loop*> loops;
  for (std::size_t l = first; l < open_.size(); ++l) loops.push_back(open_[l].loop);
  return loops;
}

TUNEWRIGHT_INLINE DepthSet TensorStatements::moved_by(const IndexExpr& offset) const {
  DepthSet moved = 0;
  for (std::size_t l = 0; l < open_.size(); ++l)
    if (offset.uses(open_[l].loop->var)) moved |= DepthSet{1} << l;
  return moved;
}

}  // namespace tunewright::loops

#endif
