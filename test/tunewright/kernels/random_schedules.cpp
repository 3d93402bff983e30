// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "support/mutated.hpp"
#include "support/program_tally.hpp"
#include "support/reference_arguments.hpp"
#include "support/run_kernel.hpp"
#include "support/workloads.hpp"
#include "tunewright/codegen/llvm.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/loops/print.hpp"
#include "tunewright/program/operators/elementwise.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/reference/evaluate.hpp"
#include "tunewright/reference/random_inputs.hpp"
#include "tunewright/schedule/json.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"

namespace {

using namespace tunewright;

/// Compiles and runs one schedule and compares every output with the reference.
void check(const Task& task, const schedule::Schedule& config, const reference::Tensors& inputs,
           const reference::Tensors& expected, codegen::LlvmCompiler& compiler, test::ProgramTally& tally) {
  const loops::LoopNest nest = loops::lower(config);
  const codegen::Kernel kernel = compiler.compile(nest);
  std::vector<std::vector<double>> arguments = test::arguments_for(kernel, inputs);
  const bool right =
      test::run_kernel(kernel, arguments) && test::outputs_are_right(kernel, *task.graph, arguments, expected);
  tally.count(name(task.target.isa), right);
  if (right) return;
  MESSAGE(task.name << " on " << name(task.target.isa) << " is wrong:\n" << loops::to_string(nest));
}

/// `instances` random shapes of every operator, `schedules` random schedules each, on all instruction sets of the
/// machine.
test::ProgramTally check_all(std::size_t instances, std::size_t schedules, std::uint64_t seed) {
  const spaces::MultiLevelTiling space;
  test::ProgramTally tally;
  const Target host = host_target().with_threads(2);
  for (const test::Workload& workload : test::workloads()) {
    for (std::size_t i = 0; i < instances; ++i) {
      Rng rng = Rng(seed).split(i);
      const auto isa = static_cast<Isa>(2 - static_cast<int>(i % 4) % 3);
      const Task task = program::make_task(workload.name, workload.make(rng),
                                           host.with_isa(contains(host.isa, isa) ? isa : host.isa));
      const reference::Tensors inputs = reference::random_inputs(*task.graph, rng);
      const reference::Tensors expected = reference::evaluate(*task.graph, inputs);
      // Half of the instances, of every instruction set, are compiled for caches that most outputs exceed: these are
      // stored around the caches.
      Target compiled_for = task.target;
      if ((i + i / 4) % 2 == 1) compiled_for.l2_bytes = compiled_for.l3_bytes = 256;
      codegen::LlvmCompiler compiler(compiled_for);
      for (std::size_t s = 0; s < schedules; ++s) {
        const auto config = space.sample(task, rng);
        if (!config) continue;
        check(task, test::mutated(space, task, *config, rng), inputs, expected, compiler, tally);
      }
    }
  }
  return tally;
}

TEST_CASE("random schedules of every operator compute what the reference does, odd shapes included") {
  const test::ProgramTally tally = check_all(11, 8, 1);
  MESSAGE(tally.to_string());
  CHECK(tally.checked() >= 2000);
  CHECK(tally.wrong() == 0);
}

TEST_CASE("products of bytes are summed over all lanes, whatever instruction multiplies them") {
  auto graph = std::make_shared<program::ComputeGraph>();
  const program::Tensor a = graph->input("A", {2, 24}, program::ScalarType::UInt8);
  const program::Tensor b = graph->constant("B", {24, 5}, program::ScalarType::Int8);
  namespace ops = program::operators;
  ops::cast(*graph, ops::relu(*graph, ops::matmul(*graph, a, b)), program::ScalarType::UInt8);
  const char* const steps = R"([
      ["compute_location",3,["inline"],0],["split",2,2,[1,24],24,-1,"serial"],["rfactor",2,3],
      ["rfactor",5,4],["annotate",2,2,"vectorized"],["fuse",2,[0,1],2,true],["annotate",2,3,"parallel"],
      ["compute_location",2,["root",[4,0],[4,1]],0],["annotate",5,3,"vectorized"],
      ["fuse",5,[0,1,2],1,true],["annotate",5,4,"parallel"],
      ["compute_location",5,["root",[2,3],[4,0],[4,1]],1],["reorder",6,[0,1,2,4,3]],
      ["annotate",6,3,"vectorized"],["fuse",6,[0,1,2],1,true],["annotate",6,5,"parallel"],
      ["unroll_limit",6,[0,16,64,512],2],["compute_location",6,["root",[5,4],[2,3],[4,0],[4,1]],2]])";
  Rng rng(1);
  const reference::Tensors inputs = reference::random_inputs(*graph, rng);
  const reference::Tensors expected = reference::evaluate(*graph, inputs);
  test::ProgramTally tally;
  const Target host = host_target().with_threads(2);
  for (const Isa isa : {Isa::Sse42, Isa::Avx2, Isa::Avx512}) {
    if (!contains(host.isa, isa)) continue;
    const Task task = program::make_task("bytes", graph, host.with_isa(isa));
    codegen::LlvmCompiler compiler(task.target);
    check(task, {graph, schedule::steps_from_json(steps)}, inputs, expected, compiler, tally);
  }
  CHECK(tally.checked() >= 1);
  CHECK(tally.wrong() == 0);
}

}  // namespace

TEST_SUITE_BEGIN("long");
TEST_CASE("twenty thousand random schedules of every operator compute what the reference does") {
  const char* const seed = std::getenv("TUNEWRIGHT_PROGRAMS_SEED");  // by test/random_programs.sh
  const test::ProgramTally tally = check_all(60, 14, seed == nullptr ? 2 : std::strtoull(seed, nullptr, 10));
  MESSAGE(tally.to_string());
  CHECK(tally.checked() >= 20000);
  CHECK(tally.wrong() == 0);
}
TEST_SUITE_END();
