// SPDX-License-Identifier: Apache-2.0
#include "tunewright/program/index_expr.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "tunewright/core/rng.hpp"

namespace {

using tunewright::Rng;
using tunewright::program::for_each_variable;
using tunewright::program::IndexExpr;
using tunewright::program::Range;
using tunewright::program::Var;

const IndexExpr i = IndexExpr::variable(0);
const IndexExpr j = IndexExpr::variable(1);
const IndexExpr k = IndexExpr::variable(2);

/// Ranges given by extents.
template <std::size_t N>
auto below(std::array<std::int64_t, N> extents) {
  return [extents](Var v) { return Range{0, extents[v] - 1}; };
}
std::string text(const IndexExpr& e) {
  return e.to_string([](Var v) { return std::string(1, "ijk"[v]); });
}

/// A random expression over three variables, with quotients and remainders up to the given depth.
IndexExpr random_expression(Rng& rng, int depth, const std::array<std::int64_t, 3>& extents) {
  IndexExpr e(static_cast<std::int64_t>(rng.below(21)) - 10);
  for (Var v = 0; v < 3; ++v) {
    if (rng.below(3) != 0) e += IndexExpr::variable(v) * (static_cast<std::int64_t>(rng.below(13)) - 6);
  }
  if (depth > 0 && rng.below(3) != 0) {
    const IndexExpr inner = random_expression(rng, depth - 1, extents);
    const auto divisor = static_cast<std::int64_t>(1 + rng.below(12));
    const auto factor = static_cast<std::int64_t>(rng.below(9)) - 4;
    const IndexExpr q = IndexExpr::quotient(inner, divisor, below(extents));
    const IndexExpr r = IndexExpr::remainder(inner, divisor, below(extents));
    if (rng.below(2) == 0) e += q * factor;
    if (rng.below(2) == 0) e += r * (static_cast<std::int64_t>(rng.below(5)) - 2);
  }
  return e;
}

template <class F>
void for_each_point(const std::array<std::int64_t, 3>& extents, const F& f) {
  for (std::int64_t a = 0; a < extents[0]; ++a) {
    for (std::int64_t b = 0; b < extents[1]; ++b) {
      for (std::int64_t c = 0; c < extents[2]; ++c) {
        const std::array<std::int64_t, 3> point{a, b, c};
        f([point](Var v) { return point[v]; });
      }
    }
  }
}

}  // namespace

TEST_CASE("sums are normalised: equal atoms merge, zeros vanish, order does not matter") {
  CHECK(text(i * 4 + j - 1) == "4*i + j - 1");
  CHECK(j - 1 + 4 * i == i * 4 + j - 1);
  CHECK((i + j - i - j).is_constant());
  CHECK((i + j - i - j).constant() == 0);
  CHECK((i * 0).is_constant());
  CHECK(text(-i + j * 2) == "-i + 2*j");
  CHECK((i + 0).as_variable() == std::optional<Var>(0));
  CHECK_FALSE((i + 1).as_variable());
  CHECK((i * 3 + j).coefficient(0) == 3);
  CHECK_FALSE((i + j).uses(2));
}

TEST_CASE("an expression can be added to itself") {
  IndexExpr e = i * 3 + j + 2;
  e += e;
  CHECK(e == i * 6 + j * 2 + 4);
  e -= e;
  CHECK(e == IndexExpr(0));
}

TEST_CASE("quotients and remainders simplify with the ranges of the variables") {
  const auto range_of = below<3>({8, 4, 3});
  const auto quotient = [&](const IndexExpr& e, std::int64_t d) { return IndexExpr::quotient(e, d, range_of); };
  const auto remainder = [&](const IndexExpr& e, std::int64_t d) { return IndexExpr::remainder(e, d, range_of); };
  CHECK(quotient(i * 4 + j, 4) == i);
  CHECK(remainder(i * 4 + j, 4) == j);
  CHECK(quotient(i * 8 + j, 4) == i * 2);
  CHECK(quotient(i, 8) == IndexExpr(0));
  CHECK(remainder(i, 8) == i);
  CHECK(quotient(i + 8, 8) == IndexExpr(1));
  CHECK(quotient(i - 8, 8) == IndexExpr(-1));
  CHECK(remainder(i - 8, 8) == i);
  CHECK(text(quotient(i + 3, 4)) == "(i + 3) div 4");
  CHECK(text(remainder(i, 4) * 2) == "2*(i mod 4)");
  CHECK(quotient(i, 1) == i);
  // Low digits that cannot carry do not hide the structure of high ones.
  CHECK(quotient(i * 4 + j, 8) == quotient(i, 2));
  CHECK(remainder(i * 4 + j, 8) == remainder(i, 2) * 4 + j);
  CHECK(quotient(i * 6, 4) == quotient(i * 3, 2));
}

TEST_CASE("quotient and remainder of the same expression rejoin") {
  const auto range_of = below<3>({100, 7, 3});
  for (const IndexExpr& e : {i, i + 3, i * 3 + j, i * 10 + j * 4 + 1, i * 6 + j}) {
    for (const std::int64_t d : {2, 3, 4, 7, 10, 12}) {
      const IndexExpr q = IndexExpr::quotient(e, d, range_of);
      const IndexExpr r = IndexExpr::remainder(e, d, range_of);
      CHECK(q * d + r == e);
      CHECK(r + d * q == e);
      CHECK(e - r - q * d == IndexExpr(0));
    }
  }
}

TEST_CASE("random expressions: value, range, substitution and hash agree with brute force") {
  Rng rng(11);
  const std::array<std::int64_t, 3> extents{6, 5, 4};
  for (int trial = 0; trial < 400; ++trial) {
    const IndexExpr e = random_expression(rng, 2, extents);
    const auto divisor = static_cast<std::int64_t>(1 + rng.below(16));
    const IndexExpr q = IndexExpr::quotient(e, divisor, below(extents));
    const IndexExpr r = IndexExpr::remainder(e, divisor, below(extents));
    const Range range = e.range(below(extents));
    // i = 2*a + b with a < 3 and b < 2, c in place of k, j stays.
    const IndexExpr replaced = e.substitute(
        [](Var v) { return v == 0 ? IndexExpr::variable(0) * 2 + IndexExpr::variable(3) : IndexExpr::variable(v); },
        [](Var v) { return Range{0, std::array<std::int64_t, 4>{3, 5, 4, 2}[v] - 1}; });
    bool values_agree = true;
    bool in_range = true;
    bool substituted = true;
    for_each_point(extents, [&](const auto& value_of) {
      const std::int64_t value = e.evaluate(value_of);
      values_agree = values_agree && q.evaluate(value_of) == tunewright::program::floor_div(value, divisor) &&
                     r.evaluate(value_of) == tunewright::program::floor_mod(value, divisor);
      in_range = in_range && range.min <= value && value <= range.max;
      const std::array<std::int64_t, 4> split{value_of(0) / 2, value_of(1), value_of(2), value_of(0) % 2};
      substituted = substituted && replaced.evaluate([&](Var v) { return split[v]; }) == value;
    });
    CAPTURE(text(e));
    CAPTURE(divisor);
    CHECK(values_agree);
    CHECK(in_range);
    CHECK(substituted);
    CHECK((e - e) == IndexExpr(0));
    CHECK((e * 2 - e).hash() == e.hash());
  }
}

TEST_CASE("ranges of affine expressions in which no variable occurs twice are exact") {
  const auto range_of = below<3>({6, 5, 4});
  CHECK((i * 2 - j + 1).range(range_of) == Range{-3, 11});
  CHECK(IndexExpr::quotient(i - 3, 4, range_of).range(range_of) == Range{-1, 0});
  CHECK(IndexExpr::remainder(i, 4, range_of).range(range_of) == Range{0, 3});
}

TEST_CASE("variables inside of quotients are found") {
  const auto range_of = below<3>({60, 50, 40});
  const IndexExpr e = IndexExpr::quotient(i + k, 7, range_of) + 1;
  std::set<Var> found;
  for_each_variable(e, [&](Var v) { found.insert(v); });
  CHECK(found == std::set<Var>{0, 2});
  CHECK(e.uses(2));
  CHECK_FALSE(e.uses(1));
  CHECK_FALSE(e.is_affine());
}

TEST_CASE("dividing by something that is not positive is refused") {
  const auto range_of = below<3>({6, 5, 4});
  CHECK_THROWS_WITH_AS((void)IndexExpr::quotient(i, 0, range_of),
                       "index expressions divide by positive constants, not by 0", std::invalid_argument);
  CHECK_THROWS_AS((void)IndexExpr::remainder(i, -4, range_of), std::invalid_argument);
}
