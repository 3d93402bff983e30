// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "support/program_tally.hpp"
#include "support/random_steps.hpp"
#include "support/reference_arguments.hpp"
#include "support/run_kernel.hpp"
#include "support/workloads.hpp"
#include "tunewright/codegen/llvm.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/loops/limits.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/loops/print.hpp"
#include "tunewright/reference/evaluate.hpp"
#include "tunewright/reference/random_inputs.hpp"
#include "tunewright/schedule/json.hpp"

namespace {

using namespace tunewright;

/// `instances` random shapes of every operator, `schedules` of random steps each, compiled for one of the instruction
/// sets of the machine and compared with the reference. What cannot be lowered or compiled is left out.
test::ProgramTally check_all(std::size_t instances, std::size_t schedules, std::uint64_t seed) {
  test::ProgramTally tally;
  const Target host = host_target().with_threads(2);
  std::size_t number = 0;
  for (const test::Workload& workload : test::workloads()) {
    for (std::size_t i = 0; i < instances; ++i) {
      Rng rng = Rng(seed).split(number);
      const auto isa = static_cast<Isa>(number++ % 3);
      const auto graph = workload.make(rng);
      const reference::Tensors inputs = reference::random_inputs(*graph, rng);
      const reference::Tensors expected = reference::evaluate(*graph, inputs);
      const Target target = host.with_isa(contains(host.isa, isa) ? isa : host.isa);
      codegen::LlvmCompiler compiler(target);
      for (std::size_t s = 0; s < schedules; ++s) {
        const schedule::Schedule config = test::random_steps(graph, rng);
        loops::LoopNest nest;
        codegen::Kernel kernel;
        try {
          nest = loops::lower(config);
          if (!loops::exceeded_limit(nest, target).empty()) continue;
          kernel = compiler.compile(nest);
        } catch (const schedule::ScheduleError&) {
          continue;
        } catch (const codegen::Unsupported&) {
          continue;
        }
        std::vector<std::vector<double>> arguments = test::arguments_for(kernel, inputs);
        const bool right =
            test::run_kernel(kernel, arguments) && test::outputs_are_right(kernel, *graph, arguments, expected);
        tally.count(name(target.isa), right);
        if (right) continue;
        MESSAGE(workload.name << " on " << name(target.isa) << " is wrong: " << schedule::to_json(config.steps) << "\n"
                              << loops::to_string(nest));
      }
    }
  }
  return tally;
}

TEST_CASE("random steps, whatever they are good for, compute what the reference does") {
  const test::ProgramTally tally = check_all(3, 8, 1);
  MESSAGE(tally.to_string());
  CHECK(tally.checked() >= 200);
  CHECK(tally.wrong() == 0);
}

}  // namespace

TEST_SUITE_BEGIN("long");
TEST_CASE("some thousand schedules of random steps compute what the reference does") {
  const test::ProgramTally tally = check_all(40, 12, 2);
  MESSAGE(tally.to_string());
  CHECK(tally.checked() >= 2000);
  CHECK(tally.wrong() == 0);
}
TEST_SUITE_END();
