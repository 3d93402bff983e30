// SPDX-License-Identifier: Apache-2.0
// What do the schedules of another network make of one, without a search? (Transfer-Tuning, PACT 2022)
//
//   study_transfer_tuning [--machine=real|cores] [--networks=A,B] [--trials=N] [--batch=N] [--seeds=N]
//                         [--threads=N] [--out=DIR]
//
// Each of six networks, or of those that --networks names, is searched by `recipes::AnsorQuick` under
// `schedulers::Gradient` with `--trials` (64) a task in rounds of `--batch` (16). Then each takes the fastest schedule
// of every task of another network, which `data::ScheduleStore::promise` chooses among the rest, measures those of its
// tasks' classes once and keeps the fastest. On this machine's CPU, or on two simulated cores, where seconds are those
// of the simulated machine. Untuned are `networks::default_schedules`, which classes keep that the other network lacks.
//
// Counters: untuned_ms, transferred_ms and searched_ms, sums over tasks of occurrences times latency, all schedules of
// a task measured once more in turns; from, the place of the other network in the list, from 1; speedup and
// searched_speedup over untuned; share (transferred speed-up of the searched one); measured (schedules) and seconds of
// the transfer; search_seconds; matched, 1 where the search got to what the transfer found; seconds_to_match, how long
// it took to that, and all of its seconds where it did not get there: the mean of these over the mean of `matched` is
// the expected running time of the search. All of it is kept in --out: a finished run is not made again, nor is the
// search of a network whose curve is there. Results on another target, such as fewer cores, are others.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../known_networks.hpp"
#include "chosen_machine.hpp"
#include "clock_of.hpp"
#include "search_curve.hpp"
#include "task_results.hpp"
#include "tunewright/core/clock.hpp"
#include "tunewright/core/hash.hpp"
#include "tunewright/core/make_folder.hpp"
#include "tunewright/core/progress.hpp"
#include "tunewright/data/journal.hpp"
#include "tunewright/data/schedule_store.hpp"
#include "tunewright/multi_task_tuner.hpp"
#include "tunewright/networks/default_schedules.hpp"
#include "tunewright/recipes/ansor.hpp"
#include "tunewright/recipes/transfer_tuning.hpp"
#include "tunewright/schedulers/gradient.hpp"
#include "tunewright/schedulers/round_robin.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"
#include "tunewright/study/intervals.hpp"
#include "tunewright/study/study.hpp"

namespace {

using namespace tunewright;
using Schedules = std::vector<schedule::Schedule>;  // [tasks]

struct Settings {
  std::filesystem::path out;
  Target target;
  std::size_t trials = 0, batch = 0;  // a task, a round
};

template <class Measurer>
class TransferStudy {
 public:
  TransferStudy(Settings settings, std::vector<std::string> networks, Measurer measurer, study::Options options)
      : settings_(std::move(settings)),
        networks_(std::move(networks)),
        measurer_(std::move(measurer)),
        options_(study::depending_on(std::move(options), "target", stable_hash(settings_.target))) {
    // Which networks there are to take from is a condition of what is found, and of no search.
    search_conditions_ = StableHash{}.add(std::string_view(study::conditions_of(options_))).value();
    std::string& among = options_.others["among"];
    for (const std::string& network : networks_) among += (among.empty() ? "" : ",") + network;
  }

  void add(const std::string& network, std::uint64_t seed) {
    study::add_of_tasks(options_, subject, network, seed, [this, network, seed](benchmark::State&) {
      for (const std::string& each : networks_) search(each, seed);
      study::TaskCounters counters;
      for (const auto& [name, value] : compare(network, seed)) counters[name][network] = value;
      return counters;
    });
  }

  /// The geometric mean over networks and seeds of all finished runs by these options.
  void print() const {
    std::map<std::string, std::map<std::uint64_t, double>> of_network;
    for (const study::FinishedRun& run : study::finished_runs(options_).all()) {
      if (run.subject == subject && run.conditions == study::conditions_of(options_))
        of_network[run.data][run.seed] = run.counters.at("share").at(run.data);
    }
    std::vector<std::vector<double>> shares;
    for (const auto& [network, of_seed] : of_network) {
      std::vector<double>& seeds = shares.emplace_back();
      for (const auto& [seed, share] : of_seed) seeds.push_back(share);
    }
    if (shares.size() < 2) return;
    const study::Interval share = study::geometric_mean_over_tasks(shares, Rng(0));
    std::printf("transferred schedules give %.3f [%.3f, %.3f] of the speed-up of the search\n", share.value, share.low,
                share.high);
  }

 private:
  using Space = spaces::MultiLevelTiling;
  using Ansor = recipes::AnsorQuick<Space, Measurer>;
  using Transfer = recipes::TransferTuning<Space, Measurer>;
  static constexpr const char* subject = "TransferTuning";

  /// Searches under other conditions have other files.
  [[nodiscard]] std::filesystem::path file(const std::string& network, std::uint64_t seed, const char* ending) const {
    return settings_.out / (network + "." + std::to_string(seed) + "." + std::to_string(search_conditions_) + ending);
  }
  [[nodiscard]] std::vector<WeightedTask> tasks_of(const std::string& network) const {
    return networks::partition(bench::known_network(network), settings_.target).tasks;
  }

  template <class Recipe>
  Parts<Recipe> parts(std::uint64_t seed) const {
    Parts<Recipe> parts{.measurer = measurer_, .seed = seed, .threads = settings_.target.threads};
    parts.clock = bench::clock_of(measurer_);
    return parts;
  }

  /// Leaves a journal and a curve behind, unless they are there.
  void search(const std::string& network, std::uint64_t seed) {
    const std::filesystem::path curve_file = file(network, seed, ".curve");
    if (std::filesystem::exists(curve_file)) return;
    const std::filesystem::path journal_file = file(network, seed, ".jsonl");
    std::filesystem::remove(journal_file);  // a search that was stopped has no curve
    const std::vector<WeightedTask> tasks = tasks_of(network);
    data::Journal journal{{.path = journal_file.string(), .many_tasks = true}};
    MultiTaskTuner<Ansor, schedulers::Gradient> tuner{parts<Ansor>(seed)};
    study::SearchCurve curve;
    const auto run = tuner.run(tasks, {.trials = settings_.trials * tasks.size(), .batch = settings_.batch}, journal,
                               curve, Progress{}, study::StopsOnRequest{});
    if (run.stop == Stop::Requested) throw study::Stopped();
    curve.save(curve_file);
  }

  /// Latencies of schedules of one task, measured in turns where the measurer can; infinite for one that fails.
  std::vector<double> latencies(const Task& task, const Schedules& schedules) {
    const Space space;
    std::vector<loops::LoopNest> programs;
    for (const schedule::Schedule& one : schedules) programs.push_back(space.lower(task, one));
    std::vector<double> seconds;
    const auto measured = [&] {
      if constexpr (ConfirmingMeasurerFor<Measurer, loops::LoopNest>)
        return measurer_.confirm(task, std::span<const loops::LoopNest>(programs));
      else
        return measurer_.measure(task, std::span<const loops::LoopNest>(programs));
    }();
    for (const Outcome& outcome : measured) seconds.push_back(cost_s(outcome));
    return seconds;
  }

  data::ScheduleStore store(const std::string& network, std::uint64_t seed, std::size_t per_task = 1) const {
    data::ScheduleStore fastest(per_task);
    fastest.add({file(network, seed, ".jsonl").string()});
    return fastest;
  }

  /// The counters of a transfer to `network`.
  std::map<std::string, double> compare(const std::string& network, std::uint64_t seed) {
    const std::vector<WeightedTask> tasks = tasks_of(network);
    const Clock clock = bench::clock_of(measurer_);  // that of the searches
    const Seconds begin = clock();
    const Schedules untuned = networks::default_schedules(tasks);
    std::vector<Seconds> untuned_s;  // [tasks]
    for (std::size_t t = 0; t < tasks.size(); ++t)
      untuned_s.emplace_back(latencies(tasks[t].task, {untuned[t]}).front());

    std::string chosen;
    double promise = -1;
    for (const std::string& other : networks_) {
      if (other == network) continue;
      if (const double of_other = store(other, seed).promise(tasks, untuned_s); of_other > promise) {
        promise = of_other;
        chosen = other;
      }
    }
    const data::ScheduleStore donor = store(chosen, seed);

    Parts<Transfer> given = parts<Transfer>(seed);
    given.starts = [&](const Space& space, const Task& task) {
      Schedules schedules = donor.candidates(space, task, std::numeric_limits<std::size_t>::max(), 1).schedules;
      schedules.push_back(networks::default_schedule(task));
      return schedules;
    };
    MultiTaskTuner<Transfer, schedulers::RoundRobin> tuner{std::move(given)};
    const auto run =
        tuner.run(tasks, {.trials = Budget::unlimited, .batch = settings_.batch}, Progress{}, study::StopsOnRequest{});
    if (run.stop == Stop::Requested) throw study::Stopped();
    // Choosing the other network is part of it: its promise weighs what is untuned.
    const Seconds elapsed = clock() - begin;

    const data::ScheduleStore searched = store(network, seed);
    const Space space;
    double sum_untuned = 0, sum_transferred = 0, sum_searched = 0;
    for (std::size_t t = 0; t < tasks.size(); ++t) {
      const auto* best = run.tasks[t].best();
      const Schedules own = searched.candidates(space, tasks[t].task, 1).schedules;
      if (best == nullptr || own.empty())
        throw std::runtime_error("task '" + tasks[t].task.name + "' of " + network + " has no valid program");
      const std::vector<double> seconds =
          latencies(tasks[t].task, {untuned[t], best->candidate.config, own.front()});  // [3]
      sum_untuned += tasks[t].weight * seconds[0];
      sum_transferred += tasks[t].weight * seconds[1];
      sum_searched += tasks[t].weight * seconds[2];
    }
    const study::SearchCurve curve(file(network, seed, ".curve"));
    const study::SearchCurve::Spent match = curve.spent_on(run.end_to_end().value_or(Seconds(0)).count());
    const auto from = std::find(networks_.begin(), networks_.end(), chosen) - networks_.begin();
    std::fprintf(
        stderr,
        "%s from %s, seed %llu: untuned %.4g ms, transferred %.4g ms (%zu schedules, %.3g s), searched %.4g ms "
        "(%.3g s, %s what was transferred in %.3g s)\n",
        network.c_str(), chosen.c_str(), static_cast<unsigned long long>(seed), 1e3 * sum_untuned,
        1e3 * sum_transferred, run.status.trials, elapsed.count(), 1e3 * sum_searched, curve.elapsed_s(),
        match.reached ? "reaches" : "does not reach", match.seconds);
    const std::map<std::string, double> counters{{"from", static_cast<double>(from + 1)},
                                                 {"untuned_ms", 1e3 * sum_untuned},
                                                 {"transferred_ms", 1e3 * sum_transferred},
                                                 {"searched_ms", 1e3 * sum_searched},
                                                 {"speedup", sum_untuned / sum_transferred},
                                                 {"searched_speedup", sum_untuned / sum_searched},
                                                 {"share", sum_searched / sum_transferred},
                                                 {"measured", static_cast<double>(run.status.trials)},
                                                 {"seconds", elapsed.count()},
                                                 {"search_seconds", curve.elapsed_s()},
                                                 {"seconds_to_match", match.seconds},
                                                 {"matched", match.reached ? 1.0 : 0.0}};
    for (const auto& [name, value] : counters)
      if (!std::isfinite(value)) throw std::runtime_error("a program chosen for " + network + " does not run: " + name);
    return counters;
  }

  Settings settings_;
  std::vector<std::string> networks_;
  Measurer measurer_;
  study::Options options_;
  std::uint64_t search_conditions_ = 0;  // a hash
};

}  // namespace

int main(int argc, char** argv) {
  std::function<void()> print;
  const int status = study::run(
      argc, argv,
      {.name = "transfer_tuning",
       .seeds = 1,
       .options = {"machine=real", "networks=resnet18,resnet50,mobilenet_v2,squeezenet1_1,vgg16,bert_base", "trials=64",
                   "batch=16"},
       .choosing = {"networks"},
       .unread = {"tasks"}},
      [&](study::Study& study) {
        const study::Options& options = study.options();
        make_folder(options.out, "name one that you may write, by --out=DIR");
        const std::vector<std::string> networks = study::command_line::names(options.text("networks"));
        if (networks.size() < 2)
          throw std::invalid_argument("--networks=" + options.text("networks") +
                                      ": give two at least, one to take from");
        for (const std::string& name : networks) (void)bench::known_network(name);
        bench::with_chosen_machine(options, [&]<class Measurer>(const Target& target, const Measurer& measurer) {
          const Settings settings{.out = options.out,
                                  .target = target.with_threads(options.threads_or(target.threads)),
                                  .trials = options.number("trials"),
                                  .batch = options.number("batch")};
          const auto of_machine = std::make_shared<TransferStudy<Measurer>>(settings, networks, measurer, options);
          for (const std::uint64_t seed : options.all_seeds())
            for (const std::string& name : networks) of_machine->add(name, seed);
          print = [of_machine] { of_machine->print(); };
        });
      });
  if (print) print();
  return status;
}
