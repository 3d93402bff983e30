// SPDX-License-Identifier: Apache-2.0
//
// Threads that help each other with a loop against threads that keep to their shares, in one run, on an idle machine
// and beside a program that takes a part of one processor. --help lists the options.
//
// Each kernel of the suite, or of --random_shapes=SEED, runs by the schedule that the draft prefers, without
// measurements. Both runtimes of one team run it in turns; then another thread computes for 3 of every 12 milliseconds
// on the team's last processor, and they do so again. Counters, of pairs that ran right after each other: alone_ratio
// and beside_ratio (time of threads that keep to their shares / of threads that help, above 1 helping is faster:
// medians, with _q25 and _q75 the quartiles), alone_ms and beside_ms (of threads that help), serial_ratio (time of one
// thread / of threads that help, on an idle machine), iterations (of the longest parallel loop). The last benchmark is
// the summary: the geometric means of the medians.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "benchmark_program.hpp"
#include "comparison_summary.hpp"
#include "kept_to_processor.hpp"
#include "random_shapes.hpp"
#include "suite.hpp"
#include "tunewright/codegen/llvm.hpp"
#include "tunewright/codegen/llvm_jit.hpp"
#include "tunewright/codegen/pinned_team.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/measurers/stream_bandwidth.hpp"
#include "tunewright/networks/default_schedules.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/stats/robust.hpp"

namespace {

using namespace tunewright;
using Clock = std::chrono::steady_clock;

constexpr const char* usage = R"(usage: bench_team [options] [Google Benchmark options]

Compares threads that help each other with a loop with threads that keep to their shares, on an idle machine and beside
a program that takes a part of one processor.

)";
constexpr std::array<std::string_view, 3> option_names{"isa", "threads", "random_shapes"};

/// Computes on one processor, now and then, while it lives.
class Neighbour {
 public:
  Neighbour(int processor, std::chrono::milliseconds busy, std::chrono::milliseconds idle)
      : thread_([=, this] {
          const bench::KeptToProcessor kept(processor);
          while (!leaves_) {
            for (const auto start = Clock::now(); Clock::now() - start < busy && !leaves_;) {
            }
            std::this_thread::sleep_for(idle);
          }
        }) {}
  ~Neighbour() { leaves_ = true; }

 private:
  std::atomic<bool> leaves_{false};
  std::jthread thread_;
};

/// A kernel with memory of its own.
class Callable {
 public:
  explicit Callable(const codegen::Kernel& kernel) : loaded_(loader_.load(kernel)) {
    for (const codegen::KernelBuffer& buffer : kernel.buffers) {
      const std::size_t floats = (buffer.bytes() + sizeof(float) - 1) / sizeof(float);
      arguments_.push_back(memory_.emplace_back(std::make_unique<measurers::stream::Array>(floats))->data());
    }
  }
  double seconds_of(std::size_t calls, const codegen::tunewright_runtime* runtime) {
    const auto start = Clock::now();
    for (std::size_t call = 0; call < calls; ++call) loaded_.function()(arguments_.data(), runtime);
    return std::chrono::duration<double>(Clock::now() - start).count() / static_cast<double>(calls);
  }

 private:
  codegen::KernelLoader loader_;
  codegen::LoadedKernel loaded_;
  std::vector<std::unique_ptr<measurers::stream::Array>> memory_;
  std::vector<void*> arguments_;
};

/// A runtime of the calling thread that notes the longest loop.
struct LoopMeter {
  std::int64_t longest = 0;
  codegen::tunewright_runtime runtime{&LoopMeter::parallel_for, this};

  static void parallel_for(const codegen::tunewright_runtime* self, std::int64_t count,
                           void (*body)(void*, std::int64_t, std::int64_t), void* context) {
    auto& meter = *static_cast<LoopMeter*>(self->state);
    meter.longest = std::max(meter.longest, count);
    body(context, 0, count);
  }
};

/// Times of both runtimes in turns: `ratios` of threads that keep to their shares to threads that help.
struct Turns {
  std::vector<double> helping_s, ratios, serial_ratios;

  Turns(Callable& kernel, const codegen::PinnedTeam& team) {
    constexpr double seconds_per_turn = 0.002;
    constexpr int turns = 61;
    const double once = kernel.seconds_of(3, team.runtime());
    LoopMeter alone;
    const std::size_t calls = static_cast<std::size_t>(std::clamp(seconds_per_turn / once, 1.0, 1e6));
    for (int turn = 0; turn < turns; ++turn) {
      double helping = 0, keeping = 0;
      for (const bool first : {true, false}) {
        if (first == (turn % 2 == 0))
          helping = kernel.seconds_of(calls, team.runtime());
        else
          keeping = kernel.seconds_of(calls, team.dividing_runtime());
      }
      helping_s.push_back(helping);
      ratios.push_back(keeping / helping);
      serial_ratios.push_back(kernel.seconds_of(calls, &alone.runtime) / helping);
    }
  }
  /// Returns the median of the ratios.
  double report(benchmark::State& state, const std::string& when) const {
    const double median = stats::median(ratios);
    state.counters[when + "_ratio"] = median;
    state.counters[when + "_ratio_q25"] = stats::quantile(ratios, 0.25);
    state.counters[when + "_ratio_q75"] = stats::quantile(ratios, 0.75);
    state.counters[when + "_ms"] = 1e3 * stats::median(helping_s);
    return median;
  }
};

struct Summaries {
  bench::ComparisonSummary alone, beside;
};

void compare(benchmark::State& state, const bench::SuiteEntry& entry, const Target& target, codegen::PinnedTeam& team,
             const std::vector<int>& processors, Summaries& summaries) {
  try {
    const Task task = program::make_task(entry.name, bench::program_of(entry.shape), target);
    const schedule::Schedule schedule = networks::default_schedule(task, {.candidates = 256});
    codegen::LlvmCompiler compiler(target);
    Callable kernel(compiler.compile(loops::lower(schedule)));
    LoopMeter meter;
    static_cast<void>(kernel.seconds_of(1, &meter.runtime));
    for (auto _ : state) {
      const Turns alone(kernel, team);
      const auto beside = [&] {
        const Neighbour neighbour(processors.back(), std::chrono::milliseconds(3), std::chrono::milliseconds(9));
        return Turns(kernel, team);
      }();
      summaries.alone.add(entry.name, alone.report(state, "alone"));
      summaries.beside.add(entry.name, beside.report(state, "beside"));
      state.counters["serial_ratio"] = stats::median(alone.serial_ratios);
      state.SetIterationTime(stats::median(alone.helping_s));
    }
    state.counters["iterations"] = static_cast<double>(meter.longest);
  } catch (const std::exception& error) {
    state.SkipWithError(error.what());
  }
}

}  // namespace

int main(int argc, char** argv) try {
  bench::answer_help(argc, argv, usage + bench::usage_of(option_names));
  const bench::TuningOptions options = bench::take_tuning_options(argc, argv, option_names);
  const Target target = bench::chosen_target(options, host_target());
  if (!bench::initialize_with_summary(argc, argv)) return 1;
  if (target.threads < 2) throw std::invalid_argument("one thread has nobody to help; give --threads=2 or more");
  std::vector<int> processors = host_processors();
  processors.resize(std::min<std::size_t>(processors.size(), target.threads));
  codegen::PinnedTeam team(target.threads, processors);
  const bench::KeptToProcessor kept(processors.front());
  Summaries summaries;
  std::vector<bench::SuiteEntry> entries = bench::suite();
  if (options.random_shapes) entries = bench::random_shapes(*options.random_shapes, entries);
  for (const bench::SuiteEntry& entry : entries) {
    bench::register_once(entry.name,
                         [&](benchmark::State& state) { compare(state, entry, target, team, processors, summaries); });
  }
  bench::register_once("summary", [&](benchmark::State& state) {
    for (auto _ : state) state.SetIterationTime(0);
    state.counters["alone_ratio"] = summaries.alone.geometric_mean();
    state.counters["beside_ratio"] = summaries.beside.geometric_mean();
    state.counters["compared"] = static_cast<double>(summaries.alone.compared());
  });
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
} catch (const std::exception& error) {
  std::cerr << "bench_team: " << error.what() << '\n';
  return 1;
}
