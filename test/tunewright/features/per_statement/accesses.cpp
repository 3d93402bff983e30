// SPDX-License-Identifier: Apache-2.0
#include "tunewright/features/per_statement/accesses.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "support/nest_builder.hpp"
#include "tunewright/features/per_statement/describer.hpp"

namespace {

using namespace tunewright;
using namespace tunewright::features::per_statement;
using loops::Body;
using loops::IndexExpr;
using loops::LoopKind;
using loops::Statement;
using test::NestBuilder;

doctest::Approx logarithm(double x) { return doctest::Approx(std::log2(x + 1)).epsilon(1e-6); }

/// Block of the buffer that is only read.
std::vector<float> read_block(const loops::LoopNest& nest) {
  FeatureBatch batch(columns);
  Describer().describe(nest, Task{}, batch);
  REQUIRE(batch.rows() == 1);
  for (std::size_t b = 0; b < buffer_blocks; ++b) {
    const auto block = batch.row(0).subspan(FirstBuffer + b * buffer_columns, buffer_columns);
    if (block[AccessRead] == 1.0F) return {block.begin(), block.end()};
  }
  FAIL("nothing is read");
  return {};
}

/// out[i, j] = X at `indices(i, j)`, loops in order i, j.
template <class Indices>
loops::LoopNest read_nest(std::int64_t rows, std::int64_t width, std::vector<std::int64_t> shape,
                          const Indices& indices) {
  program::ComputeGraph graph;
  const auto x = graph.input("X", shape);
  graph.compute("out", {{"i", rows}, {"j", width}}, [&](auto i) { return x.at(indices(i[0], i[1])) * 2.0; });
  return test::plain_nest(graph);
}

TEST_CASE("a transposed read touches a line an iteration") {
  const auto block =
      read_block(read_nest(16, 32, {32, 16}, [](auto i, auto j) { return std::vector<IndexExpr>{j, i}; }));
  CHECK(block[Stride] == logarithm(16));
  CHECK(block[Lines] == logarithm(512));
  CHECK(block[UniqueLines] == logarithm(32));  // all of it lies together
}

TEST_CASE("part of every row: lines of the region are those of short runs") {
  const auto block =
      read_block(read_nest(16, 4, {16, 100}, [](auto i, auto j) { return std::vector<IndexExpr>{i, j}; }));
  CHECK(block[UniqueBytes] == logarithm(256));
  CHECK(block[UniqueLines] == logarithm(256.0 / 16));
}

TEST_CASE("several reads of a buffer join: a stencil") {
  program::ComputeGraph graph;
  const auto x = graph.input("X", {18});
  graph.compute("out", {{"i", 16}}, [&](auto i) { return x(i[0]) + x(i[0] + IndexExpr(1)) + x(i[0] + IndexExpr(2)); });
  const auto block = read_block(test::plain_nest(graph));
  CHECK(block[UniqueBytes] == logarithm(18 * 4));
  CHECK(block[Bytes] == logarithm(16 * 4));
  CHECK(block[Stride] == logarithm(1));
}

TEST_CASE("a region is cut to its buffer") {
  program::ComputeGraph graph;
  const auto x = graph.input("X", {6, 4});
  graph.compute("out", {{"i", 6}, {"j", 8}},
                [&](auto i) { return program::select(program::in_bounds(i[1] - 2, 4), x(i[0], i[1] - 2), 0.0); });
  const auto block = read_block(test::plain_nest(graph));
  CHECK(block[UniqueBytes] == logarithm(6 * 4 * 4));
}

TEST_CASE("fused loops: contiguous when in order, strided when transposed") {
  const auto fused_nest = [](bool transposed) {
    program::ComputeGraph graph;
    const auto x = transposed ? graph.input("X", {16, 8}) : graph.input("X", {8, 16});
    const auto out = graph.compute("out", {{"i", 8}, {"j", 16}},
                                   [&](auto i) { return (transposed ? x(i[1], i[0]) : x(i[0], i[1])) * 2.0; });
    NestBuilder built(graph);
    const loops::Var f = built.var("f", 128);
    const auto range = [](loops::Var) { return program::Range{0, 127}; };
    const IndexExpr fused = IndexExpr::variable(f);
    built.nest.body.push_back(NestBuilder::loop(
        f, LoopKind::Parallel,
        {built.statement(Statement::Kind::Assign, out.id,
                         {IndexExpr::quotient(fused, 16, range), IndexExpr::remainder(fused, 16, range)})}));
    return std::move(built.nest);
  };
  const auto straight = read_block(fused_nest(false));
  CHECK(straight[Stride] == logarithm(1));
  CHECK(straight[Lines] == logarithm(8));
  CHECK(straight[UniqueBytes] == logarithm(512));
  const auto transposed = read_block(fused_nest(true));
  CHECK(transposed[Stride] == logarithm(8));
  CHECK(transposed[Lines] == logarithm(128.0 * 8 * 4 / 64));
}

TEST_CASE("a packed buffer is described as it lies in memory") {
  program::ComputeGraph graph;
  const auto b = graph.constant("B", {8, 64});
  const auto out = graph.reduce("out", {{"j", 64}}, {{"k", 8}}, program::Combiner::Max,
                                [&](auto i, auto r) { return b(r[0], i[0]); });
  NestBuilder built(graph);
  const loops::Var tile = built.var("jo", 4);
  const loops::Var lane = built.var("ji", 16);
  const loops::Var k = built.var("k", 8);
  const std::vector<IndexExpr> at{IndexExpr::variable(tile) * 16 + IndexExpr::variable(lane), IndexExpr::variable(k)};
  Body body{built.statement(Statement::Kind::Update, out.id, at)};
  Body lanes{NestBuilder::loop(k, LoopKind::Serial, std::move(body), true)};
  Body tiles{NestBuilder::loop(lane, LoopKind::Serial, std::move(lanes))};
  built.nest.body.push_back(NestBuilder::loop(tile, LoopKind::Serial, std::move(tiles)));

  CHECK(read_block(built.nest)[Stride] == logarithm(64));
  built.nest.buffers[built.nest.buffer_of[b.id]].packing = {{1, 16, 4}, {0, 1, 8}, {1, 1, 16}};  // [jo, k, ji]
  const auto packed = read_block(built.nest);
  CHECK(packed[Stride] == logarithm(16));
  CHECK(packed[Lines] == logarithm(512));
  CHECK(packed[UniqueBytes] == logarithm(2048));
  CHECK(packed[UniqueLines] == logarithm(32));
}

TEST_CASE("reuse under a fixed innermost loop needs all accesses to rest") {
  program::ComputeGraph graph;
  const auto x = graph.input("X", {8, 4});
  graph.compute("out", {{"i", 8}, {"j", 4}}, [&](auto i) { return x(i[0], IndexExpr(0)) + x(i[0], i[1]); });
  const auto block = read_block(test::plain_nest(graph));
  CHECK(block[ReuseNone] == 1.0F);
  CHECK(block[Stride] == logarithm(1));
}

}  // namespace
