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
#include <variant>
#include <vector>

#include "support/mutated.hpp"
#include "support/program_tally.hpp"
#include "support/random_steps.hpp"
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
#include "tunewright/schedule/json.hpp"
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
      codegen::pack<double>(buffer, plain.data(), values.data());
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
    reference::Array found(buffer.type, expected[buffer.tensor].shape());
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
  test::ProgramTally tally;
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
      for (int step = 0; step < 3; ++step) config = test::mutated(space, task, *config, rng);
      const loops::LoopNest nest = loops::lower(*config);
      const reference::Tensors inputs = reference::random_inputs(*graph, rng);
      const reference::Tensors expected = reference::evaluate(*graph, inputs);
      const auto run = [](const auto& n, auto& arguments) { loops::interpret(n, arguments); };
      const std::string before = wrong(nest, run, *graph, inputs, expected);
      CHECK_MESSAGE(before.empty(), workload.name, " ", seed, ": ", before, "\n", loops::to_string(nest));
      const std::string after = wrong(loops::partition(nest), run, *graph, inputs, expected);
      CHECK_MESSAGE(after.empty(), workload.name, " ", seed, ", hoisted: ", after);
      tally.count(std::string(name(target.isa)) + " interpreted", before.empty() && after.empty());
      ++found;
    }
    CHECK_MESSAGE(found > 0, workload.name);
  }
  MESSAGE(tally.to_string());
  CHECK(tally.checked() >= 180);
}

/// The graph that `fill(graph, draw)` makes, where `draw(least, most)` is a size in that range.
template <class Fill>
test::Workload workload(const char* name, const Fill& fill) {
  return test::Workload{name, [fill](Rng& rng) {
                          auto g = std::make_shared<program::ComputeGraph>();
                          fill(*g, [&](std::int64_t least, std::int64_t most) {
                            return least +
                                   static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(most - least + 1)));
                          });
                          return std::shared_ptr<const program::ComputeGraph>(std::move(g));
                        }};
}

/// Sizes at which the rules for long reductions apply.
std::vector<test::Workload> long_reductions() {
  namespace ops = program::operators;
  std::vector<test::Workload> all;
  all.push_back(workload("long_matmul", [](auto& g, const auto& draw) {
    const std::int64_t m = draw(1, 6), n = draw(1, 6), k = draw(600, 900);
    ops::relu(g, ops::matmul(g, g.input("A", {m, k}), g.input("B", {k, n})));
  }));
  all.push_back(workload("long_sum", [](auto& g, const auto& draw) {
    ops::mean(g, g.input("x", {draw(1, 3), draw(30, 60), draw(30, 60)}), {1, 2});
  }));
  all.push_back(workload("full_norm",
                         [](auto& g, const auto& draw) { ops::norm(g, g.input("x", {draw(40, 60), draw(30, 60)})); }));
  all.push_back(workload("softmax_of_many_rows", [](auto& g, const auto& draw) {
    ops::softmax(g, g.input("x", {draw(33, 50), draw(33, 50)}));
  }));
  all.push_back(workload("layer_norm_of_many_rows", [](auto& g, const auto& draw) {
    const std::int64_t n = draw(33, 50);
    ops::layer_norm(g, g.input("x", {draw(33, 40), n}), g.constant("gamma", {n}), g.constant("beta", {n}));
  }));
  return all;
}

/// Programs whose copies to shared memory run ahead.
struct RunningAhead {
  std::size_t through_registers = 0;
  std::size_t asynchronous = 0;
  std::uint32_t deepest = 0;

  void note(const loops::LoopNest& nest) {
    const auto has = [&](bool asynchronously) {
      return std::any_of(nest.buffers.begin(), nest.buffers.end(),
                         [&](const loops::Buffer& b) { return b.stages > 1 && b.asynchronous == asynchronously; });
    };
    through_registers += has(false);
    asynchronous += has(true);
    for (const loops::Buffer& b : nest.buffers) deepest = std::max(deepest, b.stages);
  }
};

TEST_CASE("threads that share the terms of a sum compute what the reference does, whatever the sizes") {
  namespace ops = program::operators;
  const spaces::MultiLevelTiling space;
  const std::vector<test::Workload> workloads = {
      workload("product of a vector",
               [](auto& g, const auto& draw) {
                 const std::int64_t n = draw(17, 50), k = draw(320, 400);
                 ops::matmul(g, g.input("A", {1, k}), g.input("B", {k, n}));
               }),
      workload("sum of rows",
               [](auto& g, const auto& draw) {
                 ops::sum(g, g.input("x", {draw(1, 2), draw(320, 400), draw(17, 50)}), {1});
               }),
      workload("sum of short rows",
               [](auto& g, const auto& draw) { ops::sum(g, g.input("x", {draw(1100, 1300), draw(2, 16)}), {0}); })};
  for (const test::Workload& workload : workloads) {
    std::size_t shared = 0;
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      Rng rng(seed + 1);
      const auto graph = workload.make(rng);
      Target target;
      target.isa = seed % 2 == 0 ? Isa::Avx512 : Isa::Sse42;
      target.threads = static_cast<unsigned>(3 + seed % 3);
      target.l2_bytes = 4096;
      const auto config = space.sample(program::make_task(workload.name, graph, target), rng);
      const auto is_rfactor = [](const schedule::Step& step) {
        return std::holds_alternative<schedule::Rfactor>(step);
      };
      if (!config || std::none_of(config->steps.begin(), config->steps.end(), is_rfactor)) continue;
      ++shared;
      const loops::LoopNest nest = loops::lower(*config);
      const reference::Tensors inputs = reference::random_inputs(*graph, rng);
      const reference::Tensors expected = reference::evaluate(*graph, inputs);
      const auto run = [](const auto& n, auto& arguments) { loops::interpret(n, arguments); };
      const std::string fault = wrong(loops::partition(nest), run, *graph, inputs, expected);
      CHECK_MESSAGE(fault.empty(), workload.name, " ", seed, ": ", fault, "\n", loops::to_string(nest));
    }
    CHECK_MESSAGE(shared >= 8, workload.name);
  }
}

TEST_CASE("random schedules of every operator for GPUs") {
  constexpr std::uint64_t programs_each = 17;
  const spaces::MultiLevelTiling space;
  std::vector<test::Workload> workloads = test::workloads();
  for (test::Workload& more : long_reductions()) workloads.push_back(std::move(more));
  test::ProgramTally tally;
  std::size_t mutated = 0;
  RunningAhead ahead;
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
      ahead.note(nest);
      std::string found;
      try {
        found = wrong(
            loops::to_device(nest), [](const auto& n, auto& arguments) { loops::run_simt(n, arguments); }, *graph,
            inputs, expected);
      } catch (const loops::DeviceFormError& error) {
        found = error.what();
      }
      CHECK_MESSAGE(found.empty(), workload.name, " ", seed, ": ", found, "\n", loops::to_string(nest));
      tally.count(task.target.name + " interpreted", found.empty());
    }
  }
  MESSAGE(tally.to_string());
  CHECK(tally.checked() >= 500);
  CHECK(mutated >= 100);
  CHECK(ahead.through_registers >= 20);
  CHECK(ahead.asynchronous >= 20);
}

TEST_CASE("random steps for GPUs, whatever they are good for, compute what the reference does or are refused") {
  using schedule::LoopKind;
  using schedule::Scope;
  const test::RandomSteps steps{
      .tries = 60,
      .annotations = 8,
      .kinds = {LoopKind::BlockX, LoopKind::BlockX, LoopKind::ThreadX, LoopKind::ThreadX, LoopKind::ThreadX,
                LoopKind::ThreadY, LoopKind::ThreadY, LoopKind::VirtualThread, LoopKind::Unrolled},
      .scopes = {Scope::Local, Scope::Shared, Scope::Shared}};
  test::ProgramTally tally;
  for (const test::Workload& workload : test::workloads()) {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      Rng rng(seed + 1);
      const auto graph = workload.make(rng);
      const schedule::Schedule config = test::random_steps(graph, rng, steps);
      loops::LoopNest nest;
      try {
        nest = loops::to_device(loops::lower(config));
      } catch (const schedule::ScheduleError&) {
        continue;
      } catch (const loops::DeviceFormError&) {
        continue;
      }
      const reference::Tensors inputs = reference::random_inputs(*graph, rng);
      const reference::Tensors expected = reference::evaluate(*graph, inputs);
      const std::string found =
          wrong(nest, [](const auto& n, auto& arguments) { loops::run_simt(n, arguments); }, *graph, inputs, expected);
      CHECK_MESSAGE(found.empty(), workload.name, " ", seed, ": ", found, "\n", schedule::to_json(config.steps), "\n",
                    loops::to_string(nest));
      tally.count("random steps interpreted", found.empty());
    }
  }
  MESSAGE(tally.to_string());
  CHECK(tally.checked() >= 100);
}

/// Products of odd shapes in the types of tensor units, with and without what reads them.
std::vector<test::Workload> products_for_tensor_units() {
  namespace ops = program::operators;
  using program::ScalarType;
  std::vector<test::Workload> all;
  all.push_back(workload("fp16_matmul", [](auto& g, const auto& draw) {
    const std::int64_t m = draw(11, 70), n = draw(11, 70), k = draw(11, 70);
    ops::matmul(g, g.input("A", {m, k}, ScalarType::Float16), g.constant("B", {k, n}, ScalarType::Float16));
  }));
  all.push_back(workload("fp16_transposed", [](auto& g, const auto& draw) {
    const std::int64_t m = draw(20, 50), n = draw(20, 50), k = draw(20, 50);
    ops::matmul(g, g.input("A", {k, m}, ScalarType::Float16), g.input("B", {n, k}, ScalarType::Float16),
                {.transpose_a = true, .transpose_b = true});
  }));
  all.push_back(workload("bf16_matmul_relu", [](auto& g, const auto& draw) {
    const std::int64_t m = 16 * draw(1, 4), n = 16 * draw(1, 4), k = 16 * draw(1, 4);
    const auto y =
        ops::matmul(g, g.input("A", {m, k}, ScalarType::BFloat16), g.constant("B", {k, n}, ScalarType::BFloat16));
    ops::cast(g, ops::relu(g, ops::bias_add(g, y, g.constant("bias", {n}))), ScalarType::BFloat16);
  }));
  all.push_back(workload("int8_matmul", [](auto& g, const auto& draw) {
    const std::int64_t m = draw(12, 40), n = draw(17, 50), k = draw(30, 70);
    ops::matmul(g, g.input("A", {m, k}, ScalarType::Int8), g.constant("B", {k, n}, ScalarType::Int8));
  }));
  all.push_back(workload("fp16_batch_matmul", [](auto& g, const auto& draw) {
    const std::int64_t b = draw(1, 3), m = draw(15, 40), n = draw(15, 40), k = draw(10, 40);
    ops::batch_matmul(g, g.input("A", {b, m, k}, ScalarType::Float16), g.input("B", {b, k, n}, ScalarType::Float16));
  }));
  all.push_back(workload("fp16_conv", [](auto& g, const auto& draw) {
    const std::int64_t n = draw(1, 2), h = draw(5, 9), w = draw(12, 18), ci = draw(8, 34), co = draw(14, 40);
    const auto y = ops::conv2d(g, g.input("x", {n, h, w, ci}, ScalarType::Float16),
                               g.constant("w", {3, 3, ci, co}, ScalarType::Float16),
                               {.stride = draw(1, 2), .padding = draw(0, 1)});
    ops::relu(g, y);
  }));
  all.push_back(workload("uint8_conv_of_many_images", [](auto& g, const auto& draw) {
    const std::int64_t n = draw(14, 32), h = draw(4, 5), ci = draw(10, 20), co = draw(14, 40);
    ops::conv2d(g, g.input("x", {n, h, h, ci}, ScalarType::UInt8), g.constant("w", {2, 2, ci, co}, ScalarType::UInt8),
                {});
  }));
  return all;
}

bool is_tensorized(const schedule::Schedule& config) {
  return std::any_of(config.steps.begin(), config.steps.end(),
                     [](const schedule::Step& step) { return std::holds_alternative<schedule::Tensorize>(step); });
}

TEST_CASE("random schedules with tensor instructions of GPUs") {
  constexpr std::size_t programs_each = 10;
  const spaces::MultiLevelTiling space;
  test::ProgramTally tally;
  std::size_t padded = 0;
  RunningAhead ahead;
  for (const test::Workload& workload : products_for_tensor_units()) {
    std::size_t found = 0;
    for (std::uint64_t seed = 0; found < programs_each; ++seed) {
      REQUIRE_MESSAGE(seed < 8 * programs_each, workload.name, ": ", found);
      Rng rng(seed + 1);
      const auto graph = workload.make(rng);
      const Task task = program::make_task(workload.name, graph, gpu_target(seed % 2 == 0 ? "A100" : "H100"));
      auto config = space.sample(task, rng);
      REQUIRE_MESSAGE(config.has_value(), workload.name, " ", seed);
      if (!is_tensorized(*config)) continue;
      for (int step = 0; step < 3; ++step) config = test::mutated(space, task, *config, rng);
      const reference::Tensors inputs = reference::random_inputs(*graph, rng);
      const reference::Tensors expected = reference::evaluate(*graph, inputs);
      const loops::LoopNest nest = loops::lower(*config);
      ahead.note(nest);
      std::string wrongs;
      try {
        wrongs = wrong(
            loops::to_device(nest), [](const auto& n, auto& arguments) { loops::run_simt(n, arguments); }, *graph,
            inputs, expected);
      } catch (const loops::DeviceFormError& error) {
        wrongs = error.what();
      }
      CHECK_MESSAGE(wrongs.empty(), workload.name, " ", seed, ": ", wrongs, "\n", loops::to_string(nest));
      tally.count(task.target.name + " tensor units interpreted", wrongs.empty());
      ++found;
      padded += std::any_of(config->steps.begin(), config->steps.end(),
                            [](const schedule::Step& step) { return std::holds_alternative<schedule::Pad>(step); });
    }
  }
  MESSAGE(tally.to_string());
  CHECK(tally.checked() >= 70);
  CHECK(padded >= 40);
  CHECK(ahead.through_registers >= 5);
  CHECK(ahead.asynchronous >= 15);
  CHECK(ahead.deepest == 4);
}

}  // namespace
