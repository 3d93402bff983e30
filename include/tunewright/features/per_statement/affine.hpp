// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/loops/summary/flat_index.hpp"
#include "tunewright/program/index_expr.hpp"

namespace tunewright::features::per_statement {

/// The index expressions of one statement as dense rows of coefficients over the surrounding loops, depth 0 outermost:
///
///   form(loops) = constant + sum_d coefficient[d] * loop_d + sum_a weight[a] * atom_a
///
/// An atom is the floor quotient or remainder of another form by a constant. Equal atoms are stored once, so that
/// windows cancel against the coordinates they are subtracted from. Queries that would otherwise walk expressions once
/// per loop become passes over flat arrays: the ranges of a form while the loops from depth l inwards run and those
/// outside are zero, for all l at once, cost one addition per loop.
///
/// Ranges use interval arithmetic: exact for affine forms, conservative with atoms. Memory is reused between
/// statements. Cost: O(loops) per form and query.
class AffineForms {
 public:
  using Id = std::uint32_t;
  using Kind = program::IndexExpr::Kind;
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  /// Expressions over loop variables, of a nest or of a summary, with quotients and remainders in `arena`.
  struct Values {
    std::span<const program::IndexExpr> of_nest{};
    std::span<const loops::FlatIndex> of_summary{};
    const loops::IndexArena* arena = nullptr;

    [[nodiscard]] std::size_t size() const noexcept { return of_nest.size() + of_summary.size(); }
  };

  /// Removes all forms. `extents` are those of the loops by depth, `depth_of` the depth of each loop variable (`none`:
  /// always zero), `axis_values` the values of a statement's axes over loop variables; all must stay unchanged while
  /// forms are created and read.
  void reset(std::span<const std::int64_t> extents, std::span<const std::uint32_t> depth_of, const Values& axis_values);
  [[nodiscard]] std::size_t loops() const noexcept { return extents_.size(); }

  [[nodiscard]] Id zero();

  /// Value of axis `axis`. Computed once, because most indices consist of axes.
  [[nodiscard]] Id axis(program::Var axis);

  /// What the variables of an expression stand for.
  enum class Over : std::uint8_t { Axes, Loops };

  /// form += factor * values[i].
  void add(Id form, const Values& values, std::size_t i, std::int64_t factor);

  /// form += factor * e.
  void add(Id form, const program::IndexExpr& e, std::int64_t factor, Over variables);

  /// form += factor * e, over loops.
  void add(Id form, const loops::FlatIndex& e, std::int64_t factor, const loops::IndexArena& arena);

  /// into += factor * from.
  void add(Id into, Id from, std::int64_t factor);

  /// floor(form / divisor), and the remainder, as new forms.
  [[nodiscard]] Id quotient(Id form, std::int64_t divisor) { return divided(form, divisor, Kind::Quotient); }
  [[nodiscard]] Id remainder(Id form, std::int64_t by) { return divided(form, by, Kind::Remainder); }

  /// Calls `f(l, range)` for l from the innermost depth outwards, with the range of `form` while loops l and inside
  /// run.
  template <class F>
  void for_each_range(Id form, const F& f) const {
    program::Range linear{forms_[form].constant, forms_[form].constant};
    const std::int64_t* const coefficients = row(form);
    for (std::size_t l = loops(); l-- > 0;) {
      widen(linear, coefficients[l], l);
      program::Range total = linear;
      widen_by_atoms(total, form, l);
      f(l, total);
    }
  }

  /// Whether loop `depth` occurs in `form`.
  [[nodiscard]] bool uses(Id form, std::size_t depth) const;

  /// Average step of `form` per iteration of loop `depth`, ignoring the wrapping of remainders.
  [[nodiscard]] double step(Id form, std::size_t depth) const;

  /// Arithmetic to evaluate a form: additions, multiplications, and divisions or remainders.
  struct Arithmetic {
    double additions = 0;
    double multiplications = 0;
    double divisions = 0;
  };
  void count(Id form, Arithmetic& arithmetic) const;

 private:
  struct Form {
    std::int64_t constant = 0;
    std::uint32_t first_weight = none;
  };
  struct Weight {
    std::int64_t value = 0;
    std::uint32_t atom = 0;
    std::uint32_t next = none;
  };
  struct Atom {
    Kind kind{};
    std::int64_t divisor = 1;
    Id numerator = 0;
  };

  [[nodiscard]] std::int64_t* row(Id form) { return coefficients_.data() + form * loops(); }
  [[nodiscard]] const std::int64_t* row(Id form) const { return coefficients_.data() + form * loops(); }
  [[nodiscard]] std::int64_t& at(Id form, std::size_t depth) { return coefficients_[form * loops() + depth]; }
  [[nodiscard]] std::int64_t at(Id form, std::size_t depth) const { return coefficients_[form * loops() + depth]; }

  void widen(program::Range& range, std::int64_t coefficient, std::size_t depth) const;

  void widen_by_atoms(program::Range& range, Id form, std::size_t depth) const;

  void add_weight(Id form, std::uint32_t atom, std::int64_t value);

  [[nodiscard]] Id divided(Id form, std::int64_t divisor, Kind kind);

  /// form += factor * (numerator div or mod divisor); consumes `numerator`. Exactly divisible parts leave the numerator
  /// first, and a rest smaller than the divisor needs no atom.
  void add_atom(Id form, Kind kind, Id numerator, std::int64_t divisor, std::int64_t factor);

  [[nodiscard]] bool equal(Id a, Id b) const;

  [[nodiscard]] std::uint32_t intern(Kind kind, Id numerator, std::int64_t divisor);

  std::span<const std::int64_t> extents_;
  std::span<const std::uint32_t> depth_of_;
  Values axis_values_;
  std::vector<Id> axis_forms_;  // by axis; `none` if not computed yet
  std::vector<Form> forms_;
  std::vector<std::int64_t> coefficients_;  // (forms, loops)
  std::vector<Weight> weights_;             // linked lists, one per form
  std::vector<Atom> atoms_;
  std::vector<program::Range> atom_ranges_;  // (atoms, loops)
};

}  // namespace tunewright::features::per_statement

#if TUNEWRIGHT_DEFINES(program_features)

namespace tunewright::features::per_statement {

TUNEWRIGHT_INLINE void AffineForms::reset(std::span<const std::int64_t> extents,
                                          std::span<const std::uint32_t> depth_of, const Values& axis_values) {
  extents_ = extents;
  depth_of_ = depth_of;
  axis_values_ = axis_values;
  axis_forms_.assign(axis_values.size(), none);
  forms_.clear();
  coefficients_.clear();
  weights_.clear();
  atoms_.clear();
  atom_ranges_.clear();
}

TUNEWRIGHT_INLINE AffineForms::Id AffineForms::zero() {
  forms_.push_back({});
  coefficients_.resize(coefficients_.size() + loops(), 0);
  return static_cast<Id>(forms_.size() - 1);
}

TUNEWRIGHT_INLINE AffineForms::Id AffineForms::axis(program::Var axis) {
  if (axis_forms_[axis] == none) {
    const Id form = zero();
    add(form, axis_values_, axis, 1);
    axis_forms_[axis] = form;
  }
  return axis_forms_[axis];
}

TUNEWRIGHT_INLINE void AffineForms::add(Id form, const Values& values, std::size_t i, std::int64_t factor) {
  if (values.arena != nullptr)
    add(form, values.of_summary[i], factor, *values.arena);
  else
    add(form, values.of_nest[i], factor, Over::Loops);
}

TUNEWRIGHT_INLINE void AffineForms::add(Id form, const program::IndexExpr& e, std::int64_t factor, Over variables) {
  forms_[form].constant += factor * e.constant();
  for (const program::IndexExpr::Term& term : e.terms()) {
    const std::int64_t scaled = factor * term.coefficient;
    if (term.kind != Kind::Variable) {
      const Id numerator = zero();
      add(numerator, *term.numerator, 1, variables);
      add_atom(form, term.kind, numerator, term.divisor, scaled);
    } else if (variables == Over::Axes) {
      add(form, axis(term.var), scaled);
    } else if (const std::uint32_t depth = depth_of_[term.var]; depth != none) {
      at(form, depth) += scaled;
    }
  }
}

TUNEWRIGHT_INLINE void AffineForms::add(Id form, const loops::FlatIndex& e, std::int64_t factor,
                                        const loops::IndexArena& arena) {
  forms_[form].constant += factor * e.constant;
  for (const loops::FlatIndex::Term& term : e.terms()) {
    const std::int64_t scaled = factor * term.coefficient;
    if (term.kind != Kind::Variable) {
      const Id numerator = zero();
      add(numerator, arena.numerator(term), 1, arena);
      add_atom(form, term.kind, numerator, term.divisor, scaled);
    } else if (const std::uint32_t depth = depth_of_[term.of]; depth != none) {
      at(form, depth) += scaled;
    }
  }
}

TUNEWRIGHT_INLINE void AffineForms::add(Id into, Id from, std::int64_t factor) {
  forms_[into].constant += factor * forms_[from].constant;
  std::int64_t* const sum = row(into);
  const std::int64_t* const added = row(from);
  for (std::size_t l = 0; l < loops(); ++l) sum[l] += factor * added[l];
  for (std::uint32_t w = forms_[from].first_weight; w != none; w = weights_[w].next) {
    add_weight(into, weights_[w].atom, factor * weights_[w].value);
  }
}

TUNEWRIGHT_INLINE bool AffineForms::uses(Id form, std::size_t depth) const {
  if (at(form, depth) != 0) return true;
  for (std::uint32_t w = forms_[form].first_weight; w != none; w = weights_[w].next) {
    if (uses(atoms_[weights_[w].atom].numerator, depth)) return true;
  }
  return false;
}

TUNEWRIGHT_INLINE double AffineForms::step(Id form, std::size_t depth) const {
  auto moved = static_cast<double>(at(form, depth));
  for (std::uint32_t w = forms_[form].first_weight; w != none; w = weights_[w].next) {
    const Atom& atom = atoms_[weights_[w].atom];
    const auto divisor = static_cast<double>(atom.divisor);
    const double inner = step(atom.numerator, depth);
    moved += static_cast<double>(weights_[w].value) *
             (atom.kind == Kind::Quotient ? inner / divisor : std::fmod(inner, divisor));
  }
  return moved;
}

TUNEWRIGHT_INLINE void AffineForms::count(Id form, Arithmetic& arithmetic) const {
  double summands = forms_[form].constant != 0 ? 1 : 0;
  const auto count_summand = [&](std::int64_t coefficient) {
    ++summands;
    if (coefficient != 1 && coefficient != -1) ++arithmetic.multiplications;
  };
  const std::int64_t* const coefficients = row(form);
  for (std::size_t l = 0; l < loops(); ++l) {
    if (coefficients[l] != 0) count_summand(coefficients[l]);
  }
  for (std::uint32_t w = forms_[form].first_weight; w != none; w = weights_[w].next) {
    count_summand(weights_[w].value);
    ++arithmetic.divisions;
    count(atoms_[weights_[w].atom].numerator, arithmetic);
  }
  arithmetic.additions += std::max(0.0, summands - 1);
}

TUNEWRIGHT_INLINE void AffineForms::widen(program::Range& range, std::int64_t coefficient, std::size_t depth) const {
  const std::int64_t reach = coefficient * (extents_[depth] - 1);
  (reach < 0 ? range.min : range.max) += reach;
}

TUNEWRIGHT_INLINE void AffineForms::widen_by_atoms(program::Range& range, Id form, std::size_t depth) const {
  for (std::uint32_t w = forms_[form].first_weight; w != none; w = weights_[w].next) {
    const program::Range atom = atom_ranges_[weights_[w].atom * loops() + depth];
    const std::int64_t k = weights_[w].value;
    range.min += k * (k > 0 ? atom.min : atom.max);
    range.max += k * (k > 0 ? atom.max : atom.min);
  }
}

TUNEWRIGHT_INLINE void AffineForms::add_weight(Id form, std::uint32_t atom, std::int64_t value) {
  for (std::uint32_t* w = &forms_[form].first_weight; *w != none; w = &weights_[*w].next) {
    if (weights_[*w].atom != atom) continue;
    weights_[*w].value += value;
    if (weights_[*w].value == 0) *w = weights_[*w].next;
    return;
  }
  weights_.push_back({value, atom, forms_[form].first_weight});
  forms_[form].first_weight = static_cast<std::uint32_t>(weights_.size() - 1);
}

TUNEWRIGHT_INLINE AffineForms::Id AffineForms::divided(Id form, std::int64_t divisor, Kind kind) {
  const Id numerator = zero();
  add(numerator, form, 1);
  const Id result = zero();
  add_atom(result, kind, numerator, divisor, 1);
  return result;
}

TUNEWRIGHT_INLINE void AffineForms::add_atom(Id form, Kind kind, Id numerator, std::int64_t divisor,
                                             std::int64_t factor) {
  const bool quotient = kind == Kind::Quotient;
  const std::int64_t whole = program::floor_div(forms_[numerator].constant, divisor);
  forms_[numerator].constant -= whole * divisor;
  if (quotient) forms_[form].constant += factor * whole;
  std::int64_t* const inner = row(numerator);
  std::int64_t* const sum = row(form);
  for (std::size_t l = 0; l < loops(); ++l) {
    if (inner[l] == 0) continue;
    const std::int64_t times = program::floor_div(inner[l], divisor);
    if (times * divisor != inner[l]) continue;
    if (quotient) sum[l] += factor * times;
    inner[l] = 0;
  }
  for (std::uint32_t* w = &forms_[numerator].first_weight; *w != none;) {
    const Weight weight = weights_[*w];
    if (weight.value % divisor != 0) {
      w = &weights_[*w].next;
      continue;
    }
    *w = weight.next;
    if (quotient) add_weight(form, weight.atom, factor * (weight.value / divisor));
    w = &forms_[numerator].first_weight;  // adding may have reallocated the weights
  }
  program::Range range{forms_[numerator].constant, forms_[numerator].constant};
  for (std::size_t l = 0; l < loops(); ++l) widen(range, inner[l], l);
  if (loops() > 0) widen_by_atoms(range, numerator, 0);
  const std::int64_t low = program::floor_div(range.min, divisor);
  if (low != program::floor_div(range.max, divisor)) {
    add_weight(form, intern(kind, numerator, divisor), factor);
  } else if (quotient) {
    forms_[form].constant += factor * low;
  } else {
    forms_[numerator].constant -= low * divisor;
    add(form, numerator, factor);
  }
}

TUNEWRIGHT_INLINE bool AffineForms::equal(Id a, Id b) const {
  if (forms_[a].constant != forms_[b].constant) return false;
  if (!std::equal(row(a), row(a) + loops(), row(b))) return false;
  std::uint32_t u = forms_[a].first_weight;
  std::uint32_t v = forms_[b].first_weight;
  for (; u != none && v != none; u = weights_[u].next, v = weights_[v].next) {
    if (weights_[u].atom != weights_[v].atom || weights_[u].value != weights_[v].value) return false;
  }
  return u == v;
}

TUNEWRIGHT_INLINE std::uint32_t AffineForms::intern(Kind kind, Id numerator, std::int64_t divisor) {
  for (std::uint32_t a = 0; a < atoms_.size(); ++a) {
    if (atoms_[a].kind == kind && atoms_[a].divisor == divisor && equal(atoms_[a].numerator, numerator)) return a;
  }
  const auto atom = static_cast<std::uint32_t>(atoms_.size());
  atoms_.push_back({kind, divisor, numerator});
  atom_ranges_.resize(atom_ranges_.size() + loops());
  program::Range last{1, 0};  // not a possible range, so that the first one is divided
  for_each_range(numerator, [&](std::size_t l, program::Range range) {
    program::Range& found = atom_ranges_[atom * loops() + l];
    if (range == last) {
      found = atom_ranges_[atom * loops() + l + 1];
      return;
    }
    last = range;
    found = {program::floor_div(range.min, divisor), program::floor_div(range.max, divisor)};
    if (kind == Kind::Remainder) {
      const bool one_period = found.min == found.max;
      found = one_period ? program::Range{range.min - found.min * divisor, range.max - found.min * divisor}
                         : program::Range{0, divisor - 1};
    }
  });
  return atom;
}

}  // namespace tunewright::features::per_statement

#endif
