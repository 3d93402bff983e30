// SPDX-License-Identifier: Apache-2.0
//
// Speed of the search itself, on one core: counters candidates_per_s of `ask` (what a session explores, with all that
// it pays for it) and of `candidates` (mutate + replay + lower + featurize + predict), both on the sketches of a
// convolution, compile_ms (median, register-tiled matrix product), trials_per_s (whole tuning runs, on all cores).

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tunewright/codegen/llvm.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/features/per_statement.hpp"
#include "tunewright/measurers/orc.hpp"
#include "tunewright/measurers/simulated.hpp"
#include "tunewright/models/gbdt.hpp"
#include "tunewright/program/operators/conv.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/recipes/ansor.hpp"
#include "tunewright/session.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"
#include "tunewright/stats/robust.hpp"

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

std::vector<schedule::Schedule> sample(const spaces::MultiLevelTiling& space, const Task& task, std::size_t n) {
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
  constexpr std::size_t block = 64;  // as a session ranks them
  features::per_statement::Describer describer;
  FeatureBatch x(features::per_statement::columns);
  for (auto _ : state) {
    std::vector<schedule::Schedule> children;
    for (const schedule::Schedule& parent : parents) {
      auto child = space.mutate(task, parent, rng);
      children.push_back(child ? *std::move(child) : parent);
    }
    for (std::size_t begin = 0; begin < population; begin += block) {
      x.clear();
      for (std::size_t i = begin; i < begin + block; ++i) {
        try {
          describer.describe(space.lower(task, children[i]), task, x);
        } catch (const schedule::ScheduleError&) {
          x.close_program();
        }
      }
      model.predict(x, std::span(score).subspan(begin, block));
    }
    benchmark::DoNotOptimize(score.data());
    count += children.size();
  }
  state.counters["candidates_per_s"] = benchmark::Counter(static_cast<double>(count), benchmark::Counter::kIsRate);
}
BENCHMARK(candidates)->Name("pipeline/candidates")->Unit(benchmark::kMillisecond)->MinTime(2);

/// Counts the configurations that it gives.
struct CountingSpace : spaces::MultiLevelTiling {
  std::shared_ptr<std::size_t> given = std::make_shared<std::size_t>();

  [[nodiscard]] std::optional<config_type> sample(const Task& task, Rng& rng) const {
    return counted(spaces::MultiLevelTiling::sample(task, rng));
  }
  [[nodiscard]] std::optional<config_type> mutate(const Task& task, const config_type& config, Rng& rng) const {
    return counted(spaces::MultiLevelTiling::mutate(task, config, rng));
  }

 private:
  [[nodiscard]] std::optional<config_type> counted(std::optional<config_type> config) const {
    if (config) ++*given;
    return config;
  }
};

/// `Session::ask` of Ansor's recipe once the model has learned: draw, mutate, limits, describe, predict and choose, on
/// one thread. Candidates are those drawn and bred; measuring, on a simulated machine, and learning are left out.
void ask(benchmark::State& state) {
  constexpr std::size_t batch_size = 64;
  using Recipe = recipes::AnsorQuick<CountingSpace, measurers::Simulated>;
  Parts<Recipe> parts{.seed = 1, .threads = 1};
  parts.model.threads = 1;
  Session<Recipe> session(parts, convolution());
  const auto learn = [&](const auto& batch) { session.tell(batch, session.measure(batch)); };
  learn(session.ask(batch_size));
  *parts.space.given = 0;
  Seconds spent{0};
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    const auto batch = session.ask(batch_size);
    const Seconds taken = std::chrono::steady_clock::now() - start;
    state.SetIterationTime(taken.count());
    spent += taken;
    learn(batch);
  }
  state.counters["candidates_per_s"] = static_cast<double>(*parts.space.given) / spent.count();
}
BENCHMARK(ask)->Name("pipeline/ask")->Unit(benchmark::kMillisecond)->UseManualTime()->Iterations(16);

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
    milliseconds.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  state.counters["compile_ms"] = stats::median(milliseconds);
}
BENCHMARK(compile)->Name("pipeline/compile")->Unit(benchmark::kMillisecond)->Iterations(64);

/// A whole tuning run of a kernel that takes less than 2 ms: sampling, learning, compiling, checking and timing.
/// Seconds by phase: ask (explore, lower, featurize, predict, choose), compile (lower, compile), run (link, check,
/// time) and tell (learn). Repeats a trial tell how calm the machine was: five at most when nothing disturbs, and one
/// for kernels that are far slower than the best. Compiling includes the reference values of the first batch.
void trials(benchmark::State& state) {
  constexpr std::size_t budget = 256;
  constexpr std::size_t batch_size = 64;
  using Recipe = recipes::AnsorQuick<spaces::MultiLevelTiling, measurers::OrcJit>;
  const Task task = convolution();
  Parts<Recipe> parts{.seed = 1, .threads = task.target.threads};
  using Clock = std::chrono::steady_clock;
  Seconds ask{0};
  Seconds compiling{0};
  Seconds running{0};
  Seconds tell{0};
  std::size_t repeats = 0;
  std::size_t measured = 0;
  for (auto _ : state) {
    Session<Recipe> session(parts, task);
    while (session.history().size() < budget) {
      const auto start = Clock::now();
      const auto batch = session.ask(std::min(batch_size, budget - session.history().size()));
      if (batch.empty()) break;
      const auto asked = Clock::now();
      const std::vector<Outcome> outcomes = session.measure(batch);
      const auto answered = Clock::now();
      session.tell(batch, outcomes);
      tell += Clock::now() - answered;
      ask += asked - start;
      compiling += answered - asked;
      for (const Outcome& outcome : outcomes) {
        running += outcome.run_time;
        compiling -= outcome.run_time;
        if (const Timing* timing = outcome.timing()) repeats += timing->repeats.size();
      }
    }
    measured += session.history().size();
  }
  const auto count = static_cast<double>(measured);
  state.counters["trials_per_s"] = count / (ask + compiling + running + tell).count();
  state.counters["ask_s"] = ask.count();
  state.counters["compile_s"] = compiling.count();
  state.counters["run_s"] = running.count();
  state.counters["tell_s"] = tell.count();
  state.counters["repeats"] = static_cast<double>(repeats) / count;
}
BENCHMARK(trials)->Name("pipeline/trials")->Unit(benchmark::kSecond)->Iterations(1);

}  // namespace

BENCHMARK_MAIN();
