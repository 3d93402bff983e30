// SPDX-License-Identifier: Apache-2.0
#include "tunewright/features/per_statement/affine.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace {

using tunewright::features::per_statement::AffineForms;
using tunewright::program::IndexExpr;
using tunewright::program::Range;
using tunewright::program::Var;
using Over = AffineForms::Over;

/// Loops a (depth 0, extent 6), b (depth 1, extent 4), c (depth 2, extent 5); variable 3 is not in scope.
struct Fixture {
  std::vector<std::int64_t> extents{6, 4, 5};
  std::vector<std::uint32_t> depths{0, 1, 2, AffineForms::none};
  std::vector<IndexExpr> axes{IndexExpr::variable(0) * 4 + IndexExpr::variable(1), IndexExpr::variable(2)};
  AffineForms forms;
  Fixture() { forms.reset(extents, depths, {.of_nest = axes}); }

  AffineForms::Id over_loops(const IndexExpr& e) {
    const auto form = forms.zero();
    forms.add(form, e, 1, Over::Loops);
    return form;
  }
  std::vector<Range> ranges(AffineForms::Id form) const {
    std::vector<Range> found(extents.size());
    forms.for_each_range(form, [&](std::size_t l, Range range) { found[l] = range; });
    return found;
  }
  static Range wide(Var) { return {-1000, 1000}; }  // so that nothing is simplified before it reaches the forms
};

TEST_CASE("ranges widen from the innermost loop outwards") {
  Fixture f;
  const auto form =
      f.over_loops(IndexExpr::variable(0) * 10 - IndexExpr::variable(1) * 2 + IndexExpr::variable(2) + IndexExpr(7));
  CHECK(f.ranges(form) == std::vector<Range>{{1, 61}, {1, 11}, {7, 11}});
  CHECK(f.forms.step(form, 0) == 10.0);
  CHECK(f.forms.step(form, 1) == -2.0);
  CHECK(f.forms.uses(form, 2));
  CHECK_FALSE(f.forms.uses(f.over_loops(IndexExpr::variable(1)), 2));
}

TEST_CASE("variables out of scope are zero") {
  Fixture f;
  CHECK(f.ranges(f.over_loops(IndexExpr::variable(3) + IndexExpr(5))) == std::vector<Range>(3, {5, 5}));
}

TEST_CASE("axes stand for their values") {
  Fixture f;
  const auto form = f.forms.zero();
  f.forms.add(form, IndexExpr::variable(0) * 2 + IndexExpr::variable(1), 3, Over::Axes);  // 24a + 6b + 3c
  CHECK(f.ranges(form) == std::vector<Range>{{0, 150}, {0, 30}, {0, 12}});
}

TEST_CASE("quotients and remainders that divide exactly leave no atom") {
  Fixture f;
  const auto axis = f.forms.axis(0);  // 4a + b, b in 0..4
  const auto quotient = f.forms.quotient(axis, 4);
  const auto remainder = f.forms.remainder(axis, 4);
  AffineForms::Arithmetic arithmetic;
  f.forms.count(quotient, arithmetic);
  f.forms.count(remainder, arithmetic);
  CHECK(arithmetic.divisions == 0);
  CHECK(f.forms.step(quotient, 0) == 1.0);
  CHECK(f.forms.step(quotient, 1) == 0.0);
  CHECK_FALSE(f.forms.uses(remainder, 0));
  CHECK(f.forms.step(remainder, 1) == 1.0);
}

TEST_CASE("a fused loop moves its parts by their average and stays within their ranges") {
  Fixture f;
  const auto fused = f.over_loops(IndexExpr::variable(0));
  const auto quotient = f.forms.quotient(fused, 3);
  const auto remainder = f.forms.remainder(fused, 3);
  CHECK(f.ranges(quotient) == std::vector<Range>{{0, 1}, {0, 0}, {0, 0}});
  CHECK(f.ranges(remainder) == std::vector<Range>{{0, 2}, {0, 0}, {0, 0}});
  CHECK(f.forms.step(quotient, 0) == doctest::Approx(1.0 / 3));
  CHECK(f.forms.step(remainder, 0) == 1.0);
  CHECK(f.forms.uses(quotient, 0));
  CHECK_FALSE(f.forms.uses(quotient, 1));
}

TEST_CASE("equal atoms cancel, however they were written") {
  Fixture f;
  const IndexExpr tile = IndexExpr::quotient(IndexExpr::variable(0), 4, Fixture::wide) * 7;
  const auto index = f.over_loops(tile + IndexExpr::variable(2));
  f.forms.add(index, IndexExpr::quotient(IndexExpr::variable(0), 4, Fixture::wide), -7, Over::Loops);
  CHECK_FALSE(f.forms.uses(index, 0));
  CHECK(f.ranges(index) == std::vector<Range>(3, {0, 4}));
}

TEST_CASE("a remainder that wraps covers its divisor, one that does not keeps its range") {
  Fixture f;
  const auto sum = f.over_loops(IndexExpr::variable(1) + IndexExpr::variable(2) + IndexExpr(1));  // 1 .. 8
  CHECK(f.ranges(f.forms.remainder(sum, 6)) == std::vector<Range>{{0, 5}, {0, 5}, {1, 5}});
  CHECK(f.ranges(f.forms.quotient(sum, 6)) == std::vector<Range>{{0, 1}, {0, 1}, {0, 0}});
  const auto nested = f.forms.remainder(f.forms.quotient(sum, 3), 2);  // quotient 0 .. 2
  CHECK(f.ranges(nested) == std::vector<Range>{{0, 1}, {0, 1}, {0, 1}});
}

TEST_CASE("arithmetic of an index") {
  Fixture f;
  AffineForms::Arithmetic arithmetic;
  f.forms.count(f.over_loops(IndexExpr::variable(0) * 2 - IndexExpr::variable(1) + IndexExpr(3)), arithmetic);
  CHECK(arithmetic.additions == 2);
  CHECK(arithmetic.multiplications == 1);
  f.forms.count(f.forms.quotient(f.over_loops(IndexExpr::variable(0)), 4), arithmetic);
  CHECK(arithmetic.divisions == 1);
  CHECK(arithmetic.additions == 2);
}

}  // namespace
