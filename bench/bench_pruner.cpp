// SPDX-License-Identifier: Apache-2.0
//
// What drafting costs and what it keeps, on one core, on CPU and GPU tasks.
//
// pruner/cost, microseconds of processor time a candidate, in batches of 512 new ones:
//   draft                   SymbolAnalyzer from configurations, its plans of the sketches made
//   first_draft             the same on its very first batch, with making them
//   pattern_aware, gbdt     the learned models of the Pruner and Ansor recipes from configurations: replaying and
//                           lowering, describing, predicting
//   pattern_aware_over_draft, gbdt_over_draft   times the draft is cheaper
//   lower                   replaying and lowering, of these
//   of_programs_draft, of_programs_pattern_aware, of_programs_ratio   all of it once programs are lowered
// pruner/best_k: of 8,000 random programs the draft keeps 512; latency of the best of all over that of the k-th best
// kept, on the simulated machine: best_1_512_of_8000 and so on; top_1 of the program the draft thinks best; spearman.
// A draft and the simulated machine are written by the same people with the same machines in mind: the second half
// says that the draft does what it means to, not how real machines behave.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/core/gpu_targets.hpp"
#include "tunewright/core/history.hpp"
#include "tunewright/drafts/roofline.hpp"
#include "tunewright/drafts/symbol_analyzer.hpp"
#include "tunewright/features/dataflow.hpp"
#include "tunewright/features/joined.hpp"
#include "tunewright/features/per_statement.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/measurers/simulated.hpp"
#include "tunewright/models/gbdt.hpp"
#include "tunewright/models/pattern_aware.hpp"
#include "tunewright/program/operators/conv.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"
#include "tunewright/stats/ranking.hpp"
#include "two_cores.hpp"

namespace {

using namespace tunewright;
namespace ops = program::operators;
using Config = schedule::Schedule;

Task task_of(const std::string& kind, const Target& target) {
  if (kind == "conv2d") {
    return program::make_task(
        kind,
        ops::conv2d_graph(
            {.height = 28, .width = 28, .in_channels = 128, .out_channels = 128, .kernel = 3, .padding = 1}),
        target);
  }
  return program::make_task(kind, ops::matmul_graph({.m = 1024, .n = 1024, .k = 1024}), target);
}

std::vector<Config> sample(const spaces::MultiLevelTiling& space, const Task& task, std::size_t n,
                           std::uint64_t seed = 1) {
  std::vector<Config> drawn;
  for (Rng rng(seed); drawn.size() < n;) {
    if (auto config = space.sample(task, rng)) drawn.push_back(*std::move(config));
  }
  return drawn;
}

/// Microseconds a candidate of processor time, which other programs do not take part in: the least over `batches` of
/// `work(batch)`, each of which was copied just before, as candidates that were just bred.
template <class F>
double microseconds(std::span<const std::vector<Config>> batches, const F& work) {
  double least = std::numeric_limits<double>::infinity();
  for (const std::vector<Config>& batch : batches) {
    const std::vector<Config> bred = batch;
    const std::clock_t start = std::clock();
    work(std::span<const Config>(bred));
    least = std::min(least, 1e6 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  return least / static_cast<double>(batches.front().size());
}

using Statements = features::PerStatement;
using Movements = features::Joined<features::PerStatement, features::Dataflow>;

/// Trained for a moment: what predicting costs does not depend on what was learned.
models::PatternAware trained_network(const FeatureBatch& x, std::span<const float> y) {
  models::PatternAware model{.threads = 1};
  model.training.epochs = 1;
  model.training.least_steps = 1;
  model.fit(x, y, std::vector<std::uint32_t>(y.size(), 0));
  return model;
}

void measure_cost(benchmark::State& state, const std::string& kind, const Target& target) {
  constexpr std::size_t batch = 512, runs = 8;
  const Task task = task_of(kind, target);
  const spaces::MultiLevelTiling space;
  std::vector<std::vector<Config>> batches;
  for (std::size_t run = 0; run < runs; ++run) batches.push_back(sample(space, task, batch, run));
  const std::span<const Config> some(batches.front());
  // Few enough to stay in cache, as programs do that were just lowered.
  constexpr std::size_t lowered = 32;
  std::vector<loops::LoopNest> nests;
  for (const Config& config : some.first(lowered)) nests.push_back(loops::lower(config));

  std::vector<float> score(batch);
  Rng rng(2);
  for (float& y : score) y = static_cast<float>(rng.uniform());
  const models::PatternAware network = trained_network(Movements{}.extract(space, task, some), score);
  models::Gbdt trees{.threads = 1};
  trees.fit(Statements{}.extract(space, task, some), score, std::vector<std::uint32_t>(batch, 0));
  const drafts::SymbolAnalyzer draft;

  for (auto _ : state) {
    auto& found = state.counters;
    found["first_draft"] = microseconds(std::span(batches).first(1), [&](std::span<const Config> configs) {
      draft.score(space, task, configs, score);
    });
    found["draft"] = microseconds(
        batches, [&](std::span<const Config> configs) { draft.score(space, task, configs, score); });
    found["pattern_aware"] = microseconds(batches, [&](std::span<const Config> configs) {
      network.predict(Movements{}.extract(space, task, configs), score);
    });
    found["gbdt"] = microseconds(batches, [&](std::span<const Config> configs) {
      trees.predict(Statements{}.extract(space, task, configs), score);
    });
    found["lower"] = microseconds(batches, [&](std::span<const Config> configs) {
      for (const Config& config : configs) benchmark::DoNotOptimize(loops::lower(config));
    });
    found["of_programs_draft"] = microseconds(batches, [&](std::span<const Config>) {
      auto latency_s = draft.for_target(task.target);
      for (std::size_t i = 0; i < batch; ++i) benchmark::DoNotOptimize(latency_s(nests[i % lowered]));
    });
    found["of_programs_pattern_aware"] = microseconds(batches, [&](std::span<const Config>) {
      FeatureBatch statements(features::per_statement::columns), movements(features::dataflow::columns);
      features::per_statement::Describer of_statements;
      features::dataflow::Describer of_movements;
      for (std::size_t i = 0; i < batch; ++i) {
        of_statements.describe(nests[i % lowered], task, statements);
        of_movements.describe(nests[i % lowered], task, movements);
      }
      network.predict(Movements{}.join({std::move(statements), std::move(movements)}), score);
    });
    found["pattern_aware_over_draft"] = found["pattern_aware"] / found["draft"];
    found["gbdt_over_draft"] = found["gbdt"] / found["draft"];
    found["of_programs_ratio"] = found["of_programs_pattern_aware"] / found["of_programs_draft"];
  }
}

template <class Draft>
void best_k(benchmark::State& state, const std::string& kind, const Target& target, const Draft& draft) {
  constexpr std::size_t programs = 8000, kept = 512;
  const Task task = task_of(kind, target);
  const spaces::MultiLevelTiling space;
  const std::vector<Config> configs = sample(space, task, programs);
  const measurers::Simulated machine;
  std::vector<float> score(programs), latency_s, speed;
  auto score_of = draft.score_of(task);
  for (auto _ : state) {
    for (std::size_t i = 0; i < programs; ++i) {
      const loops::LoopNest nest = space.lower(task, configs[i]);
      score[i] = score_of(nest);
      latency_s.push_back(static_cast<float>(cost_s(machine.outcome(task.target, nest))));
      speed.push_back(1 / latency_s.back());
    }
  }
  const std::vector<stats::RankedTask> ranked{{.prediction = score, .latency_s = latency_s}};
  for (const std::size_t k : {1, 5, 20})
    state.counters["best_" + std::to_string(k) + "_512_of_8000"] =
        stats::network_best_k_score(ranked, kept, k);
  state.counters["top_1"] = stats::network_top_k_score(ranked, 1);
  state.counters["spearman"] = stats::spearman(score, speed);
}

void add_all() {
  using drafts::SymbolAnalyzer;
  const std::vector<std::pair<std::string, Target>> targets{{"cpu", bench::two_cores()},
                                                            {"a100", gpu_target("A100")}};
  for (const auto& [device, target] : targets) {
    for (const std::string kind : {"conv2d", "matmul"}) {
      const std::string name = kind + "/" + device;
      const auto add = [&](const std::string& what, auto run) {
        benchmark::RegisterBenchmark(("pruner/" + what + "/" + name).c_str(), run)
            ->Unit(benchmark::kMillisecond)
            ->Iterations(1);
      };
      add("cost", [=](benchmark::State& state) { measure_cost(state, kind, target); });
      const auto add_draft = [&](const std::string& draft_name, const auto& draft) {
        add("best_k/" + draft_name, [=](benchmark::State& state) { best_k(state, kind, target, draft); });
      };
      add_draft("symbols", SymbolAnalyzer{});
      if (target.kind == DeviceKind::Gpu) {
        add_draft("symbols_printed", SymbolAnalyzer{.form = SymbolAnalyzer::Form::Printed});
        add_draft("symbols_released", SymbolAnalyzer{.form = SymbolAnalyzer::Form::Released});
      }
      add_draft("roofline", drafts::Roofline{});
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  add_all();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
