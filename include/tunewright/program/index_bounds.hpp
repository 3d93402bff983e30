// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/program/expr.hpp"
#include "tunewright/program/index_expr.hpp"
#include "tunewright/program/range.hpp"

namespace tunewright::program::detail {

/// The values of an index over all axes.
struct IndexReach {
  Range range;
  std::int64_t magnitude = 0;  ///< sum of its terms, each at its largest and at least its coefficient, without signs
};

/// The values that indices have in a branch of selects: those over the axes at which the comparisons of indices hold
/// that lead to the branch.
class IndexBounds {
 public:
  /// `extents` are those of the axes. No index may have a larger `magnitude` than `most`, which is at most 2^53.
  IndexBounds(std::vector<std::int64_t> extents, std::int64_t most) : extents_(std::move(extents)), most_(most) {}

  /// Nothing for a larger magnitude, with which arithmetic could overflow. Other members need indices that have one.
  [[nodiscard]] std::optional<IndexReach> reach(const IndexExpr& e) const;

  /// Enters the branch in which `condition` holds, or does not hold. Parts of it that are no comparisons of indices,
  /// and alternatives, tell nothing.
  void enter(const Expr& condition, bool holds);
  [[nodiscard]] std::size_t depth() const noexcept { return known_.size(); }
  /// Leaves all branches that were entered since there was this `depth`.
  void leave(std::size_t depth);

  /// The values of an index in this branch as intervals tell; empty if nothing is left, so that no values lead here.
  [[nodiscard]] std::optional<Range> values(const IndexExpr& e);

  /// Whether an index is in [0, extent) in this branch: by intervals or, if its axes have at most 2^16 values, by
  /// trying all. False if neither tells.
  [[nodiscard]] bool is_inside(const IndexExpr& e, std::int64_t extent);

 private:
  /// form * step + constant is an index whose terms have no common factor but `step`; `form` has no constant.
  struct Scaled {
    IndexExpr form;
    std::int64_t step = 0;
  };
  /// form >= least
  struct Known {
    IndexExpr form;
    std::int64_t least = 0;
  };

  [[nodiscard]] static Scaled scaled(const IndexExpr& e);
  /// The number that an expression compares, if it is an index or a constant.
  [[nodiscard]] std::optional<IndexExpr> compared(const Expr& e) const;
  void add_known(const IndexExpr& e, std::int64_t least);
  /// What is left of the `range` of `e`.
  [[nodiscard]] std::optional<Range> narrowed(const IndexExpr& e, Range range);
  [[nodiscard]] bool is_inside_everywhere(const IndexExpr& e, std::int64_t extent);
  /// False once all comparisons and values together are too many to be a matter of seconds.
  [[nodiscard]] bool may_take(std::size_t steps);

  std::vector<std::int64_t> extents_;
  std::int64_t most_;
  std::vector<Known> known_;
  std::optional<std::size_t> depth_reached_;  ///< the last one that values lead to, if they do not lead here
  std::size_t steps_left_ = std::size_t{1} << 24;
};

}  // namespace tunewright::program::detail

#if TUNEWRIGHT_DEFINES(program)

#include <algorithm>
#include <numeric>

#include "tunewright/core/bounded_product.hpp"

namespace tunewright::program::detail {

TUNEWRIGHT_INLINE std::optional<IndexReach> IndexBounds::reach(const IndexExpr& e) const {
  const auto magnitude = [this](std::int64_t x) { return x < -most_ || x > most_ ? most_ + 1 : x < 0 ? -x : x; };
  IndexReach sum{{e.constant(), e.constant()}, magnitude(e.constant())};
  for (const IndexExpr::Term& t : e.terms()) {
    Range atom{0, 0};
    std::int64_t largest = 1;
    if (t.kind == IndexExpr::Kind::Variable) {
      atom.max = extents_[t.var] - 1;
    } else {
      const std::optional<IndexReach> numerator = reach(*t.numerator);
      if (!numerator) return std::nullopt;
      atom = IndexExpr::term_range(t, numerator->range);
      // To join it with a quotient, a remainder's coefficient is multiplied by its divisor.
      if (t.kind == IndexExpr::Kind::Remainder) largest = magnitude(t.divisor);
    }
    largest = std::max({largest, magnitude(atom.min), magnitude(atom.max)});
    sum.magnitude += bounded_product(magnitude(t.coefficient), largest, most_ + 1);
    if (sum.magnitude > most_) return std::nullopt;
    const std::int64_t a = t.coefficient * atom.min, b = t.coefficient * atom.max;
    sum.range.min += std::min(a, b);
    sum.range.max += std::max(a, b);
  }
  if (sum.magnitude > most_) return std::nullopt;
  return sum;
}

TUNEWRIGHT_INLINE void IndexBounds::enter(const Expr& condition, bool holds) {
  switch (condition->op) {
    case Op::Not: enter(condition->args[0], !holds); return;
    case Op::And:
    case Op::Or:
      if ((condition->op == Op::And) == holds)
        for (const Expr& arg : condition->args) enter(arg, holds);
      return;
    case Op::Less:
    case Op::LessEqual:
    case Op::Equal: break;
    default: return;
  }
  const std::optional<IndexExpr> a = compared(condition->args[0]), b = compared(condition->args[1]);
  if (!a || !b) return;
  if (condition->op != Op::Equal) {
    const bool differ = (condition->op == Op::Less) == holds;
    add_known(holds ? *b - *a : *a - *b, differ ? 1 : 0);
  } else if (holds) {
    add_known(*b - *a, 0);
    add_known(*a - *b, 0);
  }
}

TUNEWRIGHT_INLINE void IndexBounds::leave(std::size_t depth) {
  known_.erase(known_.begin() + static_cast<std::ptrdiff_t>(depth), known_.end());
  if (depth_reached_ && depth <= *depth_reached_) depth_reached_.reset();
}

TUNEWRIGHT_INLINE std::optional<Range> IndexBounds::values(const IndexExpr& e) {
  if (depth_reached_) return std::nullopt;
  Range sum{e.constant(), e.constant()};
  for (const IndexExpr::Term& t : e.terms()) {
    Range atom{0, 0};
    if (t.kind == IndexExpr::Kind::Variable) {
      atom.max = extents_[t.var] - 1;
    } else {
      const std::optional<Range> numerator = values(*t.numerator);
      if (!numerator) return std::nullopt;
      atom = IndexExpr::term_range(t, *numerator);
    }
    IndexExpr::Term once = t;
    once.coefficient = 1;
    const std::optional<Range> left = narrowed(IndexExpr::from_term(once), atom);
    if (!left) return std::nullopt;
    const std::int64_t a = t.coefficient * left->min, b = t.coefficient * left->max;
    sum.min += std::min(a, b);
    sum.max += std::max(a, b);
  }
  return narrowed(e, sum);
}

TUNEWRIGHT_INLINE bool IndexBounds::is_inside(const IndexExpr& e, std::int64_t extent) {
  const std::optional<Range> range = values(e);
  return !range || (range->min >= 0 && range->max < extent) || is_inside_everywhere(e, extent);
}

TUNEWRIGHT_INLINE IndexBounds::Scaled IndexBounds::scaled(const IndexExpr& e) {
  Scaled result{e - IndexExpr(e.constant())};
  for (const IndexExpr::Term& t : e.terms()) result.step = std::gcd(result.step, t.coefficient);
  if (result.step > 1) {
    result.form = IndexExpr::quotient(result.form, result.step, [](Var) { return Range{}; });
  }
  return result;
}

TUNEWRIGHT_INLINE std::optional<IndexExpr> IndexBounds::compared(const Expr& e) const {
  if (e->op == Op::Index) return e->index;
  if (e->op != Op::Constant || e->type != ScalarType::Int64) return std::nullopt;
  const auto most = static_cast<double>(most_);
  if (e->value < -most || e->value > most) return std::nullopt;
  return IndexExpr(static_cast<std::int64_t>(e->value));
}

TUNEWRIGHT_INLINE void IndexBounds::add_known(const IndexExpr& e, std::int64_t least) {
  Scaled part = scaled(e);
  if (part.step > 0) {
    known_.push_back({std::move(part.form), ceil_div(least - e.constant(), part.step)});
  } else if (e.constant() < least && !depth_reached_) {
    // Two numbers compare the same for all values. An entry that never holds gives the branch a depth of its own.
    depth_reached_ = known_.size();
    known_.push_back({IndexExpr(0), 1});
  }
}

TUNEWRIGHT_INLINE std::optional<Range> IndexBounds::narrowed(const IndexExpr& e, Range range) {
  if (known_.empty() || e.is_constant() || !may_take(known_.size())) return range;
  const Scaled part = scaled(e);
  const IndexExpr opposite = -part.form;
  // The constant and all terms are multiples of the step from each other.
  Range left{(range.min - e.constant()) / part.step, (range.max - e.constant()) / part.step};
  for (const Known& known : known_) {
    if (known.form == part.form) left.min = std::max(left.min, known.least);
    if (known.form == opposite) left.max = std::min(left.max, -known.least);
  }
  if (left.min > left.max) return std::nullopt;
  return Range{left.min * part.step + e.constant(), left.max * part.step + e.constant()};
}

TUNEWRIGHT_INLINE bool IndexBounds::is_inside_everywhere(const IndexExpr& e, std::int64_t extent) {
  constexpr std::int64_t most_points = std::int64_t{1} << 16;
  std::vector<Var> axes;
  for_each_variable(e, [&](Var var) { axes.push_back(var); });
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  std::int64_t points = 1;
  for (const Var axis : axes) points = bounded_product(points, extents_[axis], most_points + 1);
  if (points > most_points) return false;

  // Comparisons with other axes hold for some of their values or for none; the former is assumed.
  std::vector<const Known*> conditions;
  std::size_t steps = 1 + e.size();
  for (const Known& known : known_) {
    bool is_of_axes = true;
    for_each_variable(known.form,
                      [&](Var var) { is_of_axes = is_of_axes && std::binary_search(axes.begin(), axes.end(), var); });
    if (!is_of_axes) continue;
    conditions.push_back(&known);
    steps += 1 + known.form.size();
  }
  if (!may_take(known_.size() + steps * static_cast<std::size_t>(points))) return false;

  std::vector<std::int64_t> value(extents_.size(), 0);
  const auto value_of = [&](Var var) { return value[var]; };
  for (std::int64_t point = 0; point < points; ++point) {
    std::int64_t rest = point;
    for (const Var axis : axes) {
      value[axis] = rest % extents_[axis];
      rest /= extents_[axis];
    }
    const bool leads_here = std::all_of(conditions.begin(), conditions.end(), [&](const Known* known) {
      return known->form.evaluate(value_of) >= known->least;
    });
    if (!leads_here) continue;
    const std::int64_t index = e.evaluate(value_of);
    if (index < 0 || index >= extent) return false;
  }
  return true;
}

TUNEWRIGHT_INLINE bool IndexBounds::may_take(std::size_t steps) {
  if (steps > steps_left_) return false;
  steps_left_ -= steps;
  return true;
}

}  // namespace tunewright::program::detail

#endif
