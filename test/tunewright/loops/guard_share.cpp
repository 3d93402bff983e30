// SPDX-License-Identifier: Apache-2.0
#include "tunewright/loops/guard_share.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

namespace {

using namespace tunewright;
using namespace tunewright::loops;
using program::IndexExpr;

/// Loops of 8, 4, 1024 and 1024 iterations.
loops::LoopNest nest() {
  loops::LoopNest n;
  n.variables = {{"i", 8}, {"r", 4}, {"p", 1024}, {"q", 1024}};
  return n;
}
const IndexExpr i = IndexExpr::variable(0), r = IndexExpr::variable(1), p = IndexExpr::variable(2),
                q = IndexExpr::variable(3);

Guard below(const IndexExpr& value) { return {value, 0, true, false}; }
Guard above(const IndexExpr& value, std::int64_t extent) { return {value, extent, false, true}; }

Share share(const std::vector<Guard>& guards) { return share_where(nest(), guards); }

TEST_CASE("parts of a whole") {
  CHECK(part(12, whole_share) == 12);
  CHECK(part(12, whole_share / 4) == 3);
  CHECK(part(7, whole_share / 2) == 3);
  CHECK(part(std::int64_t{1} << 60, whole_share / 2) == std::int64_t{1} << 59);
}

TEST_CASE("shares are counted") {
  CHECK(share({}) == whole_share);
  CHECK(share({below(i)}) == whole_share);
  CHECK(share({below(i - 2)}) == whole_share * 6 / 8);
  CHECK(share({above(2 * i, 5)}) == whole_share * 3 / 8);
  CHECK(share({below(i - 8)}) == 0);
  // Of 32 pairs six have i + r below 3, and six have it beyond 7.
  CHECK(share({below(i + r - 3)}) == whole_share * 26 / 32);
  CHECK(share({below(i + r - 3), below(-i - r + 7)}) == whole_share * 20 / 32);
}

TEST_CASE("guards without a variable in common are independent, guards with one are not") {
  CHECK(share({below(i - 2), below(r - 1)}) == whole_share * 6 / 8 * 3 / 4);
  CHECK(share({below(i - 2), above(i, 2)}) == 0);
  // Through a third one: i < r and r < 1.
  CHECK(share({above(i, 1), below(r - i - 1), above(r, 2)}) == whole_share / 32);
}

TEST_CASE("digits of a fused variable are independent") {
  const auto range_of = [](program::Var) { return program::Range{0, 1023}; };
  const IndexExpr rows = IndexExpr::quotient(p, 32, range_of), columns = IndexExpr::remainder(p, 32, range_of);
  CHECK(share({below(rows - 1), above(columns, 31)}) == part(whole_share * 31 / 32, whole_share * 31 / 32));
}

TEST_CASE("guards of too many values are taken to hold") {
  CHECK(share({below(p + q - 1024)}) == whole_share);
  CHECK(share({below(p + q - 1024), below(i - 4)}) == whole_share / 2);
}

}  // namespace
