// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tunewright/program/index_expr.hpp"

namespace tunewright::loops {

/// An expression has more terms than a flat one can hold.
class NoRoom : public std::length_error {
 public:
  NoRoom(std::size_t terms, std::size_t most)
      : std::length_error("loops: an index is a sum of " + std::to_string(terms) +
                          " terms, and summaries hold at most " + std::to_string(most) +
                          "; split its axis into fewer loops") {}
};

/// A `program::IndexExpr` without allocations: it holds as many terms as indices of schedules have; an `IndexArena`
/// holds the numerators of quotients and remainders. It has the same normal form, so equal expressions compare equal.
struct FlatIndex {
  using Kind = program::IndexExpr::Kind;
  struct Term {  // without initial values, because most terms are never used
    std::int64_t coefficient;
    std::int64_t divisor;  ///< for a Quotient or Remainder
    std::uint32_t of;      ///< the variable, or the index of the numerator in the arena
    Kind kind;
  };
  static constexpr std::size_t max_terms = 12;
  static constexpr std::size_t max_numerator = 1024;  ///< terms of a numerator, with those of its own numerators

  std::int64_t constant = 0;
  std::uint32_t count = 0;

  FlatIndex() noexcept {}  // NOLINT: terms beyond `count` are never read
  explicit FlatIndex(std::int64_t value) noexcept : constant(value) {}
  FlatIndex(const FlatIndex& other) noexcept : constant(other.constant), count(other.count) { copy_terms(other); }
  FlatIndex& operator=(const FlatIndex& other) noexcept {
    if (this == &other) return *this;
    constant = other.constant;
    count = other.count;
    copy_terms(other);
    return *this;
  }
  ~FlatIndex() = default;

  [[nodiscard]] std::span<const Term> terms() const noexcept { return {terms_.data(), count}; }
  [[nodiscard]] std::span<Term> terms() noexcept { return {terms_.data(), count}; }
  /// Whether all terms are variables; variables precede all other terms.
  [[nodiscard]] bool is_plain() const noexcept { return count == 0 || terms_[count - 1].kind == Kind::Variable; }
  void set(std::int64_t value) noexcept {
    constant = value;
    count = 0;
  }
  void insert(std::size_t place, const Term& term) {
    if (count == max_terms) throw NoRoom(max_terms + 1, max_terms);
    for (std::size_t i = count; i > place; --i) terms_[i] = terms_[i - 1];
    terms_[place] = term;
    ++count;
  }
  /// Appends a term that follows all others.
  void append(const Term& term, std::int64_t coefficient) {
    if (count == max_terms) throw NoRoom(max_terms + 1, max_terms);
    terms_[count++] = {coefficient, term.divisor, term.of, term.kind};
  }
  void erase(std::size_t place) noexcept {
    for (std::size_t i = place + 1; i < count; ++i) terms_[i - 1] = terms_[i];
    --count;
  }
  void scale(std::int64_t factor) noexcept {
    if (factor == 1) return;
    if (factor == 0) return set(0);
    constant *= factor;
    for (Term& term : terms()) term.coefficient *= factor;
  }

 private:
  void copy_terms(const FlatIndex& other) noexcept {
    for (std::size_t t = 0; t < count; ++t) terms_[t] = other.terms_[t];
  }

  std::array<Term, max_terms> terms_;
};

/// The algebra of flat expressions over variables from 0 to their extent - 1, and the storage of their numerators.
/// Results equal those of `program::IndexExpr` term for term, so simplifications are the same. `clear` makes all memory
/// reusable.
class IndexArena {
 public:
  using Term = FlatIndex::Term;
  using Kind = FlatIndex::Kind;

  void clear() noexcept {
    numerators_.clear();
    ranges_.clear();
    sizes_.clear();
    extents.clear();
  }
  [[nodiscard]] const FlatIndex& numerator(const Term& term) const noexcept { return numerators_[term.of]; }

  std::vector<std::int64_t> extents;  ///< of variables

  /// Terms, with those of numerators as often as these occur.
  [[nodiscard]] std::size_t size(const FlatIndex& e) const noexcept {
    std::size_t size = e.count;
    if (e.is_plain()) return size;
    for (const Term& term : e.terms()) size += term.kind == Kind::Variable ? 0 : sizes_[term.of];
    return size;
  }

  void add(FlatIndex& to, const FlatIndex& other, std::int64_t factor = 1) const {
    if (to.count == 0 && factor != 0) {
      const std::int64_t constant = to.constant;
      to = other;
      to.scale(factor);
      to.constant += constant;
      return;
    }
    to.constant += factor * other.constant;
    for (const Term& term : other.terms()) add(to, term, factor * term.coefficient);
  }
  /// `to` += `coefficient` * the atom of `term`.
  void add(FlatIndex& to, const Term& term, std::int64_t coefficient) const {
    if (coefficient == 0) return;
    if (term.kind == Kind::Variable && (to.count == 0 || is_variable_before(to.terms().back(), term.of))) {
      to.append(term, coefficient);
      return;
    }
    std::size_t place = to.count;
    for (; place > 0; --place) {  // from the end, where most terms belong
      Term& here = to.terms()[place - 1];
      const int order = compare_atoms(here, term);
      if (order < 0) break;
      if (order > 0) continue;
      here.coefficient += coefficient;
      if (here.coefficient == 0)
        to.erase(place - 1);
      else if (term.kind != Kind::Variable)
        rejoin(to, place - 1);
      return;
    }
    Term inserted = term;
    inserted.coefficient = coefficient;
    to.insert(place, inserted);
    if (term.kind != Kind::Variable) rejoin(to, place);
  }

  /// `to` += `coefficient` * a variable, which usually follows all other terms.
  void add_variable(FlatIndex& to, program::Var var, std::int64_t coefficient) const {
    if (coefficient != 0 && (to.count == 0 || is_variable_before(to.terms().back(), var)))
      to.append({coefficient, 1, var, Kind::Variable}, coefficient);
    else
      add(to, {coefficient, 1, var, Kind::Variable}, coefficient);
  }

  [[nodiscard]] bool equal(const FlatIndex& a, const FlatIndex& b) const { return compare(a, b) == 0; }

  [[nodiscard]] bool uses(const FlatIndex& e, program::Var var) const {
    const auto has = [&](const Term& t) { return t.kind == Kind::Variable ? t.of == var : uses(numerator(t), var); };
    return std::any_of(e.terms().begin(), e.terms().end(), has);
  }

  [[nodiscard]] program::Range range(const FlatIndex& e) const {
    program::Range total{e.constant, e.constant};
    for (const Term& term : e.terms()) widen(total, term);
    return total;
  }
  /// `total` += the range of a term with its coefficient.
  void widen(program::Range& total, const Term& term) const {
    const program::Range atom = range(term);
    const std::int64_t a = term.coefficient * atom.min, b = term.coefficient * atom.max;
    total.min += std::min(a, b);
    total.max += std::max(a, b);
  }
  /// The range of the atom of a term.
  [[nodiscard]] program::Range range(const Term& term) const {
    if (term.kind == Kind::Variable) return {0, extents[term.of] - 1};
    const program::Range inner = ranges_[term.of];
    const program::Range quotients{program::floor_div(inner.min, term.divisor),
                                   program::floor_div(inner.max, term.divisor)};
    if (term.kind == Kind::Quotient) return quotients;
    if (quotients.min == quotients.max)
      return {inner.min - quotients.min * term.divisor, inner.max - quotients.min * term.divisor};
    return {0, term.divisor - 1};
  }

  /// Quotient and remainder by a positive divisor. Neither may be `e`.
  void divide(const FlatIndex& e, std::int64_t divisor, FlatIndex& quotient, FlatIndex& remainder) {
    if (divisor == 1) {
      remainder.set(0);
      quotient = e;
      return;
    }
    if (e.count == 1 && e.constant == 0 && e.terms()[0].coefficient == 1) {
      divide_atom(e, divisor, quotient, remainder);
      return;
    }
    if (split(e, divisor, quotient, remainder)) return;
    const FlatIndex rest = remainder;
    remainder.set(0);
    if (divide_coarser(rest, divisor, quotient, remainder)) return;
    const std::uint32_t of = keep_numerator(rest, range(rest));
    add(remainder, {1, divisor, of, Kind::Remainder}, 1);
    add(quotient, {1, divisor, of, Kind::Quotient}, 1);
  }

  /// `e` with every variable replaced by the expression to which `of(var)` refers.
  template <class Of>
  void substitute(const program::IndexExpr& e, const Of& of, FlatIndex& result) {
    result.set(e.constant());
    for (const program::IndexExpr::Term& term : e.terms()) {
      if (term.kind == Kind::Variable) {
        add(result, of(term.var), term.coefficient);
        continue;
      }
      FlatIndex inner, quotient, remainder;
      substitute(*term.numerator, of, inner);
      divide(inner, term.divisor, quotient, remainder);
      add(result, term.kind == Kind::Quotient ? quotient : remainder, term.coefficient);
    }
  }
  /// Renames variable `from` to `to` in `e`.
  void rename(FlatIndex& e, program::Var from, program::Var to) {
    if (!uses(e, from)) return;
    FlatIndex renamed(e.constant);
    for (Term term : e.terms()) {
      if (term.kind == Kind::Variable) {
        if (term.of == from) term.of = to;
        add(renamed, term, term.coefficient);
        continue;
      }
      FlatIndex inner = numerator(term), quotient, remainder;
      rename(inner, from, to);
      divide(inner, term.divisor, quotient, remainder);
      add(renamed, term.kind == Kind::Quotient ? quotient : remainder, term.coefficient);
    }
    e = renamed;
  }

  /// Copies an expression that is already in normal form.
  void copy(const program::IndexExpr& e, FlatIndex& to) {
    to.set(e.constant());
    if (e.terms().size() > FlatIndex::max_terms) throw NoRoom(e.terms().size(), FlatIndex::max_terms);
    for (const program::IndexExpr::Term& term : e.terms()) {
      Term flat{term.coefficient, term.divisor, term.var, term.kind};
      if (term.kind != Kind::Variable) {
        FlatIndex inner;
        copy(*term.numerator, inner);
        flat.of = keep_numerator(inner, range(inner));
      }
      to.insert(to.count, flat);
    }
  }

 private:
  [[nodiscard]] static bool is_variable_before(const Term& term, program::Var var) noexcept {
    return term.kind == Kind::Variable && term.of < var;
  }
  [[nodiscard]] int compare(const FlatIndex& a, const FlatIndex& b) const {
    if (a.constant != b.constant) return a.constant < b.constant ? -1 : 1;
    if (a.count != b.count) return a.count < b.count ? -1 : 1;
    for (std::size_t i = 0; i < a.count; ++i) {
      const Term &x = a.terms()[i], &y = b.terms()[i];
      if (const int order = compare_atoms(x, y); order != 0) return order;
      if (x.coefficient != y.coefficient) return x.coefficient < y.coefficient ? -1 : 1;
    }
    return 0;
  }
  [[nodiscard]] int compare_atoms(const Term& a, const Term& b) const {
    if (a.kind != b.kind) return a.kind < b.kind ? -1 : 1;
    if (a.kind == Kind::Variable) return a.of == b.of ? 0 : a.of < b.of ? -1 : 1;
    if (a.divisor != b.divisor) return a.divisor < b.divisor ? -1 : 1;
    return a.of == b.of ? 0 : compare(numerators_[a.of], numerators_[b.of]);
  }

  /// c*m*(x div m) + c*(x mod m) -> c*x, where one of the two terms is the one at `changed`.
  void rejoin(FlatIndex& e, std::size_t changed) const {
    for (std::size_t other = 0; other < e.count; ++other) {
      if (e.terms()[other].kind == Kind::Variable || e.terms()[other].kind == e.terms()[changed].kind) continue;
      const bool is_quotient = e.terms()[changed].kind == Kind::Quotient;
      const Term quotient = e.terms()[is_quotient ? changed : other];
      const Term remainder = e.terms()[is_quotient ? other : changed];
      if (remainder.divisor != quotient.divisor || quotient.coefficient != remainder.coefficient * quotient.divisor ||
          (quotient.of != remainder.of && compare(numerator(quotient), numerator(remainder)) != 0))
        continue;
      e.erase(std::max(changed, other));
      e.erase(std::min(changed, other));
      add(e, numerator(remainder), remainder.coefficient);
      return;
    }
  }

  /// `divide` for a single atom.
  void divide_atom(const FlatIndex& e, std::int64_t divisor, FlatIndex& quotient, FlatIndex& remainder) {
    const program::Range r = range(e.terms()[0]);
    const std::int64_t carry = program::floor_div(r.min, divisor);
    if (carry == program::floor_div(r.max, divisor)) {
      quotient.set(carry);
      remainder = e;
      remainder.constant = -carry * divisor;
      return;
    }
    const std::uint32_t of = keep_numerator(e, r);
    quotient.set(0);
    quotient.append({1, divisor, of, Kind::Quotient}, 1);
    remainder.set(0);
    remainder.append({1, divisor, of, Kind::Remainder}, 1);
  }

  /// Splits `e` = divisor * `high` + `low`, with terms that are multiples of the divisor in `high`. True if `low` is
  /// within [0, divisor), so that it cannot carry.
  bool split(const FlatIndex& e, std::int64_t divisor, FlatIndex& high, FlatIndex& low) {
    high.set(program::floor_div(e.constant, divisor));
    low.set(program::floor_mod(e.constant, divisor));
    for (const Term& term : e.terms()) {
      // The terms stay in order, and terms that `rejoin` would join are already joined in `e`.
      const std::int64_t quotient = term.coefficient / divisor;
      if (quotient * divisor == term.coefficient)
        high.append(term, quotient);
      else
        low.append(term, term.coefficient);
    }
    if (low.count == 0) return true;
    const program::Range r = range(low);
    const std::int64_t carry = program::floor_div(r.min, divisor);
    if (carry != program::floor_div(r.max, divisor)) return false;
    high.constant += carry;
    low.constant -= carry * divisor;
    return true;
  }

  /// The greatest common divisor; usually the coefficient divides the divisor.
  [[nodiscard]] static std::int64_t common_divisor(std::int64_t coefficient, std::int64_t divisor) noexcept {
    const bool divides = coefficient > 0 && program::floor_mod(divisor, coefficient) == 0;
    return divides ? coefficient : std::gcd(coefficient, divisor);
  }

  /// Divides as `IndexExpr` does if some terms are multiples of a g that divides the divisor, and the others cannot
  /// carry. Adds to `quotient`.
  bool divide_coarser(const FlatIndex& e, std::int64_t divisor, FlatIndex& quotient, FlatIndex& remainder) {
    std::int64_t limit = divisor;
    while (limit > 1) {
      std::int64_t g = 1;
      for (const Term& term : e.terms()) {
        const std::int64_t common = common_divisor(term.coefficient, divisor);
        if (common < limit) g = std::max(g, common);
      }
      if (g == 1) return false;
      FlatIndex high, low;
      if (split(e, g, high, low)) {
        FlatIndex above;
        divide(high, divisor / g, above, remainder);
        remainder.scale(g);
        add(remainder, low);
        add(above, quotient);
        quotient = above;
        return true;
      }
      limit = g;
    }
    return false;
  }

  /// Returns the index in the arena.
  std::uint32_t keep_numerator(const FlatIndex& e, program::Range range) {
    const std::size_t terms = size(e);
    if (terms > FlatIndex::max_numerator) throw NoRoom(terms, FlatIndex::max_numerator);
    numerators_.push_back(e);
    ranges_.push_back(range);
    sizes_.push_back(static_cast<std::uint32_t>(terms));
    return static_cast<std::uint32_t>(numerators_.size() - 1);
  }

  std::vector<FlatIndex> numerators_;
  std::vector<program::Range> ranges_;  // of the numerators
  std::vector<std::uint32_t> sizes_;    // of the numerators
};

}  // namespace tunewright::loops
