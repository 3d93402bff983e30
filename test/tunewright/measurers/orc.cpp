// SPDX-License-Identifier: Apache-2.0
#include "tunewright/measurers/orc.hpp"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <system_error>
#include <type_traits>
#include <vector>

#include "support/fault_of.hpp"
#include "support/faulty_nests.hpp"
#include "support/measurer_laws.hpp"
#include "support/refusal.hpp"
#include "tunewright/core/gpu_targets.hpp"
#include "tunewright/measurers/orc_state.hpp"
#include "tunewright/measurers/sandbox.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"

using namespace tunewright;
using loops::LoopKind;
using loops::LoopNest;
using measurers::Evict;
using measurers::OrcJit;
using test::fault_of;
using test::nest_of;
using test::with_too_many_rows;
using test::without_initialisation;

static_assert(std::is_aggregate_v<OrcJit>);
static_assert(StreamingMeasurerFor<OrcJit, LoopNest>);
static_assert(IdentifiedMeasurer<OrcJit>);
static_assert(BestAwareMeasurer<OrcJit>);

namespace {

Task matmul_task(std::int64_t m, std::int64_t n, std::int64_t k, unsigned threads = 1) {
  return test::matmul_task(m, n, k, host_target().with_threads(threads));
}
OrcJit quick() { return test::with_short_repeats(OrcJit{}); }

// A sanitizer opens pipes to see whether memory is there, and takes a process without descriptors for one without.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool needs_descriptors = true;
#elif defined(__has_feature)
constexpr bool needs_descriptors = __has_feature(address_sanitizer);
#else
constexpr bool needs_descriptors = false;
#endif

}  // namespace

TEST_CASE("a measurer that gets no process of its own says so and leaves nothing half made" *
          doctest::skip(needs_descriptors)) {
  rlimit descriptors{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &descriptors) == 0);
  const rlimit none{0, descriptors.rlim_max};
  bool refused = false;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  try {
    const OrcJit measurer{.compile_threads = 1};
  } catch (const std::system_error&) {
    refused = true;
  }
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &descriptors) == 0);
  CHECK(refused);
}

TEST_CASE("laws of measurers: OrcJit") {
  const Task task = matmul_task(12, 20, 8);
  test::check_measurer(
      quick(),
      test::KnownPrograms<LoopNest>{.task = task,
                                    .programs = {nest_of(task), without_initialisation(task), with_too_many_rows(task),
                                                 nest_of(matmul_task(8, 8, 8)), nest_of(task, LoopKind::Vectorized)},
                                    .works = {true, false, false, false, true}},
      false);
}

TEST_CASE("a batch comes back in order, with each fault its own") {
  OrcJit measurer = quick();
  const Task task = matmul_task(24, 20, 28);
  LoopNest another_task = nest_of(matmul_task(8, 8, 8));
  const std::vector<LoopNest> programs = {nest_of(task),
                                          without_initialisation(task),
                                          nest_of(task, LoopKind::Vectorized),
                                          with_too_many_rows(task),
                                          std::move(another_task),
                                          nest_of(task, LoopKind::Unrolled)};
  std::vector<std::size_t> seen;
  const std::vector<Outcome> outcomes =
      measurer.measure(task, programs, [&](std::size_t i, const Outcome&) { seen.push_back(i); });
  REQUIRE(outcomes.size() == 6);
  CHECK(fault_of(outcomes[0]) == "none");
  CHECK(fault_of(outcomes[1]) == "wrong_result");
  CHECK(fault_of(outcomes[2]) == "none");
  CHECK(fault_of(outcomes[3]) == "out_of_bounds");
  CHECK(fault_of(outcomes[4]) == "invalid_schedule");
  CHECK(fault_of(outcomes[5]) == "none");
  CHECK(seen == std::vector<std::size_t>{0, 1, 2, 3, 4, 5});
  for (const Outcome& outcome : outcomes) CHECK(outcome.compile_time.count() > 0);
  for (const std::size_t i : {0, 2, 5}) CHECK(outcomes[i].run_time.count() > 0);
  CHECK(measurer.sandbox->statistics().workers_started == 2);
}

TEST_CASE("more candidates than a turn, on one thread and on all") {
  for (const unsigned threads : {1U, 2U}) {
    OrcJit measurer = quick();
    measurer.processors = std::vector<int>(threads, host_processors().front());  // also on a machine with one processor
    measurer.turn = 3;
    const Task task = matmul_task(16, 16, 16, threads);
    const std::vector<LoopNest> programs(8, nest_of(task, LoopKind::Vectorized, LoopKind::Parallel));
    for (const Outcome& outcome : measurer.measure(task, programs)) CHECK(fault_of(outcome) == "none");
    CHECK(measurer.sandbox->statistics().workers_started == 1);
    CHECK(measurer.measure(task, std::vector<LoopNest>{}).empty());
  }
}

TEST_CASE("large tasks are checked at sampled elements") {
  OrcJit measurer = quick();
  measurer.reference.full_below_flops = 1;
  measurer.reference.sampled_elements = 100;
  const Task task = matmul_task(65, 33, 17);
  const std::vector<LoopNest> programs = {nest_of(task), without_initialisation(task)};
  const std::vector<Outcome> outcomes = measurer.measure(task, programs);
  CHECK(fault_of(outcomes[0]) == "none");
  CHECK(fault_of(outcomes[1]) == "wrong_result");
}

TEST_CASE("several tasks share a measurer") {
  OrcJit measurer = quick();
  measurer.task_cache_bytes = 1;  // keeps only the last
  const Task tasks[] = {matmul_task(8, 8, 8), matmul_task(12, 8, 8)};
  for (int round = 0; round < 2; ++round) {
    for (const Task& task : tasks) {
      CHECK(fault_of(measurer.measure(task, std::vector<LoopNest>{nest_of(task)}).front()) == "none");
    }
  }
  CHECK(measurer.state->tasks.size() == 1);
  CHECK(measurer.sandbox->statistics().workers_started == 1);
}

TEST_CASE("a candidate far slower than a noted best is given up early") {
  OrcJit measurer = quick();
  const Task task = matmul_task(16, 16, 16);
  measurer.note_best(task, Seconds(1e-12));
  const Outcome outcome = measurer.measure(task, std::vector<LoopNest>{nest_of(task)}).front();
  REQUIRE(outcome.valid());
  CHECK(outcome.timing()->stopped == StopReason::FarSlower);
}

// Loops of a task for one thread are not parallel.
TEST_CASE("long calls of what is not nearly the best end early and are not checked" *
          doctest::skip(host_target().threads < 2)) {
  OrcJit measurer = quick();
  measurer.protocol.partial_call_seconds = 1e-9;
  measurer.protocol.far_slower_factor = std::numeric_limits<double>::infinity();
  const Task task = matmul_task(64, 32, 32, 2);
  const std::vector<LoopNest> programs = {nest_of(task, LoopKind::Serial, LoopKind::Parallel),
                                          without_initialisation(task, LoopKind::Parallel)};
  measurer.note_best(task, Seconds(1e-12));
  const std::vector<Outcome> outcomes = measurer.measure(task, programs);
  for (const Outcome& outcome : outcomes) {
    REQUIRE(outcome.valid());
    CHECK(outcome.timing()->stopped == StopReason::Extrapolated);
    CHECK(outcome.timing()->repeats.size() == 1);  // there is no doubt
  }
  // What may be the best is run whole, and checked.
  measurer.protocol.nearly_best_factor = std::numeric_limits<double>::infinity();
  const std::vector<Outcome> whole = measurer.measure(task, programs);
  CHECK(whole[0].timing()->stopped != StopReason::Extrapolated);
  CHECK(fault_of(whole[1]) == "wrong_result");
}

TEST_CASE("the best are confirmed in turns") {
  OrcJit measurer = quick();
  const Task task = matmul_task(32, 32, 32);
  const std::vector<LoopNest> programs = {nest_of(task), without_initialisation(task),
                                          nest_of(task, LoopKind::Vectorized)};
  const std::vector<Outcome> outcomes = measurer.confirm(task, programs, 5);
  REQUIRE(outcomes.size() == 3);
  REQUIRE(outcomes[0].valid());
  CHECK(outcomes[0].timing()->repeats.size() == 5);
  CHECK(fault_of(outcomes[1]) == "wrong_result");
  CHECK(outcomes[2].valid());
}

TEST_CASE("kernels that are there already are measured like candidates") {
  OrcJit measurer = quick();
  const Task task = matmul_task(16, 16, 16);
  codegen::Kernel kernel = measurer.compile_kernel(task, nest_of(task));
  CHECK(measurer.measure_kernel(task, kernel).valid());
  kernel.object = nullptr;
  kernel.native = [](void* const* buffers, const codegen::tunewright_runtime*) {
    const auto* a = static_cast<const float*>(buffers[0]);
    const auto* b = static_cast<const float*>(buffers[1]);
    auto* c = static_cast<float*>(buffers[2]);
    for (int i = 0; i < 16; ++i) {
      for (int j = 0; j < 16; ++j) {
        c[i * 16 + j] = 0;
        for (int k = 0; k < 16; ++k) c[i * 16 + j] += a[i * 16 + k] * b[k * 16 + j];
      }
    }
  };
  CHECK(measurer.measure_kernel(task, kernel).valid());
}

TEST_CASE("a thread of the team that crashes or hangs costs one candidate") {
  OrcJit measurer = quick();
  measurer.processors = std::vector<int>(2, host_processors().front());  // also on a machine with one processor
  const double patience_seconds = measurer.protocol.run_timeout_seconds;
  const Task task = matmul_task(16, 16, 16, 2);
  const codegen::Kernel right = measurer.compile_kernel(task, nest_of(task, LoopKind::Serial, LoopKind::Parallel));
  codegen::Kernel wrong = right;
  wrong.object = nullptr;
  const auto expect = [&](codegen::tunewright_kernel function, const char* fault, double limit_seconds) {
    wrong.native = function;
    measurer.protocol.run_timeout_seconds = limit_seconds;
    CHECK(fault_of(measurer.measure_kernel(task, wrong)) == fault);
    measurer.protocol.run_timeout_seconds = patience_seconds;  // two threads of one processor wait for each other
    CHECK(fault_of(measurer.measure_kernel(task, right)) == "none");
  };
  expect(
      [](void* const*, const codegen::tunewright_runtime* runtime) {
        runtime->parallel_for(
            runtime, 2, [](void*, std::int64_t, std::int64_t end) { end == 2 ? std::abort() : void(); }, nullptr);
      },
      "run_error", patience_seconds);
  expect(
      [](void* const*, const codegen::tunewright_runtime* runtime) {
        runtime->parallel_for(
            runtime, 2,
            [](void*, std::int64_t, std::int64_t end) {
              while (end == 2) ::pause();
            },
            nullptr);
      },
      "run_timeout", 0.5);
}

TEST_CASE("a compilation that took too long is a fault of its own") {
  OrcJit measurer = quick();
  measurer.protocol.compile_timeout_seconds = 1e-9;
  const Task task = matmul_task(8, 8, 8);
  CHECK(fault_of(measurer.measure(task, std::vector<LoopNest>{nest_of(task)}).front()) == "compile_timeout");
}

TEST_CASE("measurements are identified by their compiler") {
  OrcJit measurer = quick();
  const std::string warm = measurer.identity();
  CHECK(warm.find("llvm") != std::string::npos);
  measurer.protocol.evict = Evict::Constants;
  CHECK(measurer.identity() == warm + ", cold constants");
  measurer.protocol.evict = Evict::Everything;
  CHECK(measurer.identity() == warm + ", cold buffers");
  measurer.protocol.evict = Evict::Nothing;

  // Kernels of other options have other latencies; what is checked in between has not.
  measurer.compile.verify = !measurer.compile.verify;
  CHECK(measurer.identity() == warm);
  measurer.compile.register_tiles = false;
  CHECK(measurer.identity().find(warm + ", options ") == 0);
}

TEST_CASE("copies of a measurer compile by their own options") {
  OrcJit usual = quick();
  OrcJit unoptimised = usual;
  unoptimised.compile.passes = "";
  const Task task = matmul_task(16, 16, 16);
  const LoopNest nest = nest_of(task);
  const auto code = [&](OrcJit& measurer) { return *measurer.compile_kernel(task, nest).object; };
  const std::vector<char> optimised = code(usual);
  CHECK(code(unoptimised) == *codegen::compile(nest, task.target, unoptimised.compile).object);
  CHECK(code(unoptimised) != optimised);
  CHECK(code(usual) == optimised);
}

TEST_CASE("a task without a graph cannot be measured") {
  OrcJit measurer = quick();
  Task task;
  task.name = "table";
  CHECK_THROWS_WITH_AS(static_cast<void>(measurer.measure(task, std::vector<LoopNest>(1))),
                       doctest::Contains("no graph"), std::invalid_argument);
}

TEST_CASE("a measurer without processors cannot measure") {
  OrcJit measurer = quick();
  measurer.processors.clear();
  const Task task = matmul_task(8, 8, 8);
  CHECK_THROWS_WITH_AS(static_cast<void>(measurer.measure(task, std::vector<LoopNest>{nest_of(task)})),
                       doctest::Contains("no processors"), std::invalid_argument);
}

TEST_CASE("a task for more threads than processors is refused, with the remedy") {
  OrcJit measurer = quick();
  measurer.processors = {0};
  const Task task = matmul_task(8, 8, 8, 64);
  const std::vector<LoopNest> programs{nest_of(task)};
  CHECK_THROWS_WITH_AS(static_cast<void>(measurer.measure(task, programs)), doctest::Contains("for 64 threads"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(measurer.measure(task, programs)), doctest::Contains("ask for at most 1 by"),
                       std::invalid_argument);
}

TEST_CASE("a task for a GPU is refused, with what measures it") {
  OrcJit measurer = quick();
  const Task task =
      program::make_task("product", program::operators::matmul_graph({.m = 8, .n = 8, .k = 8}), gpu_target("A100"));
  CHECK_THROWS_WITH_AS(static_cast<void>(measurer.measure(task, std::vector<LoopNest>{nest_of(task)})),
                       doctest::Contains("take measurers::Nvrtc"), std::invalid_argument);
}

TEST_CASE("a task for processors of another family is refused, with what is left to do") {
  OrcJit measurer = quick();
  const Target foreign =
      host_family == CpuFamily::Aarch64 ? Target{.name = "board"} : Target{.name = "board", .isa = Isa::Neon};
  const Task task = program::make_task("product", program::operators::matmul_graph({.m = 8, .n = 8, .k = 8}), foreign);
  const std::string said =
      test::refusal([&] { static_cast<void>(measurer.measure(task, std::vector<LoopNest>{nest_of(task)})); });
  CHECK(said.starts_with("task 'product' is for 'board' (" + std::string(name(family_of(foreign.isa))) + ")"));
  CHECK(said.find("codegen::export_kernel") != std::string::npos);
}
