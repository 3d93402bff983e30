// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "support/emulated_program.hpp"
#include "support/mutated.hpp"
#include "support/program_tally.hpp"
#include "support/reference_arguments.hpp"
#include "support/workloads.hpp"
#include "tunewright/codegen/llvm.hpp"
#include "tunewright/core/arm_targets.hpp"
#include "tunewright/loops/print.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/reference/random_inputs.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"

namespace {

using namespace tunewright;

/// `instances` random shapes of every operator, `schedules` random schedules each, as code for 64-bit ARM.
test::ProgramTally check_all(std::size_t instances, std::size_t schedules, std::uint64_t seed) {
  struct Origin {
    Task task;
    loops::LoopNest nest;
    reference::Tensors expected;
  };
  const spaces::MultiLevelTiling space;
  const Target target = arm_target("Raspberry Pi 4").with_threads(2);
  codegen::LlvmCompiler compiler(target);
  test::EmulatedProgram program;
  std::vector<Origin> origins;
  for (const test::Workload& workload : test::workloads()) {
    for (std::size_t i = 0; i < instances; ++i) {
      Rng rng = Rng(seed).split(i);
      const Task task = program::make_task(workload.name, workload.make(rng), target);
      const reference::Tensors inputs = reference::random_inputs(*task.graph, rng);
      const reference::Tensors expected = reference::evaluate(*task.graph, inputs);
      for (std::size_t s = 0; s < schedules; ++s) {
        const auto config = space.sample(task, rng);
        if (!config) continue;
        loops::LoopNest nest = loops::lower(test::mutated(space, task, *config, rng));
        codegen::Kernel kernel = compiler.compile(nest);
        std::vector<std::vector<double>> arguments = test::arguments_for(kernel, inputs);
        program.add(std::move(kernel), std::move(arguments));
        origins.push_back({task, std::move(nest), expected});
      }
    }
  }
  test::ProgramTally tally;
  for (const test::EmulatedProgram::Case& ran : program.run(2)) {
    const Origin& origin = origins[tally.checked()];
    const bool right =
        ran.intact && test::outputs_are_right(ran.kernel, *origin.task.graph, ran.arguments, origin.expected);
    tally.count("aarch64", right);
    if (!right) MESSAGE(origin.task.name << " on aarch64 is wrong:\n" << loops::to_string(origin.nest));
  }
  return tally;
}

TEST_CASE("random schedules of every operator compute on 64-bit ARM what the reference does") {
  if (!test::can_emulate_aarch64()) {
    MESSAGE(test::why_not_emulated);
    return;
  }
  const test::ProgramTally tally = check_all(2, 3, 1);
  MESSAGE(tally.to_string());
  CHECK(tally.checked() >= 150);
  CHECK(tally.wrong() == 0);
}

}  // namespace

TEST_SUITE_BEGIN("long");
TEST_CASE("two thousand random schedules of every operator compute on 64-bit ARM what the reference does") {
  if (!test::can_emulate_aarch64()) {
    MESSAGE(test::why_not_emulated);
    return;
  }
  const test::ProgramTally tally = check_all(10, 8, 2);
  MESSAGE(tally.to_string());
  CHECK(tally.checked() >= 2000);
  CHECK(tally.wrong() == 0);
}
TEST_SUITE_END();
