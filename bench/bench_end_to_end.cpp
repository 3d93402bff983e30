// SPDX-License-Identifier: Apache-2.0
//
// Whole networks, tuned and run: batch 1, float32, all processors. --help lists the options.
//
// Each network is cut into tasks, which are tuned under `schedulers::Gradient`; what is evicted before each timed call
// is `measurers::Evict`, and `networks::choose_in_network` chooses among the fastest schedules of each task.
// Counters: latency_ms (median of 30 inferences or as many as fit into ten seconds), sum_of_tasks_ms (what tuning
// expected), tuning_seconds (of this run, with choosing), choosing_seconds, gain_in_network (what choosing saved),
// trials and recalled (of these, from the journal), failed, tasks, gflops. With --export=DIR each network is
// exported to DIR/<network>, compiled by cc with the C runtime, and measured in turns with the tuned one:
// exported_ms, ratio_exported_vs_tuned (tuned time / exported time, median over turns: above 1 is faster) and
// ratio_of_copy (the same for the tuned network and itself).
//
// Where oneDNN was found, its convolutions and products are timed too, each alone and without what a task fuses with
// it: onednn_layers_ms is their sum over the calls of the network, tuned_layers_ms that of the tuned kernels of the
// same tasks, with all that they fuse, onednn_share what share of the network's operations these layers are, and
// ratio_vs_onednn_layers the first over the second.
//
// With --serve nothing is benchmarked but the network that --benchmark_filter names is tuned, "ready" is written with
// counters of the search, and for every line on standard input the time of one inference in seconds is written as a
// line to standard output: so other programs measure it in turns with theirs (networks_beside_libraries.py,
// networks_beside_tvm.py). That is the time of `run`: inputs are copied in, words looked up, and outputs copied out, as
// libraries do.
//
// Threads that compute keep to a processor each, the calling one included.

#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <iostream>
#include <limits>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "benchmark_program.hpp"
#include "drafted.hpp"
#include "exported_network.hpp"
#include "instruction_sets.hpp"
#include "kept_to_processor.hpp"
#include "known_networks.hpp"
#include "library_layers.hpp"
#include "study/seconds_of.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/core/make_folder.hpp"
#include "tunewright/core/observer.hpp"
#include "tunewright/core/progress.hpp"
#include "tunewright/data/journal.hpp"
#include "tunewright/graph.hpp"
#include "tunewright/multi_task_tuner.hpp"
#include "tunewright/networks/choose_in_network.hpp"
#include "tunewright/networks/compiled_network.hpp"
#include "tunewright/networks/default_schedules.hpp"
#include "tunewright/orc.hpp"
#include "tunewright/schedulers/gradient.hpp"
#include "tunewright/stats/robust.hpp"
#include "tuning_options.hpp"

namespace {

using namespace tunewright;
using study::seconds_of;

constexpr const char* usage = R"(usage: bench_end_to_end [options] [Google Benchmark options]

Tunes whole networks and runs them.

  --journals=DIR    what is measured goes to DIR/<network>.jsonl, and a search goes on from there
  --minutes=N       of searching for each network (15); 0: nothing beyond the journals, which then know every task;
                    without journals a trial a task
  --trials=N        candidates measured for each task, at most (no limit)
  --evict=WHAT      what leaves the caches before each timed call: nothing, constants or everything (constants)
  --candidates=N    schedules of each task, the fastest, of which the fastest inside the network is chosen (8)
  --threads=N       threads of the network (one a core)
  --seed=N          seed of the searches (1)
  --export=DIR      exports each network to DIR/<network> and measures it in turns with the tuned one
  --serve           only the network that --benchmark_filter names, timed once for every line of the standard input
)";

struct Recipe : bench::DraftAndTrees<measurers::OrcJit> {
  static void set_adaptation(adaptations::Refit& refit) { refit.min_growth = 0.1; }
};

struct Options {
  std::string journals;
  std::uint64_t seed = 1;
  double minutes = 15;
  std::size_t trials_per_task = 0;  // 0: no limit
  measurers::Evict evict = measurers::Evict::Constants;
  std::size_t candidates = 8;  // of each task, tried inside the network
  unsigned threads = host_target().threads;
  bool serve = false;
  std::string export_folder;
};

struct Tuned {
  networks::CompiledNetwork network;
  reference::Tensors values;
  RunStatus status;
  std::vector<WeightedTask> tasks;
  networks::InNetworkChoice choice;
  Seconds choosing;
};

/// Observer that refuses a journal without a program that runs of some task.
struct KnowsAllTasks {
  std::string journal;

  void on_start(const RunStatus& status) const {
    if (status.network->without_valid == 0) return;
    throw std::runtime_error("'" + journal + "' has no program that runs for " +
                             std::to_string(status.network->without_valid) + " of " +
                             std::to_string(status.network->tasks) +
                             " tasks; give what it was searched with, such as --threads, or --minutes to search on");
  }
};

Tuned tune(const networks::Network& network, const Options& options) {
  const Target target = host_target().with_threads(options.threads);
  const networks::Partition partition = networks::partition(network, target);
  std::cerr << networks::to_string(partition);
  MultiTaskTuner<Recipe, schedulers::Gradient> tuner{{.seed = options.seed, .threads = target.threads}};
  tuner.measurer.protocol.evict = options.evict;
  Budget budget{.trials = Budget::unlimited, .batch = 16};
  if (options.trials_per_task != 0) budget.trials = options.trials_per_task * partition.tasks.size();
  if (options.minutes > 0)
    budget.time = Seconds(60 * options.minutes);
  else
    budget.trials = partition.tasks.size();  // what a journal has, or a trial a task
  const auto run = [&] {
    if (options.journals.empty()) return tuner.run(partition.tasks, budget, Progress{});
    const std::string path = options.journals + "/" + network.name + ".jsonl";
    const bool only_recalls = options.minutes == 0;
    if (only_recalls && !std::filesystem::exists(path))
      throw std::runtime_error("there is no '" + path +
                               "' to take a network from; name its folder by --journals=DIR, or give --minutes to "
                               "search");
    make_folder(options.journals);
    data::Journal journal{{.path = path, .many_tasks = true}};
    if (only_recalls) return tuner.run(partition.tasks, budget, journal, KnowsAllTasks{path}, Progress{});
    return tuner.run(partition.tasks, budget, journal, Progress{});
  }();
  std::vector<std::vector<schedule::Schedule>> candidates;
  for (const auto& task : run.tasks) {
    candidates.push_back(task.history.fastest_checked(options.candidates));
    if (candidates.back().empty()) candidates.back().push_back(networks::default_schedule(task.task.task));
  }
  const reference::Tensors values = networks::random_values(network, Rng(1));
  const networks::CompiledNetworkOptions compiling{.compile_threads = target.threads, .processors = host_processors()};
  networks::InNetworkChoice choice;
  const double choosing = seconds_of([&] {
    const bench::KeptToProcessor kept(host_processors().front());
    choice = networks::choose_in_network(network, partition, candidates, values, {.network = compiling});
  });
  networks::CompiledNetwork compiled(network, partition, choice.schedules, values, compiling);
  compiled.set_inputs(values);
  return {std::move(compiled), values, run.status, partition.tasks, std::move(choice), Seconds(choosing)};
}

/// oneDNN's convolutions and products beside the kernels of the tasks that they belong to, one right after the other.
void add_onednn_layers(benchmark::State& state, const Tuned& tuned) {
  const std::vector<bench::LibraryLayer> layers = bench::onednn_layers(tuned.tasks);
  if (layers.empty()) return;
  measurers::OrcJit measurer;
  const auto seconds_of_kernel = [&](const Task& task, const codegen::Kernel& kernel) {
    return bench::timing_of(measurer.measure_interleaved(task, std::span(&kernel, 1)).front()).median.count();
  };
  double onednn_s = 0, tuned_s = 0, covered = 0;
  for (const bench::LibraryLayer& layer : layers) {
    const WeightedTask& weighted = tuned.tasks[layer.task];
    onednn_s += weighted.weight * seconds_of_kernel(layer.alone, layer.kernel);
    const codegen::Kernel ours =
        measurer.compile_kernel(weighted.task, loops::lower(tuned.choice.schedules[layer.task]));
    tuned_s += weighted.weight * seconds_of_kernel(weighted.task, ours);
    covered += weighted.weight * layer.alone.flops;
  }
  state.counters["onednn_layers_ms"] = 1e3 * onednn_s;
  state.counters["tuned_layers_ms"] = 1e3 * tuned_s;
  state.counters["onednn_share"] = covered / tuned.status.network->flops;
  state.counters["ratio_vs_onednn_layers"] = onednn_s / tuned_s;
}

/// The exported network in turns with the tuned one, whose helpers keep to `processors` too.
void add_exported(benchmark::State& state, Tuned& tuned, std::span<const int> processors, const std::string& folder) {
  const bench::ExportedNetworkLibrary exported(tuned.network, tuned.values, processors, folder);
  // The first call wakes the threads of a team.
  const auto tuned_s = [&] { return tuned.network.execute(), seconds_of([&] { tuned.network.execute(); }); };
  const auto exported_s = [&] { return exported.run(), seconds_of([&] { exported.run(); }); };
  std::vector<double> seconds, ratios, of_copy;
  for (int turn = 0; turn < 21; ++turn) {
    const double before = tuned_s();
    seconds.push_back(exported_s());
    const double after = tuned_s();
    ratios.push_back((before + after) / 2 / seconds.back());
    of_copy.push_back(before / after);
  }
  state.counters["exported_ms"] = 1e3 * stats::median(seconds);
  state.counters["ratio_exported_vs_tuned"] = stats::median(ratios);
  state.counters["ratio_of_copy"] = stats::median(of_copy);
}

void tune_and_run(benchmark::State& state, const bench::KnownNetwork& model, const Options& options) {
  try {
    const networks::Network network = model.build();
    Tuned tuned = tune(network, options);
    add_onednn_layers(state, tuned);                        // whose threads may use all processors
    const std::vector<int> processors = host_processors();  // which is one alone once the caller keeps to it
    const bench::KeptToProcessor kept(processors.front());
    std::vector<double> seconds;
    double total = 0;
    for (auto _ : state) {
      const auto inference = [&] { tuned.network.execute(); };
      inference();  // warms caches up
      while (seconds.size() < 30 && (total < 10 || seconds.size() < 3)) {
        seconds.push_back(seconds_of(inference));
        total += seconds.back();
      }
      state.SetIterationTime(stats::median(seconds));
    }
    const NetworkStatus& found = *tuned.status.network;
    state.counters["latency_ms"] = 1e3 * stats::median(seconds);
    state.counters["sum_of_tasks_ms"] = 1e3 * found.latency.count();
    state.counters["gflops"] = found.flops / stats::median(seconds) * 1e-9;
    state.counters["tuning_seconds"] = (tuned.status.elapsed + tuned.choosing).count();
    state.counters["choosing_seconds"] = tuned.choosing.count();
    state.counters["gain_in_network"] = tuned.choice.gain;
    state.counters["recalled"] = static_cast<double>(tuned.status.recalled);
    state.counters["trials"] = static_cast<double>(tuned.status.trials);
    state.counters["failed"] = static_cast<double>(tuned.status.failed());
    state.counters["tasks"] = static_cast<double>(found.tasks);
    if (!options.export_folder.empty())
      add_exported(state, tuned, processors, options.export_folder + "/" + network.name);
  } catch (const std::exception& error) {
    state.SkipWithError(error.what());
  }
}

void serve(const std::string& name, const Options& options) {
  if (name.empty()) throw std::invalid_argument("--serve needs the name of a network, --benchmark_filter=resnet50");
  Tuned tuned = tune(bench::known_network(name), options);
  const bench::KeptToProcessor kept(host_processors().front());
  std::cout << "ready trials=" << tuned.status.trials << " failed=" << tuned.status.failed()
            << " seconds=" << (tuned.status.elapsed + tuned.choosing).count()
            << " tasks=" << tuned.status.network->tasks << " gain_in_network=" << tuned.choice.gain << std::endl;
  for (std::string line; std::getline(std::cin, line);)
    std::cout << seconds_of([&] { static_cast<void>(tuned.network.run(tuned.values)); }) << std::endl;
}

measurers::Evict parse_evict(const std::string& text) {
  if (text == "nothing") return measurers::Evict::Nothing;
  if (text == "constants") return measurers::Evict::Constants;
  if (text == "everything") return measurers::Evict::Everything;
  throw std::invalid_argument("'" + text + "' was given for evict; give nothing, constants or everything");
}

Options take_options(int& argc, char** argv, std::string& filter) {
  Options options;
  int kept = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const auto value = [&](const char* option) -> std::optional<std::string> {
      if (!argument.starts_with(option)) return std::nullopt;
      return argument.substr(std::string(option).size());
    };
    if (const auto text = value("--benchmark_filter=")) filter = *text;
    if (const auto folder = value("--journals="))
      options.journals = *folder;
    else if (const auto minutes = value("--minutes="))
      options.minutes = static_cast<double>(bench::parse_number(*minutes, "minutes", 0, 10000));
    else if (const auto threads = value("--threads="))
      options.threads = static_cast<unsigned>(bench::parse_number(*threads, "threads", 1, 1024));
    else if (const auto trials = value("--trials="))
      options.trials_per_task = bench::parse_trials(*trials);
    else if (const auto evicted = value("--evict="))
      options.evict = parse_evict(*evicted);
    else if (const auto seed = value("--seed="))
      options.seed = bench::parse_number(*seed, "seed", 0, std::numeric_limits<std::uint64_t>::max());
    else if (const auto candidates = value("--candidates="))
      options.candidates = static_cast<std::size_t>(bench::parse_number(*candidates, "candidates", 1, 1024));
    else if (const auto exported = value("--export="))
      options.export_folder = *exported;
    else if (argument == "--serve")
      options.serve = true;
    else
      argv[kept++] = argv[i];
  }
  argc = kept;
  bench::check_cores(options.threads, host_target());
  return options;
}

}  // namespace

int main(int argc, char** argv) try {
  std::vector<char*> arguments(argv, argv + argc);
  arguments.push_back(nullptr);
  bench::answer_help(argc, argv, usage);
  std::string filter;
  const Options options = take_options(argc, argv, filter);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  if (options.serve) {
    serve(filter, options);
    return 0;
  }
  bench::restart_with(bench::library_environment(bench::InstructionSet::Native, options.threads, bench::host_vendor()),
                      arguments.data());
  for (const bench::KnownNetwork& model : bench::known_networks()) {
    bench::register_once(model.name,
                         [model, options](benchmark::State& state) { tune_and_run(state, model, options); });
  }
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
} catch (const std::exception& error) {
  std::cerr << "bench_end_to_end: " << error.what() << '\n';
  return 1;
}
