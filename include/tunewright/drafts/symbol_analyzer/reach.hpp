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

#include "tunewright/drafts/symbol_analyzer/nest_reader.hpp"
#include "tunewright/loops/nest.hpp"

namespace tunewright::drafts {

/// Values an index takes.
struct IndexReach {
  double count = 1;
  std::int64_t span = 0;  ///< largest minus smallest
};

/// Bytes of a buffer that loops reach.
struct Footprint {
  double bytes = 0;
  double claimed = 0;  ///< of a cache: more where they crowd into some of its sets
};

/// The store (access 0) and the distinct loads of one statement, and what they reach.
///
/// `run(loops)` lets exactly these loops run, the others rest; the questions below are about that. Only what
/// depends on a loop that changed is found anew, so asking for growing sets is cheap.
class StatementReach {
 public:
  struct Access {
    loops::BufferId buffer = 0;
    const program::ExprNode* load = nullptr;  ///< null: the store
    LoopSet moved_by = 0;
    std::size_t first = 0;  ///< of its dimensions among those of all loads
  };

  void reset(const NestReader& reader, const OutlineStatement& statement) {
    reader_ = &reader;
    statement_ = &statement;
    iterations_[NestReader::none] = 1;
    std::fill_n(iterations_.begin(), reader.open().size(), 1);
    running_ = 0;
    axes_.resize(statement.axis_values.size());
    for (std::size_t axis = 0; axis < axes_.size(); ++axis)
      axes_[axis] = {loops_in(statement.axis_values[axis]), {}};
    accesses_.clear();
    dimensions_.clear();
    Access store{statement.target, nullptr, 0};
    for (std::size_t d = 0; d < reader.outline().buffers[statement.target].shape.size(); ++d)
      store.moved_by |= axes_[d].moved_by;
    accesses_.push_back(store);
    for (const OutlineLoad& load : statement.loads) {
      Access access{load.buffer, load.node, 0, dimensions_.size()};
      for (const program::IndexExpr& index : load.node->indices) {
        Dimension& dimension = dimensions_.emplace_back();
        if (const auto axis = index.as_variable()) {
          dimension.axis = *axis;
          dimension.moved_by = axes_[*axis].moved_by;
        } else {
          dimension.index = &index;
          program::for_each_variable(index,
                                     [&](program::Var var) { dimension.moved_by |= axes_[var].moved_by; });
        }
        access.moved_by |= dimension.moved_by;
      }
      accesses_.push_back(access);
    }
  }

  [[nodiscard]] std::span<const Access> accesses() const noexcept { return accesses_; }
  /// Loops that move an axis of the statement's operator.
  [[nodiscard]] LoopSet moved_by(std::size_t axis) const { return axes_[axis].moved_by; }
  [[nodiscard]] std::size_t axes() const noexcept { return axes_.size(); }
  [[nodiscard]] const OutlineBuffer& buffer(const Access& a) const {
    return reader_->outline().buffers[a.buffer];
  }
  [[nodiscard]] double element_bytes(const Access& a) const { return buffer(a).element_bytes; }

  /// Of the loops bound to threads, only the first `threads` together run: the x dimension first, as those of a warp.
  void run(LoopSet running, std::int64_t threads = std::numeric_limits<std::int64_t>::max()) {
    const LoopSet changed = (running ^ running_) | (threads == threads_ ? 0 : reader_->thread_loops());
    running_ = running;
    threads_ = threads;
    for (LoopSet left = changed & reader_->all_loops(); left != 0; left &= left - 1) {
      const auto depth = static_cast<std::size_t>(std::countr_zero(left));
      iterations_[depth] = (running_ >> depth & 1U) != 0 ? running_iterations(depth) : 1;
    }
    for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
      if ((axes_[axis].moved_by & changed) == 0) continue;
      axes_[axis].reach = reach(statement_->axis_values[axis], [this](loops::Var var) {
        const std::int64_t iterations = iterations_[reader_->depth_of(var)];
        return IndexReach{static_cast<double>(iterations), iterations - 1};
      });
    }
    for (Dimension& dimension : dimensions_) {
      if ((dimension.moved_by & changed) == 0) continue;
      dimension.reach = dimension.index == nullptr
                            ? axes_[dimension.axis].reach
                            : reach(*dimension.index, [this](program::Var axis) -> const IndexReach& {
                                return axes_[axis].reach;
                              });
    }
  }

  /// Values the index of one dimension takes.
  [[nodiscard]] IndexReach index(const Access& a, std::size_t dimension) const {
    return a.load == nullptr ? axes_[dimension].reach : dimensions_[a.first + dimension].reach;
  }
  /// Distinct elements of the tensor.
  [[nodiscard]] double elements(const Access& a) const {
    double product = 1;
    for (std::size_t d = 0; d < buffer(a).shape.size(); ++d) product *= index(a, d).count;
    return product;
  }
  /// What is reached of the buffer, in whole cache lines. Sets are told apart by the lowest bits of an address, in the
  /// memory of a process by those within a page, so rows that lie a multiple of 2^b bytes apart begin in the same
  /// sets: each keeps others out of 2^b bytes, a page at most.
  [[nodiscard]] Footprint footprint(const Access& a, double line) const {
    constexpr std::int64_t page = 4096;
    const OutlineBuffer& b = buffer(a);
    double bytes = element_bytes(a), claimed = bytes;
    auto pitch = static_cast<std::int64_t>(bytes);
    for (std::size_t d = b.shape.size(); d-- > 0;) {
      const double count = std::min(index(a, d).count, static_cast<double>(b.shape[d]));
      bytes *= count;
      if (b.packed) continue;
      if (d + 1 == b.shape.size()) {
        claimed = bytes = whole(bytes, line);
      } else if (count > 1) {
        claimed = count * std::max(claimed, static_cast<double>(std::min(pitch & -pitch, page)));
      }
      pitch *= b.shape[d];
    }
    if (b.packed) claimed = bytes = whole(bytes, line);
    return {bytes, claimed};
  }

  /// True when an iteration of loop `depth` moves the access by one element of its buffer.
  [[nodiscard]] bool contiguous(const Access& a, std::size_t depth) const {
    const OutlineBuffer& b = buffer(a);
    if (b.shape.empty()) return false;
    if (b.packed && b.innermost.divisor != 1) return false;
    const std::size_t innermost = b.packed ? b.innermost.dimension : b.shape.size() - 1;
    const auto moves = [&](std::size_t d) { return (moved_by(a, d) >> depth & 1U) != 0; };
    if (!moves(innermost) || step(a, innermost, depth) != 1) return false;
    for (std::size_t d = 0; d < b.shape.size(); ++d)
      if (d != innermost && moves(d) && step(a, d, depth) != 0) return false;
    return true;
  }

 private:
  struct Axis {
    LoopSet moved_by = 0;
    IndexReach reach;
  };
  struct Dimension {
    LoopSet moved_by = 0;
    IndexReach reach;
    program::Var axis = 0;                      ///< that it is, where there is no index
    const program::IndexExpr* index = nullptr;  ///< any other one
  };

  [[nodiscard]] LoopSet moved_by(const Access& a, std::size_t dimension) const {
    return a.load == nullptr ? axes_[dimension].moved_by : dimensions_[a.first + dimension].moved_by;
  }
  /// The open loops whose variables an expression uses.
  [[nodiscard]] LoopSet loops_in(const FlatIndex& e) const {
    LoopSet all = 0;
    for (const FlatIndex::Term& term : e.terms()) {
      if (term.kind != FlatIndex::Kind::Variable)
        all |= loops_in(numerator(term));
      else if (const std::uint8_t depth = reader_->depth_of(term.of); depth != NestReader::none)
        all |= LoopSet{1} << depth;
    }
    return all;
  }

  static double whole(double bytes, double line) {
    return static_cast<double>(static_cast<std::int64_t>((bytes + line - 1) / line)) * line;
  }

  [[nodiscard]] std::int64_t running_iterations(std::size_t depth) const {
    const OutlineLoop& loop = reader_->open()[depth];
    if (!schedule::is_thread_index(loop.kind)) return loop.extent;
    std::int64_t left = threads_;
    for (const loops::LoopKind faster : {loops::LoopKind::ThreadX, loops::LoopKind::ThreadY}) {
      if (faster >= loop.kind) break;
      left /= static_cast<std::int64_t>(reader_->iterations(reader_->loops_of(faster)));
    }
    return std::clamp<std::int64_t>(left, 1, loop.extent);
  }

  static program::Var variable(const program::IndexExpr::Term& term) { return term.var; }
  static program::Var variable(const FlatIndex::Term& term) { return term.of; }
  [[nodiscard]] const program::IndexExpr& numerator(const program::IndexExpr::Term& term) const {
    return *term.numerator;
  }
  [[nodiscard]] const FlatIndex& numerator(const FlatIndex::Term& term) const {
    return reader_->outline().indices.numerator(term);
  }

  template <class Index, class Base>
  [[nodiscard]] IndexReach reach(const Index& e, const Base& base) const {
    IndexReach all;
    for (const auto& term : e.terms()) {
      IndexReach part;
      if (term.kind == program::IndexExpr::Kind::Variable) {
        part = base(variable(term));
      } else {
        part = reach(numerator(term), base);
        part.span = term.kind == program::IndexExpr::Kind::Quotient
                        ? program::floor_div(part.span, term.divisor)
                        : std::min(part.span, term.divisor - 1);
        part.count = std::min(part.count, static_cast<double>(part.span + 1));
      }
      all.count *= part.count;
      all.span += std::abs(term.coefficient) * part.span;
    }
    all.count = std::min(all.count, static_cast<double>(all.span + 1));
    return all;
  }

  /// Elements that an iteration of loop `depth` moves the index of dimension `d` by, wrapping left aside.
  [[nodiscard]] std::int64_t step(const Access& a, std::size_t d, std::size_t depth) const {
    const auto over_loops = [&](const FlatIndex& e) {
      return step(e,
                  [&](loops::Var var) -> std::int64_t { return var == reader_->open()[depth].var ? 1 : 0; });
    };
    if (a.load == nullptr) return over_loops(statement_->axis_values[d]);
    return step(a.load->indices[d],
                [&](program::Var axis) { return over_loops(statement_->axis_values[axis]); });
  }
  template <class Index, class StepOf>
  [[nodiscard]] std::int64_t step(const Index& e, const StepOf& step_of) const {
    std::int64_t moved = 0;
    for (const auto& term : e.terms()) {
      if (term.kind == program::IndexExpr::Kind::Variable) {
        moved += term.coefficient * step_of(variable(term));
      } else {
        const std::int64_t inner = step(numerator(term), step_of);
        moved += term.coefficient * (term.kind == program::IndexExpr::Kind::Quotient ? inner / term.divisor
                                                                                     : inner % term.divisor);
      }
    }
    return moved;
  }

  const NestReader* reader_ = nullptr;
  const OutlineStatement* statement_ = nullptr;
  LoopSet running_ = 0;
  std::int64_t threads_ = std::numeric_limits<std::int64_t>::max();
  std::array<std::int64_t, NestReader::none + 1>
      iterations_;  // by depth; 1 of loops that rest, or are elsewhere
  std::vector<Axis> axes_;
  std::vector<Dimension> dimensions_;  // of all loads
  std::vector<Access> accesses_;
};

}  // namespace tunewright::drafts
