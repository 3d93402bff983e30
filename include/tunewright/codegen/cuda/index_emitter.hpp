// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tunewright/loops/nest.hpp"

namespace tunewright::codegen::cuda {

using loops::IndexExpr;

/// A C++ expression and the precedence of its outermost operator.
struct Text {
  enum Precedence : int {
    Ternary = 3,
    Or = 4,
    And = 5,
    Equality = 8,
    Relation = 9,
    Sum = 12,
    Product = 13,
    Unary = 15,
    Primary = 16
  };
  std::string text;
  int precedence = Primary;

  /// The text, in parentheses if it binds less tightly than an adjacent operator of precedence `outer`.
  [[nodiscard]] std::string in(int outer) const { return precedence >= outer ? text : "(" + text + ")"; }
};

/// Writes index expressions: in 32 bits if no intermediate value can overflow, otherwise in 64 bits.
class IndexEmitter {
 public:
  IndexEmitter(const loops::LoopNest& nest, const std::vector<std::string>& names)
      : nest_(nest), names_(names), used_(nest.variables.size(), 0) {}

  [[nodiscard]] Text operator()(const IndexExpr& e) { return text(e, is_wide(e)); }

  [[nodiscard]] bool is_wide(const IndexExpr& e) const {
    return magnitude(e) > static_cast<double>(std::numeric_limits<std::int32_t>::max());
  }
  /// Whether a division of a possibly negative number was written.
  [[nodiscard]] bool uses_floor() const noexcept { return uses_floor_; }
  /// Whether a variable was written.
  [[nodiscard]] bool uses(loops::Var var) const noexcept { return used_[var] != 0; }

 private:
  [[nodiscard]] auto range_of() const {
    return [this](loops::Var v) { return nest_.range_of(v); };
  }

  /// An upper bound of the magnitude of every intermediate value.
  [[nodiscard]] double magnitude(const IndexExpr& e) const {
    double total = static_cast<double>(e.constant() < 0 ? -e.constant() : e.constant());
    double inside = 0;
    for (const IndexExpr::Term& t : e.terms()) {
      double atom = 0;
      if (t.kind == IndexExpr::Kind::Variable) {
        atom = static_cast<double>(nest_.variables[t.var].extent);
      } else {
        const double numerator = std::max(magnitude(*t.numerator), static_cast<double>(t.divisor));
        inside = std::max(inside, numerator);
        atom = t.kind == IndexExpr::Kind::Remainder ? static_cast<double>(t.divisor)
                                                    : magnitude(*t.numerator) / static_cast<double>(t.divisor) + 1;
      }
      total += static_cast<double>(t.coefficient < 0 ? -t.coefficient : t.coefficient) * atom;
    }
    return std::max(total, inside);
  }

  [[nodiscard]] static std::string number(std::int64_t value, bool wide) {
    return std::to_string(value) + (wide ? "LL" : "");
  }

  [[nodiscard]] Text atom(const IndexExpr::Term& t, bool wide) {
    if (t.kind == IndexExpr::Kind::Variable) {
      used_[t.var] = 1;
      if (wide) return {"(long long)" + names_[t.var], Text::Unary};
      return {names_[t.var]};
    }
    const Text numerator = text(*t.numerator, wide);
    const bool quotient = t.kind == IndexExpr::Kind::Quotient;
    if (t.numerator->range(range_of()).min < 0) {
      uses_floor_ = true;
      return {(quotient ? "floor_div(" : "floor_mod(") + numerator.text + ", " + number(t.divisor, wide) + ")"};
    }
    return {numerator.in(Text::Product) + (quotient ? " / " : " % ") + number(t.divisor, wide), Text::Product};
  }

  [[nodiscard]] Text text(const IndexExpr& e, bool wide) {
    Text result{"", Text::Primary};
    std::size_t parts = 0;
    for (const IndexExpr::Term& t : e.terms()) {
      const std::int64_t factor = t.coefficient < 0 ? -t.coefficient : t.coefficient;
      Text part = atom(t, wide);
      // A quotient has the precedence of a product and groups from the left, so it needs parentheses as a factor.
      if (factor != 1) part = {part.in(Text::Unary) + " * " + number(factor, wide), Text::Product};
      if (parts == 0) {
        result = t.coefficient < 0 ? Text{"-" + part.in(Text::Unary), Text::Unary} : part;
      } else {
        result = {result.text + (t.coefficient < 0 ? " - " : " + ") + part.in(Text::Product), Text::Sum};
      }
      ++parts;
    }
    if (parts == 0) return {number(e.constant(), wide), e.constant() < 0 ? int{Text::Unary} : int{Text::Primary}};
    if (e.constant() != 0) {
      const std::int64_t c = e.constant();
      result = {result.text + (c < 0 ? " - " : " + ") + number(c < 0 ? -c : c, wide), Text::Sum};
    }
    return result;
  }

  const loops::LoopNest& nest_;
  const std::vector<std::string>& names_;
  std::vector<char> used_;  // by variable
  bool uses_floor_ = false;
};

}  // namespace tunewright::codegen::cuda
