// SPDX-License-Identifier: Apache-2.0
//
// What NVRTC takes to compile a candidate for a GPU. No device is needed. Names say program, instruction (plain:
// float32 without tensor units) and architecture; 15 random schedules each. Counters: compile_ms (median), slowest_ms,
// both in processor time of the thread that compiles, so that other programs on the machine change them little.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <ctime>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "shapes.hpp"
#include "tunewright/codegen/cuda.hpp"
#include "tunewright/codegen/cuda_compile.hpp"
#include "tunewright/core/gpu_targets.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/program/operators/conv.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"
#include "tunewright/stats/robust.hpp"

namespace {

using namespace tunewright;

constexpr std::size_t schedules = 15;

/// Processor time of the calling thread.
double thread_seconds() {
  std::timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Whether the schedule computes by an instruction of that family, "plain" for none.
bool computes_by(const schedule::Schedule& config, std::string_view family) {
  std::string_view found = "plain";
  for (const schedule::Step& step : config.steps) {
    const auto* tensorize = std::get_if<schedule::Tensorize>(&step);
    if (tensorize != nullptr) found = tensorize->intrinsic;
  }
  return found.substr(0, found.find('_')) == family;
}

std::vector<codegen::DeviceProgram> sample(const Task& task, std::string_view family) {
  const spaces::MultiLevelTiling space;
  std::vector<codegen::DeviceProgram> programs;
  constexpr std::size_t max_draws = 10'000;
  Rng rng(3);
  for (std::size_t draw = 0; draw < max_draws && programs.size() < schedules; ++draw) {
    const auto config = space.sample(task, rng);
    if (config && computes_by(*config, family) && space.feasible(task, *config))
      programs.push_back(codegen::to_cuda(loops::lower(*config)));
  }
  if (programs.size() < schedules)
    throw std::runtime_error("too few schedules of '" + task.name + "' by " + std::string(family));
  return programs;
}

void compile(benchmark::State& state, const Task& task, const std::string& family) {
  const std::vector<codegen::DeviceProgram> programs = sample(task, family);
  std::vector<double> milliseconds;
  std::size_t next = 0;
  for (auto _ : state) {
    const double start = thread_seconds();
    const auto code = codegen::compile_cuda(programs[next++], {.architecture = task.target.architecture});
    milliseconds.push_back(1e3 * (thread_seconds() - start));
    if (const auto* failure = std::get_if<Failure>(&code)) state.SkipWithError(failure->detail.c_str());
  }
  state.counters["slowest_ms"] = *std::max_element(milliseconds.begin(), milliseconds.end());
  state.counters["compile_ms"] = stats::median(milliseconds);
}

void register_benchmarks() {
  struct Case {
    const char* device;
    const char* family;
    program::ScalarType type;
  };
  using program::ScalarType;
  const bench::ConvolutionShape convolution{56, 56, 64, 64, 3, 1, 1};
  for (const Case& c : {Case{"T4", "plain", ScalarType::Float32}, Case{"A100", "plain", ScalarType::Float32},
                        Case{"H100", "plain", ScalarType::Float32}, Case{"A100", "wmma", ScalarType::Float16},
                        Case{"A100", "mma", ScalarType::Float16}, Case{"H100", "mma", ScalarType::Float16},
                        Case{"H100", "wgmma", ScalarType::Float16}}) {
    program::operators::Conv2dShape of_convolution = bench::conv2d_shape(convolution);
    of_convolution.type = c.type;
    const Target target = gpu_target(c.device);
    for (const Task& task :
         {program::make_task("matmul/1024",
                             program::operators::matmul_graph({.m = 1024, .n = 1024, .k = 1024, .type = c.type}),
                             target),
          program::make_task(bench::name_of(convolution), program::operators::conv2d_graph(of_convolution), target)}) {
      benchmark::RegisterBenchmark(
          ("nvrtc/" + task.name + "/" + c.family + "/" + target.architecture).c_str(),
          [task, family = std::string(c.family)](benchmark::State& state) { compile(state, task, family); })
          ->Unit(benchmark::kMillisecond)
          ->Iterations(schedules);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::AddCustomContext("compiler", codegen::nvrtc_identity());
  register_benchmarks();
  benchmark::RunSpecifiedBenchmarks();
}
