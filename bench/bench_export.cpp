// SPDX-License-Identifier: Apache-2.0
//
// Exported kernels on threads of the C runtime against the same kernels as they were tuned, both in one run. --help
// lists the options.
//
// Each kernel is tuned for all cores, or taken from the journal as far as that goes, and then exported, compiled with
// the C runtime by cc into a shared library, and measured in turns with the kernel that the measurer loads and with a
// copy of that. Counters: ratio_vs_tuned (tuned time / exported time, median over pairs of repeats that ran right after
// each other; 1 is as fast), ratio_of_copy (the same for the copy: what the machine's noise makes of equal kernels),
// ratio_of_fastest (of the fastest repeat of either, which other programs disturb least), tuned_ms, exported_ms,
// threads.

#include <benchmark/benchmark.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "benchmark_program.hpp"
#include "tune_kernel.hpp"
#include "tunewright/codegen/export.hpp"
#include "tunewright/core/host_target.hpp"
#include "tuning_options.hpp"

namespace {

using namespace tunewright;

constexpr const char* usage = R"(usage: bench_export [options] [Google Benchmark options]

Compares exported kernels on threads of the C runtime with the same kernels as they were tuned.

)";
constexpr std::array<std::string_view, 4> option_names{"journal", "trials", "seconds_per_kernel", "seed"};

/// What the measuring process knows of exported kernels: it is forked from this one before there are any.
struct Exports {
  std::filesystem::path folder;
  unsigned threads = 1;
  std::vector<int> processors;
  [[nodiscard]] std::filesystem::path library(std::size_t slot) const {
    return folder / ("kernel" + std::to_string(slot) + ".so");
  }
};
Exports& exports() {
  static Exports all;
  return all;
}

/// A library of the folder with a team of its own.
struct Opened {
  codegen::tunewright_kernel kernel = nullptr;
  const codegen::tunewright_runtime* runtime = nullptr;

  explicit Opened(std::size_t slot) {
    void* library = ::dlopen(exports().library(slot).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(::dlerror());
    const auto find = [&](const char* symbol, auto& function) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, symbol));
      if (function == nullptr) throw std::runtime_error(std::string("an exported library has no ") + symbol);
    };
    void* (*create)(unsigned, const int*, std::size_t) = nullptr;
    const codegen::tunewright_runtime* (*runtime_of)(const void*) = nullptr;
    find("exported", kernel);
    find("tunewright_team_create", create);
    find("tunewright_team_runtime", runtime_of);
    void* team = create(exports().threads, exports().processors.data(), exports().processors.size());
    if (team == nullptr) throw std::runtime_error("the C runtime makes no team on these processors");
    runtime = runtime_of(team);
  }
};

template <std::size_t Slot>
void run_exported(void* const* buffers, const codegen::tunewright_runtime*) {
  static const Opened opened(Slot);
  opened.kernel(buffers, opened.runtime);
}

template <std::size_t... Slots>
std::array<codegen::tunewright_kernel, sizeof...(Slots)> functions(std::index_sequence<Slots...>) {
  return {&run_exported<Slots>...};
}
constexpr std::size_t max_kernels = 16;

/// The kernel as a function of a shared library that has it and the C runtime.
codegen::Kernel exported(const codegen::Kernel& tuned, std::size_t slot) {
  const std::filesystem::path folder = exports().folder / std::to_string(slot);
  const codegen::ExportedKernel files = codegen::export_kernel(tuned, "exported", folder);
  const codegen::ExportedRuntime runtime = codegen::export_runtime(folder);
  const std::string command = "cc -std=c11 -O2 -Wall -shared -fPIC -pthread -o '" + exports().library(slot).string() +
                              "' '" + runtime.source.string() + "' '" + files.object.string() + "' -lm";
  if (std::system(command.c_str()) != 0) throw std::runtime_error("this failed: " + command);
  codegen::Kernel native;
  native.symbol = "exported";
  native.buffers = tuned.buffers;
  native.native = functions(std::make_index_sequence<max_kernels>{}).at(slot);
  native.threads = tuned.threads;
  return native;
}

void tune_and_export(benchmark::State& state, const bench::KernelCase& kernel_case, std::size_t slot,
                     const bench::TuningOptions& settings, bench::KernelTuner& tuner) {
  const Task task = program::make_task(kernel_case.name, kernel_case.graph, host_target());
  try {
    const bench::KernelRun run = bench::tune_alone(tuner, task, settings);
    if (run.best() == nullptr) throw std::runtime_error("no program of '" + task.name + "' ran");
    measurers::OrcJit& measurer = tuner.parts().measurer;
    const codegen::Kernel tuned = measurer.compile_kernel(task, loops::lower(run.best()->candidate.config));
    const std::vector<codegen::Kernel> kernels{tuned, exported(tuned, slot), tuned};
    std::vector<double> tuned_s, exported_s, copy_s;
    for (auto _ : state) {
      for (unsigned block = 0; block < 3; ++block) {
        const std::vector<Outcome> outcomes = measurer.measure_interleaved(task, kernels, 21);
        bench::append(tuned_s, outcomes[0]);
        bench::append(exported_s, outcomes[1]);
        bench::append(copy_s, outcomes[2]);
      }
      state.SetIterationTime(stats::median(exported_s));
    }
    state.counters["ratio_vs_tuned"] = bench::median_ratio(tuned_s, exported_s);
    state.counters["ratio_of_copy"] = bench::median_ratio(tuned_s, copy_s);
    state.counters["ratio_of_fastest"] =
        *std::min_element(tuned_s.begin(), tuned_s.end()) / *std::min_element(exported_s.begin(), exported_s.end());
    state.counters["tuned_ms"] = 1e3 * stats::median(tuned_s);
    state.counters["exported_ms"] = 1e3 * stats::median(exported_s);
    state.counters["threads"] = tuned.threads;
  } catch (const std::exception& error) {
    state.SkipWithError(error.what());
  }
}

}  // namespace

int main(int argc, char** argv) try {
  bench::answer_help(argc, argv, usage + bench::usage_of(option_names));
  const bench::TuningOptions settings = bench::take_tuning_options(argc, argv, option_names);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  const Target host = host_target();
  const bench::Peers peers(host, bench::InstructionSet::Native, {},
                           "");  // before the measurer, see library_kernels.hpp
  const std::vector<bench::KernelCase> cases = bench::quickstart_cases(peers);
  std::string folder = (std::filesystem::temp_directory_path() / "tunewright-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) throw std::runtime_error("no temporary folder at '" + folder + "'");
  exports() = {folder, host.threads, host_processors()};
  {
    bench::KernelTuner tuner = bench::kernel_tuner(settings.seed, host.threads);
    for (std::size_t c = 0; c < cases.size(); ++c) {
      bench::register_once(cases[c].name,
                           [&, c](benchmark::State& state) { tune_and_export(state, cases[c], c, settings, tuner); });
    }
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
  }
  std::filesystem::remove_all(folder);
} catch (const std::exception& error) {
  std::cerr << "bench_export: " << error.what() << '\n';
  return 1;
}
