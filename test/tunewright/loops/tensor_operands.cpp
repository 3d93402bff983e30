// SPDX-License-Identifier: Apache-2.0
#include "tunewright/loops/tensor_operands.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace {

using namespace tunewright;
using namespace tunewright::loops;

const IndexExpr i = IndexExpr::variable(0), j = IndexExpr::variable(1);
program::Range up_to_63(Var) { return {0, 63}; }

Loop over(Var var) {
  Loop loop;
  loop.var = var;
  return loop;
}

TEST_CASE("strides are those of terms that no quotient holds") {
  const IndexExpr offset = 64 * i + IndexExpr::quotient(j, 4, up_to_63);
  CHECK(stride(offset, 0) == 64);
  CHECK(stride(offset, 1) == std::nullopt);
  CHECK(stride(offset, 2) == 0);
}

TEST_CASE("a value is a multiple where its constant and the coefficients of all its terms are") {
  CHECK(is_multiple(32 + 64 * i + 16 * j, 16));
  CHECK_FALSE(is_multiple(32 + 64 * i + 16 * j, 32));
  CHECK_FALSE(is_multiple(8 + 16 * i, 16));
  CHECK(is_multiple(16 * IndexExpr::quotient(j, 4, up_to_63), 16));
  CHECK_FALSE(is_multiple(16 * i + IndexExpr::quotient(16 * i + j, 4, up_to_63), 16));
}

TEST_CASE("operands lie in tiles by rows of terms, or by terms of columns") {
  const schedule::TensorIntrinsic& bytes = *schedule::find_intrinsic("amx_int8");
  std::array<Loop, 4> loops{over(0), over(1), over(2), over(3)};  // m, steps, n, k
  const std::array<const Loop*, 4> inside{&loops[0], &loops[1], &loops[2], &loops[3]};
  const IndexExpr k = IndexExpr::variable(3), n = IndexExpr::variable(2);
  const IndexExpr rows = 100 * i + 4 * j + k, columns = 64 * j + 4 * n + k, sums = 32 * i + n;
  CHECK(lies(rows, inside, strides_of_rows(bytes)));
  CHECK_FALSE(lies(columns, inside, strides_of_rows(bytes)));
  CHECK(lies(columns, inside, strides_of_columns(bytes)));
  CHECK_FALSE(lies(64 * j + n + 16 * k, inside, strides_of_columns(bytes)));  // not interleaved
  CHECK(lies(sums, inside, strides_of_sums()));
  CHECK_FALSE(lies(i + 16 * n, inside, strides_of_sums()));
  CHECK_FALSE(lies(IndexExpr::quotient(i, 4, up_to_63) + 4 * j + k, inside, strides_of_rows(bytes)));
}

TEST_CASE("the first value of a block decides where bounds are multiples of its extent") {
  // 16 blocks i of four values j.
  const auto decided = [](const IndexExpr& value, std::int64_t extent, bool may_pass_end = false) {
    return decided_at_first({value, extent, false, true}, 1, 4, may_pass_end,
                            [](Var var) { return var == 0 ? program::Range{0, 15} : program::Range{0, 3}; });
  };
  CHECK(decided(i, 3));           // j takes no part
  CHECK(decided(4 * i + j, 64));  // never beyond
  CHECK(decided(4 * i + j, 40));  // ten blocks
  CHECK_FALSE(decided(4 * i + j, 42));
  CHECK_FALSE(decided(4 * i + j + 2, 40));
  CHECK_FALSE(decided(3 * i + j, 40));
  CHECK_FALSE(decided(4 * i + 2 * j, 40));
  CHECK(decided(4 * i + j, 42, true));
  CHECK_FALSE(decided(4 * i + 2 * j, 40, true));
  const auto below = [](const IndexExpr& value) {
    return decided_at_first({value, 0, true, false}, 1, 4, true, up_to_63);
  };
  CHECK(below(i + j));
  CHECK_FALSE(below(i + j - 4));
}

TEST_CASE("sums start where all that they go to is filled, and nothing else") {
  Statement update, initialise;
  update.kind = Statement::Kind::Update;
  initialise.kind = Statement::Kind::Initialise;
  const std::array<Loop, 3> loops{over(0), over(1), over(2)};  // rows, columns, terms
  const std::vector<const Loop*> rows{&loops[0]}, both{&loops[0], &loops[1]}, all{&loops[0], &loops[1], &loops[2]};
  const IndexExpr offset = 16 * i + j;
  const auto start = [&] { return starts(initialise, both, update, all, offset); };
  CHECK(start());
  CHECK_FALSE(starts(initialise, rows, update, all, offset));  // a part of it
  CHECK_FALSE(starts(initialise, both, update, all, j));       // more
  CHECK_FALSE(starts(initialise, all, update, both, offset));  // and again for each term
  initialise.guards.push_back({i, 3});
  CHECK_FALSE(start());
  initialise.guards.clear();
  initialise.target = 1;
  CHECK_FALSE(start());
  initialise.target = 0;
  initialise.kind = Statement::Kind::Assign;
  CHECK_FALSE(start());
}

}  // namespace
