// SPDX-License-Identifier: Apache-2.0
//
// Tuned kernels against cuBLAS, cuBLASLt and cuDNN on an NVIDIA GPU, both in one run.
//
//   bench_gpu_kernels [--journal=FILE] [--trials=N] [--random] [Google Benchmark options]
//
// Each kernel is tuned with at most N trials (500), or taken from the journal as far as that goes; what is measured goes to
// the journal. `--random` draws the trials at random instead: a small data set of measured programs. Counters:
// ratio_vs_best_library (library time / ours, above 1 is faster), gflops, library_gflops, tuning_seconds, trials, failed,
// trials_per_s. Without a device every benchmark says so and is skipped.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#ifdef TUNEWRIGHT_BENCH_HAS_CUBLAS
#include "gpu_library_kernels.hpp"
#endif
#include "shapes.hpp"
#include "tunewright/core/progress.hpp"
#include "tunewright/data/journal.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/measurers/nvrtc.hpp"
#include "tunewright/program/operators/elementwise.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/recipes/ansor.hpp"
#include "tunewright/recipes/random.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"
#include "tunewright/stats/robust.hpp"
#include "tunewright/tuner.hpp"
#include "tuning_options.hpp"

namespace {

using namespace tunewright;

/// Whether `flag` was given; removes it.
bool take_flag(int& argc, char** argv, std::string_view flag) {
  char** const last = std::remove(argv + 1, argv + argc, flag);
  const bool given = last != argv + argc;
  argc = static_cast<int>(last - argv);
  return given;
}

/// A library, made when it is needed: making it takes device memory.
struct Library {
  std::string name;
  std::function<std::function<double()>()> make;  ///< gives what measures the seconds of a run
};
struct Case {
  std::string name;
  std::shared_ptr<const program::ComputeGraph> graph;
  std::vector<Library> libraries;
};

#ifdef TUNEWRIGHT_BENCH_HAS_CUBLAS
template <class Make>
Library library(std::string name, Make make) {
  return {std::move(name), [make] {
            return std::function<double()>([kernel = make()] { return bench::median_seconds(kernel); });
          }};
}
#endif

Case product_case(const bench::Product& p) {
  const std::string extents = std::to_string(p.m) + "x" + std::to_string(p.n) + "x" + std::to_string(p.k);
  Case c{p.batch > 1 ? "batch_matmul/" + std::to_string(p.batch) + "x" + extents : "matmul/" + extents,
         bench::product_graph(p),
         {}};
#ifdef TUNEWRIGHT_BENCH_HAS_CUBLAS
  c.libraries.push_back(library("cuBLAS", [p] { return bench::cublas_product(p); }));
  if (p.batch == 1) c.libraries.push_back(library("cuBLASLt", [p] { return bench::cublas_lt_product(p); }));
#endif
  return c;
}

/// 16-bit floats in and out, sums of 32 bits between: what tensor units are for.
Case half_product_case(const bench::Product& p) {
  auto graph = std::make_shared<program::ComputeGraph>();
  using program::ScalarType;
  const auto a = graph->input("A", {p.m, p.k}, ScalarType::Float16);
  const auto b = graph->input("B", {p.k, p.n}, ScalarType::Float16);
  const auto sums = program::operators::matmul(*graph, a, b);
  program::operators::cast(*graph, sums, ScalarType::Float16);
  Case c{"matmul_fp16/" + std::to_string(p.m) + "x" + std::to_string(p.n) + "x" + std::to_string(p.k),
         graph,
         {}};
#ifdef TUNEWRIGHT_BENCH_HAS_CUBLAS
  c.libraries.push_back(library("cuBLAS, tensor units", [p] { return bench::cublas_half_product(p); }));
#endif
  return c;
}

Case convolution_case(const bench::ConvolutionShape& s) {
  Case c{bench::name_of(s), bench::convolution_graph(s), {}};
#ifdef TUNEWRIGHT_BENCH_HAS_CUDNN
  c.libraries.push_back(
      library("cuDNN, NCHW", [s] { return bench::cudnn_convolution(s, CUDNN_TENSOR_NCHW); }));
  c.libraries.push_back(
      library("cuDNN, NHWC", [s] { return bench::cudnn_convolution(s, CUDNN_TENSOR_NHWC); }));
#endif
  return c;
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const std::int64_t size : {1024, 2048, 4096}) cases.push_back(product_case({1, size, size, size}));
  cases.push_back(product_case({1, 128, 3072, 768}));
  cases.push_back(product_case({12, 128, 64, 128}));
  cases.push_back(half_product_case({1, 4096, 4096, 4096}));
  for (const bench::ConvolutionShape& s : bench::resnet50_convolutions())
    cases.push_back(convolution_case(s));
  return cases;
}

template <class AnyTuner>
auto tune(AnyTuner& tuner, const Task& task, const bench::TuningOptions& settings) {
  tuner.parts().training = {};  // each kernel is tuned on its own, whatever ran before it
  const Budget budget{.trials = settings.trials};
  if (!settings.journal) return tuner.run(task, budget, Progress{});
  data::Journal journal{{.path = *settings.journal, .many_tasks = true}};
  return tuner.run(task, budget, journal, Progress{});
}

/// Our best and the libraries in turns, three times: clocks that drift meet both.
void compare(benchmark::State& state, measurers::Nvrtc& measurer, const Task& task, const Case& c,
             const std::vector<schedule::Schedule>& best) {
  std::vector<loops::LoopNest> nests;
  for (const schedule::Schedule& schedule : best) nests.push_back(loops::lower(schedule));
  std::vector<std::pair<std::string, std::function<double()>>> libraries;
  for (const Library& library : c.libraries) libraries.emplace_back(library.name, library.make());
  std::vector<double> ours, theirs, ratios;
  std::string fastest = "none";
  for (int block = 0; block < 3; ++block) {
    double own = 0, library = 0;
    for (const Outcome& outcome : measurer.confirm(task, nests)) {
      if (outcome.valid() && (own == 0 || cost_s(outcome) < own)) own = cost_s(outcome);
    }
    if (own == 0) throw std::runtime_error("no tuned kernel of '" + task.name + "' runs");
    for (const auto& [name, seconds] : libraries) {
      const double s = seconds();
      if (library == 0 || s < library) {
        library = s;
        fastest = name;
      }
    }
    ours.push_back(own);
    if (library > 0) theirs.push_back(library);
    if (library > 0) ratios.push_back(library / own);
  }
  const double tuned_s = stats::median(ours);
  state.SetIterationTime(tuned_s);
  state.counters["gflops"] = task.flops / tuned_s * 1e-9;
  if (!theirs.empty()) {
    state.counters["ratio_vs_best_library"] = stats::median(ratios);
    state.counters["library_gflops"] = task.flops / stats::median(theirs) * 1e-9;
  }
  state.SetLabel("best library: " + fastest);
}

template <class AnyTuner>
void tune_and_compare(benchmark::State& state, const Case& c, const bench::TuningOptions& settings,
                      AnyTuner& tuner) {
  measurers::Nvrtc& measurer = tuner.parts().measurer;
  if (const std::string why = measurer.why_unavailable(); !why.empty()) {
    state.SkipWithError(("skipped: " + why).c_str());
    return;
  }
  try {
    const Task task = program::make_task(c.name, c.graph, measurer.target());
    const auto run = tune(tuner, task, settings);
    for (auto _ : state) compare(state, measurer, task, c, run.history.fastest(4));
    state.counters["tuning_seconds"] = run.status.elapsed.count();
    state.counters["trials"] = static_cast<double>(run.status.trials);
    state.counters["failed"] = static_cast<double>(run.status.failed());
    const auto measured = static_cast<double>(run.status.trials - run.status.recalled);
    if (measured > 0) state.counters["trials_per_s"] = measured / run.status.elapsed.count();
  } catch (const std::exception& error) {
    state.SkipWithError(error.what());
  }
}

template <class AnyTuner>
int run_all(AnyTuner& tuner, const bench::TuningOptions& settings, int argc, char** argv) {
  const std::vector<Case> cases = all_cases();
  for (const Case& c : cases) {
    benchmark::RegisterBenchmark(
        c.name.c_str(), [&](benchmark::State& state) { tune_and_compare(state, c, settings, tuner); })
        ->UseManualTime()
        ->Iterations(1)
        ->Unit(benchmark::kMillisecond);
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  const bench::TuningOptions settings = bench::take_tuning_options(argc, argv);
  const bool random = take_flag(argc, argv, "--random");
  using Space = spaces::MultiLevelTiling;
  if (random) {
    Tuner<recipes::Random<Space, measurers::Nvrtc>> tuner{{.seed = 1, .threads = hardware_threads()}};
    return run_all(tuner, settings, argc, argv);
  }
  Tuner<recipes::Ansor<Space, measurers::Nvrtc>> tuner{
      {.model = {.objective = models::gbdt::Objective::RankPairwise},
       .seed = 1,
       .threads = hardware_threads()}};
  return run_all(tuner, settings, argc, argv);
} catch (const std::exception& error) {
  std::cerr << "bench_gpu_kernels: " << error.what() << '\n';
  return 1;
}
