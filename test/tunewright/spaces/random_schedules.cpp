// SPDX-License-Identifier: Apache-2.0
// Random schedules of every operator compute what the reference computes, before and after guards are hoisted.
#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "support/workloads.hpp"
#include "tunewright/codegen/kernel.hpp"
#include "tunewright/loops/interpret.hpp"
#include "tunewright/loops/partition.hpp"
#include "tunewright/loops/print.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/reference/compare.hpp"
#include "tunewright/reference/evaluate.hpp"
#include "tunewright/reference/random_inputs.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"

namespace {

using namespace tunewright;

/// The arguments of a nest, constants packed as it wants them.
std::vector<std::vector<double>> arguments_of(const loops::LoopNest& nest, const reference::Tensors& inputs) {
  std::vector<std::vector<double>> arguments;
  for (const loops::BufferId id : nest.arguments) {
    const loops::Buffer& buffer = nest.buffers[id];
    std::vector<double> values(static_cast<std::size_t>(buffer.elements()), std::nan(""));
    if (buffer.role != loops::BufferRole::Output) {
      const reference::Array& tensor = inputs[buffer.tensor];
      std::vector<double> plain(tensor.size());
      for (std::size_t i = 0; i < plain.size(); ++i) plain[i] = tensor.get(i);
      codegen::pack<double>(buffer, tensor.shape(), plain.data(), values.data());
    }
    arguments.push_back(std::move(values));
  }
  return arguments;
}

/// Runs `nest` and returns what is wrong with its outputs; nothing if they are as `expected`.
std::string wrong(const loops::LoopNest& nest, const program::ComputeGraph& graph,
                  const reference::Tensors& inputs, const reference::Tensors& expected) {
  auto arguments = arguments_of(nest, inputs);
  try {
    loops::interpret(nest, arguments);
  } catch (const loops::InterpretError& error) {
    return error.what();
  }
  for (std::size_t a = 0; a < nest.arguments.size(); ++a) {
    const loops::Buffer& buffer = nest.buffers[nest.arguments[a]];
    if (buffer.role != loops::BufferRole::Output) continue;
    reference::Array found(buffer.type, buffer.shape);
    for (std::size_t i = 0; i < found.size(); ++i) found.set(i, arguments[a][i]);
    const auto result =
        reference::compare(found, expected[buffer.tensor], reference::tolerance_for(graph, buffer.tensor));
    if (!result.passed) return buffer.name + " differs in " + std::to_string(result.mismatches) + " elements";
  }
  return "";
}

TEST_CASE("random schedules of every operator") {
  constexpr std::uint64_t programs_each = 8;  // each with a random schedule and three mutations of it
  const spaces::MultiLevelTiling space;
  std::size_t checked = 0;
  for (const test::Workload& workload : test::workloads()) {
    std::size_t found = 0;
    for (std::uint64_t seed = 0; seed < programs_each; ++seed) {
      Rng rng(seed + 1);
      const auto graph = workload.make(rng);
      Target target;
      target.isa = seed % 2 == 0 ? Isa::Avx512 : Isa::Sse42;
      target.threads = 2;
      const Task task = program::make_task(workload.name, graph, target);
      auto config = space.sample(task, rng);
      if (!config) continue;
      for (int step = 0; step < 3; ++step) {
        const auto changed = space.mutate(task, *config, rng);
        if (changed && space.feasible(task, *changed)) config = changed;
      }
      const loops::LoopNest nest = loops::lower(*config);
      const reference::Tensors inputs = reference::random_inputs(*graph, rng);
      const reference::Tensors expected = reference::evaluate(*graph, inputs);
      const std::string before = wrong(nest, *graph, inputs, expected);
      CHECK_MESSAGE(before.empty(), workload.name, " ", seed, ": ", before, "\n", loops::to_string(nest));
      const std::string after = wrong(loops::partition(nest), *graph, inputs, expected);
      CHECK_MESSAGE(after.empty(), workload.name, " ", seed, ", hoisted: ", after);
      ++found;
    }
    CHECK_MESSAGE(found > 0, workload.name);
    checked += found;
  }
  CHECK(checked >= 180);
}

}  // namespace
