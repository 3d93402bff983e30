// SPDX-License-Identifier: Apache-2.0
#include "tunewright/measurers/simt_check.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/gpu_schedules.hpp"
#include "support/measurer_laws.hpp"
#include "tunewright/core/gpu_targets.hpp"
#include "tunewright/loops/device/pass.hpp"
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
  const auto outcomes = check.measure(task(), programs, [&](std::size_t i, const Outcome&) { seen.push_back(i); });
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

TEST_CASE("the identity tells what latencies are") {
  measurers::SimtCheck check;
  CHECK(check.identity() == "simt check 1");
  check.latency = [](const Task&, const LoopNest&) { return Seconds(0.5); };
  CHECK(check.identity() == "simt check 1, latencies of a function");
  check.latency_identity = "half a second";
  CHECK(check.identity() == "simt check 1, latencies of half a second");
  check.latency = nullptr;
  CHECK(check.identity() == "simt check 1");
}

TEST_CASE("laws of measurers: SimtCheck") {
  LoopNest too_large = nest(), unguarded = nest();
  too_large.variables[2].extent = 2048;
  too_large.variables[1].extent = 2048;
  change_statements(unguarded.body, [](loops::Statement& s) {
    if (s.op->name == "A.shared") s.guards.clear();
  });
  test::check_measurer(
      measurers::SimtCheck{},
      test::KnownPrograms<LoopNest>{
          .task = task(), .programs = {nest(), too_large, unguarded, nest()}, .works = {true, false, false, true}},
      true);
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
    CHECK(failure(loops::lower(s.schedule())) ==
          Failure{Fault::InvalidSchedule,
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
    CHECK(failure(wrong) == Failure{Fault::WrongResult, "output 'matmul': element 144 of 156 was never written"});
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

TEST_CASE("data of tasks are kept up to a limit, those that were not asked for longest go first") {
  measurers::SimtCheck check;
  const auto rows = [](std::int64_t m) {
    return test::tiled_on_gpu(program::operators::matmul_graph({.m = m, .n = 12, .k = 10}), "matmul",
                              {{2, 2, 1, 1}, {1, 4, 1, 1}}, {{2, 2}}, {"A", "B"})
        .schedule();
  };
  const auto task_of = [&](std::int64_t m) { return program::make_task("matmul", rows(m).graph, gpu_target("V100")); };
  const auto passes = [&](std::int64_t m) { return check.outcome(task_of(m), loops::lower(rows(m))).valid(); };
  const auto data = [&](std::int64_t m) {
    return check.tasks->data_of(task_of(m), check.reference, check.task_cache_bytes);
  };
  for (const std::int64_t m : {6, 5, 7}) CHECK(passes(m));
  CHECK(check.tasks->size() == 3);
  const auto five = data(5), seven = data(7);
  // A [m, 10] and B [10, 12] of four bytes an element, C [m, 12] expected as doubles: 136 m + 480 bytes.
  CHECK(five->bytes() == 136 * 5 + 480);
  check.task_cache_bytes = five->bytes() + seven->bytes();
  CHECK(passes(5));  // 6 was not asked for longest
  CHECK(check.tasks->size() == 2);
  CHECK(data(7) == seven);
  CHECK(data(5) == five);
  check.task_cache_bytes = 1;
  CHECK(passes(8));  // the one at hand stays, whatever it takes
  CHECK(check.tasks->size() == 1);
  CHECK(data(5) != five);
}

TEST_CASE("copies that share what is kept get data of their own options") {
  const auto data = [](const measurers::SimtCheck& check) {
    return check.tasks->data_of(task(), check.reference, check.task_cache_bytes);
  };
  const measurers::SimtCheck check;
  measurers::SimtCheck other = check;
  other.reference.threads = 2;  // does not change the data
  CHECK(data(other) == data(check));
  other.reference.seed = 1;
  CHECK(data(other)->inputs[0].bytes != data(check)->inputs[0].bytes);
  other = check;
  other.reference.tolerance_factor = 4;
  CHECK(data(other)->outputs[0].relative_tolerance == 4 * data(check)->outputs[0].relative_tolerance);
}

TEST_CASE("references nobody can compare with are refused") {
  const auto refused = [](const measurers::ReferenceData& options, const char* why) {
    CHECK_THROWS_WITH_AS((void)measurers::make_task_data(task(), options), doctest::Contains(why),
                         std::invalid_argument);
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  refused({.tolerance_factor = 0}, "tolerance_factor is 0");
  refused({.tolerance_factor = nan}, "tolerance_factor is");
  refused({.full_below_flops = nan}, "full_below_flops is");
  refused({.sampled_elements = 0}, "sampled_elements is 0");
  refused({.sampled_flops = std::numeric_limits<double>::infinity()}, "sampled_flops is inf");
}

TEST_CASE("a task without graph cannot be checked") {
  Task empty = task();
  empty.graph = nullptr;
  CHECK_THROWS_AS((void)measurers::SimtCheck{}.outcome(empty, nest()), std::invalid_argument);
}

}  // namespace
