// SPDX-License-Identifier: Apache-2.0
//
// Speed of the search itself, on one core: counters candidates_per_s (mutate + replay + lower + featurize + predict, on the
// sketches of a convolution), compile_ms (median, register-tiled matrix product), trials_per_s (whole tuning runs, on all cores).

#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tunewright/codegen/llvm.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/features/per_statement.hpp"
#include "tunewright/measurers/orc.hpp"
#include "tunewright/models/gbdt.hpp"
#include "tunewright/program/operators/conv.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/recipes/ansor.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"
#include "tunewright/stats/robust.hpp"
#include "tunewright/tuner.hpp"

namespace {

using namespace tunewright;
namespace ops = program::operators;

Task convolution() {
  return program::make_task(
      "conv2d 28x28x128 -> 128",
      ops::conv2d_graph(
          {.height = 28, .width = 28, .in_channels = 128, .out_channels = 128, .kernel = 3, .padding = 1}),
      host_target());
}

std::vector<schedule::Schedule> sample(const spaces::MultiLevelTiling& space, const Task& task,
                                       std::size_t n) {
  std::vector<schedule::Schedule> drawn;
  for (Rng rng(1); drawn.size() < n;) {
    if (auto config = space.sample(task, rng)) drawn.push_back(*std::move(config));
  }
  return drawn;
}

/// What evolutionary search does with a candidate before anything is compiled.
void candidates(benchmark::State& state) {
  const Task task = convolution();
  const spaces::MultiLevelTiling space;
  const features::PerStatement featurizer;
  constexpr std::size_t population = 256;
  std::vector<schedule::Schedule> parents = sample(space, task, population);
  models::Gbdt model{.threads = 1};
  std::vector<float> label(population);
  Rng rng(2);
  for (float& y : label) y = static_cast<float>(rng.uniform());
  const std::vector<std::uint32_t> one_group(population, 0);
  model.fit(featurizer.extract(space, task, parents), label, one_group);

  std::vector<float> score(population);
  std::size_t count = 0;
  for (auto _ : state) {
    std::vector<schedule::Schedule> children;
    for (const schedule::Schedule& parent : parents) {
      auto child = space.mutate(task, parent, rng);
      children.push_back(child ? *std::move(child) : parent);
    }
    const FeatureBatch x = featurizer.extract(space, task, children);
    model.predict(x, score);
    benchmark::DoNotOptimize(score.data());
    count += children.size();
  }
  state.counters["candidates_per_s"] =
      benchmark::Counter(static_cast<double>(count), benchmark::Counter::kIsRate);
}
BENCHMARK(candidates)->Name("pipeline/candidates")->Unit(benchmark::kMillisecond)->MinTime(2);

void compile(benchmark::State& state) {
  const Task task =
      program::make_task("matmul 1024", ops::matmul_graph({.m = 1024, .n = 1024, .k = 1024}), host_target());
  const spaces::MultiLevelTiling space;
  const std::vector<schedule::Schedule> drawn = sample(space, task, 64);
  codegen::LlvmCompiler compiler(task.target);
  std::vector<double> milliseconds;
  std::size_t next = 0;
  for (auto _ : state) {
    const loops::LoopNest nest = loops::lower(drawn[next++ % drawn.size()]);
    const auto start = std::chrono::steady_clock::now();
    benchmark::DoNotOptimize(compiler.compile(nest));
    milliseconds.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  state.counters["compile_ms"] = stats::median(milliseconds);
}
BENCHMARK(compile)->Name("pipeline/compile")->Unit(benchmark::kMillisecond)->Iterations(64);

/// A whole tuning run of a kernel that takes less than 2 ms: sampling, learning, compiling, checking and timing.
void trials(benchmark::State& state) {
  constexpr std::size_t budget = 256;
  const Task task = convolution();
  double seconds = 0;
  std::size_t measured = 0;
  Tuner<recipes::Ansor<spaces::MultiLevelTiling, measurers::OrcJit>> tuner{
      {.seed = 1, .threads = task.target.threads}};
  for (auto _ : state) {
    const auto run = tuner.run(task, {.trials = budget});
    seconds += run.status.elapsed.count();
    measured += run.status.trials;
  }
  state.counters["trials_per_s"] = static_cast<double>(measured) / seconds;
}
BENCHMARK(trials)->Name("pipeline/trials")->Unit(benchmark::kSecond)->Iterations(1);

}  // namespace

BENCHMARK_MAIN();
