// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <benchmark/benchmark.h>

#include <string>
#include <utility>
#include <vector>

#include "tuning_options.hpp"

/// What programs share whose benchmarks tune kernels.
namespace tunewright::bench {

/// Registers a benchmark, called with its `benchmark::State`, that runs once and sets its own time.
template <class Run>
void register_once(const std::string& name, Run run) {
  benchmark::RegisterBenchmark(name.c_str(), std::move(run))
      ->UseManualTime()
      ->Iterations(1)
      ->Unit(benchmark::kMillisecond);
}

/// Gives Google Benchmark the arguments `with_summary`, and tells whether it knows all of them; it reports the others.
[[nodiscard]] inline bool initialize_with_summary(int argc, char** argv) {
  static std::vector<std::string> texts;  // Google Benchmark keeps the name of the program without copying it
  texts = with_summary({argv, argv + argc});
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  int count = static_cast<int>(pointers.size());
  benchmark::Initialize(&count, pointers.data());
  return !benchmark::ReportUnrecognizedArguments(count, pointers.data());
}

}  // namespace tunewright::bench
