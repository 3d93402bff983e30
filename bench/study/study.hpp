// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// What all studies share. A study is a program of registered benchmarks, one a (recipe, data, seed), whose
/// counters are the result:
///
///   int main(int argc, char** argv) {
///     return study::run(argc, argv, {.folders = {"roller-tvm-logs"}}, [](const study::Options& options) {
///       for (std::uint64_t seed = 0; seed < options.seeds; ++seed)
///         study::add("gbdt", "v100", seed, [=](benchmark::State& state) {
///           state.counters["pairwise_accuracy"] = ...;
///         });
///     });
///   }
///
/// A recipe may end in "@number", such as "fine_tune@64": the report then draws its counters against the number.
/// Names hold no '/'.
namespace tunewright::study {

/// Options of the command line: --data=DIR --seeds=N --tasks=N, and any other --name=value. What Google
/// Benchmark understands is left to it.
struct Options {
  std::filesystem::path data;
  unsigned seeds = 3;
  std::size_t tasks = 0;  ///< at most so many; 0: the study's own choice
  std::map<std::string, std::string> others{};

  [[nodiscard]] std::string text(const std::string& name, std::string otherwise) const {
    const auto found = others.find(name);
    return found == others.end() ? std::move(otherwise) : found->second;
  }
  [[nodiscard]] std::size_t number(const std::string& name, std::size_t otherwise) const {
    const auto found = others.find(name);
    return found == others.end() ? otherwise : parse(name, found->second);
  }

  /// As `number`, for what counts few things: threads, steps.
  [[nodiscard]] unsigned few(const std::string& name, unsigned otherwise) const {
    const auto found = others.find(name);
    return found == others.end() ? otherwise : parse<unsigned>(name, found->second);
  }

  /// Throws `std::invalid_argument` for what is no count, or a larger one than `Count` holds.
  template <class Count = std::size_t>
  [[nodiscard]] static Count parse(const std::string& name, std::string_view value) {
    Count count = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), count);
    if (error != std::errc() || end != value.data() + value.size() || value.empty()) {
      throw std::invalid_argument("--" + name + "=" + std::string(value) + ": give a count up to " +
                                  std::to_string(std::numeric_limits<Count>::max()));
    }
    return count;
  }
};

/// What a study starts from, and what it does when the command line says nothing.
struct Plan {
  std::vector<std::string> folders;  ///< of the data, all needed
  unsigned seeds = 3;
};

/// Takes our options out of the command line. Throws `std::invalid_argument` for a count that is none.
inline Options take_options(int& argc, char** argv, const Plan& plan) {
  Options options{.data = {}, .seeds = plan.seeds};
  int kept = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const std::size_t equals = word.find('=');
    const bool ours = word.starts_with("--") && !word.starts_with("--benchmark_") && !word.starts_with("--v=") &&
                      equals != std::string_view::npos;
    if (!ours) {
      argv[kept++] = argv[i];
      continue;
    }
    const std::string name(word.substr(2, equals - 2));
    const std::string value(word.substr(equals + 1));
    if (name == "data")
      options.data = value;
    else if (name == "seeds")
      options.seeds = Options::parse<unsigned>(name, value);
    else if (name == "tasks")
      options.tasks = Options::parse(name, value);
    else
      options.others[name] = value;
  }
  argc = kept;
  return options;
}

/// The files below `root / folder` whose names end in `ending`, in order of their paths.
inline std::vector<std::filesystem::path> files(const std::filesystem::path& root, const std::string& folder,
                                                std::string_view ending = ".gz") {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
    if (entry.is_regular_file() && entry.path().filename().string().ends_with(ending)) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// Registers one (recipe, data, seed), which runs once. Its time is the wall time of `measure`.
template <class F>
void add(const std::string& recipe, const std::string& data, std::uint64_t seed, F measure) {
  const std::string name = recipe + "/" + data + "/seed:" + std::to_string(seed);
  benchmark::RegisterBenchmark(name.c_str(),
                               [measure](benchmark::State& state) {
                                 for (auto _ : state) {
                                   try {
                                     measure(state);
                                   } catch (const std::exception& error) {
                                     state.SkipWithError(error.what());
                                     break;
                                   }
                                 }
                               })
      ->Iterations(1)
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
}

template <class F>
double seconds_of(F&& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// The whole of `main`. Without the data it says so and succeeds, so that scripts go on.
template <class Setup>
int run(int argc, char** argv, const Plan& plan, const Setup& setup) {
  try {
    std::string line;
    for (int i = 1; i < argc; ++i) {
      // Folders of this machine would mean nothing to who reads the report.
      const std::string_view word = argv[i];
      if (!word.starts_with("--data=") && !word.starts_with("--benchmark_"))
        line += std::string(line.empty() ? "" : " ") + std::string(word);
    }
    const Options options = take_options(argc, argv, plan);
    for (const std::string& folder : plan.folders) {
      if (!options.data.empty() && std::filesystem::is_directory(options.data / folder)) continue;
      std::fprintf(stderr, "skipped: no folder '%s' in the data; name their folder by --data=DIR, see docs/studies\n",
                   folder.c_str());
      return 0;
    }
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
    benchmark::AddCustomContext("seeds", std::to_string(options.seeds));
    benchmark::AddCustomContext("options", line);
    setup(options);
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

}  // namespace tunewright::study
