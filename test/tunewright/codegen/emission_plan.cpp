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

TEST_CASE("a read of a tensor that the nest does not store is refused") {
  program::ComputeGraph g;
  const auto x = g.input("x", {8});
  const auto y = g.compute("y", {{"i", 8}}, [&](auto i) { return x(i[0]) + 1.0F; });
  test::NestBuilder b(g);
  const loops::IndexExpr i = loops::IndexExpr::variable(b.var("i", 8));
  b.nest.body = {
      test::NestBuilder::loop(0, loops::LoopKind::Serial, {b.statement(loops::Statement::Kind::Assign, y.id, {i})})};
  b.nest.buffer_of[x.id] = loops::LoopNest::no_buffer;
  CHECK_THROWS_WITH_AS(codegen::EmissionPlan(b.nest, Target{}),
                       doctest::Contains("operator 'y' reads tensor 0 which has no buffer"), codegen::Unsupported);
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
  CHECK(kind_around(assign({{i, 7, false, true, loops::Guard::padding}})) == loops::LoopKind::Serial);
  loops::Branch branch;
  branch.then = {assign()};
  CHECK(kind_around(branch) == loops::LoopKind::Unrolled);
  branch.conditions = {{i, 7, false, true, 0}};
  CHECK(kind_around(branch) == loops::LoopKind::Serial);
}

TEST_CASE("a reduction that stays a loop takes several iterations a step, unless they are long or far apart") {
  struct Sum {
    std::int64_t terms = 10;       // y[i] = sum over k of x[k, i]
    std::int64_t unrolled = 1;     // points i, all in registers
    std::int64_t row_bytes = 128;  // of x
    bool guarded = false;
  };
  const auto iterations = [](const Sum& sum, const codegen::EmissionPlanOptions& options = {}) {
    program::ComputeGraph g;
    const auto x = g.input("x", {sum.terms, sum.row_bytes / 4});
    const auto y = g.reduce("y", {{"i", sum.unrolled}}, {{"k", sum.terms}}, program::Combiner::Sum,
                            [&](auto i, auto k) { return x(k[0], i[0]); });
    test::NestBuilder b(g);
    const loops::Var k = b.var("k", sum.terms), i = b.var("i", sum.unrolled);
    const auto point = loops::IndexExpr::variable(i), term = loops::IndexExpr::variable(k);
    std::vector<loops::Guard> guards;
    if (sum.guarded) guards.push_back({term, sum.terms - 1, false, true, 1});
    b.nest.body = {test::NestBuilder::loop(k, loops::LoopKind::Serial,
                                           {test::NestBuilder::loop(i, loops::LoopKind::Unrolled,
                                                                    {b.statement(loops::Statement::Kind::Update, y.id,
                                                                                 {point, term}, std::move(guards))})},
                                           true)};
    const codegen::EmissionPlan plan(b.nest, Target{}, options);
    return plan.iterations_per_step(std::get<loops::Loop>(plan.nest().body.at(0).content));
  };
  CHECK(iterations({}) == 4);
  CHECK(iterations({.terms = 3}) == 3);
  CHECK(iterations({.unrolled = 16}) == 4);  // 64 statements
  CHECK(iterations({.unrolled = 17}) == 1);  // 68
  CHECK(iterations({.row_bytes = 512}) == 4);
  CHECK(iterations({.row_bytes = 516}) == 3);  // 4 would move by 2064 bytes
  CHECK(iterations({.row_bytes = 2048}) == 1);
  CHECK(iterations({.guarded = true}) == 1);
  CHECK(iterations({}, {.max_iterations_per_step = 1}) == 1);
  CHECK(iterations({}, {.max_iterations_per_step = 10}) == 10);
}

TEST_CASE("what is left of a vectorised loop is one vector with idle lanes, where these can be masked") {
  using Widths = std::vector<std::pair<std::int64_t, std::int64_t>>;  // lanes, and how many are active
  const auto widths = [](Isa isa, std::int64_t extent, bool sums, std::int64_t step = 1) {
    auto g = std::make_shared<program::ComputeGraph>();
    const auto x = g->input("x", {3, step * extent});
    const auto read = [&](auto i, auto k) { return x(k, step * i[0]); };
    program::TensorId id = 0;
    if (sums)
      id = g->reduce("y", {{"i", extent}}, {{"k", 3}}, program::Combiner::Sum, [&](auto i, auto k) {
              return read(i, k[0]);
            }).id;
    else
      id = g->compute("y", {{"i", extent}}, [&](auto i) { return read(i, program::IndexExpr(0)); }).id;
    schedule::ScheduleBuilder s(g);
    if (sums) s.reorder(id, {1, 0});
    s.vectorize(id, 0);
    Target target;
    target.isa = isa;
    const codegen::EmissionPlan plan(loops::lower(s.schedule()), target);
    const auto* loop = std::get_if<loops::Loop>(&plan.nest().body.back().content);
    while (loop->kind != loops::LoopKind::Vectorized) loop = std::get_if<loops::Loop>(&loop->body.back().content);
    Widths found;
    for (const auto& chunk : plan.chunks(*loop)) found.emplace_back(chunk.lanes, chunk.active);
    return found;
  };
  CHECK(widths(Isa::Avx512, 14, true) == Widths{{16, 14}});
  CHECK(widths(Isa::Avx512, 14, false) == Widths{{16, 14}});
  CHECK(widths(Isa::Avx512, 24, true) == Widths{{16, 16}, {8, 8}});            // a part of its own
  CHECK(widths(Isa::Avx512, 35, true) == Widths{{16, 16}, {16, 16}, {4, 3}});  // the narrowest that holds the rest
  CHECK(widths(Isa::Avx512, 21, true) == Widths{{16, 16}, {8, 5}});
  CHECK(widths(Isa::Avx512, 14, true, 2) == Widths{{8, 8}, {4, 4}, {2, 2}});  // every second element
  CHECK(widths(Isa::Avx2, 14, true) == Widths{{8, 8}, {8, 6}});
  CHECK(widths(Isa::Avx2, 11, true) == Widths{{8, 8}, {4, 3}});
  CHECK(widths(Isa::Avx2, 14, false) == Widths{{8, 8}, {4, 4}, {2, 2}});
  CHECK(widths(Isa::Sse42, 7, true) == Widths{{4, 4}, {2, 2}, {1, 1}});
}

}  // namespace
