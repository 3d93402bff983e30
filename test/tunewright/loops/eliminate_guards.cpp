// SPDX-License-Identifier: Apache-2.0
#include "tunewright/loops/eliminate_guards.hpp"

#include <doctest/doctest.h>

#include "support/nest_builder.hpp"

namespace {

using namespace tunewright;
using loops::IndexExpr;
using loops::LoopKind;
using loops::Statement;

/// acc[i, j] += x[i, k] * w[k, j], rows in tiles of 4 of which there are 6, in a window of `rows` rows.
const loops::Statement eliminated(std::int64_t rows, bool may_overcompute, bool reads_input) {
  program::ComputeGraph g;
  const auto x = g.input("x", {6, 8});
  const auto w = g.input("w", {8, 16});
  const auto copy = g.compute("copy", {{"i", 6}, {"k", 8}}, [&](auto i) { return x(i[0], i[1]); });
  const auto read = reads_input ? x : copy;
  const auto acc = g.reduce("acc", {{"i", 6}, {"j", 16}}, {{"k", 8}}, program::Combiner::Sum,
                            [&](auto i, auto r) { return read(i[0], r[0]) * w(r[0], i[1]); });
  g.compute("y", {{"i", 6}, {"j", 16}}, [&](auto i) { return acc(i[0], i[1]); });
  test::NestBuilder b(g);
  const auto io = b.var("io", 2), ii = b.var("ii", 4), j = b.var("j", 16), k = b.var("k", 8);
  const IndexExpr origin = 4 * IndexExpr::variable(io);
  const IndexExpr i = origin + IndexExpr::variable(ii);
  b.temporary(copy.id, {rows, 8}, {origin, 0});
  b.temporary(acc.id, {rows, 16}, {origin, 0});
  const std::vector<loops::Guard> guards{{i, 6, false, true, 0}};
  b.nest.body = {b.statement(Statement::Kind::Update, acc.id, {i, IndexExpr::variable(j), IndexExpr::variable(k)},
                             guards, may_overcompute)};
  return std::get<Statement>(loops::eliminate_guards(b.nest).body[0].content);
}

TEST_CASE("a guard is dropped where everything beyond it is in windows that are large enough") {
  CHECK(eliminated(4, true, false).guards.empty());
}
TEST_CASE("a guard stays where it protects an input, a small window or a result") {
  CHECK(eliminated(4, true, true).guards.size() == 1);
  CHECK(eliminated(3, true, false).guards.size() == 1);
  CHECK(eliminated(4, false, false).guards.size() == 1);
}

}  // namespace
