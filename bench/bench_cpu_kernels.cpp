// SPDX-License-Identifier: Apache-2.0
//
// Tuned kernels against the best library that has the operator, both in one run and both held to one instruction set.
// --help lists the options; suite.hpp and random_shapes.hpp say which kernels there are.
//
// Each kernel is tuned for the instruction set and the threads, or taken from the journal as far as that goes. The
// fastest candidates are measured once more in turns, and four of them compared; with a limit of seconds, which the
// construction of the tuner is part of, only the fastest, which is what the search knows by then. Libraries are told
// the same and are tried first: one that does not keep to it is reported, and not compared with.
//
// Counters: ratio_vs_best_library (library time / ours, above 1 is faster), fraction_of_peak (of the fused multiply-add
// peak of float32 of the instruction set, measured in the same run), gflops, tuning_seconds (measuring once more
// included), trials, failed; where memory bounds, fraction_of_bandwidth (bytes of inputs and outputs a second / those
// of copying and triad over as many bytes, or of summing them where less than a tenth is written, measured in the same
// run; not of kernels with less than 4096 bytes a thread). The last benchmark, summary, has their geometric mean, the
// number below 1, and the weakest five.
//
// With --serve=KERNEL there are no libraries: that kernel of the suite is tuned, "ready" is written with counters of
// the search, and for every line on standard input the time of one call in seconds is written as a line to standard
// output, so that other programs measure it in turns with theirs (kernels_beside_tvm.py).

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "benchmark_program.hpp"
#include "comparison_summary.hpp"
#include "random_shapes.hpp"
#include "tune_kernel.hpp"
#include "tunewright/core/host_target.hpp"
#include "tuning_options.hpp"

namespace {

using namespace tunewright;

constexpr const char* usage = R"(usage: bench_cpu_kernels [options] [Google Benchmark options]

Tunes kernels and compares them with the best library that has the operator, both held to one instruction set.

)";
constexpr std::array<std::string_view, 8> option_names{
    "isa", "threads", "journal", "trials", "seconds_per_kernel", "seed", "random_shapes", "serve"};

/// The tensor instruction that a schedule uses, if any.
std::string form_of(const schedule::Schedule& schedule) {
  for (const schedule::Step& step : schedule.steps) {
    if (const auto* given = std::get_if<schedule::Tensorize>(&step)) return given->intrinsic;
  }
  return "plain loops";
}

void tune_and_compare(benchmark::State& state, const bench::KernelCase& kernel_case, const Target& target,
                      const bench::TuningOptions& settings, bench::KernelTuner& tuner,
                      bench::ComparisonSummary& summary) {
  const Task task = program::make_task(kernel_case.name, kernel_case.graph, target);
  try {
    const bench::KernelRun run = bench::tune_alone(tuner, task, settings);
    const auto searched = std::chrono::steady_clock::now();
    const std::vector<schedule::Schedule> best =
        settings.seconds_per_kernel ? run.history.fastest(1) : bench::finalists(tuner, task, run);
    const Seconds confirming = std::chrono::steady_clock::now() - searched;
    bench::Comparison result;
    for (auto _ : state) {
      result = bench::compare(tuner.parts().measurer, task, kernel_case, best);
      state.SetIterationTime(result.tuned_s);
    }
    if (result.ratio) {
      state.counters["ratio_vs_best_library"] = *result.ratio;
      summary.add(kernel_case.name, *result.ratio);
    } else {
      summary.add_failure(kernel_case.name);
    }
    state.counters["fraction_of_peak"] = task.flops / result.tuned_s / result.peak;
    if (result.bandwidth) state.counters["fraction_of_bandwidth"] = result.bytes / result.tuned_s / *result.bandwidth;
    state.counters["gflops"] = task.flops / result.tuned_s * 1e-9;
    state.counters["tuning_seconds"] = (run.status.elapsed + confirming).count();
    state.counters["trials"] = static_cast<double>(run.status.trials);
    state.counters["failed"] = static_cast<double>(run.status.failed());
    std::string label = "best library: " + result.library;
    for (const auto& [library, fault] : result.library_faults) label += "; " + library + " failed: " + fault;
    if (kernel_case.narrow) label += "; ours by " + form_of(best[result.tuned]);
    state.SetLabel(label);
  } catch (const std::exception& error) {
    summary.add_failure(kernel_case.name);
    state.SkipWithError(error.what());
  }
}

void report(benchmark::State& state, const bench::ComparisonSummary& summary) {
  for (auto _ : state) state.SetIterationTime(0);
  state.counters["geometric_mean_ratio"] = summary.geometric_mean();
  state.counters["compared"] = static_cast<double>(summary.compared());
  state.counters["below_1.00"] = static_cast<double>(summary.below(1.0));
  state.counters["not_compared"] = static_cast<double>(summary.failures().size());
  std::string label;
  for (const auto& [kernel, ratio] : summary.weakest(5)) {
    char text[160];
    std::snprintf(text, sizeof text, "%s%s %.2f", label.empty() ? "weakest: " : ", ", kernel.c_str(), ratio);
    label += text;
  }
  for (const std::string& kernel : summary.failures()) label += (label.empty() ? "" : "; ") + kernel + " not compared";
  state.SetLabel(label);
}

/// Which libraries there are, what they say of themselves, and whether they keep to the instruction set.
void report(const std::vector<bench::RestrictionReport>& reports) {
  for (const bench::RestrictionReport& library : reports) {
    char share[40];
    std::snprintf(share, sizeof share, ", %.2f of the peak", library.share_of_peak);
    const std::string text = library.version + (library.kernels.empty() ? "" : ", kernels: " + library.kernels) +
                             (library.share_of_peak > 0 ? share : "") +
                             (library.fault.empty() ? "" : "; ERROR, left out: it " + library.fault);
    benchmark::AddCustomContext("library " + library.library, text);
  }
}

void serve(const std::string& name, const Target& target, const bench::TuningOptions& settings, unsigned threads) {
  const std::vector<bench::SuiteEntry> entries = bench::suite();
  const auto entry = std::find_if(entries.begin(), entries.end(), [&](const auto& e) { return e.name == name; });
  if (entry == entries.end())
    throw std::invalid_argument("'" + name + "' is no float32 kernel of the suite; --benchmark_list_tests names them");
  const Task task = program::make_task(entry->name, bench::program_of(entry->shape), target);
  bench::KernelTuner tuner = bench::kernel_tuner(settings.seed, threads);
  const auto start = std::chrono::steady_clock::now();
  const bench::KernelRun run = bench::tune_alone(tuner, task, settings);
  const std::vector<schedule::Schedule> best = bench::finalists(tuner, task, run);
  const Seconds tuning = std::chrono::steady_clock::now() - start;
  if (best.empty()) throw std::runtime_error("no tuned kernel of '" + name + "' runs");
  measurers::OrcJit& measurer = tuner.parts().measurer;
  const codegen::Kernel kernel = measurer.compile_kernel(task, loops::lower(best.front()));
  std::cout << "ready trials=" << run.status.trials << " failed=" << run.status.failed()
            << " seconds=" << tuning.count() << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    const Outcome outcome = measurer.measure_interleaved(task, std::span(&kernel, 1), 5).front();
    std::cout << bench::timing_of(outcome).median.count() << std::endl;
  }
}

}  // namespace

int main(int argc, char** argv) try {
  std::vector<char*> arguments(argv, argv + argc);
  arguments.push_back(nullptr);
  bench::answer_help(argc, argv, usage + bench::usage_of(option_names));
  bench::TuningOptions settings = bench::take_tuning_options(argc, argv, option_names);
  if (!bench::initialize_with_summary(argc, argv)) return 1;
  const Target host = host_target();
  const Target target = bench::chosen_target(settings, host);
  if (settings.served) {
    serve(*settings.served, target, settings, host.threads);
    return 0;
  }
  const std::string vendor = bench::host_vendor();
  const std::vector<bench::Variable> environment =
      bench::library_environment(settings.instructions, target.threads, vendor);
  bench::restart_with(environment, arguments.data());

  // Before the measurer, see library_kernels.hpp.
  const bench::Peers peers(target, settings.instructions, environment, vendor);
  const std::vector<bench::SuiteEntry> listed = bench::suite();
  std::vector<bench::KernelCase> cases;
  for (const bench::SuiteEntry& entry :
       settings.random_shapes ? bench::random_shapes(*settings.random_shapes, listed) : listed)
    cases.push_back(peers.entry(entry));
  if (!settings.random_shapes) {
    for (bench::KernelCase& narrow : bench::narrow_cases(peers)) cases.push_back(std::move(narrow));
  }
  const auto before_construction = std::chrono::steady_clock::now();
  bench::KernelTuner tuner = bench::kernel_tuner(settings.seed, host.threads);
  if (settings.seconds_per_kernel) {
    *settings.seconds_per_kernel -= std::chrono::steady_clock::now() - before_construction;
    if (*settings.seconds_per_kernel <= Seconds(0))
      throw std::invalid_argument("seconds_per_kernel is less than the construction of the tuner takes; give more");
  }
  bench::ComparisonSummary summary;
  for (const bench::KernelCase& kernel_case : cases) {
    bench::register_once(kernel_case.name, [&](benchmark::State& state) {
      tune_and_compare(state, kernel_case, target, settings, tuner, summary);
    });
  }
  bench::register_once("summary", [&](benchmark::State& state) { report(state, summary); });

  benchmark::AddCustomContext("instructions of both sides", std::string(name(settings.instructions)) + ", " +
                                                                std::to_string(target.threads) + " threads");
  report(peers.reports());
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
} catch (const std::exception& error) {
  std::cerr << "bench_cpu_kernels: " << error.what() << '\n';
  return 1;
}
