// SPDX-License-Identifier: Apache-2.0
// In what fraction of the trials does a scheduler bring a network to the latency with which round-robin ends?
//
//   study_schedulers [--trials=N] [--batch=N] [--population=N] [--growth_percent=N] [--seeds=N] [--networks=N]
//
// The layers of seven networks are searched on two simulated cores by `recipes::AnsorQuick`, `--trials` (48) a task in
// rounds of `--batch` (8), candidates bred from `--population` (128), trees trained anew whenever data grew by
// `--growth_percent` (0: after every round). Round-robin takes all trials; another scheduler stops as soon as the sum
// of occurrences times best latency is no more than with what round-robin ended, at the latest after twice its trials.
// Fractions are those of trials, 2 where the latency was not reached. Of the networks the first `--networks` are
// searched.
//
// No option of a scheduler was chosen on these networks: all are those of the papers.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../two_cores.hpp"
#include "network_layers.hpp"
#include "tunewright/measurers/simulated.hpp"
#include "tunewright/multi_task_tuner.hpp"
#include "tunewright/recipes/ansor.hpp"
#include "tunewright/schedulers/bandit.hpp"
#include "tunewright/schedulers/flops_first.hpp"
#include "tunewright/schedulers/gradient.hpp"
#include "tunewright/schedulers/round_robin.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"
#include "tunewright/study/intervals.hpp"
#include "tunewright/study/study.hpp"

namespace {

using namespace tunewright;
using study::NetworkLayers;

using Ansor = recipes::AnsorQuick<spaces::MultiLevelTiling, measurers::Simulated>;

/// `Gradient` that takes tasks of one kind of layer and kernel and about one size to be alike.
struct GradientOfGroups : schedulers::Gradient {
  GradientOfGroups() {
    similarity = [](const Task& task) {
      const std::size_t kind = task.name.find('_');
      return task.name.substr(0, task.name.starts_with("conv") ? task.name.find('_', kind + 1) : kind);
    };
  }
};

struct Settings {
  std::size_t trials_per_task = 48, batch = 8, population = 128, growth_percent = 0;
};

/// Stops a run when its network is fast enough.
struct Goal {
  double latency_s = 0;
  double now_s = std::numeric_limits<double>::infinity();
  void on_round(const RunStatus& status) {
    if (const auto latency = status.network->end_to_end()) now_s = latency->count();
  }
  [[nodiscard]] bool should_stop() const { return now_s <= latency_s; }
};

struct Ended {
  std::size_t trials = 0;
  double latency_s = 0;
};

template <class Scheduler>
Ended search(const NetworkLayers& network, std::uint64_t seed, const Settings& settings, std::size_t trials,
             double goal_s) {
  Parts<Ansor> parts{.seed = seed};
  parts.explorer.population = settings.population;
  parts.adaptation.min_growth = static_cast<double>(settings.growth_percent) / 100;
  parts.clock = parts.measurer.clock;
  MultiTaskTuner<Ansor, Scheduler> tuner{std::move(parts)};
  Goal goal{goal_s};
  const auto run = tuner.run(network.tasks(), {.trials = trials, .batch = settings.batch}, goal);
  return {run.status.trials, run.end_to_end().value_or(Seconds(std::numeric_limits<double>::infinity())).count()};
}

/// Fractions of a scheduler: [network][seed].
using Fractions = std::map<std::string, std::vector<double>>;

class Schedulers {
 public:
  Schedulers(std::vector<NetworkLayers> networks, Settings settings)
      : networks_(std::move(networks)), settings_(settings) {}

  template <class Scheduler>
  void add(const std::string& scheduler, std::size_t network, std::uint64_t seed) {
    const NetworkLayers& layers = networks_[network];
    study::add(scheduler, layers.name(), seed, [this, scheduler, &layers, seed](benchmark::State& state) {
      const std::size_t trials = settings_.trials_per_task * layers.tasks().size();
      const Ended& reference = round_robin(layers, seed, trials);
      const Ended ended = search<Scheduler>(layers, seed, settings_, 2 * trials, reference.latency_s);
      const bool reached = ended.latency_s <= reference.latency_s;
      const double fraction = static_cast<double>(ended.trials) / static_cast<double>(trials);
      fractions_[scheduler][layers.name()].push_back(fraction);
      state.counters["fraction"] = fraction;
      state.counters["reached"] = reached ? 1 : 0;
      state.counters["round_robin_ms"] = 1e3 * reference.latency_s;
      std::fprintf(stderr, "%s %s seed %llu: %.3f of %zu trials%s, %.4g ms\n", scheduler.c_str(), layers.name().c_str(),
                   static_cast<unsigned long long>(seed), fraction, trials, reached ? "" : ", not reached",
                   1e3 * reference.latency_s);
    });
  }

  /// Geometric means over networks and seeds, with intervals at 95 % over both.
  void print() const {
    for (const auto& [scheduler, of_network] : fractions_) {
      std::vector<std::vector<double>> ratios;
      for (const auto& [network, of_seed] : of_network) ratios.push_back(of_seed);
      if (ratios.size() < 2 && ratios.front().size() < 3) continue;
      const study::Interval all = study::geometric_mean_over_tasks(ratios, Rng(0));
      std::printf("%s reaches what round-robin ends with in %.3f [%.3f, %.3f] of its trials\n", scheduler.c_str(),
                  all.value, all.low, all.high);
    }
  }

 private:
  const Ended& round_robin(const NetworkLayers& layers, std::uint64_t seed, std::size_t trials) {
    const auto [known, is_new] = round_robin_.try_emplace({layers.name(), seed});
    if (is_new) known->second = search<schedulers::RoundRobin>(layers, seed, settings_, trials, 0);
    return known->second;
  }

  std::vector<NetworkLayers> networks_;
  Settings settings_;
  std::map<std::pair<std::string, std::uint64_t>, Ended> round_robin_;
  std::map<std::string, Fractions> fractions_;
};

}  // namespace

int main(int argc, char** argv) {
  std::optional<Schedulers> schedulers;
  const int status = study::run(argc, argv, {.name = "schedulers", .seeds = 5}, [&](study::Study& study) {
    const study::Options& options = study.options();
    Settings settings;
    settings.trials_per_task = options.number("trials", settings.trials_per_task);
    settings.batch = options.number("batch", settings.batch);
    settings.population = options.number("population", settings.population);
    settings.growth_percent = options.number("growth_percent", settings.growth_percent);
    std::vector<NetworkLayers> networks = study::networks(bench::two_cores());
    const std::size_t count = std::min(options.number("networks", networks.size()), networks.size());
    schedulers.emplace(std::move(networks), settings);
    for (unsigned seed = options.first_seed; seed < options.first_seed + options.seeds; ++seed) {
      for (std::size_t network = 0; network < count; ++network) {
        schedulers->add<schedulers::Gradient>("Gradient", network, seed);
        schedulers->add<GradientOfGroups>("GradientOfGroups", network, seed);
        schedulers->add<schedulers::Bandit>("Bandit", network, seed);
        schedulers->add<schedulers::FlopsFirst>("FlopsFirst", network, seed);
      }
    }
  });
  if (schedulers) schedulers->print();
  return status;
}
