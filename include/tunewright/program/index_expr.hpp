// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "tunewright/core/function_ref.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/program/range.hpp"

namespace tunewright::program {

/// Number of an integer variable: an axis of an operator, or a loop of a loop nest. Each context has its own numbers.
using Var = std::uint32_t;

/// Quasi-affine integer expression: constant + sum of coefficient * atom, where an atom is a variable, or the
/// floor quotient or remainder of another expression by a positive constant.
///
/// Always normalised: terms are sorted, equal atoms merged, zero coefficients dropped, and `c*m*(x div m) + c*(x mod
/// m)` becomes `c*x`; region inference relies on cancellation.
class IndexExpr {
 public:
  enum class Kind : std::uint8_t { Variable, Quotient, Remainder };

  struct Term {
    std::int64_t coefficient = 0;
    Kind kind = Kind::Variable;
    Var var = 0;                                 ///< of a Variable
    std::int64_t divisor = 1;                    ///< of a Quotient or Remainder, positive
    std::shared_ptr<const IndexExpr> numerator;  ///< of a Quotient or Remainder
  };
  using Terms = boost::container::small_vector<Term, 4>;
  /// The range of each variable.
  using RangeOf = FunctionRef<Range(Var)>;

  IndexExpr() = default;
  IndexExpr(std::int64_t constant) : constant_(constant) {}  // NOLINT: integers are index expressions
  IndexExpr(int constant) : constant_(constant) {}           // NOLINT
  [[nodiscard]] static IndexExpr variable(Var var);

  /// A single term of another expression, with its coefficient.
  [[nodiscard]] static IndexExpr from_term(const Term& term);

  [[nodiscard]] std::int64_t constant() const noexcept { return constant_; }
  [[nodiscard]] const Terms& terms() const noexcept { return terms_; }
  [[nodiscard]] bool is_constant() const noexcept { return terms_.empty(); }
  /// Whether there is no quotient or remainder.
  [[nodiscard]] bool is_affine() const noexcept {
    return std::all_of(terms_.begin(), terms_.end(), [](const Term& t) { return t.kind == Kind::Variable; });
  }
  /// The variable, if this expression is one with coefficient 1.
  [[nodiscard]] std::optional<Var> as_variable() const noexcept;
  /// Coefficient of `var` among the variable terms, ignoring quotients and remainders.
  [[nodiscard]] std::int64_t coefficient(Var var) const noexcept;
  /// Whether `var` occurs anywhere.
  [[nodiscard]] bool uses(Var var) const noexcept;

  IndexExpr& operator+=(const IndexExpr& other) { return add(other, 1); }
  IndexExpr& operator-=(const IndexExpr& other) { return add(other, -1); }
  IndexExpr& operator*=(std::int64_t factor);
  /// *this += factor * other.
  IndexExpr& add(const IndexExpr& other, std::int64_t factor);
  /// *this += term.
  IndexExpr& add(const Term& term);

  friend IndexExpr operator+(IndexExpr a, const IndexExpr& b) { return a += b; }
  friend IndexExpr operator-(IndexExpr a, const IndexExpr& b) { return a -= b; }
  friend IndexExpr operator*(IndexExpr a, std::int64_t factor) { return a *= factor; }
  friend IndexExpr operator*(std::int64_t factor, IndexExpr a) { return a *= factor; }
  friend IndexExpr operator-(IndexExpr a) { return a *= -1; }

  friend bool operator==(const IndexExpr& a, const IndexExpr& b) {
    if (a.constant_ != b.constant_ || a.terms_.size() != b.terms_.size()) return false;
    for (std::size_t i = 0; i < a.terms_.size(); ++i) {
      if (a.terms_[i].coefficient != b.terms_[i].coefficient || compare_atoms(a.terms_[i], b.terms_[i]) != 0)
        return false;
    }
    return true;
  }

  /// The range of this expression if `range_of(var)` gives the range of each variable. Interval arithmetic: exact if no
  /// variable occurs twice, otherwise conservative.
  [[nodiscard]] Range range(RangeOf range_of) const;

  /// The range of a quotient or remainder whose numerator has the range `numerator`, without its coefficient.
  [[nodiscard]] static Range term_range(const Term& term, Range numerator);

  /// The value of this expression if `value_of(var)` gives the value of each variable.
  template <class ValueOf>
  [[nodiscard]] std::int64_t evaluate(const ValueOf& value_of) const {
    std::int64_t sum = constant_;
    for (const Term& t : terms_) {
      if (t.kind == Kind::Variable) {
        sum += t.coefficient * value_of(t.var);
      } else {
        const std::int64_t x = t.numerator->evaluate(value_of);
        sum += t.coefficient * (t.kind == Kind::Quotient ? floor_div(x, t.divisor) : floor_mod(x, t.divisor));
      }
    }
    return sum;
  }

  /// Replaces every variable by `expression_of(var)` and simplifies quotients with the ranges `range_of` of the new
  /// variables.
  template <class ExpressionOf>
  [[nodiscard]] IndexExpr substitute(const ExpressionOf& expression_of, RangeOf range_of) const {
    IndexExpr result(constant_);
    for (const Term& t : terms_) {
      if (t.kind == Kind::Variable) {
        result.add(expression_of(t.var), t.coefficient);
      } else {
        const IndexExpr inner = t.numerator->substitute(expression_of, range_of);
        result.add(
            t.kind == Kind::Quotient ? quotient(inner, t.divisor, range_of) : remainder(inner, t.divisor, range_of),
            t.coefficient);
      }
    }
    return result;
  }

  /// floor(e / divisor), simplified with the ranges of the variables: exactly divisible parts are extracted, and a rest
  /// smaller than the divisor vanishes. Throws `std::invalid_argument` unless `divisor` is positive.
  [[nodiscard]] static IndexExpr quotient(const IndexExpr& e, std::int64_t divisor, RangeOf range_of) {
    return divide(e, divisor, range_of).first;
  }
  /// e - divisor * floor(e / divisor), simplified in the same way.
  [[nodiscard]] static IndexExpr remainder(const IndexExpr& e, std::int64_t divisor, RangeOf range_of) {
    return divide(e, divisor, range_of).second;
  }

  [[nodiscard]] std::uint64_t hash() const;

  /// Terms, with those of numerators as often as these occur.
  [[nodiscard]] std::size_t size() const noexcept;

  /// Text with `name_of(var)` for the variables, e.g. "4*i + j - 1" or "(i + 3) div 4".
  template <class NameOf>
  [[nodiscard]] std::string to_string(const NameOf& name_of) const {
    std::string text;
    for (const Term& t : terms_) {
      const std::int64_t magnitude = t.coefficient < 0 ? -t.coefficient : t.coefficient;
      text += text.empty() ? (t.coefficient < 0 ? "-" : "") : (t.coefficient < 0 ? " - " : " + ");
      if (magnitude != 1) text += std::to_string(magnitude) + "*";
      if (t.kind == Kind::Variable) {
        text += name_of(t.var);
      } else {
        const std::string inner = t.numerator->to_string(name_of);
        const std::string wrapped = t.numerator->as_variable() ? inner : "(" + inner + ")";
        text += (magnitude != 1 ? "(" : "") + wrapped + (t.kind == Kind::Quotient ? " div " : " mod ") +
                std::to_string(t.divisor) + (magnitude != 1 ? ")" : "");
      }
    }
    if (text.empty()) return std::to_string(constant_);
    if (constant_ != 0)
      text += (constant_ < 0 ? " - " : " + ") + std::to_string(constant_ < 0 ? -constant_ : constant_);
    return text;
  }

 private:
  static int compare(const IndexExpr& a, const IndexExpr& b);
  static int compare_atoms(const Term& a, const Term& b);

  void add_term(const Term& atom, std::int64_t coefficient);

  /// c*m*(x div m) + c*(x mod m) -> c*x.
  void rejoin();

  static Range atom_range(const Term& t, RangeOf range_of);

  static std::pair<IndexExpr, IndexExpr> divide(const IndexExpr& e, std::int64_t divisor, RangeOf range_of);

  /// Division if some terms are multiples of a g that divides the divisor and the others stay below g, so that they
  /// cannot carry: (g*x + y) div (g*d) = x div d and (g*x + y) mod (g*d) = g*(x mod d) + y. Empty if there is no such
  /// g.
  static std::optional<std::pair<IndexExpr, IndexExpr>> divide_coarser(const IndexExpr& e, std::int64_t divisor,
                                                                       RangeOf range_of);

  std::int64_t constant_ = 0;
  Terms terms_;
};

/// Calls `f(var)` for every variable occurring in `e`, with repetitions.
template <class F>
void for_each_variable(const IndexExpr& e, const F& f) {
  for (const IndexExpr::Term& t : e.terms()) {
    if (t.kind == IndexExpr::Kind::Variable) {
      f(t.var);
    } else {
      for_each_variable(*t.numerator, f);
    }
  }
}

}  // namespace tunewright::program

#if TUNEWRIGHT_DEFINES(program)

#include "tunewright/core/hash.hpp"

namespace tunewright::program {

TUNEWRIGHT_INLINE IndexExpr IndexExpr::variable(Var var) {
  IndexExpr e;
  e.terms_.push_back({1, Kind::Variable, var, 1, nullptr});
  return e;
}

TUNEWRIGHT_INLINE IndexExpr IndexExpr::from_term(const Term& term) {
  IndexExpr e;
  e.terms_.push_back(term);
  return e;
}

TUNEWRIGHT_INLINE std::optional<Var> IndexExpr::as_variable() const noexcept {
  if (constant_ == 0 && terms_.size() == 1 && terms_[0].coefficient == 1 && terms_[0].kind == Kind::Variable) {
    return terms_[0].var;
  }
  return std::nullopt;
}

TUNEWRIGHT_INLINE std::int64_t IndexExpr::coefficient(Var var) const noexcept {
  for (const Term& t : terms_) {
    if (t.kind == Kind::Variable && t.var == var) return t.coefficient;
  }
  return 0;
}

TUNEWRIGHT_INLINE bool IndexExpr::uses(Var var) const noexcept {
  return std::any_of(terms_.begin(), terms_.end(),
                     [var](const Term& t) { return t.kind == Kind::Variable ? t.var == var : t.numerator->uses(var); });
}

TUNEWRIGHT_INLINE IndexExpr& IndexExpr::operator*=(std::int64_t factor) {
  if (factor == 0) {
    terms_.clear();
    constant_ = 0;
  } else if (factor != 1) {
    constant_ *= factor;
    for (Term& t : terms_) t.coefficient *= factor;
  }
  return *this;
}

TUNEWRIGHT_INLINE IndexExpr& IndexExpr::add(const IndexExpr& other, std::int64_t factor) {
  if (&other == this) return *this *= 1 + factor;
  constant_ += factor * other.constant_;
  for (const Term& t : other.terms_) add_term(t, factor * t.coefficient);
  return *this;
}

TUNEWRIGHT_INLINE IndexExpr& IndexExpr::add(const Term& term) {
  add_term(term, term.coefficient);
  return *this;
}

TUNEWRIGHT_INLINE Range IndexExpr::range(RangeOf range_of) const {
  Range total{constant_, constant_};
  for (const Term& t : terms_) {
    const Range atom = atom_range(t, range_of);
    const std::int64_t a = t.coefficient * atom.min;
    const std::int64_t b = t.coefficient * atom.max;
    total.min += std::min(a, b);
    total.max += std::max(a, b);
  }
  return total;
}

TUNEWRIGHT_INLINE Range IndexExpr::term_range(const Term& term, Range numerator) {
  const Range quotients{floor_div(numerator.min, term.divisor), floor_div(numerator.max, term.divisor)};
  if (term.kind == Kind::Quotient) return quotients;
  if (quotients.min == quotients.max) {
    return {numerator.min - quotients.min * term.divisor, numerator.max - quotients.min * term.divisor};
  }
  return {0, term.divisor - 1};
}

TUNEWRIGHT_INLINE std::uint64_t IndexExpr::hash() const {
  StableHash h;
  h.add(constant_);
  for (const Term& t : terms_) {
    h.add(t.coefficient).add(static_cast<int>(t.kind)).add(t.var).add(t.divisor);
    if (t.numerator) h.add(t.numerator->hash());
  }
  return h.value();
}

TUNEWRIGHT_INLINE std::size_t IndexExpr::size() const noexcept {
  std::size_t size = terms_.size();
  for (const Term& t : terms_) {
    if (t.numerator) size += t.numerator->size();
  }
  return size;
}

TUNEWRIGHT_INLINE int IndexExpr::compare(const IndexExpr& a, const IndexExpr& b) {
  if (a.constant_ != b.constant_) return a.constant_ < b.constant_ ? -1 : 1;
  if (a.terms_.size() != b.terms_.size()) return a.terms_.size() < b.terms_.size() ? -1 : 1;
  for (std::size_t i = 0; i < a.terms_.size(); ++i) {
    if (const int c = compare_atoms(a.terms_[i], b.terms_[i]); c != 0) return c;
    if (a.terms_[i].coefficient != b.terms_[i].coefficient) {
      return a.terms_[i].coefficient < b.terms_[i].coefficient ? -1 : 1;
    }
  }
  return 0;
}

TUNEWRIGHT_INLINE int IndexExpr::compare_atoms(const Term& a, const Term& b) {
  if (a.kind != b.kind) return a.kind < b.kind ? -1 : 1;
  if (a.kind == Kind::Variable) return a.var == b.var ? 0 : a.var < b.var ? -1 : 1;
  if (a.divisor != b.divisor) return a.divisor < b.divisor ? -1 : 1;
  return a.numerator == b.numerator ? 0 : compare(*a.numerator, *b.numerator);
}

TUNEWRIGHT_INLINE void IndexExpr::add_term(const Term& atom, std::int64_t coefficient) {
  if (coefficient == 0) return;
  auto place = terms_.begin();
  while (place != terms_.end()) {
    const int c = compare_atoms(*place, atom);
    if (c == 0) {
      place->coefficient += coefficient;
      if (place->coefficient == 0) {
        terms_.erase(place);
      } else if (atom.kind != Kind::Variable) {
        rejoin();
      }
      return;
    }
    if (c > 0) break;
    ++place;
  }
  Term inserted = atom;
  inserted.coefficient = coefficient;
  terms_.insert(place, std::move(inserted));
  if (atom.kind != Kind::Variable) rejoin();
}

TUNEWRIGHT_INLINE void IndexExpr::rejoin() {
  for (std::size_t q = 0; q < terms_.size(); ++q) {
    if (terms_[q].kind != Kind::Quotient) continue;
    for (std::size_t r = 0; r < terms_.size(); ++r) {
      if (terms_[r].kind != Kind::Remainder || terms_[r].divisor != terms_[q].divisor ||
          terms_[q].coefficient != terms_[r].coefficient * terms_[q].divisor ||
          compare(*terms_[q].numerator, *terms_[r].numerator) != 0) {
        continue;
      }
      const std::shared_ptr<const IndexExpr> whole = terms_[r].numerator;
      const std::int64_t coefficient = terms_[r].coefficient;
      terms_.erase(terms_.begin() + static_cast<std::ptrdiff_t>(std::max(q, r)));
      terms_.erase(terms_.begin() + static_cast<std::ptrdiff_t>(std::min(q, r)));
      add(*whole, coefficient);
      return;
    }
  }
}

TUNEWRIGHT_INLINE Range IndexExpr::atom_range(const Term& t, RangeOf range_of) {
  return t.kind == Kind::Variable ? range_of(t.var) : term_range(t, t.numerator->range(range_of));
}

TUNEWRIGHT_INLINE std::pair<IndexExpr, IndexExpr> IndexExpr::divide(const IndexExpr& e, std::int64_t divisor,
                                                                    RangeOf range_of) {
  if (divisor <= 0) {
    throw std::invalid_argument("index expressions divide by positive constants, not by " + std::to_string(divisor));
  }
  if (divisor == 1) return {e, IndexExpr(0)};
  IndexExpr whole(floor_div(e.constant_, divisor));
  IndexExpr rest(floor_mod(e.constant_, divisor));
  for (const Term& t : e.terms_) {
    const std::int64_t exact = floor_div(t.coefficient, divisor);
    if (exact * divisor == t.coefficient) {
      whole.add_term(t, exact);
    } else {
      rest.add_term(t, t.coefficient);
    }
  }
  const Range r = rest.range(range_of);
  const std::int64_t low = floor_div(r.min, divisor);
  if (low == floor_div(r.max, divisor)) {
    whole.constant_ += low;
    rest.constant_ -= low * divisor;
    return {std::move(whole), std::move(rest)};
  }
  if (auto coarser = divide_coarser(rest, divisor, range_of)) {
    coarser->first += whole;
    return *std::move(coarser);
  }
  auto numerator = std::make_shared<const IndexExpr>(std::move(rest));
  IndexExpr remainder_part;
  remainder_part.add_term({1, Kind::Remainder, 0, divisor, numerator}, 1);
  whole.add_term({1, Kind::Quotient, 0, divisor, std::move(numerator)}, 1);
  return {std::move(whole), std::move(remainder_part)};
}

TUNEWRIGHT_INLINE std::optional<std::pair<IndexExpr, IndexExpr>> IndexExpr::divide_coarser(const IndexExpr& e,
                                                                                           std::int64_t divisor,
                                                                                           RangeOf range_of) {
  std::int64_t limit = divisor;
  while (limit > 1) {
    std::int64_t g = 1;  // the largest candidate below the last one
    for (const Term& t : e.terms_) {
      const std::int64_t common = std::gcd(t.coefficient, divisor);
      if (common < limit) g = std::max(g, common);
    }
    if (g == 1) return std::nullopt;
    IndexExpr high(floor_div(e.constant_, g));
    IndexExpr low(floor_mod(e.constant_, g));
    for (const Term& t : e.terms_) {
      if (t.coefficient % g == 0) {
        high.add_term(t, t.coefficient / g);
      } else {
        low.add_term(t, t.coefficient);
      }
    }
    const Range r = low.range(range_of);
    const std::int64_t carry = floor_div(r.min, g);
    if (carry == floor_div(r.max, g)) {
      high.constant_ += carry;
      low.constant_ -= carry * g;
      auto [quotient, remainder] = divide(high, divisor / g, range_of);
      remainder *= g;
      remainder += low;
      return std::pair{std::move(quotient), std::move(remainder)};
    }
    limit = g;
  }
  return std::nullopt;
}

}  // namespace tunewright::program

#endif
