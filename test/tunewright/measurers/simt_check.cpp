// SPDX-License-Identifier: Apache-2.0
#include "tunewright/measurers/simt_check.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "support/gpu_schedules.hpp"
#include "tunewright/core/gpu_targets.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"

namespace {

using namespace tunewright;
using loops::LoopNest;

static_assert(StreamingMeasurerFor<measurers::SimtCheck, LoopNest>);
static_assert(IdentifiedMeasurer<measurers::SimtCheck>);

schedule::ScheduleBuilder tiled() {
  return test::tiled_on_gpu(program::operators::matmul_graph({.m = 13, .n = 12, .k = 10}), "matmul",
                            {{2, 2, 1, 1}, {1, 4, 1, 1}}, {{2, 2}}, {"A", "B"});
}
Task task() { return program::make_task("matmul", tiled().schedule().graph, gpu_target("V100")); }
LoopNest nest() { return loops::lower(tiled().schedule()); }

void change_statements(loops::Body& body, const std::function<void(loops::Statement&)>& change) {
  loops::device::visit_nodes<loops::Statement>(body, change);
}

TEST_CASE("a right program has a latency, that of the model where there is one") {
  measurers::SimtCheck check;
  const std::vector<LoopNest> programs(2, nest());
  std::vector<std::size_t> seen;
  const auto outcomes =
      check.measure(task(), programs, [&](std::size_t i, const Outcome&) { seen.push_back(i); });
  CHECK(seen == std::vector<std::size_t>{0, 1});
  REQUIRE(outcomes.size() == 2);
  REQUIRE(outcomes[1].valid());
  CHECK(outcomes[1].timing()->median.count() > 0);
  CHECK(check.clock().count() == doctest::Approx(0.2));
  check.latency = [](const Task& t, const LoopNest& n) {
    return Seconds(t.name == "matmul" && n.arguments.size() == 3 ? 0.5 : 0.25);
  };
  CHECK(check.outcome(task(), nest()).timing()->median == Seconds(0.5));
}

TEST_CASE("what is wrong with a program tells its fault") {
  const measurers::SimtCheck check;
  const auto failure = [&](const LoopNest& program) {
    const Outcome outcome = check.outcome(task(), program);
    REQUIRE_FALSE(outcome.valid());
    return *outcome.failure();
  };
  LoopNest wrong = nest();

  SUBCASE("a limit") {
    wrong.variables[2].extent = 2048;
    wrong.variables[1].extent = 2048;
    CHECK(failure(wrong).fault == Fault::InvalidSchedule);
  }
  SUBCASE("no GPU program") {
    schedule::ScheduleBuilder s(tiled().schedule().graph);
    s.reorder(2, {2, 0, 1});
    s.bind(2, 0, schedule::LoopKind::BlockX);
    CHECK(
        failure(loops::lower(s.schedule())) ==
        Failure{
            Fault::InvalidSchedule,
            "kernel 'kernel': loop 'i' is bound to block_x inside of other loops or beside other work; make "
            "it outermost"});
  }
  SUBCASE("memory outside a buffer") {
    change_statements(wrong.body, [](loops::Statement& s) {
      if (s.op->name == "A.shared") s.guards.clear();  // the last block reaches beyond the last row
    });
    CHECK(failure(wrong).fault == Fault::OutOfBounds);
  }
  SUBCASE("what only another thread has") {
    for (loops::Buffer& buffer : wrong.buffers) {
      if (buffer.name == "B.shared") buffer.scope = loops::Scope::Global;
    }
    CHECK(failure(wrong).fault == Fault::WrongResult);
  }
  SUBCASE("elements that are not written") {
    change_statements(wrong.body, [](loops::Statement& s) {
      if (s.op->name == "matmul") s.guards.front().extent = 12;
    });
    CHECK(failure(wrong) ==
          Failure{Fault::WrongResult, "output 'matmul': element 144 of 156 was never written"});
  }
  SUBCASE("a wrong result") {
    change_statements(wrong.body, [](loops::Statement& s) {
      if (s.kind == loops::Statement::Kind::Update) s.guards.push_back({s.axis_values[2], 9, false, true, 2});
    });
    CHECK(failure(wrong).detail.find("output 'matmul': element 0 is ") == 0);
  }
  SUBCASE("too much to run") {
    measurers::SimtCheck short_of_time;
    short_of_time.max_statements = 1000;
    CHECK(short_of_time.outcome(task(), nest()).failure()->fault == Fault::RunTimeout);
  }
}

TEST_CASE("a task without graph cannot be checked") {
  Task empty = task();
  empty.graph = nullptr;
  CHECK_THROWS_AS((void)measurers::SimtCheck{}.outcome(empty, nest()), std::invalid_argument);
}

}  // namespace
