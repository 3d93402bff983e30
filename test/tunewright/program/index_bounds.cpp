// SPDX-License-Identifier: Apache-2.0
#include "tunewright/program/index_bounds.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <optional>

namespace {

using namespace tunewright::program;
using tunewright::program::detail::IndexBounds;

constexpr std::int64_t most = 1000;
const IndexExpr i = IndexExpr::variable(0);
const IndexExpr j = IndexExpr::variable(1);
IndexExpr quotient(const IndexExpr& e, std::int64_t divisor) {
  return IndexExpr::quotient(e, divisor, [](Var) { return Range{0, 99}; });
}
IndexExpr remainder(const IndexExpr& e, std::int64_t divisor) {
  return IndexExpr::remainder(e, divisor, [](Var) { return Range{0, 99}; });
}

}  // namespace

TEST_CASE("an index reaches what its terms add up to") {
  const IndexBounds bounds({10, 4}, most);
  const auto reach = [&](const IndexExpr& e) { return *bounds.reach(e); };
  CHECK(reach(7).range == Range{7, 7});
  // 2 * 9 - 3 * 3 + 5: from 5 - 9 to 5 + 18, and 18 + 9 + 5 without signs.
  CHECK(reach(2 * i - 3 * j + 5).range == Range{-4, 23});
  CHECK(reach(2 * i - 3 * j + 5).magnitude == 32);
  CHECK(reach(quotient(i, 4) - 1).range == Range{-1, 1});
  CHECK(reach(remainder(i + j, 4)).range == Range{0, 3});
  CHECK(reach(remainder(i + j, 4)).magnitude == 4);  // of the divisor
}

TEST_CASE("what exceeds the largest magnitude is no index to do arithmetic with") {
  const IndexBounds bounds({10, 1}, most);
  CHECK(bounds.reach(111 * i + 1));
  CHECK_FALSE(bounds.reach(111 * i + 2));
  CHECK_FALSE(bounds.reach(-111 * i - 2));
  CHECK(bounds.reach(1000 * j));
  CHECK_FALSE(bounds.reach(1001 * j));
  CHECK_FALSE(bounds.reach(quotient(1001 * j + i, 4)));
  CHECK_FALSE(bounds.reach(1001));
}

TEST_CASE("comparisons narrow the values until their branch is left") {
  IndexBounds bounds({10, 4}, most);
  CHECK(bounds.values(i + 1) == Range{1, 10});
  bounds.enter(in_bounds(i - 2, 5), true);
  CHECK(bounds.depth() == 2);
  CHECK(bounds.values(i + 1) == Range{3, 7});
  bounds.enter(index_value(3 * i + 3 * j) <= index_value(20), true);
  CHECK(bounds.values(i + j) == Range{2, 6});  // i + j <= 20 / 3
  CHECK(bounds.values(2 * i + 2 * j) == Range{4, 12});
  CHECK(bounds.values(quotient(i + j, 4)) == Range{0, 1});
  CHECK(bounds.values(i) == Range{2, 6});
  bounds.leave(2);
  CHECK(bounds.values(i + j) == Range{2, 9});
  bounds.enter(index_value(i) < index_value(2), true);
  CHECK(bounds.values(i) == std::nullopt);
  CHECK(bounds.is_inside(i + 500, 1));  // nothing leads here
  bounds.leave(0);
  CHECK(bounds.values(i) == Range{0, 9});
}

TEST_CASE("nothing leads to a branch of a comparison of two numbers that does not hold") {
  IndexBounds bounds({10, 4}, most);
  bounds.enter(index_value(i) < index_value(8), true);
  bounds.enter(in_bounds(IndexExpr(-1), 4), true);
  REQUIRE(bounds.depth() == 2);
  CHECK(bounds.values(-1) == std::nullopt);
  CHECK(bounds.values(quotient(i, 4)) == std::nullopt);
  CHECK(bounds.is_inside(-1, 4));
  CHECK(bounds.is_inside(i + 500, 1));
  bounds.enter(in_bounds(IndexExpr(4), 4), true);
  bounds.leave(2);
  CHECK(bounds.is_inside(-1, 4));
  bounds.leave(1);
  CHECK(bounds.values(-1) == Range{-1, -1});
  CHECK(bounds.values(i) == Range{0, 7});
  CHECK_FALSE(bounds.is_inside(-1, 4));
  // The other branch of one that holds.
  bounds.enter(index_value(3) < index_value(5), false);
  CHECK(bounds.is_inside(-1, 4));
  bounds.leave(0);
  CHECK(bounds.values(i) == Range{0, 9});
}

TEST_CASE("conditions that are no comparisons of indices tell nothing") {
  IndexBounds bounds({10, 4}, most);
  const Expr element = load(0, ScalarType::Int64, {i});
  bounds.enter(element < index_value(i), true);
  bounds.enter(index_value(i) < 1e6, true);  // more than an index may be
  bounds.enter(equal(index_value(i), index_value(3)), false);
  bounds.enter(index_value(3) < 5, true);
  CHECK(bounds.depth() == 0);
}

TEST_CASE("values are tried if intervals do not tell, and there are few") {
  IndexBounds bounds({10, 4}, most);
  // 2 (i div 2) - i is 0 or -1.
  const IndexExpr e = 2 * quotient(i, 2) - i;
  CHECK(bounds.values(e) == Range{-9, 8});
  CHECK(bounds.is_inside(e + 1, 2));
  CHECK_FALSE(bounds.is_inside(e + 1, 1));
  CHECK_FALSE(bounds.is_inside(e, 2));
  bounds.enter(equal(index_value(remainder(i, 2)), index_value(0)), true);
  CHECK(bounds.is_inside(e, 1));
  IndexBounds many({1 << 17, 4}, std::int64_t{1} << 53);
  CHECK_FALSE(many.is_inside(IndexExpr(e) + 1, 2));
}
