// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <span>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/drafts/symbol_analyzer/loop_moves.hpp"
#include "tunewright/drafts/symbol_analyzer/nest_reader.hpp"
#include "tunewright/loops/nest.hpp"

namespace tunewright::drafts {

/// The values of an index.
struct IndexRange {
  double count = 1;
  std::int64_t span = 0;  ///< maximum minus minimum
};

/// The store (access 0) and the distinct loads of one statement, and the elements that they touch.
///
/// `vary(loops)` lets exactly these loops vary and fixes the others; the queries of indices refer to the last call.
/// `vary_also` lets one more loop vary and recomputes only what depends on it.
class StatementFootprint {
 public:
  struct Access {
    loops::BufferId buffer = 0;
    loops::Scope scope = loops::Scope::Global;  ///< where the buffer is, see `NestReader::scope_of`
    const loops::BufferSummary* described = nullptr;
    LoopSet moved_by = 0;
    std::size_t first = 0;  ///< index of its first dimension among those of all accesses
  };

  void reset(const NestReader& reader, const loops::StatementSummary& statement);

  [[nodiscard]] std::span<const Access> accesses() const noexcept { return accesses_; }
  /// Loops that move an axis of the statement's operator.
  [[nodiscard]] LoopSet moved_by(std::size_t axis) const { return values_[axis].moved_by; }
  [[nodiscard]] std::size_t axes() const noexcept { return axes_; }
  /// Whether an index of a load, or of any, is not an axis, such as the sum of a place and a tap.
  [[nodiscard]] bool has_sum_of_axes(const Access& a) const;
  [[nodiscard]] bool has_sum_of_axes() const noexcept { return !indices_.empty(); }
  [[nodiscard]] static const loops::BufferSummary& buffer(const Access& a) { return *a.described; }
  [[nodiscard]] static double element_bytes(const Access& a) { return buffer(a).element_bytes; }

  /// Lets the loops in `varying` vary; those bound to threads vary over their first `threads` iterations only, the x
  /// dimension first, as in a warp.
  void vary(LoopSet varying, std::int64_t threads = std::numeric_limits<std::int64_t>::max());
  /// Lets one more loop vary, with all its threads.
  void vary_also(std::size_t depth);

  /// The values of the index of one dimension. The reference is valid until the next statement.
  [[nodiscard]] const IndexRange& index(const Access& a, std::size_t dimension) const {
    return values_[dimensions_[a.first + dimension]].range;
  }
  /// Number of distinct elements of the tensor.
  [[nodiscard]] double elements(const Access& a) const;

  /// Whether an iteration of loop `depth` moves the access by one element of its buffer.
  [[nodiscard]] bool contiguous(const Access& a, std::size_t depth) const;

 private:
  /// An axis of the operator, or an index of a load that is not an axis. An axis is a sum: `plain` is the part of plain
  /// loop variables, `wrapped` that of quotients and remainders; their counts are not limited by their spans.
  struct Value {
    LoopSet moved_by = 0;
    LoopSet wrapped_by = 0;  ///< loops in quotients and remainders
    IndexRange plain, wrapped;
    IndexRange range;
  };
  void read_axis(std::uint32_t axis);
  /// Creates an access; its dimensions must be added next.
  [[nodiscard]] Access access(loops::BufferId buffer) const {
    return {buffer, reader_->scope_of(buffer), &reader_->summary().buffers[buffer], 0, dimensions_.size()};
  }
  void add_store();
  void add_load(const loops::LoadSummary& load);
  /// Returns its position among the values.
  std::size_t add_index(const program::IndexExpr& index);

  /// The open loops whose variables an expression uses.
  [[nodiscard]] LoopSet loops_in(const loops::FlatIndex& e) const;

  void vary_plain(std::size_t depth, std::int64_t iterations);
  /// Recomputes values that loops in `changed` move through quotients, remainders and sums of axes.
  void update_wrapped(LoopSet changed);
  static void join(Value& axis) {
    axis.range = within_span({axis.plain.count * axis.wrapped.count, axis.plain.span + axis.wrapped.span});
  }
  [[nodiscard]] static IndexRange within_span(const IndexRange& all) {
    return {std::min(all.count, static_cast<double>(all.span + 1)), all.span};
  }

  [[nodiscard]] std::int64_t varying_iterations(std::size_t depth, std::int64_t threads) const;

  static program::Var variable(const program::IndexExpr::Term& term) { return term.var; }
  static program::Var variable(const loops::FlatIndex::Term& term) { return term.of; }
  [[nodiscard]] const program::IndexExpr& numerator(const program::IndexExpr::Term& term) const {
    return *term.numerator;
  }
  [[nodiscard]] const loops::FlatIndex& numerator(const loops::FlatIndex::Term& term) const {
    return reader_->summary().indices.numerator(term);
  }

  /// Values of a loop variable.
  [[nodiscard]] IndexRange range(loops::Var var) const;
  template <class Index, class Base>
  [[nodiscard]] IndexRange range(const Index& e, const Base& base) const {
    IndexRange all;
    for (const auto& term : e.terms())
      add(all, term.coefficient,
          term.kind == program::IndexExpr::Kind::Variable ? base(variable(term)) : wrapped(term, base));
    return within_span(all);
  }
  /// The values of a quotient or remainder.
  template <class Term, class Base>
  [[nodiscard]] IndexRange wrapped(const Term& term, const Base& base) const {
    const IndexRange of = range(numerator(term), base);
    return within_span({of.count, term.kind == program::IndexExpr::Kind::Quotient
                                      ? program::floor_div(of.span, term.divisor)
                                      : std::min(of.span, term.divisor - 1)});
  }
  static void add(IndexRange& all, std::int64_t coefficient, const IndexRange& part);
  /// Step of a value per iteration of loop `depth`, ignoring wrapping.
  [[nodiscard]] std::int64_t step_of(std::uint32_t place, std::size_t depth) const;
  [[nodiscard]] std::int64_t step_of_axis(program::Var axis, std::size_t depth) const;
  template <class Index, class StepOf>
  [[nodiscard]] std::int64_t step(const Index& e, const StepOf& step_of) const {
    std::int64_t moved = 0;
    for (const auto& term : e.terms()) {
      if (term.kind == program::IndexExpr::Kind::Variable) {
        moved += term.coefficient * step_of(variable(term));
      } else {
        const std::int64_t inner = step(numerator(term), step_of);
        moved += term.coefficient *
                 (term.kind == program::IndexExpr::Kind::Quotient ? inner / term.divisor : inner % term.divisor);
      }
    }
    return moved;
  }

  const NestReader* reader_ = nullptr;
  const loops::StatementSummary* statement_ = nullptr;
  std::array<std::int64_t, NestReader::none + 1> iterations_;  // by depth; 1 for fixed and closed loops
  LoopMoves moves_;                                            // plain terms
  LoopSet wrapped_by_ = 0;                                     // all axes together
  std::size_t axes_ = 0;
  std::vector<Value> values_;                       // axes, then indices
  std::vector<const program::IndexExpr*> indices_;  // that are not axes
  std::vector<Access> accesses_;
  std::vector<std::uint32_t> dimensions_;  // for all accesses: positions of their values
};

}  // namespace tunewright::drafts

#if TUNEWRIGHT_DEFINES(drafts)

namespace tunewright::drafts {

TUNEWRIGHT_INLINE void StatementFootprint::reset(const NestReader& reader, const loops::StatementSummary& statement) {
  reader_ = &reader;
  statement_ = &statement;
  moves_.clear(reader.open().size());
  wrapped_by_ = 0;
  indices_.clear();
  axes_ = statement.axis_values.size();
  values_.resize(axes_);
  for (std::uint32_t axis = 0; axis < axes_; ++axis) read_axis(axis);
  accesses_.clear();
  dimensions_.clear();
  add_store();
  for (const loops::LoadSummary& load : statement.loads) add_load(load);
}

TUNEWRIGHT_INLINE void StatementFootprint::vary(LoopSet varying, std::int64_t threads) {
  iterations_[NestReader::none] = 1;
  std::fill_n(iterations_.begin(), reader_->open().size(), 1);
  for (Value& value : values_) value.plain = value.wrapped = value.range = {};
  varying &= reader_->all_loops();
  for (LoopSet left = varying; left != 0; left &= left - 1) {
    const auto depth = static_cast<std::size_t>(std::countr_zero(left));
    vary_plain(depth, varying_iterations(depth, threads));
  }
  update_wrapped(varying);
}

TUNEWRIGHT_INLINE void StatementFootprint::vary_also(std::size_t depth) {
  vary_plain(depth, reader_->open()[depth].extent);
  update_wrapped(LoopSet{1} << depth);
}

TUNEWRIGHT_INLINE bool StatementFootprint::has_sum_of_axes(const Access& a) const {
  const std::span<const std::uint32_t> places = std::span(dimensions_).subspan(a.first, buffer(a).shape.size());
  return std::any_of(places.begin(), places.end(), [this](std::uint32_t place) { return place >= axes_; });
}

TUNEWRIGHT_INLINE double StatementFootprint::elements(const Access& a) const {
  double product = 1;
  for (std::size_t d = 0; d < buffer(a).shape.size(); ++d) product *= index(a, d).count;
  return product;
}

TUNEWRIGHT_INLINE bool StatementFootprint::contiguous(const Access& a, std::size_t depth) const {
  const loops::BufferSummary& b = buffer(a);
  const std::size_t rank = b.shape.size();
  if (rank == 0) return false;
  if (b.is_packed() && b.packing.back().divisor != 1) return false;
  const std::size_t innermost = b.is_packed() ? b.packing.back().dimension : rank - 1;
  const std::span<const std::uint32_t> places = std::span(dimensions_).subspan(a.first, rank);
  const auto moved = [&](std::uint32_t place) { return (values_[place].moved_by >> depth & 1U) != 0; };
  if (!moved(places[innermost]) || step_of(places[innermost], depth) != 1) return false;
  for (std::size_t d = 0; d < rank; ++d)
    if (d != innermost && moved(places[d]) && step_of(places[d], depth) != 0) return false;
  return true;
}

TUNEWRIGHT_INLINE void StatementFootprint::read_axis(std::uint32_t axis) {
  LoopSet plain = 0, wrapped = 0;
  for (const loops::FlatIndex::Term& term : statement_->axis_values[axis].terms()) {
    if (term.kind != loops::FlatIndex::Kind::Variable) {
      wrapped |= loops_in(numerator(term));
    } else if (const std::uint8_t depth = reader_->depth_of(term.of); depth != NestReader::none) {
      plain |= LoopSet{1} << depth;
      moves_.add(depth, axis, term.coefficient);
    }
  }
  values_[axis].moved_by = plain | wrapped;
  values_[axis].wrapped_by = wrapped;
  wrapped_by_ |= wrapped;
}

TUNEWRIGHT_INLINE void StatementFootprint::add_store() {
  Access store = access(statement_->target);
  for (std::size_t axis = 0; axis < store.described->shape.size(); ++axis) {
    dimensions_.push_back(static_cast<std::uint32_t>(axis));
    store.moved_by |= values_[axis].moved_by;
  }
  accesses_.push_back(store);
}

TUNEWRIGHT_INLINE void StatementFootprint::add_load(const loops::LoadSummary& load) {
  Access read = access(load.buffer);
  for (const program::IndexExpr& index : load.node->indices) {
    const auto axis = index.as_variable();
    const std::size_t place = axis ? *axis : add_index(index);
    dimensions_.push_back(static_cast<std::uint32_t>(place));
    read.moved_by |= values_[place].moved_by;
  }
  accesses_.push_back(read);
}

TUNEWRIGHT_INLINE std::size_t StatementFootprint::add_index(const program::IndexExpr& index) {
  Value sum;
  program::for_each_variable(index, [&](program::Var axis) { sum.moved_by |= values_[axis].moved_by; });
  values_.push_back(sum);
  indices_.push_back(&index);
  return values_.size() - 1;
}

TUNEWRIGHT_INLINE LoopSet StatementFootprint::loops_in(const loops::FlatIndex& e) const {
  LoopSet all = 0;
  for (const loops::FlatIndex::Term& term : e.terms()) {
    if (term.kind != loops::FlatIndex::Kind::Variable)
      all |= loops_in(numerator(term));
    else if (const std::uint8_t depth = reader_->depth_of(term.of); depth != NestReader::none)
      all |= LoopSet{1} << depth;
  }
  return all;
}

TUNEWRIGHT_INLINE void StatementFootprint::vary_plain(std::size_t depth, std::int64_t iterations) {
  iterations_[depth] = iterations;
  moves_.for_each(depth, [&](const LoopMoves::Move& move) {
    Value& axis = values_[move.axis];
    add(axis.plain, move.step, {static_cast<double>(iterations), iterations - 1});
    join(axis);
  });
}

TUNEWRIGHT_INLINE void StatementFootprint::update_wrapped(LoopSet changed) {
  if ((wrapped_by_ & changed) != 0) {
    for (std::size_t axis = 0; axis < axes_; ++axis) {
      if ((values_[axis].wrapped_by & changed) == 0) continue;
      IndexRange all;
      const std::span<const loops::FlatIndex::Term> terms = statement_->axis_values[axis].terms();
      for (std::size_t t = terms.size(); t-- > 0 && terms[t].kind != loops::FlatIndex::Kind::Variable;)
        add(all, terms[t].coefficient, wrapped(terms[t], [this](loops::Var var) { return range(var); }));
      values_[axis].wrapped = all;
      join(values_[axis]);
    }
  }
  for (std::size_t sum = 0; sum < indices_.size(); ++sum) {
    Value& value = values_[axes_ + sum];
    if ((value.moved_by & changed) != 0)
      value.range = range(*indices_[sum], [this](program::Var axis) { return values_[axis].range; });
  }
}

TUNEWRIGHT_INLINE std::int64_t StatementFootprint::varying_iterations(std::size_t depth, std::int64_t threads) const {
  const loops::LoopSummary& loop = reader_->open()[depth];
  if (!schedule::is_thread_index(loop.kind)) return loop.extent;
  std::int64_t left = threads;
  for (const loops::LoopKind faster : {loops::LoopKind::ThreadX, loops::LoopKind::ThreadY}) {
    if (faster >= loop.kind) break;
    left /= static_cast<std::int64_t>(reader_->iterations(reader_->loops_of(faster)));
  }
  return std::clamp<std::int64_t>(left, 1, loop.extent);
}

TUNEWRIGHT_INLINE IndexRange StatementFootprint::range(loops::Var var) const {
  const std::int64_t iterations = iterations_[reader_->depth_of(var)];
  return {static_cast<double>(iterations), iterations - 1};
}

TUNEWRIGHT_INLINE void StatementFootprint::add(IndexRange& all, std::int64_t coefficient, const IndexRange& part) {
  all.count *= part.count;
  all.span += std::abs(coefficient) * part.span;
}

TUNEWRIGHT_INLINE std::int64_t StatementFootprint::step_of(std::uint32_t place, std::size_t depth) const {
  const auto of_axis = [&](program::Var axis) { return step_of_axis(axis, depth); };
  return place < axes_ ? of_axis(place) : step(*indices_[place - axes_], of_axis);
}

TUNEWRIGHT_INLINE std::int64_t StatementFootprint::step_of_axis(program::Var axis, std::size_t depth) const {
  if ((values_[axis].wrapped_by >> depth & 1U) != 0)
    return step(statement_->axis_values[axis],
                [&](loops::Var var) -> std::int64_t { return reader_->depth_of(var) == depth ? 1 : 0; });
  return moves_.step(depth, axis);
}

}  // namespace tunewright::drafts

#endif
