// SPDX-License-Identifier: Apache-2.0
#include "tunewright/loops/operations.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <limits>
#include <memory>
#include <variant>

#include "support/padded_sum.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/operators/pad.hpp"
#include "tunewright/schedule/schedule.hpp"

using namespace tunewright;

namespace {

/// Operations of the last statement that adds up.
loops::BodyOperations operations_of_sum(const loops::LoopNest& nest) {
  loops::BodyOperations found;
  const std::function<void(const loops::Body&)> visit = [&](const loops::Body& body) {
    for (const loops::Node& node : body) {
      if (const auto* loop = std::get_if<loops::Loop>(&node.content)) visit(loop->body);
      const auto* statement = std::get_if<loops::Statement>(&node.content);
      if (statement != nullptr && statement->kind == loops::Statement::Kind::Update)
        found = loops::operations(*statement);
    }
  };
  visit(nest.body);
  return found;
}

}  // namespace

TEST_CASE("a product is one multiply-add and pads nothing") {
  const auto graph = program::operators::matmul_graph({.m = 4, .n = 4, .k = 4});
  const loops::BodyOperations found = operations_of_sum(loops::lower(schedule::ScheduleBuilder(graph).schedule()));
  CHECK(found.simple == 2);
  CHECK(found.simple_fused() == 1);
  CHECK(found.arithmetic == 2);
  CHECK(found.conditions == 0);
  CHECK(found.condition_axes == 0);
}

TEST_CASE("padding of a factor: comparisons, what joins them, and the choice, decided by the place and the tap") {
  const auto graph = test::padded_sum_graph();
  schedule::ScheduleBuilder s(graph);
  s.compute_inline(2);
  const loops::BodyOperations found = operations_of_sum(loops::lower(s.schedule()));
  CHECK(found.simple == 6);
  CHECK(found.conditions == 4);
  CHECK(found.condition_axes == 0b101);  // axes i, c, r
  CHECK(found.skips_padding);
}

TEST_CASE("a maximum skips what is padded with minus infinity, and not what is padded with zero") {
  for (const double outside : {-std::numeric_limits<double>::infinity(), 0.0}) {
    program::ComputeGraph g;
    const auto x = g.input("x", {3});
    const auto padded =
        program::operators::pad(g, x, {.before = {1}, .after = {1}, .value = outside, .name = "padded"});
    loops::Statement statement;
    statement.kind = loops::Statement::Kind::Update;
    program::Operator largest = g.op(padded.id);
    largest.combiner = program::Combiner::Max;
    statement.op = std::make_shared<program::Operator>(largest);
    const loops::BodyOperations found = loops::operations(statement);
    CHECK(found.skips_padding == (outside != 0));
    CHECK(found.conditions == (outside != 0 ? 4 : 3));  // the selection disappears too
    CHECK(found.simple == 5);                           // and the maximum itself
  }
}

TEST_CASE("equal parts of a body count once, whether they are one node or not") {
  const auto operations = [](const auto& body) {
    program::ComputeGraph g;
    const auto x = g.input("x", {64});
    loops::Statement statement;
    const auto y = g.compute("y", {{"i", 64}}, [&](auto i) { return body(x, i[0]); });
    statement.op = std::make_shared<program::Operator>(g.op(y.id));
    return loops::operations(statement);
  };
  const auto apart = operations([](auto x, auto i) { return exp(x(i) + 1.0) / exp(x(i) + 1.0); });
  const auto shared = operations([](auto x, auto i) {
    const program::Expr e = exp(x(i) + 1.0);
    return e / e;
  });
  for (const loops::BodyOperations& found : {apart, shared}) {
    CHECK(found.simple == 1);
    CHECK(found.functions == 1);
    CHECK(found.divisions == 1);
    CHECK(found.arithmetic == 2);
  }
  const auto padded_twice = operations([](auto x, auto i) {
    const auto padded = [&] { return select(program::in_bounds(i - 1, 64), x(i - 1), 0.0); };
    return exp(padded()) + padded();
  });
  CHECK(padded_twice.simple == 5);  // two comparisons, what joins them, one choice, and the sum
  CHECK(padded_twice.conditions == 3);
}

TEST_CASE("conditions on indices are counted apart from their selection, conditions on data are not") {
  program::ComputeGraph g;
  const auto x = g.input("x", {64});
  const auto operations = [&](const program::Tensor& y) {
    loops::Statement statement;
    statement.op = std::make_shared<program::Operator>(g.op(y.id));
    return loops::operations(statement);
  };
  const auto padded = operations(program::operators::pad(g, x, {.before = {1}, .after = {1}, .name = "padded"}));
  CHECK(padded.simple == 4);
  CHECK(padded.conditions == 3);
  CHECK(padded.condition_axes == 0b1);
  const auto clipped = operations(g.compute("clipped", {{"i", 64}}, [&](auto i) {
    return select(program::Expr(0.0) < x(i[0]), x(i[0]), program::Expr(0.0));
  }));
  CHECK(clipped.simple == 2);
  CHECK(clipped.conditions == 0);
}
