// SPDX-License-Identifier: Apache-2.0
// Random schedules of every operator compute what the reference computes: for CPUs before and after guards are
// hoisted, for GPUs in the order of threads between barriers, with every access checked for races.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "support/workloads.hpp"
#include "tunewright/codegen/kernel.hpp"
#include "tunewright/core/gpu_targets.hpp"
#include "tunewright/loops/device.hpp"
#include "tunewright/loops/interpret.hpp"
#include "tunewright/loops/partition.hpp"
#include "tunewright/loops/print.hpp"
#include "tunewright/loops/simt.hpp"
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

/// Runs `nest` with `run` and returns what is wrong with its outputs; nothing if they are as `expected`.
template <class Run>
std::string wrong(const loops::LoopNest& nest, const Run& run, const program::ComputeGraph& graph,
                  const reference::Tensors& inputs, const reference::Tensors& expected) {
  auto arguments = arguments_of(nest, inputs);
  try {
    run(nest, arguments);
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
      const auto run = [](const auto& n, auto& arguments) { loops::interpret(n, arguments); };
      const std::string before = wrong(nest, run, *graph, inputs, expected);
      CHECK_MESSAGE(before.empty(), workload.name, " ", seed, ": ", before, "\n", loops::to_string(nest));
      const std::string after = wrong(loops::partition(nest), run, *graph, inputs, expected);
      CHECK_MESSAGE(after.empty(), workload.name, " ", seed, ", hoisted: ", after);
      ++found;
    }
    CHECK_MESSAGE(found > 0, workload.name);
    checked += found;
  }
  CHECK(checked >= 180);
}

/// Sizes at which the rules for long reductions apply.
std::vector<test::Workload> long_reductions() {
  namespace ops = program::operators;
  const auto workload = [](const char* name, const auto& fill) {
    return test::Workload{
        name, [fill](Rng& rng) {
          auto g = std::make_shared<program::ComputeGraph>();
          fill(*g, [&](std::int64_t least, std::int64_t most) {
            return least + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(most - least + 1)));
          });
          return std::shared_ptr<const program::ComputeGraph>(std::move(g));
        }};
  };
  std::vector<test::Workload> all;
  all.push_back(workload("long_matmul", [](auto& g, const auto& draw) {
    const std::int64_t m = draw(1, 6), n = draw(1, 6), k = draw(600, 900);
    ops::relu(g, ops::matmul(g, g.input("A", {m, k}), g.input("B", {k, n})));
  }));
  all.push_back(workload("long_sum", [](auto& g, const auto& draw) {
    ops::mean(g, g.input("x", {draw(1, 3), draw(30, 60), draw(30, 60)}), {1, 2});
  }));
  all.push_back(workload("full_norm", [](auto& g, const auto& draw) {
    ops::norm(g, g.input("x", {draw(40, 60), draw(30, 60)}));
  }));
  all.push_back(workload("softmax_of_many_rows", [](auto& g, const auto& draw) {
    ops::softmax(g, g.input("x", {draw(33, 50), draw(33, 50)}));
  }));
  all.push_back(workload("layer_norm_of_many_rows", [](auto& g, const auto& draw) {
    const std::int64_t n = draw(33, 50);
    ops::layer_norm(g, g.input("x", {draw(33, 40), n}), g.constant("gamma", {n}), g.constant("beta", {n}));
  }));
  return all;
}

TEST_CASE("random schedules of every operator for GPUs") {
  constexpr std::uint64_t programs_each = 17;
  const spaces::MultiLevelTiling space;
  std::vector<test::Workload> workloads = test::workloads();
  for (test::Workload& more : long_reductions()) workloads.push_back(std::move(more));
  std::size_t checked = 0;
  std::size_t mutated = 0;
  std::size_t ahead[2] = {0, 0};  // whose copies run ahead, through registers and asynchronously
  for (const test::Workload& workload : workloads) {
    for (std::uint64_t seed = 0; seed < programs_each; ++seed) {
      Rng rng(seed + 1);
      const auto graph = workload.make(rng);
      const Task task = program::make_task(workload.name, graph, gpu_target(seed % 2 == 0 ? "V100" : "H100"));
      auto config = space.sample(task, rng);
      REQUIRE_MESSAGE(config.has_value(), workload.name, " ", seed);
      for (int step = 0; seed % 3 == 0 && step < 5; ++step) {
        const auto changed = space.mutate(task, *config, rng);
        if (!changed || !space.feasible(task, *changed)) continue;
        config = changed;
        mutated += step == 4;
      }
      const reference::Tensors inputs = reference::random_inputs(*graph, rng);
      const reference::Tensors expected = reference::evaluate(*graph, inputs);
      const loops::LoopNest nest = loops::lower(*config);
      for (const bool asynchronous : {false, true}) {
        ahead[asynchronous] += std::any_of(
            nest.buffers.begin(), nest.buffers.end(),
            [&](const loops::Buffer& b) { return b.stages > 1 && b.asynchronous == asynchronous; });
      }
      std::string found;
      try {
        found = wrong(
            loops::to_device(nest), [](const auto& n, auto& arguments) { loops::run_simt(n, arguments); },
            *graph, inputs, expected);
      } catch (const loops::DeviceFormError& error) {
        found = error.what();
      }
      CHECK_MESSAGE(found.empty(), workload.name, " ", seed, ": ", found, "\n", loops::to_string(nest));
      ++checked;
    }
  }
  CHECK(checked >= 500);
  CHECK(mutated >= 100);
  CHECK(ahead[0] >= 20);
  CHECK(ahead[1] >= 20);
}

}  // namespace
