// SPDX-License-Identifier: Apache-2.0
#include "tunewright/loops/print.hpp"

#include <doctest/doctest.h>

#include "support/nest_builder.hpp"

namespace {

using namespace tunewright;
using loops::IndexExpr;
using loops::LoopKind;
using loops::Statement;

TEST_CASE("a matmul with a cached tile, guards, packing and a branch") {
  program::ComputeGraph g;
  const auto a = g.input("A", {6, 8});
  const auto w = g.constant("W", {8, 16});
  const auto acc = g.reduce("acc", {{"i", 6}, {"j", 16}}, {{"k", 8}}, program::Combiner::Sum,
                            [&](auto i, auto r) { return a(i[0], r[0]) * w(r[0], i[1]); });
  g.compute("C", {{"i", 6}, {"j", 16}}, [&](auto i) { return program::max(acc(i[0], i[1]), 0.0); });
  test::NestBuilder b(g, "dense");
  b.nest.buffers[1].packing = {{1, 16, 1}, {0, 1, 8}, {1, 1, 16}};
  const auto io = b.var("i.0", 2), ii = b.var("i.1", 4), j = b.var("j", 16), k = b.var("k", 8);
  const IndexExpr origin = 4 * IndexExpr::variable(io);
  const IndexExpr i = origin + IndexExpr::variable(ii);
  const std::vector<IndexExpr> axes{i, IndexExpr::variable(j), IndexExpr::variable(k)};
  const std::vector<loops::Guard> guard{{i, 6, false, true, 0}};
  const auto tile = b.temporary(2, {4, 16}, {origin, 0}, loops::Scope::Local);
  const auto update = b.loop(k, LoopKind::Serial, {b.statement(Statement::Kind::Update, 2, axes, guard, true)}, true);
  const auto copy = b.statement(Statement::Kind::Assign, 3, {i, IndexExpr::variable(j)}, guard);
  b.nest.body = {b.loop(
      io, LoopKind::Parallel,
      {loops::Allocate{tile},
       b.loop(ii, LoopKind::Unrolled,
              {b.loop(j, LoopKind::Vectorized, {b.statement(Statement::Kind::Initialise, 2, axes), update, copy})}),
       loops::Branch{guard, {loops::Barrier{}}, {loops::Barrier{}}}})};
  CHECK(loops::to_string(b.nest) ==
        "dense(A: float32[6, 8], W: float32[8, 16] packed [1, 8, 16], out C: float32[6, 16])\n"
        "  for i.0 in 0..2 parallel:\n"
        "    allocate acc: float32[4, 16] local at [4*i.0, 0]\n"
        "    for i.1 in 0..4 unrolled:\n"
        "      for j in 0..16 vectorized:\n"
        "        acc[i.1, j] = 0\n"
        "        for k in 0..8 reduction:\n"
        "          acc[i.1, j] += A[4*i.0 + i.1, k] * W[k, j]  where 4*i.0 + i.1 < 6\n"
        "        C[4*i.0 + i.1, j] = max(acc[i.1, j], 0)  if 4*i.0 + i.1 < 6\n"
        "    if 4*i.0 + i.1 < 6:\n"
        "      barrier\n"
        "    else:\n"
        "      barrier\n");
}

}  // namespace
