// SPDX-License-Identifier: Apache-2.0
#include "tunewright/codegen/plan.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <variant>

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
    const codegen::Plan plan(loops::partition(loops::lower(s.schedule())), Target{});
    const auto& outer = std::get<loops::Loop>(plan.nest().body.at(0).content);
    CHECK(outer.kind == loops::LoopKind::Serial);
    return std::get<loops::Branch>(outer.body.at(0).content);
  };
  const loops::Branch allowed = branch_with(4);
  CHECK(kind_of(allowed.then) == loops::LoopKind::Unrolled);
  CHECK(kind_of(allowed.otherwise) == loops::LoopKind::Serial);
  CHECK(kind_of(branch_with(3).then) == loops::LoopKind::Serial);
}

}  // namespace
