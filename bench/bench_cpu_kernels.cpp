// SPDX-License-Identifier: Apache-2.0
//
// Tuned kernels against the best library that has the operator, both in one run.
//
//   bench_cpu_kernels [--journal=FILE] [--trials=N] [Google Benchmark options]
//
// Each kernel is tuned with at most N trials (500), or taken from the journal as far as that goes; what is measured
// goes to the journal. Counters: ratio_vs_best_library (library time / ours, above 1 is faster), fraction_of_peak (of
// the fused multiply-add peak of float32 measured in the same run), gflops, tuning_seconds, trials, failed.

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tune_kernel.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/core/progress.hpp"
#include "tunewright/data/journal.hpp"
#include "tuning_options.hpp"

namespace {

using namespace tunewright;

/// The tensor instruction that a schedule uses, if any.
std::string form_of(const schedule::Schedule& schedule) {
  for (const schedule::Step& step : schedule.steps) {
    if (const auto* given = std::get_if<schedule::Tensorize>(&step)) return given->intrinsic;
  }
  return "plain loops";
}

void tune_and_compare(benchmark::State& state, const bench::KernelCase& kernel_case,
                      const bench::TuningOptions& settings, bench::KernelTuner& tuner) {
  const Target target = host_target();
  const Task task = program::make_task(kernel_case.name, kernel_case.graph, target);
  const Budget budget{.trials = settings.trials};
  bench::KernelRun run;
  tuner.parts().training = {};  // each kernel is tuned on its own, whatever ran before it
  try {
    if (settings.journal) {
      data::Journal journal{{.path = *settings.journal, .many_tasks = true}};
      run = tuner.run(task, budget, journal, Progress{});
    } else {
      run = tuner.run(task, budget, Progress{});
    }
    const std::vector<schedule::Schedule> best = run.history.fastest(4);
    bench::Comparison result;
    for (auto _ : state) {
      result = bench::compare(tuner.parts().measurer, task, kernel_case, best);
      state.SetIterationTime(result.tuned_s);
    }
    if (result.ratio) state.counters["ratio_vs_best_library"] = *result.ratio;
    state.counters["fraction_of_peak"] = task.flops / result.tuned_s / result.peak;
    state.counters["gflops"] = task.flops / result.tuned_s * 1e-9;
    state.counters["tuning_seconds"] = run.status.elapsed.count();
    state.counters["trials"] = static_cast<double>(run.status.trials);
    state.counters["failed"] = static_cast<double>(run.status.failed());
    std::string label = "best library: " + result.library;
    for (const auto& [library, fault] : result.library_faults) label += "; " + library + " failed: " + fault;
    if (kernel_case.narrow) label += "; ours by " + form_of(best[result.tuned]);
    state.SetLabel(label);
  } catch (const std::exception& error) {
    state.SkipWithError(error.what());
  }
}

}  // namespace

int main(int argc, char** argv) try {
  const bench::TuningOptions settings = bench::take_tuning_options(argc, argv);
  const std::vector<bench::KernelCase> cases =
      bench::benchmark_cases();  // before the measurer, see library_kernels.hpp
  bench::KernelTuner tuner = bench::kernel_tuner(1);
  for (const bench::KernelCase& kernel_case : cases) {
    benchmark::RegisterBenchmark(
        kernel_case.name.c_str(),
        [&](benchmark::State& state) { tune_and_compare(state, kernel_case, settings, tuner); })
        ->UseManualTime()
        ->Iterations(1)
        ->Unit(benchmark::kMillisecond);
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
} catch (const std::exception& error) {
  std::cerr << "bench_cpu_kernels: " << error.what() << '\n';
  return 1;
}
