// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tuning_options.hpp"
#include "usage.hpp"

/// What programs of Google Benchmark share that have options of their own.
namespace tunewright::bench {

/// Registers a benchmark, called with its `benchmark::State`, that runs once and sets its own time.
template <class Run>
void register_once(const std::string& name, Run run) {
  benchmark::RegisterBenchmark(name.c_str(), std::move(run))
      ->UseManualTime()
      ->Iterations(1)
      ->Unit(benchmark::kMillisecond);
}

/// With `--help` among the arguments, prints `usage` and that of Google Benchmark, and ends the program with status 0.
inline void answer_help(int argc, char** argv, std::string_view usage) {
  if (!printed_usage(argc, argv, usage)) return;
  std::puts("\nGoogle Benchmark has these options:\n");
  benchmark::Initialize(&argc, argv);  // ends the program, after its own usage
  std::exit(0);
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
