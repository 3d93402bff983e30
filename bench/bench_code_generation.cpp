// SPDX-License-Identifier: Apache-2.0
//
// What parts of the code generator for CPUs are worth: the fastest schedule of a search, compiled as it is and with one
// part turned off, or another level of LLVM, in turns. --help lists the options.
//
// Each float32 kernel of the suite, or of --random_shapes=SEED, is tuned as bench_cpu_kernels tunes it. Counters, each
// a time over that of the kernel as it is, above 1 is slower: one_iteration_per_step (loops of reductions count every
// iteration), without_register_tiles (targets of reductions are loaded and stored), without_prefetches (the next
// weights are not fetched early, which helps in networks), without_row_prefetches (nor are the rows of a matrix),
// without_block_prefetches (nor are its blocks), aggressive (LLVM's highest level of instruction selection and
// scheduling). The last benchmark, summary, has their geometric means.

#include <benchmark/benchmark.h>

#include <array>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "benchmark_program.hpp"
#include "comparison_summary.hpp"
#include "random_shapes.hpp"
#include "suite.hpp"
#include "tune_kernel.hpp"
#include "tunewright/core/host_target.hpp"
#include "tuning_options.hpp"

namespace {

using namespace tunewright;

constexpr const char* usage = R"(usage: bench_code_generation [options] [Google Benchmark options]

What parts of the code generator for CPUs are worth: the fastest schedule of a search, compiled as it is and with one
part turned off, in turns.

)";
constexpr std::array<std::string_view, 7> option_names{
    "isa", "threads", "journal", "trials", "seconds_per_kernel", "seed", "random_shapes"};

struct Variant {
  std::string counter;
  codegen::CompileOptions options;
  bench::ComparisonSummary summary = {};
};

std::vector<Variant> variants() {
  codegen::CompileOptions one_iteration, no_tiles, no_prefetches, no_row_prefetches, no_block_prefetches, aggressive;
  one_iteration.plan.max_iterations_per_step = 1;
  no_tiles.register_tiles = false;
  no_prefetches.prefetch_constants = false;
  no_row_prefetches.prefetch_rows = false;
  no_block_prefetches.prefetch_blocks = false;
  aggressive.aggressive = true;
  return {{"one_iteration_per_step", one_iteration},
          {"without_register_tiles", no_tiles},
          {"without_prefetches", no_prefetches},
          {"without_row_prefetches", no_row_prefetches},
          {"without_block_prefetches", no_block_prefetches},
          {"aggressive", aggressive}};
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
    std::vector<std::vector<double>> seconds(kernels.size());
    for (auto _ : state) {
      const std::vector<Outcome> outcomes = measurer.measure_interleaved(task, kernels, rounds);
      for (std::size_t k = 0; k < kernels.size(); ++k) bench::append(seconds[k], outcomes[k]);
      state.SetIterationTime(stats::median(seconds[0]));
    }
    for (std::size_t v = 0; v < variants.size(); ++v) {
      const double ratio = bench::median_ratio(seconds[v + 1], seconds[0]);
      state.counters[variants[v].counter] = ratio;
      variants[v].summary.add(entry.name, ratio);
    }
  } catch (const std::exception& error) {
    state.SkipWithError(error.what());
  }
}

}  // namespace

int main(int argc, char** argv) try {
  bench::answer_help(argc, argv, usage + bench::usage_of(option_names));
  const bench::TuningOptions settings = bench::take_tuning_options(argc, argv, option_names);
  if (!bench::initialize_with_summary(argc, argv)) return 1;
  const Target host = host_target();
  const Target target = bench::chosen_target(settings, host);
  bench::KernelTuner tuner = bench::kernel_tuner(settings.seed, host.threads);
  std::vector<Variant> all = variants();
  std::vector<bench::SuiteEntry> entries = bench::suite();
  if (settings.random_shapes) entries = bench::random_shapes(*settings.random_shapes, entries);
  for (const bench::SuiteEntry& entry : entries)
    bench::register_once(entry.name,
                         [&](benchmark::State& state) { compare(state, entry, target, settings, tuner, all); });
  bench::register_once("summary", [&](benchmark::State& state) {
    for (auto _ : state) state.SetIterationTime(0);
    for (const Variant& variant : all) state.counters[variant.counter] = variant.summary.geometric_mean();
    state.counters["kernels"] = static_cast<double>(all.front().summary.compared());
  });

  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
} catch (const std::exception& error) {
  std::cerr << "bench_code_generation: " << error.what() << '\n';
  return 1;
}
