// SPDX-License-Identifier: Apache-2.0
#include "tunewright/loops/interpret.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "support/nest_builder.hpp"

namespace {

using namespace tunewright;
using loops::IndexExpr;
using loops::LoopKind;
using loops::Statement;

program::ComputeGraph matmul(std::int64_t m, std::int64_t n, std::int64_t k) {
  program::ComputeGraph g;
  const auto a = g.input("A", {m, k});
  const auto b = g.input("B", {k, n});
  g.reduce("C", {{"i", m}, {"j", n}}, {{"k", k}}, program::Combiner::Sum,
           [&](auto i, auto r) { return a(i[0], r[0]) * b(r[0], i[1]); });
  return g;
}

TEST_CASE("a matmul by hand") {
  const auto g = matmul(2, 2, 3);
  std::vector<std::vector<double>> arguments{{1, 2, 3, 4, 5, 6}, {7, 8, 9, 10, 11, 12}, std::vector<double>(4, -1)};
  loops::interpret(test::plain_nest(g), arguments);
  CHECK(arguments[2] == std::vector<double>{58, 64, 139, 154});
}

TEST_CASE("float32 is rounded after every operation, and a select does not evaluate the other side") {
  program::ComputeGraph g;
  const auto x = g.input("x", {3});
  g.compute("y", {{"i", 4}}, [&](auto i) {
    return program::select(program::in_bounds(i[0] - 1, 3), x(i[0] - 1) + program::Expr(1.0), 0.1);
  });
  std::vector<std::vector<double>> arguments{{1e-9, 2, 3}, std::vector<double>(4)};
  loops::interpret(test::plain_nest(g), arguments);
  CHECK(arguments[1] == std::vector<double>{static_cast<double>(0.1F), 1, 3, 4});
}

TEST_CASE("functions of integers are computed in float64 and converted like casts") {
  using program::Expr, program::ScalarType;
  using Values = std::vector<double>;
  const auto mapped = [](double value, ScalarType type, const auto& body) {
    program::ComputeGraph g;
    const auto x = g.input("x", {1}, type);
    g.compute("y", {{"i", 1}}, [&](auto i) { return body(x(i[0])); });
    std::vector<Values> arguments{{value}, {7}};
    loops::interpret(test::plain_nest(g), arguments);
    return arguments[1][0];
  };
  CHECK(mapped(6, ScalarType::Int8, [](const Expr& x) { return exp(x); }) == 127);
  CHECK(mapped(30, ScalarType::Int32, [](const Expr& x) { return exp(x); }) == 2147483647);
  CHECK(mapped(-1, ScalarType::Int32, [](const Expr& x) { return sqrt(x); }) == 0);
  CHECK(mapped(0, ScalarType::Int8, [](const Expr& x) { return log(x); }) == -128);
  CHECK(mapped(1, ScalarType::Int64, [](const Expr& x) { return exp(x) * 2; }) == 4);
  CHECK(mapped(2, ScalarType::Int64, [](const Expr& x) { return tanh(x) + erf(x); }) == 0);
}

TEST_CASE("accesses outside a window are errors that name the operator, the tensor and the loops") {
  program::ComputeGraph g;
  const auto x = g.input("x", {4});
  g.compute("y", {{"i", 3}}, [&](auto i) { return x(i[0] + 1); });
  loops::LoopNest nest = test::plain_nest(g);
  nest.buffers[nest.buffer_of[x.id]].shape = {3};
  std::vector<std::vector<double>> arguments{{1, 2, 3}, std::vector<double>(3)};
  std::string message;
  try {
    loops::interpret(nest, arguments);
  } catch (const loops::InterpretError& e) {
    message = e.what();
  }
  CHECK(message == "operator 'y' reads 'x' outside its window: index 3 of dimension 0 with extent 3 at y.i = 2");
}

TEST_CASE("a read of a tensor that the nest does not store is an error") {
  const auto g = matmul(2, 2, 3);
  loops::LoopNest nest = test::plain_nest(g);
  nest.buffer_of[0] = loops::LoopNest::no_buffer;
  std::vector<std::vector<double>> arguments{std::vector<double>(6), std::vector<double>(6), std::vector<double>(4)};
  CHECK_THROWS_WITH_AS(loops::interpret(nest, arguments),
                       doctest::Contains("operator 'C' reads tensor 0 which has no buffer; add it to buffer_of"),
                       loops::InterpretError);
}

TEST_CASE("rows of temporaries are not a multiple of 512 bytes apart") {
  CHECK(loops::distance_of_rows(128, 4) == 144);
  CHECK(loops::distance_of_rows(127, 4) == 127);
  CHECK(loops::distance_of_rows(64, 8) == 72);
}

TEST_CASE("guards decide, and reads before writes are found") {
  const auto g = matmul(3, 3, 3);
  test::NestBuilder b(g);
  const auto io = b.var("io", 2), ii = b.var("ii", 2), j = b.var("j", 3), k = b.var("k", 3);
  const IndexExpr i = 2 * IndexExpr::variable(io) + IndexExpr::variable(ii);
  const std::vector<loops::Guard> guard{{i, 3, false, true, 0}};
  const std::vector<IndexExpr> axes{i, IndexExpr::variable(j), IndexExpr::variable(k)};
  const auto update = b.loop(k, LoopKind::Serial, {b.statement(Statement::Kind::Update, 2, axes, guard)}, true);
  const auto around = [&](loops::Body body) {
    return b.loop(io, LoopKind::Serial, {b.loop(ii, LoopKind::Serial, {b.loop(j, LoopKind::Serial, std::move(body))})});
  };
  std::vector<std::vector<double>> arguments{
      {1, 0, 0, 0, 2, 0, 0, 0, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}, std::vector<double>(9)};

  SUBCASE("complete") {
    b.nest.body = {around({b.statement(Statement::Kind::Initialise, 2, axes, guard), update})};
    loops::interpret(b.nest, arguments);
    CHECK(arguments[2] == std::vector<double>{1, 2, 3, 8, 10, 12, 21, 24, 27});
  }
  SUBCASE("without initialisation") {
    b.nest.body = {around({update})};
    CHECK_THROWS_WITH_AS(loops::interpret(b.nest, arguments),
                         "operator 'C' reads element 0 of 'C' before it is written at io = 0, ii = 0, j = 0, k = 0",
                         loops::InterpretError);
  }
  SUBCASE("wrong number of arguments") {
    arguments.pop_back();
    CHECK_THROWS_AS(loops::interpret(b.nest, arguments), std::invalid_argument);
  }
  SUBCASE("wrong size of an argument") {
    arguments[0].pop_back();
    CHECK_THROWS_AS(loops::interpret(b.nest, arguments), std::invalid_argument);
  }
}

TEST_CASE("temporaries inside a loop start afresh, packed layouts are followed") {
  program::ComputeGraph g;
  const auto x = g.constant("x", {4});
  const auto t = g.compute("t", {{"i", 4}}, [&](auto i) { return x(i[0]) * program::Expr(2.0); });
  g.compute("y", {{"i", 4}}, [&](auto i) { return t(i[0]) + program::Expr(1.0); });
  test::NestBuilder b(g);
  b.nest.buffers[0].packing = {{0, 1, 2}, {0, 2, 2}};  // element i lies at 2 * (i mod 2) + i div 2
  const auto io = b.var("io", 2), p = b.var("p", 2), c = b.var("c", 2);
  const IndexExpr origin = 2 * IndexExpr::variable(io);
  const auto tile = b.temporary(1, {2}, {origin}, loops::Scope::Local);
  const auto produce =
      b.loop(p, LoopKind::Unrolled, {b.statement(Statement::Kind::Assign, 1, {origin + IndexExpr::variable(p)})});
  const auto consume =
      b.loop(c, LoopKind::Vectorized, {b.statement(Statement::Kind::Assign, 2, {origin + IndexExpr::variable(c)})});
  b.nest.body = {b.loop(io, LoopKind::Parallel, {loops::Allocate{tile}, produce, consume})};
  std::vector<std::vector<double>> arguments{{10, 30, 20, 40}, std::vector<double>(4)};
  loops::interpret(b.nest, arguments);
  CHECK(arguments[1] == std::vector<double>{21, 41, 61, 81});
}

}  // namespace
