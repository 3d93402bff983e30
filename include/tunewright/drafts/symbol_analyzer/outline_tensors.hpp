// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/loops/nest.hpp"
#include "tunewright/loops/skip_zeros.hpp"
#include "tunewright/schedule/intrinsics.hpp"

namespace tunewright::drafts {

/// A statement whose innermost loops a code generator for CPUs replaces by a tensor instruction, or a copy into the order
/// in which one reads.
struct OutlineTensor {
  enum class Kind : std::uint8_t { Product, Interleaving };
  Kind kind = Kind::Product;
  std::size_t statement = 0;                             ///< of the outline
  std::size_t own = 0;                                   ///< loops that are replaced
  loops::Var first = 0;                                  ///< the outermost of them
  const schedule::TensorIntrinsic* intrinsic = nullptr;  ///< of a product
  std::int64_t m = 1;                                    ///< rows of one instruction
  std::int64_t steps = 1;                                ///< its sums of `k` terms
  std::size_t around = 0;                                ///< loops right around, with nothing else in them
  bool fresh = false;        ///< what stands in front of these fills the sums with zeros
  std::size_t rows = 0;      ///< the factor that columns share, among the statement's loads
  std::size_t columns = 0;   ///< the other one
  bool interleaved = false;  ///< terms of a column that meet in one product are neighbours
  bool same_signs = false;   ///< factors are bytes, either both with a sign or both without
  double whole = 1;          ///< share of the instructions that no guard cuts; the others run as plain loops
};

/// Finds them in a lowered nest: those whose operands lie as their instruction reads them.
class OutlineTensors {
 public:
  [[nodiscard]] static bool is_for_cpu(const schedule::TensorIntrinsic* intrinsic) {
    return intrinsic != nullptr && !is_tensor_core(intrinsic->unit);
  }

  /// Counts statements as `NestOutliner` does.
  void find(const loops::LoopNest& nest, std::vector<OutlineTensor>& found) {
    nest_ = &nest;
    found_ = &found;
    open_.clear();
    copies_.clear();
    read_.clear();
    statement_ = 0;
    found.clear();
    visit(nest.body);
    for (const auto& [buffer, copy] : copies_)
      if (std::find(read_.begin(), read_.end(), buffer) != read_.end()) found.push_back(copy);
  }

 private:
  struct Open {
    const loops::Loop* loop = nullptr;
    const loops::Node* before = nullptr;  // in the same body
    bool alone = false;                   // there
  };

  void visit(const loops::Body& body) {
    for (std::size_t i = 0; i < body.size(); ++i) {
      if (const auto* loop = std::get_if<loops::Loop>(&body[i].content)) {
        open_.push_back({loop, i == 0 ? nullptr : &body[i - 1], body.size() == 1});
        visit(loop->body);
        open_.pop_back();
      } else if (const auto* branch = std::get_if<loops::Branch>(&body[i].content)) {
        visit(branch->then.empty() ? branch->otherwise : branch->then);
      } else if (const auto* s = std::get_if<loops::Statement>(&body[i].content)) {
        if (s->kind == loops::Statement::Kind::Initialise) continue;
        if (body.size() == 1) visit(*s);
        ++statement_;
      }
    }
  }

  void visit(const loops::Statement& s) {
    const auto first =
        std::find_if(open_.begin(), open_.end(), [](const Open& o) { return is_for_cpu(o.loop->intrinsic); });
    if (first != open_.end())
      add_product(s, static_cast<std::size_t>(first - open_.begin()));
    else
      add_copy(s);
  }

  void add_product(const loops::Statement& s, std::size_t first) {
    const schedule::TensorIntrinsic& intrinsic = *open_[first].loop->intrinsic;
    if (!s.op->body) return;
    const auto unpadded = loops::without_padding(*s.op);
    const std::optional<schedule::Product> factors = schedule::product_of(*unpadded);
    OutlineTensor t{.statement = statement_, .own = open_.size() - first, .first = open_[first].loop->var};
    const loops::LoopKind outermost_kind =
        intrinsic.m > 1 ? loops::LoopKind::Serial : loops::LoopKind::Vectorized;
    if (open_[first].loop->kind != outermost_kind) return;
    if (!factors || t.own != (intrinsic.m > 1 ? 4U : 2U) || !alone_from(first + 1)) return;
    t.intrinsic = &intrinsic;
    if (intrinsic.m > 1) {
      t.m = extent(first);
      t.steps = extent(first + 1);
    }
    const program::ExprNode *a = factors->first, *b = factors->second;
    if (!lies_as_rows(s, *a, first)) std::swap(a, b);
    if (!lies_as_rows(s, *a, first) || !lies_as_columns(s, *b, first, t.interleaved)) return;
    const loops::IndexExpr target = loops::store_offset(*nest_, s);
    if (intrinsic.m > 1 && (stride(target, open_.size() - 2) != 1 || !stride(target, first))) return;
    t.rows = load_number(s, *a);
    t.columns = load_number(s, *b);
    t.same_signs = a->type == b->type;
    std::size_t outermost = first;
    while (outermost > 0 && open_[outermost].alone) --outermost;
    t.around = first - outermost;
    t.fresh = is_filled(open_[outermost].before, s.target);
    t.whole = share_not_cut(s, first);
    if (t.interleaved) read_.push_back(nest_->buffer_of[b->tensor]);
    found_->push_back(t);
  }

  /// A copy of 16 columns of two terms of 16 bits or four of 8, which is written as one vector.
  void add_copy(const loops::Statement& s) {
    const loops::Buffer& target = nest_->buffers[s.target];
    const auto size = static_cast<std::int64_t>(program::size_in_bytes(target.type));
    if (s.kind != loops::Statement::Kind::Assign || size >= 4 || target.packing.empty() || open_.size() < 2 ||
        !s.guards.empty())
      return;
    const std::size_t column = open_.size() - 2;
    if (extent(column) != 16 || extent(column + 1) * size != 4 || !open_[column + 1].alone) return;
    const loops::IndexExpr offset = loops::store_offset(*nest_, s);
    if (stride(offset, column + 1) != 1 || stride(offset, column) != extent(column + 1)) return;
    copies_.push_back({s.target,
                       {.kind = OutlineTensor::Kind::Interleaving,
                        .statement = statement_,
                        .own = 2,
                        .first = open_[column].loop->var}});
  }

  [[nodiscard]] std::int64_t extent(std::size_t depth) const {
    return nest_->variables[open_[depth].loop->var].extent;
  }
  [[nodiscard]] bool alone_from(std::size_t depth) const {
    return std::all_of(open_.begin() + static_cast<std::ptrdiff_t>(depth), open_.end(),
                       [](const Open& o) { return o.alone; });
  }

  /// Elements from one iteration of an open loop to the next; nothing where the distance varies.
  [[nodiscard]] std::optional<std::int64_t> stride(const loops::IndexExpr& offset, std::size_t depth) const {
    const loops::Var var = open_[depth].loop->var;
    for (const loops::IndexExpr::Term& term : offset.terms())
      if (term.kind != loops::IndexExpr::Kind::Variable && term.numerator->uses(var)) return std::nullopt;
    return offset.coefficient(var);
  }
  /// One row of neighbouring terms, the same for all columns.
  [[nodiscard]] bool lies_as_rows(const loops::Statement& s, const program::ExprNode& read,
                                  std::size_t first) const {
    const loops::IndexExpr offset = loops::load_offset(*nest_, s, read);
    const std::size_t k = open_.size() - 1;
    if (stride(offset, k) != 1 || stride(offset, k - 1) != 0) return false;
    const schedule::TensorIntrinsic& intrinsic = *open_[first].loop->intrinsic;
    return intrinsic.m == 1 || (stride(offset, first + 1) == intrinsic.k && stride(offset, first));
  }
  [[nodiscard]] bool lies_as_columns(const loops::Statement& s, const program::ExprNode& read,
                                     std::size_t first, bool& interleaved) const {
    const loops::IndexExpr offset = loops::load_offset(*nest_, s, read);
    const schedule::TensorIntrinsic& intrinsic = *open_[first].loop->intrinsic;
    const std::size_t k = open_.size() - 1;
    interleaved = stride(offset, k) == 1 && stride(offset, k - 1) == intrinsic.k;
    if (intrinsic.m > 1) return interleaved && stride(offset, first) == 0 && stride(offset, first + 1);
    return interleaved || (stride(offset, k) && stride(offset, k - 1) == 1);
  }

  /// Place among the distinct loads that `collect_loads` lists.
  [[nodiscard]] std::size_t load_number(const loops::Statement& s, const program::ExprNode& read) const {
    std::vector<const program::ExprNode*> loads;
    const auto same = [](const program::ExprNode& x, const program::ExprNode& y) {
      return x.tensor == y.tensor && x.indices == y.indices;
    };
    program::visit(s.op->body, [&](const program::ExprNode& node) {
      if (node.op != program::Op::Load) return;
      if (std::none_of(loads.begin(), loads.end(), [&](const auto* known) { return same(*known, node); }))
        loads.push_back(&node);
    });
    return static_cast<std::size_t>(
        std::find_if(loads.begin(), loads.end(), [&](const auto* known) { return same(*known, read); }) -
        loads.begin());
  }

  [[nodiscard]] static bool is_filled(const loops::Node* node, loops::BufferId target) {
    while (node != nullptr) {
      if (const auto* s = std::get_if<loops::Statement>(&node->content))
        return s->kind == loops::Statement::Kind::Initialise && s->target == target;
      const auto* loop = std::get_if<loops::Loop>(&node->content);
      node = loop != nullptr && loop->body.size() == 1 ? &loop->body.front() : nullptr;
    }
    return false;
  }

  /// Of each guard that an instruction's loops take part in, padding with zeros among them, the whole instructions
  /// within its bounds.
  [[nodiscard]] double share_not_cut(const loops::Statement& s, std::size_t first) const {
    double share = 1;
    for (const loops::Guard& guard : s.guards) {
      const auto extent = guard.above ? std::optional(guard.extent) : std::nullopt;
      share *= share_within(guard.value, extent, first);
    }
    std::vector<program::Expr> factors;
    loops::detail::add_factors(s.op->body, factors);
    for (const program::Expr& factor : factors) {
      const auto conditions = loops::padding_conditions(factor);
      if (!conditions) continue;
      for (const loops::IndexExpr& condition : *conditions)
        share *= share_within(loops::over_loops(*nest_, s, condition), std::nullopt, first);
    }
    return share;
  }

  /// Of the blocks that loops from depth `first` on make of `value`, those in which all values are in [0, extent), as if the
  /// blocks lay one behind the other: a filter that moves them cuts fewer.
  [[nodiscard]] double share_within(const loops::IndexExpr& value, std::optional<std::int64_t> extent,
                                    std::size_t first) const {
    const auto own = [&](loops::Var var) {
      const bool inside = std::any_of(open_.begin() + static_cast<std::ptrdiff_t>(first), open_.end(),
                                      [var](const Open& o) { return o.loop->var == var; });
      return inside ? nest_->range_of(var) : program::Range{0, 0};
    };
    const std::int64_t taken = value.range(own).extent();
    if (taken == 1) return 1;
    const program::Range all = value.range([this](loops::Var var) { return nest_->range_of(var); });
    const std::int64_t below = program::ceil_div(std::max<std::int64_t>(-all.min, 0), taken);
    const std::int64_t above =
        extent ? program::ceil_div(std::max<std::int64_t>(all.max + 1 - *extent, 0), taken) : 0;
    const std::int64_t blocks = program::ceil_div(all.extent(), taken);
    return static_cast<double>(std::max<std::int64_t>(blocks - below - above, 0)) /
           static_cast<double>(blocks);
  }

  const loops::LoopNest* nest_ = nullptr;
  std::vector<OutlineTensor>* found_ = nullptr;
  std::vector<Open> open_;
  std::vector<std::pair<loops::BufferId, OutlineTensor>> copies_;
  std::vector<loops::BufferId> read_;
  std::size_t statement_ = 0;
};

}  // namespace tunewright::drafts
