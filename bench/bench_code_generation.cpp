// SPDX-License-Identifier: Apache-2.0
//
// What parts of the code generator for CPUs are worth: the fastest schedule of a search, compiled as it is and with one
// part turned off, or another level of LLVM, in turns.
//
//   bench_code_generation [--isa=sse4.2|avx2|avx512|native] [--threads=N] [--trials=N] [--seed=N]
//                         [Google Benchmark options]
//
// Each float32 kernel of the suite is tuned as bench_cpu_kernels tunes it. Counters, each a time over that of the
// kernel as it is, above 1 is slower: one_iteration_per_step (loops of reductions count every iteration),
// without_register_tiles (targets of reductions are loaded and stored), aggressive (LLVM's highest level of instruction
// selection and scheduling). The last benchmark, summary, has their geometric means.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "comparison_summary.hpp"
#include "suite.hpp"
#include "tune_kernel.hpp"
#include "tunewright/core/host_target.hpp"
#include "tuning_options.hpp"

namespace {

using namespace tunewright;

struct Variant {
  std::string counter;
  codegen::CompileOptions options;
  bench::ComparisonSummary summary = {};
};

std::vector<Variant> variants() {
  codegen::CompileOptions one_iteration, no_tiles, aggressive;
  one_iteration.plan.max_iterations_per_step = 1;
  no_tiles.register_tiles = false;
  aggressive.aggressive = true;
  return {{"one_iteration_per_step", one_iteration}, {"without_register_tiles", no_tiles}, {"aggressive", aggressive}};
}

/// Time of `other` over that of `one`, the median over pairs that ran right after each other. Throws
/// `std::runtime_error` if one of them failed.
double ratio_of(const Outcome& other, const Outcome& one) {
  const std::vector<Seconds>& slow = bench::timing_of(other).repeats;
  const std::vector<Seconds>& usual = bench::timing_of(one).repeats;
  std::vector<double> ratios;
  for (std::size_t r = 0; r < std::min(slow.size(), usual.size()); ++r) ratios.push_back(slow[r] / usual[r]);
  return stats::median(ratios);
}

void compare(benchmark::State& state, const bench::SuiteEntry& entry, const Target& target,
             const bench::TuningOptions& settings, bench::KernelTuner& tuner, std::vector<Variant>& variants) {
  constexpr unsigned rounds = 41;
  const Task task = program::make_task(entry.name, bench::program_of(entry.shape), target);
  try {
    const bench::KernelRun run = bench::tune_alone(tuner, task, settings);
    const std::vector<schedule::Schedule> best = run.history.fastest(1);
    if (best.empty()) throw std::runtime_error("no program of '" + task.name + "' runs");
    const loops::LoopNest nest = loops::lower(best.front());
    measurers::OrcJit measurer = tuner.parts().measurer;
    std::vector<codegen::Kernel> kernels{measurer.compile_kernel(task, nest)};
    for (const Variant& variant : variants) {
      measurer.compile = variant.options;
      kernels.push_back(measurer.compile_kernel(task, nest));
    }
    std::vector<Outcome> outcomes;
    for (auto _ : state) {
      outcomes = measurer.measure_interleaved(task, kernels, rounds);
      state.SetIterationTime(cost_s(outcomes.front()));
    }
    for (std::size_t v = 0; v < variants.size(); ++v) {
      const double ratio = ratio_of(outcomes[v + 1], outcomes.front());
      state.counters[variants[v].counter] = ratio;
      variants[v].summary.add(entry.name, ratio);
    }
  } catch (const std::exception& error) {
    state.SkipWithError(error.what());
  }
}

}  // namespace

int main(int argc, char** argv) try {
  const bench::TuningOptions settings = bench::take_tuning_options(argc, argv);
  const Target host = host_target();
  Target target = bench::held_to(host, settings.instructions);
  if (settings.threads) target = target.with_threads(*settings.threads);
  bench::KernelTuner tuner = bench::kernel_tuner(settings.seed, host.threads);
  std::vector<Variant> all = variants();
  const auto register_once = [](const std::string& name, auto run) {
    benchmark::RegisterBenchmark(name.c_str(), run)->UseManualTime()->Iterations(1)->Unit(benchmark::kMillisecond);
  };
  const std::vector<bench::SuiteEntry> entries = bench::suite();
  for (const bench::SuiteEntry& entry : entries)
    register_once(entry.name, [&](benchmark::State& state) { compare(state, entry, target, settings, tuner, all); });
  register_once("summary", [&](benchmark::State& state) {
    for (auto _ : state) state.SetIterationTime(0);
    for (const Variant& variant : all) state.counters[variant.counter] = variant.summary.geometric_mean();
    state.counters["kernels"] = static_cast<double>(all.front().summary.compared());
  });

  std::vector<std::string> texts = bench::with_summary({argv, argv + argc});
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  int count = static_cast<int>(pointers.size());
  benchmark::Initialize(&count, pointers.data());
  if (benchmark::ReportUnrecognizedArguments(count, pointers.data())) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
} catch (const std::exception& error) {
  std::cerr << "bench_code_generation: " << error.what() << '\n';
  return 1;
}
