// SPDX-License-Identifier: Apache-2.0
// In what fraction of the trials does a scheduler bring a network to the latency with which round-robin ends?
//
//   study_schedulers [--machine=real|cores] [--networks=A,B] [--schedulers=A,B] [--trials=N] [--batch=N] [--seeds=N]
//                    [--growth_percent=N]
//
// On this machine's CPU (real), the tasks of whole networks with all that is fused to them are searched by
// `recipes::DraftAndTrees`; the networks are those that `bench_end_to_end` measures unless others are given. On two
// simulated cores, the layers of seven networks are searched by `recipes::AnsorQuick`, candidates bred from 128. Trees
// are trained anew whenever data grew by `--growth_percent` (0: after every round).
//
// Each task has `--trials` (48) in rounds of `--batch` (8). Round-robin takes all trials; another scheduler stops as
// soon as the sum of occurrences times best latency is no more than with what round-robin ended, at the latest after
// twice its trials. Fractions are those of trials, 2 where the latency was not reached. OUT keeps finished searches.
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
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "../known_networks.hpp"
#include "chosen_machine.hpp"
#include "network_layers.hpp"
#include "task_results.hpp"
#include "trials_to_match.hpp"
#include "tunewright/measurers/orc.hpp"
#include "tunewright/measurers/simulated.hpp"
#include "tunewright/multi_task_tuner.hpp"
#include "tunewright/networks/partition.hpp"
#include "tunewright/recipes/ansor.hpp"
#include "tunewright/recipes/draft_and_trees.hpp"
#include "tunewright/schedulers/bandit.hpp"
#include "tunewright/schedulers/flops_first.hpp"
#include "tunewright/schedulers/gradient.hpp"
#include "tunewright/schedulers/round_robin.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"
#include "tunewright/study/intervals.hpp"
#include "tunewright/study/study.hpp"

namespace {

using namespace tunewright;
using study::Ended;
using study::NetworkLayers;

using Space = spaces::MultiLevelTiling;

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
  std::size_t trials_per_task = 0, batch = 0, growth_percent = 0;
  unsigned threads = 1;
};

struct SearchedNetwork {
  std::string name;
  std::vector<WeightedTask> tasks;
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

template <class Recipe>
Parts<Recipe> parts_of(std::uint64_t seed, const Settings& settings) {
  Parts<Recipe> parts{.seed = seed, .threads = settings.threads};
  parts.adaptation.min_growth = static_cast<double>(settings.growth_percent) / 100;
  if constexpr (study::HasOwnClock<typename Recipe::measurer>) {
    parts.explorer.population = 128;
    parts.clock = parts.measurer.clock;
  }
  return parts;
}

template <class Recipe, class Scheduler>
Ended search(const SearchedNetwork& network, std::uint64_t seed, const Settings& settings, std::size_t trials,
             double goal_s) {
  MultiTaskTuner<Recipe, Scheduler> tuner{parts_of<Recipe>(seed, settings)};
  Goal goal{goal_s};
  const auto run = tuner.run(network.tasks, {.trials = trials, .batch = settings.batch}, goal, study::StopsOnRequest{});
  if (run.stop == Stop::Requested && !goal.should_stop()) throw study::Stopped();
  return {run.status.trials, run.end_to_end().value_or(Seconds(std::numeric_limits<double>::infinity())).count()};
}

/// Searches of networks by a recipe, each with the search by round-robin that it is compared with.
template <class Recipe>
class Schedulers {
 public:
  Schedulers(std::vector<SearchedNetwork> networks, Settings settings, study::Options options)
      : networks_(std::move(networks)), settings_(settings), options_(std::move(options)) {
    static_cast<void>(study::finished_runs(options_));  // nothing is printed of a folder that is refused
  }

  [[nodiscard]] const std::vector<SearchedNetwork>& networks() const { return networks_; }

  template <class Scheduler>
  void add(const std::string& scheduler, const SearchedNetwork& network, std::uint64_t seed) {
    names_.insert(scheduler);
    study::add_of_tasks(options_, scheduler, network.name, seed, [this, scheduler, &network, seed](benchmark::State&) {
      const std::size_t trials = settings_.trials_per_task * network.tasks.size();
      const Ended& reference = round_robin(network, seed, trials);
      const Ended ended = search<Recipe, Scheduler>(network, seed, settings_, 2 * trials, reference.latency_s);
      const bool reached = ended.latency_s <= reference.latency_s;
      const double fraction = study::share_of_trials(ended, reference, trials);
      std::fprintf(stderr, "%s %s seed %llu: %.3f of %zu trials%s, %.4g ms\n", scheduler.c_str(), network.name.c_str(),
                   static_cast<unsigned long long>(seed), fraction, trials, reached ? "" : ", not reached",
                   1e3 * reference.latency_s);
      return study::TaskCounters{{"fraction", {{network.name, fraction}}},
                                 {"reached", {{network.name, reached ? 1.0 : 0.0}}},
                                 {"round_robin_ms", {{network.name, 1e3 * reference.latency_s}}}};
    });
  }

  /// Geometric means over networks and seeds, with intervals at 95 % over both, of all finished runs by these options.
  void print() const {
    std::map<std::string, std::map<std::string, std::map<std::uint64_t, double>>>
        fractions;  // scheduler, network, seed
    for (const study::FinishedRun& run : study::finished_runs(options_).all()) {
      if (names_.contains(run.subject) && run.conditions == study::conditions_of(options_))
        fractions[run.subject][run.data][run.seed] = run.counters.at("fraction").at(run.data);
    }
    for (const auto& [scheduler, of_network] : fractions) {
      std::vector<std::vector<double>> ratios;
      for (const auto& [network, of_seed] : of_network) {
        std::vector<double>& seeds = ratios.emplace_back();
        for (const auto& [seed, fraction] : of_seed) seeds.push_back(fraction);
      }
      if (ratios.size() < 2 && ratios.front().size() < 3) continue;
      const study::Interval all = study::geometric_mean_over_tasks(ratios, Rng(0));
      std::printf("%s reaches what round-robin ends with in %.3f [%.3f, %.3f] of its trials\n", scheduler.c_str(),
                  all.value, all.low, all.high);
    }
  }

 private:
  const Ended& round_robin(const SearchedNetwork& network, std::uint64_t seed, std::size_t trials) {
    const std::pair key(network.name, seed);
    if (const auto known = round_robin_.find(key); known != round_robin_.end()) return known->second;
    return round_robin_[key] = search<Recipe, schedulers::RoundRobin>(network, seed, settings_, trials, 0);
  }

  std::vector<SearchedNetwork> networks_;
  Settings settings_;
  study::Options options_;
  std::set<std::string> names_;  ///< of the schedulers that are searched
  std::map<std::pair<std::string, std::uint64_t>, Ended> round_robin_;
};

std::vector<SearchedNetwork> networks_on(const Target& target, const measurers::OrcJit&, const std::string& chosen) {
  std::vector<SearchedNetwork> all;
  for (const std::string& name :
       study::command_line::names(chosen.empty() ? std::string("resnet50,mobilenet_v2,bert_base,gpt2_decode") : chosen))
    all.push_back({name, networks::partition(bench::known_network(name), target).tasks});
  return all;
}

std::vector<SearchedNetwork> networks_on(const Target& target, const measurers::Simulated&, const std::string& chosen) {
  std::vector<SearchedNetwork> all;
  const std::vector<std::string> names = study::command_line::names(chosen);
  for (const NetworkLayers& network : study::networks(target)) {
    if (names.empty() || std::find(names.begin(), names.end(), network.name()) != names.end())
      all.push_back({network.name(), network.tasks()});
  }
  if (all.size() < names.size()) throw std::invalid_argument("--networks=" + chosen + " names one that is not known");
  return all;
}

template <class Recipe>
void add_searches(Schedulers<Recipe>& schedulers, const study::Options& options) {
  const std::vector<std::string> chosen = study::command_line::names(options.text("schedulers"));
  std::set<std::string> known;
  for (const std::uint64_t seed : options.all_seeds()) {
    for (const SearchedNetwork& network : schedulers.networks()) {
      const auto add = [&]<class Scheduler>(std::type_identity<Scheduler>, const std::string& name) {
        known.insert(name);
        if (chosen.empty() || std::find(chosen.begin(), chosen.end(), name) != chosen.end())
          schedulers.template add<Scheduler>(name, network, seed);
      };
      add(std::type_identity<schedulers::Gradient>(), "Gradient");
      add(std::type_identity<GradientOfGroups>(), "GradientOfGroups");
      add(std::type_identity<schedulers::Bandit>(), "Bandit");
      add(std::type_identity<schedulers::FlopsFirst>(), "FlopsFirst");
    }
  }
  for (const std::string& name : chosen) {
    if (known.contains(name)) continue;
    std::string all;
    for (const std::string& one : known) all += (all.empty() ? "" : ", ") + one;
    throw std::invalid_argument("--schedulers: there is no '" + name + "'; give some of " + all);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::optional<Schedulers<recipes::DraftAndTrees<Space, measurers::OrcJit>>> real;
  std::optional<Schedulers<recipes::AnsorQuick<Space, measurers::Simulated>>> simulated;
  const int status =
      study::run(argc, argv,
                 {.name = "schedulers",
                  .seeds = 5,
                  .options = {"machine=real", "networks=", "schedulers=", "trials=48", "batch=8", "growth_percent=0"},
                  .choosing = {"networks", "schedulers"},
                  .unread = {"tasks"}},
                 [&](study::Study& study) {
                   const study::Options& options = study.options();
                   const Settings settings{.trials_per_task = options.number("trials"),
                                           .batch = options.number("batch"),
                                           .growth_percent = options.number("growth_percent"),
                                           .threads = options.threads_or(std::thread::hardware_concurrency())};
                   bench::with_chosen_machine(options, [&](const Target& target, const auto& measurer) {
                     std::vector<SearchedNetwork> networks = networks_on(target, measurer, options.text("networks"));
                     const study::Options own = study::depending_on(options, "target", stable_hash(target));
                     if constexpr (study::HasOwnClock<std::remove_cvref_t<decltype(measurer)>>)
                       add_searches(simulated.emplace(std::move(networks), settings, own), own);
                     else
                       add_searches(real.emplace(std::move(networks), settings, own), own);
                   });
                 });
  if (real) real->print();
  if (simulated) simulated->print();
  return status;
}
