// SPDX-License-Identifier: Apache-2.0
#include "tunewright/codegen/emission_plan.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "support/nest_builder.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/loops/partition.hpp"
#include "tunewright/program/graph.hpp"
#include "tunewright/schedule/schedule.hpp"

namespace {

using namespace tunewright;

/// The kind of the only loop of a body.
loops::LoopKind kind_of(const loops::Body& body) {
  REQUIRE(body.size() == 1);
  return std::get<loops::Loop>(body[0].content).kind;
}

TEST_CASE("a limit of unrolling holds for full tiles; at the boundary loops stay loops") {
  auto g = std::make_shared<program::ComputeGraph>();
  const auto x = g->input("x", {10});
  const auto y = g->compute("y", {{"i", 10}}, [&](auto i) { return x(i[0]) + 1.0F; });
  schedule::ScheduleBuilder s(g);
  s.split(y.id, 0, {4});  // tiles of 4, 4 and 2
  const auto branch_with = [&](std::int64_t limit) {
    s.unroll_limit(y.id, limit);
    const codegen::EmissionPlan plan(loops::partition(loops::lower(s.schedule())), Target{});
    const auto& outer = std::get<loops::Loop>(plan.nest().body.at(0).content);
    CHECK(outer.kind == loops::LoopKind::Serial);
    return std::get<loops::Branch>(outer.body.at(0).content);
  };
  const loops::Branch allowed = branch_with(4);
  CHECK(kind_of(allowed.then) == loops::LoopKind::Unrolled);
  CHECK(kind_of(allowed.otherwise) == loops::LoopKind::Serial);
  CHECK(kind_of(branch_with(3).then) == loops::LoopKind::Serial);
}

TEST_CASE("a limit of unrolling leaves loops around conditions alone, whatever asks for these") {
  program::ComputeGraph g;
  const auto x = g.input("x", {8});
  const auto y = g.compute("y", {{"i", 8}}, [&](auto i) { return x(i[0]) + 1.0F; });
  test::NestBuilder b(g);
  const loops::IndexExpr i = loops::IndexExpr::variable(b.var("i", 8));
  const auto kind_around = [&](loops::Node node) {
    loops::Loop loop = test::NestBuilder::loop(0, loops::LoopKind::Serial, {std::move(node)});
    loop.unroll_limit = 8;
    b.nest.body = {loop};
    return kind_of(codegen::EmissionPlan(b.nest, Target{}).nest().body);
  };
  const auto assign = [&](std::vector<loops::Guard> guards = {}) {
    return b.statement(loops::Statement::Kind::Assign, y.id, {i}, std::move(guards));
  };
  CHECK(kind_around(assign()) == loops::LoopKind::Unrolled);
  CHECK(kind_around(assign({{i, 7, false, true, 0}})) == loops::LoopKind::Serial);
  CHECK(kind_around(assign({{i, 7, false, true, loops::Guard::zero_term}})) == loops::LoopKind::Serial);
  loops::Branch branch;
  branch.then = {assign()};
  CHECK(kind_around(branch) == loops::LoopKind::Unrolled);
  branch.conditions = {{i, 7, false, true, 0}};
  CHECK(kind_around(branch) == loops::LoopKind::Serial);
}

}  // namespace
