// SPDX-License-Identifier: Apache-2.0
//
// What measuring long kernels in part, or by few calls, saves, and what it costs in precision: the programs of a
// search of 64 trials are measured once more, each as a whole and in part, one after the other. Counters:
// whole_trials_per_s, part_trials_per_s (both without compiling), times_faster, share_in_part and share_of_few_calls
// (the others are whole in both, since they may be the best or are short), ratio_p10, ratio_median, ratio_p90 (latency
// in part or by few calls over the whole one), spearman (their ranks), best_ratio (the fastest in whole calls of what
// measuring in part gave all repeats, over the fastest of all).

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "tunewright/core/host_target.hpp"
#include "tunewright/measurers/orc.hpp"
#include "tunewright/program/operators/conv.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/recipes/ansor.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"
#include "tunewright/stats/ranking.hpp"
#include "tunewright/stats/robust.hpp"
#include "tunewright/tuner.hpp"

namespace {

using namespace tunewright;
namespace ops = program::operators;
using Space = spaces::MultiLevelTiling;

measurers::OrcJit measuring_whole() {
  measurers::OrcJit measurer;
  measurer.protocol.partial_call_seconds = std::numeric_limits<double>::infinity();
  return measurer;
}

void compare(benchmark::State& state, const std::shared_ptr<const program::ComputeGraph>& graph) {
  const Task task = program::make_task("kernel", graph, host_target());
  using Recipe = recipes::AnsorQuick<Space, measurers::OrcJit>;
  Tuner<Recipe> tuner{{.measurer = measuring_whole(), .seed = 1, .threads = task.target.threads}};
  measurers::OrcJit whole = measuring_whole(), in_part;
  for (auto _ : state) {
    const auto run = tuner.run(task, {.trials = 64, .batch = 32});
    const Seconds best(run.best()->cost_s());
    whole.note_best(task, best);
    in_part.note_best(task, best);
    Seconds whole_time{0}, part_time{0};
    std::vector<double> ratios;
    std::vector<float> latencies, extrapolated;
    double measured = 0, parts = 0, few = 0;
    double best_s = std::numeric_limits<double>::infinity(), best_kept_s = best_s;
    for (const auto& trial : run.history.trials()) {
      if (!trial.outcome.valid()) continue;
      const std::vector<loops::LoopNest> program{tuner.parts().space.lower(task, trial.candidate.config)};
      const Outcome one = whole.measure(task, program).front(), other = in_part.measure(task, program).front();
      if (!one.valid() || !other.valid()) continue;
      ++measured;
      whole_time += one.run_time;
      part_time += other.run_time;
      const StopReason stopped = other.timing()->stopped;
      best_s = std::min(best_s, one.timing()->median.count());
      if (stopped != StopReason::Extrapolated && stopped != StopReason::Slower) {
        best_kept_s = std::min(best_kept_s, one.timing()->median.count());
        continue;
      }
      (stopped == StopReason::Slower ? few : parts) += 1;
      ratios.push_back(other.timing()->median / one.timing()->median);
      latencies.push_back(static_cast<float>(one.timing()->median.count()));
      extrapolated.push_back(static_cast<float>(other.timing()->median.count()));
    }
    state.counters["whole_trials_per_s"] = measured / whole_time.count();
    state.counters["part_trials_per_s"] = measured / part_time.count();
    state.counters["times_faster"] = whole_time / part_time;
    state.counters["share_in_part"] = parts / measured;
    state.counters["share_of_few_calls"] = few / measured;
    state.counters["best_ratio"] = best_kept_s / best_s;
    if (ratios.size() < 2) continue;
    state.counters["ratio_p10"] = stats::quantile(ratios, 0.1);
    state.counters["ratio_median"] = stats::median(ratios);
    state.counters["ratio_p90"] = stats::quantile(ratios, 0.9);
    state.counters["spearman"] = stats::spearman(extrapolated, latencies);
  }
}

void matmul(benchmark::State& state) {
  const std::int64_t extent = state.range(0);
  compare(state, ops::matmul_graph({.m = extent, .n = extent, .k = extent}));
}
BENCHMARK(matmul)->Name("measuring/matmul")->Arg(1024)->Arg(2048)->Iterations(1)->Unit(benchmark::kSecond);

void convolution(benchmark::State& state) {
  const std::int64_t size = state.range(0);
  compare(state,
          ops::conv2d_graph(
              {.height = size, .width = size, .in_channels = 256, .out_channels = 256, .kernel = 3, .padding = 1}));
}
BENCHMARK(convolution)->Name("measuring/conv3x3")->Arg(56)->Iterations(1)->Unit(benchmark::kSecond);

}  // namespace

BENCHMARK_MAIN();
